//! Tests tasks through the public API: their allocations, claims, cancellations and contexts.

use crate::common::bomb::Bomb;
use crate::heap;
use filch::executor::{Executor, Inline, Reason, Rejected, TaskBuilder, from_fn};
use filch::task::{self, Cancel, CancelToken, ContextFlow, JoinError, TaskGroup};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::future::Future;
use std::mem::size_of;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

/// Returns the number of blocks that `f` allocates on this thread.
fn blocks(f: impl FnOnce()) -> usize {
    let before = heap::blocks();
    f();
    heap::blocks() - before
}

#[test]
fn a_job_has_four_words() {
    assert_eq!(size_of::<Job>(), 4 * size_of::<usize>());
    assert_eq!(size_of::<Option<Job>>(), size_of::<Job>(), "a queue of options is as small");
}

#[test]
fn three_words_of_capture_cost_no_allocation() {
    static SUM: AtomicUsize = AtomicUsize::new(0);
    let words = [1, 2, 3];
    let three = move || _ = SUM.fetch_add(words.iter().sum(), SeqCst);
    assert_eq!(blocks(|| Job::new(three).run()), 0);
    let more = [1, 2, 3, 4];
    let four = move || _ = SUM.fetch_add(more.iter().sum(), SeqCst);
    assert_eq!(blocks(|| Job::new(four).run()), 1);
    assert_eq!(SUM.load(SeqCst), 16);
}

#[test]
fn a_closure_of_great_alignment_is_boxed() {
    #[repr(align(32))]
    struct Aligned(u8);
    let value = Aligned(7);
    Job::new(move || {
        let value = value;
        assert_eq!(std::ptr::from_ref(&value) as usize % 32, 0);
        assert_eq!(value.0, 7);
    })
    .run();
}

#[test]
fn a_task_with_a_handle_is_one_allocation() {
    let mut task = None;
    assert_eq!(blocks(|| task = Some(Job::with_handle(|| [7_u64; 8]))), 1);
    let (job, handle) = task.unwrap();
    assert_eq!(blocks(|| job.run()), 0);
    assert_eq!(blocks(|| assert_eq!(handle.join().unwrap(), [7; 8])), 0);
}

#[test]
fn detached_tasks_of_a_pool_cost_next_to_no_allocation() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let pool = ThreadPool::new(1).unwrap();
    let spawn = || {
        for _ in 0..10_000 {
            pool.spawn_detached(|| _ = RUNS.fetch_add(1, SeqCst)).unwrap();
        }
        pool.wait_idle().unwrap();
    };
    spawn();
    // Spawned from outside, 255 jobs share one allocated segment of the injector. Spawned by a
    // worker, they go into its deque, which allocates nothing.
    assert!(blocks(spawn) <= 100, "at most 0.01 for each task");
    let (same_pool, (sender, inbox)) = (pool.clone(), mpsc::channel());
    pool.spawn_detached(move || {
        let inner = || {
            for _ in 0..60 {
                same_pool.spawn_detached(|| _ = RUNS.fetch_add(1, SeqCst)).unwrap();
            }
        };
        sender.send(blocks(inner)).unwrap();
    })
    .unwrap();
    assert_eq!(inbox.recv(), Ok(0));
}

#[test]
fn joining_two_closures_costs_no_allocation() {
    fn fib(pool: &ThreadPool, n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (a, b) = pool.join(|| fib(pool, n - 1), || fib(pool, n - 2));
        a + b
    }
    let pool = ThreadPool::new(1).unwrap();
    let same_pool = pool.clone();
    let count = pool.spawn(move || blocks(|| assert_eq!(fib(&same_pool, 15), 610)));
    assert_eq!(count.join().unwrap(), 0);
}

/// A value that raises the counter when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn whatever_becomes_of_a_job_its_closure_goes_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let closure = || {
        let counted = Counted(Arc::clone(&drops));
        move || drop(counted)
    };
    Job::new(closure()).run();
    drop(Job::new(closure()));
    let large = (closure(), [0_u64; 8]);
    drop(Job::new(move || drop(large)));
    let (job, handle) = Job::with_handle(closure());
    drop(handle);
    job.run();
    let (job, handle) = Job::with_handle(closure());
    assert_eq!(handle.cancel(), Cancel::Dequeued);
    assert_eq!(drops.load(SeqCst), 5, "cancelling drops the closure at once");
    job.run();
    drop(handle);
    drop(Job::with_handle(closure()));
    assert_eq!(drops.load(SeqCst), 6);
}

