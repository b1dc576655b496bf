//! Faults from outside: the user's code panics where filch calls it, memory runs out, clocks go
//! backwards.
//!
//! Panics of jobs, iterators, destructors, parks and hooks are tested beside the structure that
//! calls them. This file has the boundaries that several structures share.
#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod denied;

use common::bomb::Bomb;
use filch::executor::{Executor, Reason, Rejected};
use filch::fair::{Clock, FairScheduler, WorkQueue};
use filch::pool::LockedPool;
use filch::task::ContextFlow;
use filch::{Injector, Job, ThreadPool, Worker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// An allocator that fails while `EMPTY` is set. Only blocks of up to `SMALL` bytes remain, for the
/// thread that reports the failure.
struct Miser;

static EMPTY: AtomicBool = AtomicBool::new(false);
const SMALL: usize = 1024;

// SAFETY: each block is the system allocator's. Returning null is allowed at any time.
unsafe impl GlobalAlloc for Miser {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > SMALL && EMPTY.load(SeqCst) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller promises a layout of nonzero size.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller promises a block of this allocator, and each such block is the
        // system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static HEAP: Miser = Miser;

/// Sets `EMPTY`, and then calls the operation named `what`, which needs a large block.
fn starve(what: &str) {
    match what {
        "deque" => {
            let worker = Worker::new_lifo();
            (0..64_u64).for_each(|item| worker.push(item));
            EMPTY.store(true, SeqCst);
            println!("starving");
            (0..4096_u64).for_each(|item| worker.push(item));
        }
        "batch" => {
            let worker = Worker::new_fifo();
            EMPTY.store(true, SeqCst);
            println!("starving");
            worker.push_batch(0..4096_u64);
        }
        "injector" => {
            let injector = Injector::new();
            EMPTY.store(true, SeqCst);
            println!("starving");
            injector.push(1_u64);
        }
        _ => {
            let fair = FairScheduler::over(filch::executor::Inline);
            let queue = fair.queue("q").paused().build().unwrap();
            EMPTY.store(true, SeqCst);
            println!("starving");
            queue.spawn_detached(|| ()).unwrap();
        }
    }
    println!("it went on");
}

/// As everywhere in Rust, a thread that cannot go on without memory aborts the process. No
/// operation is left half done.
#[test]
fn a_process_without_memory_is_aborted() {
    if let Ok(what) = std::env::var("FILCH_STARVE") {
        return starve(&what);
    }
    for what in ["deque", "batch", "injector", "queue"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_process_without_memory_is_aborted", "--nocapture"]);
        let output = child.env("FILCH_STARVE", what).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(out.contains("starving") && !out.contains("it went on"), "{what}: {out}");
        assert!(!output.status.success() && err.contains("memory allocation of"), "{what}: {err}");
    }
}

#[test]
fn payloads_that_panic_when_dropped_harm_nobody() {
    let pool = ThreadPool::new(1).unwrap();
    let locked = LockedPool::new(1).unwrap();
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let panics = || std::panic::panic_any(Bomb);
    for _ in 0..2 {
        pool.spawn_detached(panics).unwrap();
        locked.spawn_detached(panics).unwrap();
        fair.spawn_detached(panics).unwrap();
    }
    assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    assert_eq!(locked.spawn(|| 1).join().unwrap(), 1);
    assert_eq!(fair.spawn(|| 1).join().unwrap(), 1);
    fair.wait_idle().unwrap();
    assert_eq!(fair.default_queue().metrics().panicked, 2);
}

#[test]
fn panic_handlers_that_panic_harm_nobody() {
    let handler = |payload| {
        drop(payload);
        panic!("expected: in the handler")
    };
    let pool = ThreadPool::builder().num_threads(1).panic_handler(handler).build().unwrap();
    let fair = FairScheduler::builder(pool.clone()).panic_handler(handler).build();
    for _ in 0..2 {
        pool.spawn_detached(|| panic!("expected")).unwrap();
        fair.spawn_detached(|| panic!("expected")).unwrap();
    }
    assert_eq!(fair.spawn(|| 1).join().unwrap(), 1);
    assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
}

/// A context of which one method panics while `PANICS` is set.
struct Fragile<const IN_CAPTURE: bool>;

static PANICS: AtomicBool = AtomicBool::new(false);

impl<const IN_CAPTURE: bool> ContextFlow for Fragile<IN_CAPTURE> {
    type Snapshot = ();

    fn capture(&self) {
        assert!(!(IN_CAPTURE && PANICS.load(SeqCst)), "expected: in capture");
    }

    fn enter<R>((): (), run: impl FnOnce() -> R) -> R {
        assert!(IN_CAPTURE || !PANICS.load(SeqCst), "expected: in enter");
        run()
    }
}

#[test]
fn contexts_that_panic_lose_nothing() {
    // The spawning thread calls `capture`, so its panic goes to that thread. The worker calls
    // `enter`, so its panic is the task's.
    let captures = ThreadPool::builder().num_threads(1).context(Fragile::<true>).build().unwrap();
    let enters = ThreadPool::builder().num_threads(1).context(Fragile::<false>).build().unwrap();
    PANICS.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| captures.spawn(|| 1))).is_err());
    let task = enters.spawn(|| 1);
    assert!(task.join().unwrap_err().is_panic());
    PANICS.store(false, SeqCst);
    assert_eq!(captures.spawn(|| 2).join().unwrap() + enters.spawn(|| 3).join().unwrap(), 5);
    captures.wait_idle().unwrap();
    enters.wait_idle().unwrap();
}

