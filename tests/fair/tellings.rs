//! Tests of threads that call a token's listeners, or drop tasks. Meanwhile the same thread waits
//! for tasks that it, or another thread, is about to cancel.

use crate::common::on_drop::OnDrop;
use crate::common::waiting::{MINUTE, ended, in_a_minute};
use crate::destructors::{Ends, WAITS, spawn_at_drop};
use crate::ends_meet::over_a_pool;
use filch::executor::{Inline, Limited, Rejected, Shutdown, spawn_future};
use filch::fair::{FairScheduler, Queue};
use filch::task::{CancelToken, CancelledBy, JoinHandle};
use filch::{Executor, Job, ThreadPool};
use std::future::{pending, poll_fn};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// Each function waits until the queue, or its scheduler, has no pending task.
const UNTIL_IDLE: [fn(&FairScheduler, &Queue); 8] = [
    |_, queue| queue.wait_idle().unwrap(),
    |_, queue| queue.shutdown(Shutdown::Drain).unwrap(),
    |_, queue| queue.shutdown_timeout(Shutdown::Drain, MINUTE).unwrap(),
    |_, queue| spawn_future(Inline, queue.drained()).join().unwrap(),
    |fair, _| fair.wait_idle().unwrap(),
    |fair, _| fair.shutdown(Shutdown::Drain).unwrap(),
    |fair, _| fair.shutdown_timeout(Shutdown::Drain, MINUTE).unwrap(),
    |fair, _| spawn_future(Inline, fair.drained()).join().unwrap(),
];

/// Spawns a closure and a future into the paused queue.
fn spawn_both(queue: &Queue) -> [JoinHandle<()>; 2] {
    [queue.spawn(|| ()), queue.spawn_future(pending())]
}

/// Checks that the future was cancelled, and the closure too if it has not run: `Drain` resumes the
/// queue.
fn were_cancelled([closure, future]: [JoinHandle<()>; 2], by: CancelledBy, reason: Option<&str>) {
    for error in ended(closure).err().into_iter().chain([ended(future).unwrap_err()]) {
        assert_eq!((error.cancelled_by(), error.reason()), (Some(by), reason));
    }
}

/// The token first tells a task's destructor, which waits. Only then would the token cancel the
/// queues.
#[test]
fn a_listener_waits_for_queues_that_the_same_token_cancels() {
    for waits in UNTIL_IDLE {
        in_a_minute(move || {
            let (fair, elsewhere, token) = (over_a_pool(), over_a_pool(), CancelToken::new());
            let (gives, given) = mpsc::channel::<(FairScheduler, Queue)>();
            let paused = elsewhere.queue("paused").paused().build().unwrap();
            let last = OnDrop(move || given.recv().iter().for_each(|(fair, it)| waits(fair, it)));
            let told = paused.task().token(&token).spawn(move || drop(last));
            let queue = |name| fair.queue(name).token(&token).paused().build().unwrap();
            let queues = [queue("a"), queue("b")];
            let tasks = queues.each_ref().map(spawn_both);
            gives.send((fair.clone(), queues[0].clone())).unwrap();
            token.cancel_with("enough");
            assert!(told.is_finished());
            for both in tasks {
                were_cancelled(both, CancelledBy::Queue, Some("enough"));
            }
            let counts = queues[0].metrics();
            assert_eq!((counts.cancelled + counts.completed, counts.pending), (2, 0));
        });
    }
}

/// Two queues with their schedulers, and an action that ends both queues, one after the other.
type Ending = ([(FairScheduler, Queue); 2], Box<dyn FnOnce()>);

/// Makes two paused queues, and ends both. The destructor of one queue's task waits for the other
/// queue. Tries each way to wait, and both orders of the queues.
fn one_waits_for_the_other(make: fn() -> Ending, by: CancelledBy, reason: Option<&'static str>) {
    for (waits, order) in UNTIL_IDLE.into_iter().flat_map(|it| [(it, [0, 1]), (it, [1, 0])]) {
        in_a_minute(move || {
            let (queues, end) = make();
            let [first, second] = order.map(|it| queues[it].clone());
            let tasks = spawn_both(&second.1);
            let _task = spawn_at_drop(&first.1, move || waits(&second.0, &second.1));
            end();
            were_cancelled(tasks, by, reason);
        });
    }
}

