//! Tests where a user's destructor panics or runs late: of a snapshot, a closure or an output.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::scaled;
use crate::common::waiting::{done, ended};
use crate::futures_meet::sleeps;
use filch::executor::{Futures, Inline, Reason, Rejected, TaskBuilder, from_fn};
use filch::task::{CancelToken, ContextFlow, Flow, TaskGroup};
use filch::{Executor, FairScheduler, Job, ThreadPool};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

/// A context whose snapshots panic when they are dropped outside a task.
struct Explosive;

struct Explodes(#[allow(dead_code)] Bomb);

impl Clone for Explodes {
    fn clone(&self) -> Self {
        Explodes(Bomb)
    }
}

impl ContextFlow for Explosive {
    type Snapshot = Explodes;

    fn capture(&self) -> Explodes {
        Explodes(Bomb)
    }

    fn enter<R>(snapshot: Explodes, run: impl FnOnce() -> R) -> R {
        std::mem::forget(snapshot);
        run()
    }
}

/// An executor that refuses every job. `end` is the token of its end, and `roll` its list of
/// futures.
#[derive(Clone)]
struct Full {
    end: Option<CancelToken>,
    roll: Option<Futures>,
}

impl Full {
    fn with_end(token: &CancelToken) -> Self {
        Full { end: Some(token.clone()), roll: None }
    }

    fn with_roll(over: Full) -> Self {
        Full { end: None, roll: Some(Futures::over(over)) }
    }
}

impl Executor for Full {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        Err(Rejected { item: job, reason: Reason::Full })
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn end(&self) -> Option<CancelToken> {
        self.end.clone()
    }

    fn futures(&self) -> Option<Futures> {
        self.roll.clone()
    }
}

/// The caller gets a refused future or closure back, even if the destructor of its snapshot panics.
/// If that panic ended the spawn, the roll would keep a pointer to the freed future.
#[test]
fn a_refused_task_comes_back_though_its_snapshot_panics() {
    keep_quiet(&["expected"]);
    let (end, flow) = (CancelToken::new(), Flow::new(Explosive));
    let full = Full::with_roll(Full::with_end(&end));
    let ended = Full::with_roll(Full::with_end(&CancelToken::new()));
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let closed = fair.queue("closed").build().unwrap();
    closed.close();
    let executors: [(&dyn Executor, Reason); 3] =
        [(&full, Reason::Full), (&ended, Reason::Full), (&closed, Reason::Closed)];
    for (executor, reason) in executors {
        let task = TaskBuilder::on(executor).context(&flow);
        let refused = task.try_spawn_future(async { 7 }).unwrap_err();
        assert_eq!(refused.reason, reason);
        let refused = task.try_spawn(|| 7).unwrap_err();
        assert_eq!(((refused.item)(), refused.reason), (7, reason));
    }
    // The executor's end must not reach a future that has been freed.
    end.cancel();
}

/// A future without a handle and without wakers is dropped, although it listens to a token. If the
/// token kept it alive, its queue would wait for ever.
#[test]
fn a_token_keeps_no_future_that_no_waker_refers_to() {
    let token = CancelToken::new();
    let queue = FairScheduler::over(Inline).queue("q").build().unwrap();
    let executors: [&dyn Executor; 2] = [&Inline, &queue];
    for executor in executors {
        let (sleeping, dropped) = sleeps();
        let handle = TaskBuilder::on(executor).token(&token).spawn_future(sleeping);
        assert!(dropped.try_recv().is_err());
        drop(handle);
        assert!(dropped.try_recv().is_ok());
    }
    queue.wait_idle().unwrap();
    assert!(format!("{token:?}").contains("listeners: 0"), "{token:?}");
    // With its handle, a future still hears of the token.
    let (sleeping, dropped) = sleeps();
    let handle = queue.task().token(&token).spawn_future(sleeping);
    token.cancel_with("enough");
    assert!(dropped.try_recv().is_ok());
    assert_eq!(ended(handle).unwrap_err().reason(), Some("enough"));
}

/// One thread cancels the token while another drops the last reference to the future.
#[test]
fn a_token_and_the_last_waker_drop_a_future_once() {
    for _ in 0..scaled(2000) {
        let (token, start) = (CancelToken::new(), Barrier::new(2));
        let (sleeping, dropped) = sleeps();
        let handle = TaskBuilder::on(&Inline).token(&token).spawn_future(sleeping);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                token.cancel();
            });
            start.wait();
            drop(handle);
        });
        assert_eq!((dropped.try_iter().count(), dropped.recv().is_err()), (1, true));
    }
}

