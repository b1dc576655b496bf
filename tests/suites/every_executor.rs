//! Tests the promises of every executor about tasks. One suite runs over each executor.
//!
//! Nothing here is timed. A lost task or a lost wake-up shows as a test that does not end.

use filch::Job;
use filch::executor::{Executor, TaskBuilder};
use filch::task::{CancelToken, JoinHandle, TaskGroup};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs the suite over several executors, each given by a name and an expression that makes it.
macro_rules! over_executors {
    ($($name:ident: $make:expr;)*) => {
        $(mod $name {
            $crate::every_executor::over_executors!(@tests $make,
                results_come_back
                every_job_runs_once
                a_panic_goes_to_the_handle
                a_task_waits_for_tasks_that_it_spawned
                a_task_waits_for_one_that_waits
                handles_are_futures
                a_cancelled_token_keeps_tasks_from_beginning
                a_group_waits_for_its_tasks
                a_task_waits_for_a_group
                a_result_that_nobody_takes_is_dropped
                a_job_that_is_handed_on_is_the_same
            );
        })*
    };
    (@tests $make:expr, $($test:ident)*) => {
        $(#[test] fn $test() {
            #[allow(unused_imports)]
            use super::*;
            $crate::every_executor::$test(std::sync::Arc::new($make));
        })*
    };
}
pub(crate) use over_executors;

type Shared = Arc<dyn Executor>;

pub(crate) fn results_come_back(executor: Shared) {
    let spawn = |number: u32| TaskBuilder::on(&executor).spawn(move || number * number);
    let tasks: Vec<_> = (0..200).map(spawn).collect();
    let squares = tasks.into_iter().map(|it| it.join().unwrap());
    assert!(squares.eq((0..200).map(|number| number * number)));
}

pub(crate) fn every_job_runs_once(executor: Shared) {
    let (runs, group) = (Arc::new(AtomicUsize::new(0)), TaskGroup::new());
    for _ in 0..500 {
        let runs = Arc::clone(&runs);
        executor.execute(group.job(move || _ = runs.fetch_add(1, SeqCst))).unwrap();
    }
    group.wait().unwrap();
    assert_eq!((runs.load(SeqCst), group.pending()), (500, 0));
}

pub(crate) fn a_panic_goes_to_the_handle(executor: Shared) {
    let task = TaskBuilder::on(&executor).spawn(|| -> u32 { panic!("expected") });
    let error = task.join().unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.into_panic().downcast_ref(), Some(&"expected"));
    // The panic harms no other task.
    assert_eq!(TaskBuilder::on(&executor).spawn(|| 7).join().unwrap(), 7);
}

/// With one thread, this test ends only if the waiting task runs the others itself.
pub(crate) fn a_task_waits_for_tasks_that_it_spawned(executor: Shared) {
    let same = Arc::clone(&executor);
    let outer = TaskBuilder::on(&executor).spawn(move || {
        let spawn = |number: u32| TaskBuilder::on(&same).spawn(move || number);
        let tasks: Vec<_> = (1..=10).map(spawn).collect();
        tasks.into_iter().map(|it| it.join().unwrap()).sum::<u32>()
    });
    assert_eq!(outer.join().unwrap(), 55);
}

fn depth(executor: &Shared, left: u32) -> u32 {
    if left == 0 {
        return 0;
    }
    let same = Arc::clone(executor);
    1 + TaskBuilder::on(executor).spawn(move || depth(&same, left - 1)).join().unwrap()
}

pub(crate) fn a_task_waits_for_one_that_waits(executor: Shared) {
    assert_eq!(depth(&executor, 20), 20);
}

/// Wakes a thread.
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until the future is ready.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

pub(crate) fn handles_are_futures(executor: Shared) {
    let spawn = |number: u32| TaskBuilder::on(&executor).spawn(move || number);
    let tasks: Vec<JoinHandle<u32>> = (0..50).map(spawn).collect();
    let sum: u32 = tasks.into_iter().map(|it| block_on(it).unwrap()).sum();
    assert_eq!(sum, 1225);
}

pub(crate) fn a_cancelled_token_keeps_tasks_from_beginning(executor: Shared) {
    let token = CancelToken::new();
    assert_eq!(TaskBuilder::on(&executor).token(&token).spawn(|| 7).join().unwrap(), 7);
    token.cancel_with("enough");
    let task = TaskBuilder::on(&executor).token(&token).spawn(|| unreachable!("it never begins"));
    let error = task.join().map(|(): ()| ()).unwrap_err();
    assert!(error.is_cancelled() && error.reason() == Some("enough"));
}

pub(crate) fn a_group_waits_for_its_tasks(executor: Shared) {
    let (group, runs) = (TaskGroup::new(), Arc::new(AtomicUsize::new(0)));
    for round in 1..=3 {
        for _ in 0..50 {
            let runs = Arc::clone(&runs);
            let task = TaskBuilder::on(&executor).group(&group);
            task.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
        group.wait().unwrap();
        assert_eq!(runs.load(SeqCst), 50 * round, "it can be used again");
    }
    TaskBuilder::on(&executor).group(&group).spawn_detached(|| panic!("expected")).unwrap();
    assert!(group.wait().unwrap_err().is_panic());
    assert!(group.wait().is_ok(), "nobody is told twice");
}

pub(crate) fn a_task_waits_for_a_group(executor: Shared) {
    let same = Arc::clone(&executor);
    let outer = TaskBuilder::on(&executor).spawn(move || {
        let group = TaskGroup::new();
        for _ in 0..20 {
            TaskBuilder::on(&same).group(&group).spawn_detached(|| ()).unwrap();
        }
        group.wait().is_ok()
    });
    assert!(outer.join().unwrap());
}

pub(crate) fn a_result_that_nobody_takes_is_dropped(executor: Shared) {
    let precious = Arc::new(());
    let group = TaskGroup::new();
    for _ in 0..50 {
        let result = Arc::clone(&precious);
        drop(TaskBuilder::on(&executor).group(&group).spawn(move || result));
    }
    group.wait().unwrap();
    // The worker may not have dropped its last clone yet.
    while Arc::strong_count(&precious) > 1 {
        thread::yield_now();
    }
}

pub(crate) fn a_job_that_is_handed_on_is_the_same(executor: Shared) {
    let (job, handle) = Job::with_handle(|| "by hand");
    executor.execute(job).unwrap();
    assert_eq!(handle.join().unwrap(), "by hand");
}