/// A token cancels two queues of different schedulers.
#[test]
fn a_destructor_waits_for_another_queue_that_the_same_token_cancels() {
    let make = || -> Ending {
        let token = CancelToken::new();
        let queues = [0, 1].map(|_| {
            let fair = over_a_pool();
            let queue = fair.queue("q").token(&token).paused().build().unwrap();
            (fair, queue)
        });
        (queues, Box::new(move || _ = token.cancel_with("enough")))
    };
    one_waits_for_the_other(make, CancelledBy::Queue, Some("enough"));
}

/// A running task of the first queue joins a task of the second. So a thread that waits for both
/// must first cancel both.
#[test]
fn a_listener_waits_for_queues_whose_tasks_wait_for_each_other() {
    let waits: [fn(FairScheduler); 2] = [
        |fair| fair.wait_idle().unwrap(),
        |fair| spawn_future(Inline, fair.drained()).join().unwrap(),
    ];
    for wait in waits {
        in_a_minute(move || {
            let (fair, elsewhere, token) = (over_a_pool(), over_a_pool(), CancelToken::new());
            let paused = elsewhere.queue("paused").paused().build().unwrap();
            let same = fair.clone();
            let last = OnDrop(move || wait(same.clone()));
            drop(paused.task().token(&token).spawn(move || drop(last)));
            let first = fair.queue("first").token(&token).build().unwrap();
            let second = fair.queue("second").token(&token).paused().build().unwrap();
            let ((begins, begun), task) = (mpsc::channel(), second.spawn(|| ()));
            let joins = first.spawn(move || {
                begins.send(()).unwrap();
                task.join().unwrap_err().is_cancelled()
            });
            begun.recv_timeout(MINUTE).unwrap();
            token.cancel();
            assert!(ended(joins).unwrap());
        });
    }
}

/// Returns two schedulers over one executor, with a paused queue each.
fn two_over<E: Executor + Clone + 'static>(executor: &E) -> [(FairScheduler, Queue); 2] {
    [0, 1].map(|_| {
        let fair = FairScheduler::over(executor.clone());
        let queue = fair.queue("q").paused().build().unwrap();
        (fair, queue)
    })
}

/// Two schedulers are over one executor, whose end is told to one after the other.
#[test]
fn a_destructor_waits_for_another_scheduler_whose_executor_has_ended() {
    let make = || -> Ending {
        let token = CancelToken::new();
        let executor = Arc::new(Ends(ThreadPool::new(1).unwrap(), token.clone()));
        (two_over(&executor), Box::new(move || _ = token.cancel_with("enough")))
    };
    one_waits_for_the_other(make, CancelledBy::Executor, Some("enough"));
}

/// Two schedulers are over one queue, which closes.
#[test]
fn a_destructor_waits_for_another_scheduler_whose_queue_below_has_closed() {
    let make = || -> Ending {
        let below = over_a_pool().queue("below").build().unwrap();
        let both = two_over(&below);
        let end = move || {
            below.wait_idle().unwrap(); // so that this thread tells the end
            below.close();
        };
        (both, Box::new(end))
    };
    one_waits_for_the_other(make, CancelledBy::Executor, None);
}

/// An executor that runs jobs at once, or drops them. It ends in the given call of `limited`.
#[derive(Default)]
struct Runs {
    drops: AtomicBool,
    end: CancelToken,
    calls: AtomicUsize,
}

impl Executor for Runs {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        if !self.drops.load(SeqCst) {
            job.run();
        }
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.end.clone())
    }

    fn limited(&self) -> Option<Limited> {
        if self.calls.fetch_sub(1, SeqCst) == 1 {
            self.end.cancel();
        }
        None
    }
}