#[test]
fn an_iterator_of_tasks_that_panics_leaves_a_queue_as_it_was() {
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(8).build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let tasks = (0..4).map(|at| {
            assert!(at < 2, "expected: in the iterator");
            let ran = Arc::clone(&ran);
            move || _ = ran.fetch_add(1, SeqCst)
        });
        assert!(catch_unwind(AssertUnwindSafe(|| queue.spawn_batch(tasks))).is_err());
        queue.wait_idle().unwrap();
    }
    // The items from before the panic may have been accepted. The queue has its full room again.
    assert!(ran.load(SeqCst) <= 10);
    queue.pause();
    (0..8).for_each(|_| queue.spawn_detached(|| ()).unwrap());
    assert_eq!(queue.spawn_detached(|| ()).unwrap_err().reason, Reason::Full);
    queue.resume();
    queue.wait_idle().unwrap();
}

#[test]
fn a_function_that_panics_costs_a_work_queue_one_input() {
    let pool = ThreadPool::new(2).unwrap();
    let work = WorkQueue::over(pool, 2, |input: u32, _: &_| {
        assert!(input != 3, "expected");
        input * 2
    });
    let work = work.unwrap();
    let outputs: Vec<_> = (0..6).map(|input| work.push(input)).collect();
    let done: Vec<_> = outputs.into_iter().map(|it| it.join().ok()).collect();
    assert_eq!(done, [Some(0), Some(2), Some(4), None, Some(8), Some(10)]);
}

/// An executor that refuses every third job.
struct Moody(ThreadPool, AtomicU64);

impl Executor for Moody {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        match self.1.fetch_add(1, SeqCst) % 3 {
            0 => Err(Rejected { item: job, reason: Reason::Full }),
            _ => self.0.execute(job),
        }
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }
}

/// The executor refuses tickets of the scheduler, never tasks.
#[test]
fn an_executor_that_is_full_now_and_then_loses_no_task() {
    let fair = FairScheduler::over(Moody(ThreadPool::new(2).unwrap(), AtomicU64::new(0)));
    let queues: Vec<_> = (0..4).map(|_| fair.queue("q").build().unwrap()).collect();
    let ran = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for at in 0..400 {
        let ran = Arc::clone(&ran);
        let body = move || _ = ran.fetch_add(1, SeqCst);
        accepted += usize::from(queues[at % 4].spawn_detached(body).is_ok());
    }
    // If the last ticket was refused, the next task brings another.
    while ran.load(SeqCst) < accepted {
        let _ = fair.spawn_detached(|| ());
        std::thread::yield_now();
    }
    assert_eq!(ran.load(SeqCst), accepted);
}

/// A clock that goes two steps forward and one back, and now and then to its beginning.
struct Wavering(AtomicU64);

impl Clock for Wavering {
    fn now(&self) -> Duration {
        let at = self.0.fetch_add(1, SeqCst);
        let micros = if at % 7 == 0 { 0 } else { 100 + at - 2 * (at % 3) };
        Duration::from_micros(micros)
    }
}

#[test]
fn a_clock_that_goes_backwards_costs_fairness_and_nothing_else() {
    let pool = ThreadPool::new(2).unwrap();
    let fair =
        FairScheduler::builder(pool).clock(Wavering(AtomicU64::new(0))).measure_waits(true).build();
    let queues: Vec<_> =
        (1..4).map(|weight| fair.queue("q").weight(weight).build().unwrap()).collect();
    let ran = Arc::new(AtomicUsize::new(0));
    for at in 0..3000 {
        let ran = Arc::clone(&ran);
        queues[at % 3].spawn_detached(move || _ = ran.fetch_add(1, SeqCst)).unwrap();
    }
    fair.wait_idle().unwrap();
    assert_eq!(ran.load(SeqCst), 3000);
    let report = fair.report();
    assert!(report.queues.iter().all(|it| it.service < Duration::from_secs(60)), "{report:?}");
}
