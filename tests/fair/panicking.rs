//! Tests that a scheduler survives panics of the user's parts: policy, clock, executor, context,
//! destructors. A panic costs at most one *lease*, a thread's right to run tasks of a queue, or one
//! *ticket*, a scheduler's job. It leaves no counter wrong.

use crate::common::alone::alone;
use crate::common::bomb::Bomb;
use crate::common::contexts::{on_capture, panic_of};
use crate::common::waiting::{MINUTE, done, ended, in_a_minute};
use filch::executor::{Rejected, Shutdown};
use filch::fair::{Clock, FairScheduler, Pick, Policy, Queue, Ready, Reweighted, Service};
use filch::task::{CancelToken, ContextFlow, TaskGroup, is_cancelled};
use filch::{Executor, Job, ThreadPool};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Panics in `panics` calls with the name `name`, after `calls_before` calls with that name.
#[derive(Clone)]
struct Fuse(Arc<Mutex<Lit>>);

struct Lit {
    name: &'static str,
    calls_before: usize,
    panics: usize,
}

impl Fuse {
    fn new(name: &'static str, calls_before: usize, panics: usize) -> Self {
        Fuse(Arc::new(Mutex::new(Lit { name, calls_before, panics })))
    }

    fn call(&self, name: &str) {
        let mut lit = self.0.lock().unwrap();
        if lit.name != name {
            return;
        }
        if lit.calls_before > 0 {
            lit.calls_before -= 1;
        } else if lit.panics > 0 {
            lit.panics -= 1;
            drop(lit);
            std::panic::panic_any(self.clone());
        }
    }

    fn is_burnt(&self) -> bool {
        self.0.lock().unwrap().panics == 0
    }
}

/// A policy, a clock or an executor that panics when its fuse does.
struct Fused<T>(Fuse, T);

impl Policy for Fused<()> {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        self.0.call("pick");
        ready.iter().last().map(Pick::of)
    }
    fn opened(&self, _: usize) {
        self.0.call("opened");
    }
    fn reweighted(&self, _: usize, _: Reweighted, _: Ready<'_>) {
        self.0.call("reweighted");
    }
    fn arrives(&self, _: usize, _: Ready<'_>) {
        self.0.call("arrives");
    }
    fn changed(&self, _: usize, _: Ready<'_>) {
        self.0.call("changed");
    }
    fn begins(&self, _: Pick) {
        self.0.call("begins");
    }
    fn served(&self, _: Pick, _: Service, _: Ready<'_>) {
        self.0.call("served");
    }
}

impl Clock for Fused<Instant> {
    fn now(&self) -> Duration {
        self.0.call("now");
        self.1.elapsed()
    }
}

impl Executor for Fused<ThreadPool> {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.call("execute");
        let submitted = self.1.execute(job);
        self.0.call("having executed");
        submitted
    }
    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.0.call("execute_last");
        let submitted = self.1.execute_last(job);
        self.0.call("having executed last");
        submitted
    }
    fn parallelism(&self) -> NonZeroUsize {
        self.0.call("parallelism");
        self.1.parallelism()
    }
    fn is_cancelled(&self) -> bool {
        self.0.call("is_cancelled");
        self.1.is_cancelled()
    }
}

/// Returns a scheduler whose policy, clock and executor use `fuse`, and a receiver that gets one
/// message for each call of the panic handler.
fn scheduler(fuse: &Fuse, threads: usize) -> (FairScheduler, Receiver<()>) {
    let ((panics, inbox), same) = (mpsc::channel(), fuse.clone());
    let pool = ThreadPool::new(threads).unwrap();
    let fair = FairScheduler::builder(Fused(fuse.clone(), pool))
        .policy(move || Fused(same.clone(), ()))
        .clock(Fused(fuse.clone(), Instant::now()))
        .quantum(Duration::ZERO)
        .measure_waits(true)
        .panic_handler(move |payload| {
            assert!(payload.is::<Fuse>());
            panics.send(()).unwrap();
        })
        .build();
    (fair, inbox)
}

/// Calls `wait_idle` of the scheduler, and panics if it takes longer than a minute.
fn wait_idle(fair: &FairScheduler) {
    let ((done, inbox), fair) = (mpsc::channel(), fair.clone());
    std::thread::spawn(move || {
        fair.wait_idle().unwrap();
        done.send(()).unwrap();
    });
    inbox.recv_timeout(MINUTE).expect("something stays counted");
}

