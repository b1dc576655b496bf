//! Tests of futures together with tokens, groups, pauses, permits, full executors and panics.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::users::{USER, User};
use crate::common::waiting::{MINUTE, done, ended};
use filch::executor::Shutdown;
use filch::executor::{Executor, Inline, Reason, Rejected, TaskBuilder, from_fn, spawn_future};
use filch::fair::Queue;
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::task::{Cancel, CancelToken, CancelledBy, TaskGroup, is_cancelled};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use std::future::{Future, pending, poll_fn};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Its destructor sends the id of the thread on which it runs.
struct Tells(mpsc::Sender<ThreadId>);

impl Drop for Tells {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

/// Returns a future that is never ready, and a channel that gets the thread on which it is dropped.
pub(crate) fn sleeps() -> (impl Future<Output = ()> + Send + 'static, mpsc::Receiver<ThreadId>) {
    let (drops, dropped) = mpsc::channel();
    let tells = Tells(drops);
    let future = async move {
        let _tells = tells;
        pending::<()>().await;
    };
    (future, dropped)
}

fn here() -> ThreadId {
    thread::current().id()
}

fn is_by<T>(task: JoinHandle<T>, by: CancelledBy) -> bool {
    ended(task).err().and_then(|it| it.cancelled_by()) == Some(by)
}

/// The state of a future when it is cancelled: in a paused queue, without a permit, or asleep.
#[derive(Clone, Copy, Debug)]
enum Stands {
    Paused,
    WithoutPermit,
    Asleep,
}

const ALL: [Stands; 3] = [Stands::Paused, Stands::WithoutPermit, Stands::Asleep];

/// Makes a queue in which the future that `spawn` spawns is in the state `stands`. Returns the
/// queue, and the future that has the queue's only permit, if there is one.
fn standing<F>(stands: Stands, fair: &FairScheduler, spawn: F) -> (Queue, Option<JoinHandle<()>>)
where
    F: FnOnce(&Queue),
{
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    let mut first = None;
    match stands {
        Stands::Paused => _ = queue.pause(),
        Stands::WithoutPermit => first = Some(queue.spawn_future(pending())),
        Stands::Asleep => {}
    }
    spawn(&queue);
    if !matches!(stands, Stands::Paused) {
        // When this task has run on the only thread, the future with the permit has been polled.
        fair.queue("last").build().unwrap().spawn(|| ()).join().unwrap();
    }
    (queue, first)
}

/// P8: a cancelled future that no thread woke or polled never ended.
#[test]
fn a_future_ends_at_once_wherever_it_stands() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for stands in ALL {
        // By its handle, by its token, by its queue, by the queue's token.
        for by in 0..4 {
            let (token, (future, dropped)) = (CancelToken::new(), sleeps());
            let mut task = None;
            let (queue, first) = standing(stands, &fair, |queue| {
                task = Some(queue.task().token(&token).spawn_future(future));
            });
            let task = task.unwrap();
            let by = match by {
                0 => {
                    assert_eq!(task.cancel(), Cancel::Dequeued, "{stands:?}");
                    assert_eq!(task.cancel(), Cancel::Finished);
                    CancelledBy::Handle
                }
                1 => {
                    token.cancel();
                    CancelledBy::Token
                }
                2 => {
                    assert_eq!(queue.cancel(), 1 + usize::from(first.is_some()), "{stands:?}");
                    CancelledBy::Queue
                }
                _ => {
                    queue.token().cancel();
                    CancelledBy::Queue
                }
            };
            assert_eq!(dropped.try_recv(), Ok(here()), "{stands:?}, {by:?}: not dropped here");
            assert!(task.is_finished());
            assert!(is_by(task, by), "{stands:?}, {by:?}");
            first.inspect(|it| _ = it.cancel());
            queue.resume();
            queue.wait_idle().unwrap();
            let metrics = queue.metrics();
            let ended = metrics.completed + metrics.cancelled + metrics.tombstones;
            assert_eq!((metrics.pending, metrics.submitted), (0, ended), "{stands:?}, {by:?}");
        }
    }
}