/// Spawns a future that sleeps for ever into the first of three queues. Then lets the executor drop
/// its jobs.
fn one_sleeps(runs: &Arc<Runs>) -> (JoinHandle<()>, [Queue; 3]) {
    let fair = FairScheduler::over(Arc::clone(runs));
    let queues = ["a", "b", "c"].map(|it| fair.queue(it).build().unwrap());
    let (polls, polled) = mpsc::channel();
    let sleeping = queues[0].spawn_future(poll_fn(move |_| {
        polls.send(()).unwrap();
        Poll::<()>::Pending
    }));
    polled.recv_timeout(MINUTE).unwrap();
    runs.drops.store(true, SeqCst);
    (sleeping, queues)
}

/// The executor drops a ticket, so the scheduler drops the queued tasks in rounds. A destructor in
/// the second round ends the executor, after that round has passed the sleeping future.
#[test]
fn a_future_ends_though_a_destructor_of_the_second_round_ends_the_executor() {
    let runs = Arc::<Runs>::default();
    let (sleeping, [_a, b, c]) = one_sleeps(&runs);
    let _task = spawn_at_drop(&c, move || {
        let end = runs.end.clone();
        let _last = spawn_at_drop(&b, move || _ = end.cancel_with("enough"));
    });
    let error = ended(sleeping).unwrap_err();
    assert_eq!(error.cancelled_by(), Some(CancelledBy::Executor));
    assert_eq!(error.reason(), Some("enough"));
}

/// The executor ends in one of its calls during the rounds.
#[test]
fn a_future_ends_though_the_executor_ends_in_a_round() {
    for call in 1..40 {
        let runs = Arc::<Runs>::default();
        let (sleeping, [_a, _b, c]) = one_sleeps(&runs);
        runs.calls.store(call, SeqCst);
        let _ = c.try_spawn(|| ());
        runs.end.cancel(); // if there were fewer calls
        assert!(ended(sleeping).unwrap_err().is_cancelled(), "in call {call}");
    }
}

/// Spawns a task into the first queue. The destructor of each task spawns the next one.
fn spawn_chain(mut queues: std::vec::IntoIter<Queue>, tell: mpsc::Sender<()>) {
    if let Some(queue) = queues.next() {
        let mut rest = Some((queues, tell));
        let _task = spawn_at_drop(&queue, move || {
            let (queues, tell) = rest.take().unwrap();
            spawn_chain(queues, tell);
        });
    }
}

/// The executor drops each ticket. In each round over the queues, a destructor queues a task that
/// the round has passed.
#[test]
fn a_task_that_a_destructor_of_the_second_round_spawns_is_dropped() {
    let fair = FairScheduler::over(Runs { drops: true.into(), ..Runs::default() });
    let [a, b, c] = ["a", "b", "c"].map(|it| fair.queue(it).build().unwrap());
    let (tell, told) = mpsc::channel();
    spawn_chain(vec![c, b.clone(), a.clone(), b, a].into_iter(), tell);
    assert_eq!(told.recv_timeout(MINUTE), Err(RecvTimeoutError::Disconnected));
}

type Armed = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// An executor whose `limited` calls the armed closure once.
struct Acts(ThreadPool, Armed);

