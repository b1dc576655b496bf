//! Tests of chains of tasks in which each waits for the one before. Each task runs inside the wait
//! for it, so a long chain must be refused before the stack overflows.

use crate::common::waiting::{MINUTE, done};
use filch::executor::{self, Executor, TaskBuilder};
use filch::pool::LockedPool;
use filch::task::{JoinError, TaskGroup};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::{Arc, mpsc};

const LEVELS: usize = 100_000;

/// The number of tasks below a task in its chain, or the error of a refused wait.
type Depth = Result<usize, JoinError>;

/// Spawns a chain of tasks in which each joins the one before, and returns the last handle.
fn chain(executor: &dyn Executor, levels: usize) -> JoinHandle<Depth> {
    let first = TaskBuilder::on(executor).spawn(|| Ok(0));
    (0..levels)
        .fold(first, |below, _| TaskBuilder::on(executor).spawn(move || Ok(below.join()?? + 1)))
}

/// Joins two chains on the executor's only thread. The chain of 10 tasks must end, and a join in
/// the chain of `levels` must be refused.
fn ends_or_is_refused<E: Executor + Clone + 'static>(executor: E, levels: usize) {
    let same = executor.clone();
    let waits = TaskBuilder::on(&executor).spawn(move || {
        assert_eq!(chain(&same, 10).join().unwrap().unwrap(), 10);
        chain(&same, levels).join().unwrap()
    });
    assert!(done(waits).unwrap_err().is_deadlock());
    // The rest of the chain runs afterwards, and leaves the thread free for this task.
    let (says, hears) = mpsc::channel();
    TaskBuilder::on(&executor).spawn_detached(move || says.send(()).unwrap()).unwrap();
    hears.recv_timeout(MINUTE).unwrap();
}

#[test]
fn a_chain_of_tasks_that_wait_does_not_overflow_the_stack() {
    ends_or_is_refused(ThreadPool::new(1).unwrap(), LEVELS);
    ends_or_is_refused(Arc::new(LockedPool::new(1).unwrap()), LEVELS / 5);
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    ends_or_is_refused(fair.queue("q").build().unwrap(), LEVELS / 5);
    let small = ThreadPool::builder().num_threads(1).stack_size(256 << 10).build().unwrap();
    ends_or_is_refused(small, LEVELS / 5);
}

/// A larger stack allows a longer chain: 6,000 joins fit into 64 MiB.
#[test]
fn the_stack_says_how_long_a_chain_may_be() {
    let pool = ThreadPool::builder().num_threads(1).stack_size(64 << 20).build().unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || chain(&same, 6_000).join().unwrap());
    assert_eq!(done(waits).unwrap(), 6_000);
}

#[test]
fn a_chain_of_jobs_of_a_scope_does_not_overflow_the_stack() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        same.scope(|scope| {
            let chain = |levels| {
                let first = scope.spawn_with_handle(|| Ok(0));
                (0..levels).fold(first, |below, _| {
                    scope.spawn_with_handle(move || -> Depth { Ok(below.join()?? + 1) })
                })
            };
            assert_eq!(chain(10).join().unwrap().unwrap(), 10);
            chain(LEVELS).join().unwrap()
        })
    });
    assert!(done(waits).unwrap_err().is_deadlock());
}

#[test]
fn a_chain_of_groups_does_not_overflow_the_stack() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || {
        let top = (0..LEVELS / 5).fold(TaskGroup::new(), |below, _| {
            let group = TaskGroup::new();
            let task = same.task().group(&group);
            let wait = move || assert!(below.wait().err().is_none_or(|it| it.is_deadlock()));
            task.spawn_detached(wait).unwrap();
            group
        });
        top.wait()
    });
    done(waits).unwrap();
}

/// The user's own thread runs the jobs, and the library does not know the size of its stack.
#[test]
fn a_chain_on_a_small_stack_of_the_users_does_not_overflow_it() {
    let (send, inbox) = mpsc::channel::<Job>();
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let _thread = small.spawn(move || inbox.into_iter().for_each(Job::run)).unwrap();
    let own = executor::from_fn(1, move |job| {
        send.send(job).unwrap();
        Ok(())
    });
    let fair = FairScheduler::over(own);
    ends_or_is_refused(fair.queue("q").build().unwrap(), LEVELS / 5);
}

/// Calls `f` after the stack has grown by this many KiB.
fn below<R>(kibibytes: usize, f: &mut dyn FnMut() -> R) -> R {
    fn from<R>(top: usize, depth: usize, f: &mut dyn FnMut() -> R) -> R {
        let room = black_box([0_u8; 1024]);
        let is_there = top.abs_diff(room.as_ptr().addr()) >= depth;
        let result = if is_there { f() } else { from(top, depth, f) };
        black_box(&room);
        result
    }

    let top = 0_u8;
    from((&raw const top).addr(), kibibytes << 10, f)
}

#[test]
fn a_chain_has_the_stack_that_is_left_where_it_begins() {
    let pool = ThreadPool::new(1).unwrap();
    let same = pool.clone();
    let waits = pool.spawn(move || below(1400, &mut || chain(&same, LEVELS).join().unwrap()));
    assert!(done(waits).unwrap_err().is_deadlock());
    let same = pool.clone();
    let waits = pool.spawn(move || below(1400, &mut || chain(&same, 10).join().unwrap()));
    assert_eq!(done(waits).unwrap(), 10, "there is room for these");
}

#[cfg(all(target_os = "linux", not(miri)))]
thread_local! {
    static ENTRY: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// Calls `f` on a stack of its own, as a library of coroutines would.
#[cfg(all(target_os = "linux", not(miri)))]
fn on_another_stack(f: impl FnOnce() + 'static) {
    extern "C" fn enter() {
        ENTRY.take().unwrap()();
    }

    let mut stack = vec![0_u8; 1 << 20];
    ENTRY.set(Some(Box::new(f)));
    // SAFETY: zeroes are a context, which `getcontext` fills before it is used.
    let [mut here, mut there] = [(); 2].map(|()| unsafe { std::mem::zeroed::<libc::ucontext_t>() });
    // SAFETY: `there` is a local variable, so it is valid for writes.
    assert_eq!(unsafe { libc::getcontext(&mut there) }, 0);
    there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
    there.uc_stack.ss_size = stack.len();
    there.uc_link = &mut here;
    // SAFETY: `getcontext` has filled `there`, and `stack` outlives the switch below.
    unsafe { libc::makecontext(&mut there, enter, 0) };
    // SAFETY: both contexts are valid. `enter` returns to `here` through `uc_link`, and does not
    // unwind.
    assert_eq!(unsafe { libc::swapcontext(&mut here, &there) }, 0);
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_wait_on_another_stack_is_measured_there() {
    let pool = ThreadPool::new(1).unwrap();
    let (same, inner) = (pool.clone(), pool.clone());
    let (says, hears) = mpsc::channel();
    let outer = pool.spawn(move || {
        let on_another = move || {
            on_another_stack(move || {
                let few = chain(&inner, 10).join();
                let many = chain(&inner, LEVELS).join();
                says.send((few, many)).unwrap();
            });
        };
        same.spawn(on_another).join().unwrap();
    });
    done(outer);
    let (few, many) = hears.recv_timeout(MINUTE).unwrap();
    assert_eq!(few.unwrap().unwrap(), 10);
    assert!(many.unwrap().unwrap_err().is_deadlock());
}