/// P8: the shutdown of a pool with a sleeping future hung.
#[test]
fn a_future_that_nobody_wakes_ends_with_its_pool() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let (pool, (future, dropped)) = (ThreadPool::new(2).unwrap(), sleeps());
        let task = pool.spawn_future(future);
        pool.wait_idle().unwrap();
        pool.shutdown(how).unwrap();
        assert!(task.is_finished() && dropped.try_recv().is_ok());
        assert!(is_by(task, CancelledBy::Executor));

        let (locked, (future, dropped)) = (LockedPool::new(2).unwrap(), sleeps());
        let task = locked.spawn_future(future);
        locked.wait_idle().unwrap();
        locked.shutdown(how).unwrap();
        assert!(task.is_finished() && dropped.try_recv().is_ok());
        assert!(is_by(task, CancelledBy::Executor));

        let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
        let (future, dropped) = sleeps();
        let task = fair.spawn_future(future);
        if how == Shutdown::Cancel {
            fair.shutdown(how).unwrap();
            assert!(is_by(task, CancelledBy::Queue));
            assert!(dropped.recv_timeout(MINUTE).is_ok());
        }
    }
}

/// When the pool below a scheduler ends, its futures are cancelled in each state.
#[test]
fn futures_of_queues_end_with_the_pool_below() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let tasks = ALL.map(|stands| {
            let mut task = None;
            let queue =
                standing(stands, &fair, |queue| task = Some(queue.spawn_future(sleeps().0)));
            (task.unwrap(), queue)
        });
        pool.shutdown(how).unwrap();
        for (task, _queue) in tasks {
            assert!(is_by(task, CancelledBy::Executor));
        }
    }
}

#[test]
fn a_future_that_is_being_polled_ends_with_the_poll() {
    let pool = ThreadPool::new(1).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let (sleeping, dropped) = sleeps();
    let task = pool.spawn_future(async move {
        begun.send(here()).unwrap();
        released.recv().unwrap();
        assert!(is_cancelled());
        sleeping.await;
    });
    let worker = has_begun.recv().unwrap();
    assert_eq!(task.cancel(), Cancel::Requested);
    assert!(!task.is_finished());
    release.send(()).unwrap();
    assert_eq!(dropped.recv_timeout(MINUTE), Ok(worker));
    assert!(is_by(task, CancelledBy::Handle));
}

/// The handle is dropped during a poll that leaves no waker. After the poll, the future must be
/// dropped. async-task instead frees the memory, and never drops the future.
#[test]
fn a_future_that_nobody_can_wake_is_dropped() {
    let pool = ThreadPool::new(1).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let (sleeping, dropped) = sleeps();
    let task = pool.spawn_future(async move {
        begun.send(here()).unwrap();
        released.recv().unwrap();
        sleeping.await;
    });
    let worker = has_begun.recv().unwrap();
    drop(task);
    release.send(()).unwrap();
    assert_eq!(dropped.recv_timeout(MINUTE), Ok(worker));

    // A future that still has a waker is dropped with the last waker, not with the handle.
    let (place, group) = (Arc::new(Mutex::new(None::<Waker>)), TaskGroup::new());
    let (sleeping, dropped) = sleeps();
    let theirs = Arc::clone(&place);
    let keeps = poll_fn(move |context| {
        *theirs.lock().unwrap() = Some(context.waker().clone());
        Poll::Ready(())
    });
    let task = TaskBuilder::on(&Inline).group(&group).spawn_future(async move {
        keeps.await;
        sleeping.await;
    });
    drop(task);
    assert!(dropped.try_recv().is_err());
    let waker = place.lock().unwrap().take();
    drop(waker);
    assert_eq!(dropped.try_recv(), Ok(here()));
    assert!(group.wait().unwrap_err().is_cancelled());
}

/// An executor that accepts jobs up to a number which the test sets, and runs them in `run`.
#[derive(Clone, Default)]
struct Bounded(Arc<Mutex<(Vec<Job>, usize)>>);

impl Bounded {
    fn executor(&self) -> impl Executor + use<> {
        let same = self.clone();
        from_fn(NonZeroUsize::MIN, move |job| {
            let (jobs, room) = &mut *same.0.lock().unwrap();
            if jobs.len() >= *room {
                return Err(Rejected { item: job, reason: Reason::Full });
            }
            jobs.push(job);
            Ok(())
        })
    }

