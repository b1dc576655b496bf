//! Tests where two features of a queue meet, such as a future and the loss of the last handle. A
//! *tombstone* is the queued job of a task that has already ended or runs elsewhere. A *server* is
//! a thread that runs a queue's tasks.

use crate::common::waiting::{MINUTE, done, ended, in_a_minute, wait_for};
use filch::executor::{Futures, Inline, Reason, Rejected, Shutdown, TaskBuilder, spawn_future};
use filch::fair::{Clock, FairScheduler, Pick, Policy, Queue, Ready, Service, WorkQueue};
use filch::task::{Cancel, CancelToken, JoinHandle, TaskGroup};
use filch::{Executor, Job, ThreadPool};
use std::future::{pending, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn over_a_pool() -> FairScheduler {
    FairScheduler::over(ThreadPool::new(1).unwrap())
}

/// Checks a new queue: runs one task in it, after which the queue must have counted just that task.
fn is_sound(queue: &Queue) {
    assert_eq!(done(queue.spawn(|| 1)), 1);
    // The server may update the counters only when its lease ends, after `done` has returned.
    wait_for(|| (queue.metrics().pending, queue.metrics().running) == (0, 0));
    assert_eq!(queue.metrics().submitted, 1);
}

/// `spawn_future` consumes the last handle of queue `a`. Once, `a` was over before the future was
/// in it, and the next queue of the slot polled the future.
#[test]
fn a_future_spawned_with_the_last_handle_is_of_its_queue() {
    let fair = over_a_pool();
    let task = spawn_future(fair.queue("a").build().unwrap(), async { 7 });
    assert_eq!(done(task), 7);
    is_sound(&fair.queue("b").build().unwrap());
}

/// A user's executor that keeps a queue's futures, but no handle of the queue.
struct Only(Futures);

impl Executor for Only {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Closed })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn futures(&self) -> Option<Futures> {
        Some(self.0.clone())
    }
}

#[test]
fn a_queue_that_is_over_refuses_futures() {
    let fair = over_a_pool();
    let a = fair.queue("a").build().unwrap();
    let only = Only(a.futures().unwrap());
    drop(a);
    let refused = |only| TaskBuilder::on(only).try_spawn_future(async { 7 }).unwrap_err().reason;
    assert_eq!(refused(&only), Reason::Closed, "its slot is free");
    let b = fair.queue("b").build().unwrap();
    assert_eq!(b.slot(), 1, "the slot of `a`");
    assert_eq!(refused(&only), Reason::Closed, "its slot has another queue");
    assert_eq!(b.metrics().refused, 0);
    is_sound(&b);
}

/// A running task learns of the cancellation from the queue's token.
#[test]
fn a_shutdown_cancels_the_tokens_of_the_queues() {
    let fair = over_a_pool();
    let until_cancelled = |begins: mpsc::Sender<()>, token: &CancelToken| {
        begins.send(()).unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while !token.is_cancelled() && Instant::now() < end {
            thread::yield_now();
        }
        token.is_cancelled()
    };
    let work = WorkQueue::on(fair.queue("w").build().unwrap(), until_cancelled);
    let (begins, begun) = mpsc::channel();
    let task = work.push(begins);
    begun.recv_timeout(MINUTE).unwrap();
    fair.shutdown(Shutdown::Cancel).unwrap();
    assert!(work.queue().token().is_cancelled());
    assert!(done(task), "the task was not told");
}

/// Its destructor calls `wait_idle` of the scheduler.
struct WaitsFor(FairScheduler);

impl Drop for WaitsFor {
    fn drop(&mut self) {
        let _ = self.0.wait_idle();
    }
}

/// The first token's listener waits for a task that ends when the second token is cancelled.
#[test]
fn a_shutdown_cancels_all_tokens_before_a_listener_waits() {
    in_a_minute(|| {
        let (fair, elsewhere) = (over_a_pool(), over_a_pool());
        let (a, b) = (fair.queue("a").build().unwrap(), fair.queue("b").build().unwrap());
        let (token, (begins, begun)) = (b.token().clone(), mpsc::channel());
        let until_cancelled = move || {
            begins.send(()).unwrap();
            while !token.is_cancelled() {
                thread::yield_now();
            }
        };
        b.spawn_detached(until_cancelled).unwrap();
        begun.recv().unwrap();
        let paused = elsewhere.queue("p").paused().build().unwrap();
        let waits = WaitsFor(fair.clone());
        let task = paused.task().token(a.token()).spawn(move || drop(waits));
        fair.shutdown(Shutdown::Cancel).unwrap();
        assert!(ended(task).unwrap_err().is_cancelled());
    });
}