#[test]
fn cancelling_says_what_happened() {
    let (job, handle) = Job::with_handle(|| 7);
    assert_eq!(handle.cancel(), Cancel::Dequeued);
    assert_eq!(handle.cancel(), Cancel::Finished);
    assert!(handle.is_finished());
    assert!(!job.try_run(), "a tombstone");
    assert!(handle.join().unwrap_err().is_cancelled());

    let (job, handle) = Job::with_handle(|| 7);
    assert!(job.try_run());
    assert_eq!(handle.cancel(), Cancel::Finished);
    assert_eq!(handle.join().unwrap(), 7);

    let pool = ThreadPool::new(1).unwrap();
    let (started, inbox) = mpsc::channel();
    let task = pool.spawn(move || {
        started.send(()).unwrap();
        while !task::is_cancelled() {
            std::thread::yield_now();
        }
    });
    inbox.recv().unwrap();
    assert_eq!(task.cancel(), Cancel::Requested);
    assert!(task.join().is_ok(), "it ran to its end");
    assert!(!task::is_cancelled());
}

#[test]
fn a_closure_that_panics_when_it_is_dropped_is_cancelled_all_the_same() {
    let bomb = Bomb;
    let (job, handle) = Job::with_handle(move || std::mem::forget(bomb));
    assert!(catch_unwind(AssertUnwindSafe(|| handle.cancel())).is_err());
    assert!(handle.join().unwrap_err().is_cancelled());
    job.run();
}

#[test]
fn a_panic_that_nobody_waits_for_goes_on() {
    let (job, handle) = Job::with_handle(|| panic!("expected"));
    drop(handle);
    assert!(catch_unwind(AssertUnwindSafe(|| job.run())).is_err());
}

/// The group gets the panic of its detached member, so `run` must not pass it on to the executor.
#[test]
fn a_panic_that_a_group_has_goes_no_further() {
    let group = TaskGroup::new();
    drop(TaskBuilder::on(&Inline).group(&group).spawn(|| panic!("expected")));
    let (shelf, jobs) = mpsc::channel();
    let executor = from_fn(NonZeroUsize::MIN, move |job| {
        shelf.send(job).unwrap();
        Ok(())
    });
    drop(TaskBuilder::on(&executor).group(&group).spawn(|| panic!("expected")));
    jobs.recv().unwrap().run();
    assert!(group.wait().unwrap_err().is_panic());
}

#[test]
fn errors_say_what_they_are() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<JoinError>();
    is_error::<Rejected>();
    let (job, handle) = Job::with_handle(|| panic!("{}", 7));
    job.run();
    let error: JoinError = handle.join().map(|(): ()| ()).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: 7");
    assert_eq!(format!("{error:?}"), "JoinError(the task panicked: 7)");
    assert_eq!(error.try_into_panic().unwrap().downcast_ref::<String>().unwrap(), "7");
    let (job, handle) = Job::with_handle(|| ());
    drop(job);
    assert_eq!(handle.join().unwrap_err().to_string(), "the task was cancelled");
}

/// An executor that keeps its jobs until the test takes them.
#[derive(Default)]
pub(crate) struct Held(pub(crate) Mutex<Vec<Job>>);

impl Executor for Held {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.lock().unwrap().push(job);
        Ok(())
    }
    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

#[test]
fn a_token_cancels_what_has_not_begun_at_once() {
    let (held, token) = (Held::default(), CancelToken::new());
    let task = TaskBuilder::on(&held).token(&token).spawn(|| 7);
    let other = TaskBuilder::on(&held).spawn(|| 8);
    assert!(token.cancel_with("enough"));
    assert!(task.is_finished() && !other.is_finished());
    assert_eq!(task.join().unwrap_err().reason(), Some("enough"));
    let jobs = std::mem::take(&mut *held.0.lock().unwrap());
    assert_eq!(jobs.into_iter().filter_map(|it| it.try_run().then_some(())).count(), 1);
    assert_eq!(other.join().unwrap(), 8);
}