    fn set_room(&self, room: usize) {
        self.0.lock().unwrap().1 = room;
    }

    fn run(&self) {
        let jobs = std::mem::take(&mut self.0.lock().unwrap().0);
        jobs.into_iter().for_each(Job::run);
    }
}

#[test]
fn what_was_accepted_is_not_refused_when_it_is_woken() {
    for is_in_a_queue in [false, true] {
        let bounded = Bounded::default();
        bounded.set_room(1);
        let place = Arc::new(Mutex::new(None::<Waker>));
        let theirs = Arc::clone(&place);
        let future =
            poll_fn(move |context| match theirs.lock().unwrap().replace(context.waker().clone()) {
                None => Poll::Pending,
                Some(_) => Poll::Ready(7),
            });
        let fair = FairScheduler::over(bounded.executor());
        let task = match is_in_a_queue {
            true => fair.spawn_future(future),
            false => spawn_future(bounded.executor(), future),
        };
        bounded.run();
        bounded.set_room(0);
        let waker = place.lock().unwrap().clone().unwrap();
        // The waking thread has a lock that the poll takes, so it must not poll the future itself.
        let locked = place.lock().unwrap();
        waker.wake();
        drop(locked);
        bounded.set_room(1);
        let until = Instant::now() + MINUTE;
        while !task.is_finished() && Instant::now() < until {
            bounded.run();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(done(task), 7);
        // The scheduler owns the executor: a ticket that stayed there would keep both alive.
        bounded.set_room(0);
        bounded.run();
    }
}

#[test]
fn refused_futures_come_back() {
    let bounded = Bounded::default();
    let executor = Arc::new(bounded.executor());
    let refused = TaskBuilder::on(&executor).try_spawn_future(async { 7 }).unwrap_err();
    assert_eq!(refused.reason, Reason::NoFutures);
    let task = spawn_future(bounded.executor(), async { 7 });
    assert_eq!(task.join().unwrap_err().refused(), Some(Reason::Full));

    let (pool, group, token) = (ThreadPool::new(1).unwrap(), TaskGroup::new(), CancelToken::new());
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let full = fair.queue("full").capacity(1).paused().build().unwrap();
    let first = full.spawn_future(async {});
    pool.shutdown(Shutdown::Drain).unwrap();
    let builders: [(_, &dyn Executor); 2] = [(Reason::Closed, &pool), (Reason::Full, &full)];
    for (reason, executor) in builders {
        let (future, dropped) = sleeps();
        let task = TaskBuilder::on(executor).group(&group).token(&token);
        let refused = task.try_spawn_future(future).unwrap_err();
        assert_eq!(refused.reason, reason);
        assert!(dropped.try_recv().is_err(), "it is the caller's");
        group.wait().expect("what was refused is no business of the group");
        let task = TaskBuilder::on(executor).spawn_future(refused.item);
        assert_eq!(task.join().unwrap_err().refused(), Some(reason));
        assert_eq!(dropped.try_recv(), Ok(here()));
    }
    assert_eq!((full.metrics().refused, full.metrics().pending), (2, 1));
    // The queue has room again as soon as the first future has ended.
    assert_eq!(first.cancel(), Cancel::Dequeued);
    assert!(full.task().try_spawn_future(async {}).is_ok());
}

#[test]
fn a_group_waits_for_futures_and_has_their_panics() {
    keep_quiet(&["expected"]);
    let (pool, group) = (ThreadPool::new(2).unwrap(), TaskGroup::new());
    let yields = || {
        let mut polls = 0;
        poll_fn(move |context: &mut Context<'_>| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 9 { Poll::Ready(()) } else { Poll::Pending }
        })
    };
    let tasks: Vec<_> = (0..20).map(|_| pool.task().group(&group).spawn_future(yields())).collect();
    group.wait().unwrap();
    tasks.into_iter().for_each(done);
    let panics = pool.task().group(&group).spawn_future(async { panic!("expected") });
    assert_eq!(group.wait().unwrap_err().to_string(), "the task panicked: expected");
    assert!(panics.join().unwrap_err().is_panic());
    // A member that waits for its group waits for itself.
    let same = group.clone();
    let waits = pool.task().group(&group).spawn_future(async move { same.wait() });
    assert!(done(waits).unwrap_err().is_deadlock());
    group.wait().unwrap();
}