/// A token is cancelled after the executor has accepted the job: `cancel` drops the closure before
/// it returns. If the token is already cancelled, `try_spawn` drops the closure, even if that
/// panics.
#[test]
fn try_spawn_keeps_no_closure_past_a_cancellation() {
    keep_quiet(&["expected"]);
    let (token, alive) = (CancelToken::new(), Arc::new(()));
    let (canceller, seen, jobs) = (token.clone(), Arc::downgrade(&alive), Mutex::new(Vec::new()));
    let accepts = from_fn(1, move |job| {
        jobs.lock().unwrap().push(job);
        canceller.cancel();
        assert_eq!(seen.strong_count(), 0);
        Ok(())
    });
    let task = TaskBuilder::on(&accepts).token(&token);
    assert!(ended(task.try_spawn(move || drop(alive)).unwrap()).unwrap_err().is_cancelled());

    let executor = Arc::new(Inline);
    let queue = FairScheduler::over(Arc::clone(&executor)).queue("q").build().unwrap();
    let bomb = Bomb;
    let spawn = || drop(queue.task().token(&token).try_spawn(move || drop(bomb)));
    assert!(catch_unwind(AssertUnwindSafe(spawn)).is_err());
    drop(queue);
    assert_eq!(Arc::strong_count(&executor), 1, "a handle leaks");
}

/// A token is cancelled before the executor refuses the job. The closure has been dropped by then,
/// so `try_spawn` returns the handle of a cancelled task.
#[test]
fn a_refused_closure_that_was_cancelled_does_not_come_back() {
    let token = CancelToken::new();
    let canceller = token.clone();
    let refuses = from_fn(1, move |job| {
        canceller.cancel();
        Err(Rejected { item: job, reason: Reason::Full })
    });
    let task = TaskBuilder::on(&refuses).token(&token);
    assert!(ended(task.try_spawn(|| ()).unwrap()).unwrap_err().is_cancelled());
}

/// The destructor of a detached task's output panics. Without a group, the queue or pool counts a
/// panic. With a group, the group gets the payload, and the queue counts the task as completed.
#[test]
fn a_detached_task_whose_output_panics_has_panicked() {
    keep_quiet(&["expected"]);
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let pool = ThreadPool::new(1).unwrap();
    for case in 0..8 {
        let [has_room, is_future, is_member] = [1, 2, 4].map(|bit| case & bit != 0);
        let builder = fair.queue("q").paused();
        let queue = if has_room { builder } else { builder.capacity(8) }.build().unwrap();
        let group = TaskGroup::new();
        let (begin, begins) = mpsc::channel::<()>();
        let blocks = pool.spawn(move || begins.recv());
        let before = pool.metrics().panic_count;
        for executor in [&queue as &dyn Executor, &pool] {
            let task = TaskBuilder::on(executor).without_context();
            let task = if is_member { task.group(&group) } else { task };
            drop(if is_future { task.spawn_future(async { Bomb }) } else { task.spawn(|| Bomb) });
        }
        queue.resume();
        queue.wait_idle().unwrap();
        drop(begin);
        let _ = done(blocks);
        pool.wait_idle().unwrap();
        let (metrics, panics) = (queue.metrics(), pool.metrics().panic_count - before);
        let panicked = u64::from(!is_member);
        assert_eq!((metrics.completed, metrics.panicked), (1 - panicked, panicked), "{case}");
        assert_eq!(panics, usize::from(!is_member), "{case}");
        match group.wait() {
            Ok(()) => assert!(!is_member, "{case}"),
            Err(error) => assert!(error.is_panic() && is_member, "{case}"),
        }
    }
}