#[test]
fn a_token_asks_what_runs_to_end() {
    let (pool, token) = (ThreadPool::new(1).unwrap(), CancelToken::new());
    let (started, inbox) = mpsc::channel();
    let task = pool.task().token(&token).spawn(move || {
        started.send(()).unwrap();
        while !task::is_cancelled() {
            std::thread::yield_now();
        }
    });
    inbox.recv().unwrap();
    token.cancel();
    task.join().unwrap();
}

#[test]
fn a_token_forgets_children_and_tasks_that_are_gone() {
    let (long, short) = (CancelToken::new(), CancelToken::new());
    let listeners = |token: &CancelToken| {
        let text = format!("{token:?}");
        let number = text.rsplit(' ').nth(1).unwrap();
        number.parse::<usize>().unwrap_or_else(|_| panic!("{text}"))
    };
    for _ in 0..100 {
        let child = CancelToken::any(&[&long, &short]);
        assert_eq!((listeners(&long), listeners(&short)), (1, 1));
        drop(child.clone());
        assert_eq!(listeners(&long), 1);
        TaskBuilder::on(&Inline).token(&long).spawn(|| ()).join().unwrap();
        assert_eq!(listeners(&long), 1, "a task that is done is forgotten");
    }
    assert_eq!((listeners(&long), listeners(&short)), (0, 0), "so is a token that is gone");

    let (child, grandchild) = (long.child(), long.child().child());
    // `long.child()`, the parent of `grandchild`, has no handle left, but must still pass the
    // cancellation on.
    assert!(!grandchild.is_cancelled());
    long.cancel_with("all");
    assert_eq!(child.reason().as_deref(), Some("all"));
    assert!(CancelToken::any(&[&short, &long]).is_cancelled(), "linked too late");
    assert!(!short.is_cancelled());
}

#[test]
fn a_refused_closure_comes_back() {
    struct Full;
    impl Executor for Full {
        fn execute(&self, job: Job) -> Result<(), Rejected> {
            Err(Rejected { item: job, reason: Reason::Full })
        }
        fn parallelism(&self) -> NonZeroUsize {
            NonZeroUsize::MIN
        }
    }
    let captured = Arc::new(7);
    let same = Arc::clone(&captured);
    let error = TaskBuilder::on(&Full).try_spawn(move || *same).unwrap_err();
    assert_eq!((error.reason, Arc::strong_count(&captured)), (Reason::Full, 2));
    assert_eq!((error.item)(), 7);
    let task = TaskBuilder::on(&Full).spawn(|| 7);
    assert!(task.join().unwrap_err().is_cancelled());
    let group = TaskGroup::new();
    let refused = TaskBuilder::on(&Full).group(&group).spawn_detached(|| ()).unwrap_err();
    assert_eq!(group.pending(), 1);
    refused.item.run();
    group.wait().unwrap();
}

#[test]
fn waiting_has_an_end() {
    let (job, handle) = Job::with_handle(|| 7);
    let handle = handle.join_timeout(Duration::ZERO).unwrap_err();
    let handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    job.run();
    assert_eq!(handle.join_timeout(Duration::MAX).unwrap().unwrap(), 7);
}

#[test]
fn a_task_cannot_wait_for_itself() {
    // With one thread, the outer task runs the inner one inside its join. The inner one then joins
    // the outer one.
    let pool = ThreadPool::new(1).unwrap();
    let (mine, inbox) = mpsc::channel::<JoinHandle<()>>();
    let (answers, answer) = mpsc::channel();
    let same_pool = pool.clone();
    let task = pool.spawn(move || {
        let me = inbox.recv().unwrap();
        let through = same_pool.spawn(move || me.join().unwrap_err().is_deadlock());
        answers.send(through.join().unwrap()).unwrap();
    });
    mine.send(task).unwrap();
    assert_eq!(answer.recv(), Ok(true));
}