impl Executor for Acts {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.execute(job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn limited(&self) -> Option<Limited> {
        let armed = self.1.lock().unwrap().take();
        if let Some(act) = armed {
            act();
        }
        None
    }
}

/// This thread cancels the first queue, whose task's destructor waits for a task of the second.
/// Another thread begins to cancel the second queue between two looks of the waiting thread.
#[test]
fn a_wait_sees_that_another_thread_cancels_its_queue() {
    for waits in WAITS {
        let armed = Armed::default();
        let fair = FairScheduler::over(Acts(ThreadPool::new(1).unwrap(), Arc::clone(&armed)));
        let [first, second] = ["a", "b"].map(|it| fair.queue(it).paused().build().unwrap());
        let ((begins, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let _blocks = spawn_at_drop(&second, move || {
            begins.send(()).unwrap();
            let _ = released.recv_timeout(MINUTE);
        });
        let (same, mut wait) = (second.clone(), Some(waits(&second)));
        let act: Box<dyn FnOnce() + Send> = Box::new(move || {
            thread::spawn(move || same.cancel());
            begun.recv_timeout(MINUTE).unwrap();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(20)); // until the destructor waits
                drop(release);
            });
        });
        let ((tell, told), mut act) = (mpsc::channel(), Some(act));
        let _waits = spawn_at_drop(&first, move || {
            *armed.lock().unwrap() = act.take();
            tell.send(wait.take().unwrap()()).unwrap();
        });
        in_a_minute(move || _ = first.cancel());
        let error = told.recv_timeout(MINUTE).unwrap().unwrap();
        assert_eq!(error.cancelled_by(), Some(CancelledBy::Queue));
    }
}

/// A task that is dropped spawns another of its kind into the other queue, until one is refused.
struct Failover([Queue; 2], Arc<AtomicBool>);

impl Drop for Failover {
    fn drop(&mut self) {
        let Failover([queue, other], is_over) = self;
        if !is_over.load(SeqCst) {
            let next = Failover([other.clone(), queue.clone()], Arc::clone(is_over));
            if let Err(refused) = queue.spawn_detached(move || drop(next)) {
                is_over.store(true, SeqCst);
                drop(refused);
            }
        }
    }
}

/// The pool is cancelled while a task runs, so it has not ended. Each queue accepts what the
/// destructors of the other's tasks spawn.
#[test]
fn tasks_that_spawn_others_as_they_are_dropped_keep_no_canceller_busy() {
    in_a_minute(|| {
        let pool = Arc::new(ThreadPool::new(1).unwrap());
        let fair = FairScheduler::over(Arc::clone(&pool));
        let [a, b] = ["a", "b"].map(|it| fair.queue(it).build().unwrap());
        let ((begins, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let running = a.spawn(move || {
            begins.send(()).unwrap();
            let _ = released.recv_timeout(MINUTE);
        });
        begun.recv().unwrap();
        pool.spawn_detached(|| ()).unwrap();
        let first = Failover([b.clone(), a.clone()], Arc::default());
        a.spawn_detached(move || drop(first)).unwrap();
        let early = pool.shutdown_timeout(Shutdown::Cancel, Duration::from_millis(1));
        assert!(early.is_err());
        drop(release);
        running.join().unwrap();
    });
}

/// Each destructor cancels its own queue or another one, and so drops the next task inside itself.
/// A queue's token is cancelled after the last destructor of the queue has begun.
#[test]
fn destructors_that_cancel_queues_do_not_overflow_the_stack() {
    for step in [0, 1] {
        let fair = over_a_pool();
        let queues = ["a", "b"].map(|it| fair.queue(it).paused().build().unwrap());
        let (sends, sent) = mpsc::channel();
        let begun = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let listeners = [0, 1].map(|at| {
            let (token, begun) = (queues[at].token().clone(), Arc::clone(&begun));
            spawn_future(Inline, async move {
                token.cancelled().await;
                begun[at].load(SeqCst)
            })
        });
        for index in 0..20_000 {
            let (other, sends) = (queues[(index + step) % 2].clone(), sends.clone());
            let begun = Arc::clone(&begun);
            let cancels = move || {
                begun[index % 2].fetch_add(1, SeqCst);
                sends.send(other.cancel()).unwrap();
            };
            drop(spawn_at_drop(&queues[index % 2], cancels));
        }
        drop(sends);
        let cancel = thread::spawn(move || queues.map(|it| it.cancel()).iter().sum::<usize>());
        let dropped = cancel.join().unwrap();
        let nested: Vec<_> = sent.iter().collect();
        assert_eq!(nested.len(), 20_000, "each task is dropped");
        assert_eq!(dropped + nested.iter().sum::<usize>(), 20_000, "each is counted once");
        assert_eq!(listeners.map(|it| ended(it).unwrap()), [10_000; 2]);
    }
}