#[test]
fn tokens_that_are_cancelled_already_let_nothing_begin() {
    let (token, (future, dropped)) = (CancelToken::new(), sleeps());
    token.cancel_with("too late");
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    let task = queue.task().token(&token).spawn_future(future);
    assert_eq!(dropped.try_recv(), Ok(here()));
    assert_eq!(task.join().unwrap_err().reason(), Some("too late"));
    // The cancelled future has released the only permit.
    assert_eq!(done(queue.spawn_future(async { 7 })), 7);
    queue.wait_idle().unwrap();
}

#[test]
fn destructors_that_panic_leave_nobody_untold() {
    keep_quiet(&["expected"]);
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let pool = ThreadPool::builder()
        .num_threads(1)
        .panic_handler(move |_| _ = counted.fetch_add(1, SeqCst))
        .build()
        .unwrap();
    let explosive = || {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            pending::<()>().await;
        }
    };
    let queue = fair.queue("q").build().unwrap();
    let in_queue = [(); 3].map(|()| queue.spawn_future(explosive()));
    let in_pool = [(); 3].map(|()| pool.spawn_future(explosive()));
    fair.default_queue().spawn(|| ()).join().unwrap();
    pool.wait_idle().unwrap();
    assert_eq!(queue.cancel(), 3);
    pool.shutdown(Shutdown::Cancel).unwrap();
    assert!(in_queue.into_iter().all(|it| is_by(it, CancelledBy::Queue)));
    assert!(in_pool.into_iter().all(|it| is_by(it, CancelledBy::Executor)));
    assert_eq!(panics.load(SeqCst), 3);
}

/// The waker of a future that awaits the task panics. With async-task, that aborted the process.
#[test]
fn a_waker_that_panics_ends_nothing() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("expected");
        }
    }
    keep_quiet(&["expected"]);
    let pool = ThreadPool::new(1).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let mut task = pool.spawn_future(async move { released.recv() });
    let waker = Waker::from(Arc::new(Panics));
    let polled = std::pin::Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    release.send(()).unwrap();
    pool.wait_idle().unwrap();
    assert_eq!(done(task), Ok(()));
    assert_eq!(pool.metrics().panic_count, 1);
}

/// P17: the context of a pool or queue did not reach futures.
#[test]
fn the_context_is_entered_around_each_poll() {
    let pool = ThreadPool::builder().num_threads(1).context(User).build().unwrap();
    let fair = FairScheduler::builder(ThreadPool::new(1).unwrap()).context(User).build();
    let seen = || async {
        let mut users = vec![USER.get()];
        for _ in 0..3 {
            let mut is_first = true;
            poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            users.push(USER.get());
        }
        users
    };
    USER.set(7);
    let with = [pool.spawn_future(seen()), fair.spawn_future(seen())];
    let without = pool.task().without_context().spawn_future(seen());
    USER.set(0);
    with.into_iter().for_each(|it| assert_eq!(done(it), [7; 4]));
    assert_eq!(done(without), [0; 4]);
}