/// A policy whose `opened` panics, so that the panic handler runs within `build`.
struct Opens;

impl Policy for Opens {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        ready.iter().next().map(Pick::of)
    }

    fn opened(&self, slot: usize) {
        assert_eq!(slot, 0, "a queue is built");
    }
}

/// The panic handler shuts the scheduler down while `build` has opened the queue, but has not
/// linked it to its token yet.
#[test]
fn a_queue_that_a_shutdown_cancels_as_it_is_built_has_a_cancelled_token() {
    let this = Arc::new(Mutex::new(None::<FairScheduler>));
    let same = Arc::clone(&this);
    let shuts_down = move |_| {
        let fair = same.lock().unwrap().take().unwrap();
        fair.shutdown(Shutdown::Cancel).unwrap();
    };
    let fair = FairScheduler::builder(Inline).policy(|| Opens).panic_handler(shuts_down).build();
    *this.lock().unwrap() = Some(fair.clone());
    let queue = fair.queue("q").build().unwrap();
    assert!(queue.is_cancelled());
    assert!(queue.token().is_cancelled());
}

/// Its destructor sends a message, and then blocks until it receives one.
struct Slow(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
        let _ = self.1.recv_timeout(MINUTE);
    }
}

/// A server removes the tombstone of a future whose destructor still runs. So the count of
/// tombstones is lowered before the canceller has raised it.
#[test]
fn a_tombstone_taken_before_its_future_has_ended_leaves_room() {
    let fair = over_a_pool();
    let queue = fair.queue("q").capacity(2).paused().build().unwrap();
    let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
    let slow = Slow(begins, ends);
    let future = queue.spawn_future(async move {
        let _slow = slow;
        pending::<()>().await;
    });
    thread::scope(|scope| {
        let canceller = scope.spawn(|| future.cancel());
        begun.recv_timeout(MINUTE).unwrap();
        queue.resume();
        done(queue.spawn(|| ()));
        wait_for(|| queue.metrics().running == 0);
        queue.pause();
        assert_eq!(queue.spawn(|| ()).cancel(), Cancel::Dequeued);
        let spawned = queue.try_spawn(|| ()).map_err(|it| it.reason);
        end.send(()).unwrap();
        assert_eq!(canceller.join().unwrap(), Cancel::Dequeued);
        assert!(spawned.is_ok(), "{spawned:?}");
        queue.resume();
        done(spawned.unwrap());
    });
    wait_for(|| queue.metrics().pending == 0);
}

/// Closes a queue when a lease is about to end, and notes whether the queue's end is reported.
struct Closes(Arc<Mutex<Option<(Queue, CancelToken)>>>, Arc<Mutex<Vec<(u64, usize, bool)>>>);

impl Policy for Closes {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        ready.iter().next().map(Pick::of)
    }

    fn served(&self, _: Pick, service: Service, _: Ready<'_>) {
        let both = self.0.lock().unwrap().take_if(|_| service.tasks > 0);
        if let Some((queue, end)) = both {
            queue.close();
            let metrics = queue.metrics();
            let noted = (metrics.pending, metrics.running, end.is_cancelled());
            self.1.lock().unwrap().push(noted);
        }
    }
}

#[test]
fn a_queue_closed_between_its_last_task_and_the_end_of_the_lease_has_ended() {
    let (closed, noted) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let (same, notes) = (Arc::clone(&closed), Arc::clone(&noted));
    let policy = move || Closes(Arc::clone(&same), Arc::clone(&notes));
    let fair = FairScheduler::builder(Inline).policy(policy).build();
    let queue = fair.queue("q").build().unwrap();
    let end = queue.end().unwrap();
    *closed.lock().unwrap() = Some((queue.clone(), end.clone()));
    done(queue.spawn(|| ()));
    assert_eq!(*noted.lock().unwrap(), [(0, 1, false)]);
    assert!(end.is_cancelled(), "the lease is over");
}