thread_local!(static USER: Cell<&'static str> = const { Cell::new("nobody") });

/// A context whose snapshot is the name of the current user.
struct User;

impl ContextFlow for User {
    type Snapshot = &'static str;

    fn capture(&self) -> &'static str {
        USER.get()
    }

    fn enter<R>(user: &'static str, run: impl FnOnce() -> R) -> R {
        struct Back(&'static str);
        impl Drop for Back {
            fn drop(&mut self) {
                USER.set(self.0);
            }
        }
        let _back = Back(USER.replace(user));
        run()
    }
}

#[test]
fn context_flows_with_tasks() {
    let pool = ThreadPool::builder().num_threads(1).context(User).build().unwrap();
    let (names, inbox) = mpsc::channel();
    for user in ["Ada", "Grace"] {
        USER.set(user);
        assert_eq!(pool.spawn(|| USER.get()).join().unwrap(), user);
        let names = names.clone();
        pool.spawn_detached(move || names.send(USER.get()).unwrap()).unwrap();
        assert_eq!(inbox.recv(), Ok(user));
    }
    assert_eq!(pool.task().without_context().spawn(|| USER.get()).join().unwrap(), "nobody");
    let same_pool = pool.clone();
    let nested = pool.spawn(move || same_pool.spawn(|| USER.get()).join().unwrap());
    assert_eq!(nested.join().unwrap(), "Grace", "it flows on");
    assert!(pool.spawn(|| panic!("expected")).join().is_err_and(|it: JoinError| it.is_panic()));
    assert_eq!(pool.task().without_context().spawn(|| USER.get()).join().unwrap(), "nobody");
}

/// The last thread that releases a task frees it. The counting allocator shows a leak without a
/// sanitizer.
#[test]
fn tasks_leave_no_memory_behind() {
    let tasks = || {
        assert_eq!(TaskBuilder::on(&Inline).spawn(|| [1; 100]).join().unwrap(), [1; 100]);
        drop(TaskBuilder::on(&Inline).spawn(|| String::from("nobody asks for it")));
        let (held, token, group) = (Held::default(), CancelToken::new(), TaskGroup::new());
        let [cancelled, dropped] = [1, 2].map(|it| TaskBuilder::on(&held).spawn(move || it));
        assert_eq!(cancelled.cancel(), Cancel::Dequeued);
        TaskBuilder::on(&held).token(&token).group(&group).spawn_detached(|| ()).unwrap();
        token.cancel();
        drop(dropped);
        held.0.lock().unwrap().clear();
        assert!(group.wait().is_err());
    };
    // The first call allocates memory that the thread keeps, such as thread-locals.
    tasks();
    let before = heap::bytes();
    tasks();
    assert_eq!(heap::bytes(), before);
}

#[test]
fn a_panic_is_no_deadlock() {
    let error = TaskBuilder::on(&Inline).spawn(|| panic!("on purpose")).join().unwrap_err();
    assert!(error.is_panic() && !error.is_deadlock() && !error.is_cancelled());
}

#[test]
fn a_token_is_awaited_until_it_is_cancelled() {
    let (token, mut context) = (CancelToken::new(), Context::from_waker(Waker::noop()));
    let mut cancelled = pin!(token.cancelled());
    assert!(cancelled.as_mut().poll(&mut context).is_pending());
    token.cancel();
    assert!(cancelled.poll(&mut context).is_ready());
}

#[test]
fn a_group_is_waited_for_until_all_is_done_or_the_time_is_up() {
    let group = TaskGroup::new();
    let (first, second) = (group.job(|| ()), group.job(|| ()));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| group.wait_timeout(Duration::from_secs(600)).is_some());
        for _ in 0..50 {
            // Each new member makes the waiting thread look again, and it must continue to wait.
            drop(TaskBuilder::on(&Inline).group(&group).spawn(|| ()));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!waiter.is_finished());
        first.run();
        second.run();
        assert!(waiter.join().unwrap());
    });
}

/// The pool has one thread, so the task runs only if the job that joins it runs it.
#[test]
fn a_bare_job_may_wait_for_a_task_of_its_pool() {
    let pool = ThreadPool::new(1).unwrap();
    let (same, (answers, outbox)) = (pool.clone(), mpsc::channel());
    let job = Job::new(move || answers.send(same.spawn(|| 7).join().unwrap()).unwrap());
    pool.execute(job).unwrap();
    assert_eq!(outbox.recv(), Ok(7));
}

#[test]
fn a_task_of_a_pool_may_wait_for_a_limited_queue_over_it() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let queue = fair.queue("limited").max_parallel(1).build().unwrap();
    assert_eq!(pool.spawn(move || queue.spawn(|| 7).join().unwrap()).join().unwrap(), 7);
}