#[test]
fn a_task_expires_only_before_it_begins() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").paused().build().unwrap();
    let full = fair.queue("full").paused().capacity(9).build().unwrap();
    let (past, later) = (Instant::now(), Instant::now() + MINUTE);
    for queue in [&queue, &full] {
        let (future, dropped) = sleeps();
        let expired = [
            queue.task().deadline(past).spawn(|| ()),
            queue.task().deadline(past).spawn_future(future),
        ];
        let runs = queue.task().deadline(later).spawn(|| 7);
        let polled = queue.task().deadline(later).spawn_future(async { 7 });
        assert!(!expired[0].is_finished(), "nobody looks at the time");
        queue.resume();
        expired.into_iter().for_each(|it| {
            let error = ended(it).unwrap_err();
            assert!(error.is_expired() && error.is_cancelled() && error.cancelled_by().is_none());
        });
        assert!(dropped.recv_timeout(MINUTE).is_ok());
        assert_eq!((done(runs), done(polled)), (7, 7));
        queue.wait_idle().unwrap();
        let metrics = queue.metrics();
        assert_eq!((metrics.submitted, metrics.completed, metrics.cancelled), (4, 2, 2));
    }
    // A future that was polled before its deadline continues after it.
    let begun = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&begun);
    let soon = Instant::now() + Duration::from_millis(50);
    let pool = ThreadPool::new(1).unwrap();
    let task = pool.task().deadline(soon).spawn_future(poll_fn(move |context| {
        if theirs.swap(true, SeqCst) && Instant::now() > soon {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }));
    let result = ended(task);
    assert!(result.is_ok() == begun.load(SeqCst), "{result:?}");
}

#[test]
fn a_handle_cancels_on_drop_if_it_is_told_to() {
    let pool = ThreadPool::new(1).unwrap();
    let (future, dropped) = sleeps();
    let task = pool.spawn_future(future).cancel_on_drop();
    pool.wait_idle().unwrap();
    drop(task);
    assert_eq!(dropped.try_recv(), Ok(here()));
    // A `join_timeout` that gives up returns the handle, whose drop cancels. A `join` does not.
    let (future, dropped) = sleeps();
    let task = pool.spawn_future(future).cancel_on_drop();
    pool.wait_idle().unwrap();
    drop(task.join_timeout(Duration::ZERO));
    assert_eq!(dropped.try_recv(), Ok(here()));
    assert_eq!(pool.spawn(|| 7).cancel_on_drop().join().unwrap(), 7);
}

/// Nine futures wait for the only permit. The first, the fifth and the last are cancelled; the
/// permit reaches the others in order.
#[test]
fn permits_pass_by_those_that_have_been_cancelled() {
    let stepper = Stepper::new(1, 2);
    let fair = stepper.scheduler().build();
    let queue = fair.queue("q").max_in_flight(1).build().unwrap();
    let first = queue.spawn_future(pending::<()>());
    let others: Vec<_> = (0..9).map(|number| queue.spawn_future(async move { number })).collect();
    stepper.run_until_idle();
    for number in [0, 4, 8] {
        assert_eq!(others[number].cancel(), Cancel::Dequeued);
    }
    assert_eq!(queue.metrics().pending, 7);
    assert_eq!(first.cancel(), Cancel::Dequeued);
    stepper.run_until_idle();
    let numbers: Vec<_> = others.into_iter().filter_map(|it| it.join().ok()).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 6, 7]);
    let metrics = queue.metrics();
    assert_eq!((metrics.pending, metrics.submitted, metrics.completed), (0, 10, 6));
}

/// Queues use the same slot one after another. Each starts with all its permits and no futures.
#[test]
fn the_next_queue_in_a_slot_begins_anew() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    for round in 0..20 {
        let queue = fair.queue("q").max_in_flight(1).build().unwrap();
        let sleeping = queue.spawn_future(pending::<()>());
        let waiting = queue.spawn_future(async {});
        if round % 2 == 0 {
            queue.cancel();
        } else {
            sleeping.cancel();
            assert!(ended(waiting).is_ok());
        }
        assert!(ended(sleeping).is_err());
        queue.close();
    }
}

#[test]
fn a_future_that_cancels_what_it_is_in_ends_with_its_poll() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").build().unwrap();
    let same = queue.clone();
    let (sleeping, dropped) = sleeps();
    let task = queue.spawn_future(async move {
        same.cancel();
        sleeping.await;
    });
    assert!(is_by(task, CancelledBy::Queue));
    assert!(dropped.recv_timeout(MINUTE).is_ok());
    // A future that cancels its queue, but is ready in that poll, returns its output.
    let queue = fair.queue("q").build().unwrap();
    let same = queue.clone();
    assert_eq!(done(queue.spawn_future(async move { same.cancel() })), 0);
    let result = catch_unwind(AssertUnwindSafe(|| queue.wait_idle()));
    assert!(result.is_ok());
}