/// One worker runs the task inside `join`. The other worker then removes the task's job from the
/// queue. So the queue has no pending task while the task runs, and must not be over yet.
#[test]
fn a_closed_queue_tells_its_end_after_all_that_its_tasks_spawn() {
    let pool = ThreadPool::new(2).unwrap();
    let queue = FairScheduler::over(pool.clone()).queue("q").build().unwrap();
    let end = queue.end().unwrap();
    let (begins, begun) = mpsc::channel::<()>();
    let (blocks, blocked) = mpsc::channel();
    let other = pool.spawn(move || {
        blocks.send(()).unwrap();
        begun.recv_timeout(MINUTE).unwrap();
    });
    blocked.recv_timeout(MINUTE).unwrap();
    let (same, told) = (queue.clone(), end.clone());
    let waits = pool.spawn(move || {
        let inner = same.clone();
        let task = same.spawn(move || {
            begins.send(()).unwrap();
            wait_for(|| inner.metrics().tombstones == 1);
            inner.close();
            (inner.metrics().pending, told.is_cancelled(), inner.spawn(|| 7))
        });
        task.join().unwrap() // on this worker
    });
    let (pending, is_told, last) = done(waits);
    assert_eq!((pending, is_told, done(last)), (0, false, 7));
    done(other);
    queue.wait_idle().unwrap();
    assert!(end.is_cancelled());
}

/// A waker that closes the queue and then spawns a task into it.
struct Closer(Queue, CancelToken, Mutex<mpsc::Sender<(bool, bool)>>);

impl Wake for Closer {
    fn wake(self: Arc<Self>) {
        self.0.close();
        let is_told = self.1.is_cancelled();
        let accepted = self.0.spawn_detached(|| ()).is_ok();
        self.2.lock().unwrap().send((is_told, accepted)).unwrap();
    }
}

/// In a queue with a capacity, a task leaves the count before its handle is woken. The waker then
/// closes the queue and spawns into it; the queue's end must come after that second task.
#[test]
fn what_the_waker_of_the_last_task_spawns_comes_before_the_end() {
    let pool = ThreadPool::new(1).unwrap();
    let queue = FairScheduler::over(pool).queue("q").capacity(8).paused().build().unwrap();
    let (end, (sender, woken)) = (queue.end().unwrap(), mpsc::channel());
    let mut task = queue.spawn(|| ());
    let waker = Waker::from(Arc::new(Closer(queue.clone(), end.clone(), Mutex::new(sender))));
    assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
    queue.resume();
    assert_eq!(woken.recv_timeout(MINUTE), Ok((false, true)));
    drop(waker);
    queue.wait_idle().unwrap();
    assert!(end.is_cancelled() && queue.metrics().completed == 2);
}

/// Its destructor spawns a task into the queue and waits for it.
struct Last(Queue, mpsc::Sender<bool>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.resume();
        let task = self.0.spawn(|| ());
        let waited = task.join_timeout(Duration::from_secs(5));
        self.1.send(matches!(waited, Ok(Ok(())))).unwrap();
    }
}

/// Once, the thread that cancelled the task held the queue's only lease while the destructor ran,
/// so that the destructor waited in vain.
#[test]
fn the_destructor_of_a_cancelled_task_takes_no_place() {
    let fair = over_a_pool();
    let queue = fair.queue("q").capacity(8).max_parallel(1).paused().build().unwrap();
    let (sender, runs) = mpsc::channel();
    let last = Last(queue.clone(), sender);
    let task = queue.spawn(move || drop(last));
    assert_eq!(task.cancel(), Cancel::Dequeued);
    assert!(runs.recv_timeout(MINUTE).unwrap(), "no task begins");
    assert!(ended(task).unwrap_err().is_cancelled());
}

/// A waker that sends a message, and then blocks until it receives one.
struct Sleepy(Mutex<(mpsc::Sender<()>, mpsc::Receiver<()>)>);

impl Wake for Sleepy {
    fn wake(self: Arc<Self>) {
        let (begins, ends) = &*self.0.lock().unwrap();
        begins.send(()).unwrap();
        let _ = ends.recv_timeout(MINUTE);
    }
}