fn nothing_is_lost(name: &'static str, calls_before: usize, panics: usize) {
    let fuse = Fuse::new(name, calls_before, panics);
    let (fair, inbox) = scheduler(&fuse, 2);
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    let runs = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for round in 0..20 {
        if round % 5 == 4 {
            wait_idle(&fair);
        }
        for queue in &queues {
            let runs = runs.clone();
            accepted +=
                usize::from(queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).is_ok());
            queue.set_weight(round + 1).unwrap();
        }
    }
    wait_idle(&fair);
    assert_eq!(runs.load(SeqCst), accepted, "{name}: accepted and run, or refused");
    assert!(accepted >= 40 - panics, "{name}: {accepted} of 40 accepted");
    for _ in 0..panics {
        // The panic may come after the last task, when the ticket submits its successor.
        let told = inbox.recv_timeout(MINUTE);
        assert!(told.is_ok(), "{name}: the handler gets each payload");
    }
    assert!(fuse.is_burnt(), "{name} was not called often enough");
    assert!(inbox.try_recv().is_err(), "{name}: the handler gets each payload once");
    for queue in &queues {
        let begin = Instant::now();
        // A lease ends only after its tasks have ended, so this may take a moment.
        while queue.metrics().running > 0 {
            assert!(begin.elapsed() < MINUTE, "{name}: a lease stays counted");
            std::thread::yield_now();
        }
    }
    // The queue still runs tasks.
    assert_eq!(done(queues[0].spawn(|| 7)), 7);
    wait_idle(&fair);
}

/// P6: a policy that panicked once in `pick` or `begins` stopped the scheduler for good.
#[test]
fn a_policy_that_panics_costs_its_advice() {
    for name in ["pick", "arrives", "changed", "begins", "served", "opened", "reweighted"] {
        nothing_is_lost(name, 0, 1);
        nothing_is_lost(name, 1, 2);
    }
    nothing_is_lost("pick", 0, 10);
}

/// P6: a clock that panicked once stopped a scheduler with one thread for good.
#[test]
fn a_clock_that_panics_stands_still() {
    for calls_before in 0..12 {
        nothing_is_lost("now", calls_before, 1);
    }
    nothing_is_lost("now", 3, 10);
}

/// P7: an executor that panicked in `execute` left a task counted for ever, and `wait_idle` hung.
#[test]
fn an_executor_that_panics_costs_a_ticket() {
    for name in ["execute", "having executed", "execute_last", "having executed last"] {
        nothing_is_lost(name, 0, 1);
        nothing_is_lost(name, 1, 1);
    }
    for calls_before in 0..4 {
        nothing_is_lost("parallelism", calls_before, 1);
    }
}

/// If `capture` of the context panics in `install`, the caller gets the panic, as with `spawn`.
/// Once, the guard that protects the caller's frame aborted the process.
#[test]
fn an_install_whose_context_panics_is_left() {
    alone(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let fails = on_capture(|| resume_unwind(Box::new("captured")));
        let queue = fair.queue("a").context(fails).build().unwrap();
        assert_eq!(panic_of(|| drop(queue.spawn(|| ()))), "captured");
        assert_eq!(panic_of(|| queue.install(|| ())), "captured");
    });
}

/// The queue's last handle, kept by `with_current`, is dropped at the end of the lease. The
/// context's destructor panics there; the lease must still be given back.
#[test]
fn a_handle_that_panics_as_it_goes_with_the_lease_leaves_the_scheduler_whole() {
    in_a_minute(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let bomb = Bomb;
        let explodes = on_capture(move || _ = &bomb);
        let queue = fair.queue("a").context(explodes).build().unwrap();
        let (begun, begins) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let task = queue.spawn(move || {
            Queue::with_current(|queue| assert!(queue.is_some()));
            begun.send(()).unwrap();
            goes.recv().unwrap();
        });
        begins.recv().unwrap();
        drop(queue);
        go.send(()).unwrap();
        done(task);
        fair.wait_idle().unwrap();
        assert_eq!(done(fair.spawn(|| 7)), 7);
        while fair.report().queues.len() > 1 {
            std::thread::yield_now(); // until only the default queue is left
        }
    });
}

/// `join` continues the panic of the first closure, not the panic of a destructor of the second.
#[test]
fn a_join_continues_the_first_panic_though_a_destructor_panics() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").build().unwrap();
    let bomb = Bomb;
    let panic = panic_of(|| {
        queue.join(|| resume_unwind(Box::new("first")), move || drop(bomb));
    });
    assert_eq!(panic, "first");
}