/// With 4096 tombstones, the cancelled future stays counted until a server takes its job. So queue
/// `a` can end while the canceller still wakes the future's handle. The canceller returns the
/// future's permit only after that.
#[test]
fn a_future_that_outlives_its_queue_returns_no_permit_to_the_next() {
    let (fair, token) = (over_a_pool(), CancelToken::new());
    let a = fair.queue("a").capacity(10_000).max_in_flight(1).paused().build().unwrap();
    for _ in 0..4096 {
        assert_eq!(a.spawn(|| ()).cancel(), Cancel::Dequeued);
    }
    let mut future = a.task().token(&token).spawn_future(pending::<()>());
    let ((begins, begun), (end, ends)) = (mpsc::channel(), mpsc::channel());
    let waker = Waker::from(Arc::new(Sleepy(Mutex::new((begins, ends)))));
    assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
    thread::scope(|scope| {
        let canceller = scope.spawn(|| token.cancel());
        begun.recv_timeout(MINUTE).unwrap();
        drop(a);
        wait_for(|| fair.report().queues.len() == 1);
        let b = fair.queue("b").max_in_flight(1).build().unwrap();
        assert_eq!(b.slot(), 1, "the slot of `a`");
        end.send(()).unwrap();
        assert!(canceller.join().is_ok(), "a permit that nobody has");
        assert_eq!([7, 8].map(|it| done(b.spawn_future(async move { it }))), [7, 8]);
    });
}

/// The refused task has the queue's id, but the thread that runs it has no lease. So it must not
/// spawn into the queue, whose end has already been reported.
#[test]
fn a_refused_task_that_is_run_by_hand_is_none_of_the_queue() {
    let queue = over_a_pool().queue("q").build().unwrap();
    let (end, same, group) = (queue.end().unwrap(), queue.clone(), TaskGroup::new());
    queue.close();
    assert!(end.is_cancelled());
    let inner = move || assert!(same.spawn_detached(|| ()).is_err(), "it is closed");
    queue.task().group(&group).spawn_detached(inner).unwrap_err().item.run();
    group.wait().unwrap();
}

/// A clock whose `now` calls the armed closure once.
struct Acts(Armed);

type Armed = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl Clock for Acts {
    fn now(&self) -> Duration {
        let armed = self.0.lock().unwrap().take();
        if let Some(act) = armed {
            act();
        }
        Duration::ZERO
    }
}

/// Returns a sleeping future, which is the last task of a queue without a handle, and its waker. A
/// wake reads the clock just before it pushes the job.
fn last_of_its_queue() -> (FairScheduler, Armed, JoinHandle<()>, Waker) {
    let armed = Armed::default();
    let clock = Acts(Arc::clone(&armed));
    let fair = FairScheduler::builder(Inline).clock(clock).measure_waits(true).build();
    let queue = fair.queue("a").build().unwrap();
    let (tell, told) = mpsc::channel();
    let task = queue.spawn_future(poll_fn(move |context| {
        tell.send(context.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    (fair, armed, task, told.recv().unwrap())
}

#[test]
fn a_wake_after_the_end_of_its_queue_keeps_no_scheduler_alive() {
    let (fair, armed, task, waker) = last_of_its_queue();
    *armed.lock().unwrap() = Some(Box::new(move || assert_eq!(task.cancel(), Cancel::Dequeued)));
    waker.wake();
    assert_eq!(fair.report().queues.len(), 1, "only the default queue is left");
    drop(fair);
    assert_eq!(Arc::strong_count(&armed), 1, "the scheduler has a clock no more");
}

/// The job of queue `a`'s cancelled future gets into queue `b`, which has taken over the slot. It
/// must not count there: `b` still leaves 4096 tombstones uncounted.
#[test]
fn a_wake_after_the_end_of_its_queue_does_not_count_in_the_next() {
    let (fair, armed, task, waker) = last_of_its_queue();
    let (sends, sent) = mpsc::channel();
    *armed.lock().unwrap() = Some(Box::new(move || {
        assert_eq!(task.cancel(), Cancel::Dequeued);
        sends.send(fair.queue("b").capacity(10_000).build().unwrap()).unwrap();
    }));
    waker.wake();
    let b = sent.recv().unwrap();
    assert_eq!((b.slot(), b.metrics().pending), (1, 0), "the slot of `a`");
    b.pause();
    for _ in 0..4097 {
        assert_eq!(b.spawn(|| ()).cancel(), Cancel::Dequeued);
    }
    assert_eq!(b.metrics().pending, 1);
}