/// A listener of the queue's token panics. The running task must still see that it is cancelled.
#[test]
fn a_queue_is_cancelled_and_shut_down_though_a_listener_panics() {
    let (panics, panicked) = mpsc::channel();
    let handler = move |_| panics.send(()).unwrap();
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::builder(pool).panic_handler(handler).build();
    let elsewhere = FairScheduler::over(ThreadPool::new(1).unwrap());
    let paused = elsewhere.queue("p").paused().build().unwrap();
    for is_shutdown in [false, true] {
        let queue = fair.queue("q").build().unwrap();
        let bomb = Bomb;
        let listener = paused.task().token(queue.token()).spawn(move || drop(bomb));
        let (begins, begun) = mpsc::channel();
        let running = queue.spawn(move || {
            begins.send(()).unwrap();
            while !is_cancelled() {
                std::thread::yield_now();
            }
        });
        begun.recv_timeout(MINUTE).unwrap();
        let queued = queue.spawn(|| ());
        if is_shutdown {
            queue.shutdown(Shutdown::Cancel).unwrap();
            assert!(running.is_finished());
        } else {
            assert_eq!(queue.cancel(), 1);
        }
        done(running);
        for task in [queued, listener] {
            assert!(ended(task).unwrap_err().is_cancelled());
        }
        assert_eq!(panicked.try_iter().count(), 1);
    }
}

/// A thread runs a detached task inside `group.wait`, and the destructor of the task's result
/// panics. The group reports the panic, and the lease for that task ends.
#[test]
fn a_result_that_panics_in_a_wait_for_a_group_leaves_the_queue_whole() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("a").max_parallel(2).build().unwrap();
        let same = queue.clone();
        let waits = pool.spawn(move || {
            let group = TaskGroup::new();
            drop(same.task().group(&group).spawn(|| Bomb));
            group.wait()
        });
        let waited = ended(waits);
        fair.wait_idle().unwrap();
        assert!(waited.unwrap().unwrap_err().is_panic());
    });
}

/// A thread that joins an expired task drops it, and its destructor panics. The lease for that task
/// must still end.
#[test]
fn an_expired_task_that_panics_as_it_goes_leaves_the_queue_whole() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("a").max_parallel(2).build().unwrap();
        let same = queue.clone();
        let waits = pool.spawn(move || {
            let bomb = Bomb;
            let task = same.task().deadline(Instant::now()).spawn(move || drop(bomb));
            task.join().map_err(|error| error.is_cancelled())
        });
        let waited = ended(waits);
        fair.wait_idle().unwrap();
        assert!(waited.unwrap().is_err());
    });
}

/// A context whose snapshot panics when it is dropped while the flag is set.
struct Armed(&'static AtomicBool);

#[derive(Clone)]
struct ArmedSnapshot(&'static AtomicBool);

impl Drop for ArmedSnapshot {
    fn drop(&mut self) {
        assert!(!self.0.load(SeqCst), "expected: dropped");
    }
}

impl ContextFlow for Armed {
    type Snapshot = ArmedSnapshot;

    fn capture(&self) -> ArmedSnapshot {
        ArmedSnapshot(self.0)
    }

    fn enter<R>(snapshot: ArmedSnapshot, run: impl FnOnce() -> R) -> R {
        std::mem::forget(snapshot);
        run()
    }
}

/// A closed queue refuses the join, and drops the snapshot in the caller. A panic there must not
/// abort the process.
#[test]
fn a_refused_install_whose_snapshot_panics_is_left() {
    static ARMED: AtomicBool = AtomicBool::new(false);
    alone(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let queue = fair.queue("a").context(Armed(&ARMED)).build().unwrap();
        queue.close();
        ARMED.store(true, SeqCst);
        assert!(queue.join_with(&CancelToken::new(), || 1, || 2).is_err());
    });
}

#[test]
fn a_join_continues_the_first_panic_though_a_snapshot_panics() {
    static ARMED: AtomicBool = AtomicBool::new(false);
    alone(|| {
        let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
        let queue = fair.queue("a").context(Armed(&ARMED)).build().unwrap();
        let same = queue.clone();
        let panic = done(queue.spawn(move || {
            let first = || {
                ARMED.store(true, SeqCst);
                resume_unwind(Box::new("first"))
            };
            let panic = panic_of(|| _ = same.join(first, || ()));
            ARMED.store(false, SeqCst);
            panic
        }));
        assert_eq!(panic, "first");
    });
}
