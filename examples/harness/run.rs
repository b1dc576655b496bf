//! Runs the shapes on an executor, and measures each. A *shape* is a way in which tasks are
//! spawned, such as recursively.

use crate::heap;
use filch::{Executor, Job};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How the tasks are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Separated,
    Overlapped,
    Recursive { outer: usize },
}

/// All shapes, for a million tasks as in the articles.
pub(crate) const SHAPES: [Shape; 4] = [
    Shape::Separated,
    Shape::Overlapped,
    Shape::Recursive { outer: 10_000 },
    Shape::Recursive { outer: 100 },
];

impl Shape {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Separated => "separated",
            Shape::Overlapped => "overlapped",
            Shape::Recursive { outer: 10_000 } => "recursive, 10,000 × 100",
            Shape::Recursive { .. } => "recursive, 100 × 10,000",
        }
    }
}

/// Nanoseconds for each task, as medians of a few rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) queue: Option<f64>,
    pub(crate) drain: Option<f64>,
    pub(crate) total: f64,
    /// Allocated blocks for each task.
    pub(crate) allocations: f64,
}

const ROUNDS: usize = 3;

/// Counts tasks down. The last task wakes the waiting thread. Each round leaks one countdown, a few
/// dozen bytes, so that a task captures a single word.
struct Countdown {
    left: AtomicUsize,
    waiter: Thread,
}

impl Countdown {
    fn from(tasks: usize) -> &'static Self {
        let left = AtomicUsize::new(tasks);
        Box::leak(Box::new(Countdown { left, waiter: thread::current() }))
    }

    fn task(&'static self) -> Job {
        Job::new(|| self.done())
    }

    fn done(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.waiter.unpark();
        }
    }

    fn wait(&self) {
        while self.left.load(Acquire) > 0 {
            thread::park();
        }
    }
}

pub(crate) fn measure(
    executor: &Arc<dyn Executor>,
    shape: Shape,
    tasks: usize,
    threads: usize,
) -> Measured {
    // The first round is a warm-up.
    let rounds: Vec<_> = (0..=ROUNDS).map(|_| once(executor, shape, tasks, threads)).collect();
    let median = |of: &dyn Fn(&Measured) -> f64| {
        let mut values: Vec<_> = rounds[1..].iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Measured {
        queue: rounds[1].queue.map(|_| median(&|it| it.queue.unwrap_or_default())),
        drain: rounds[1].drain.map(|_| median(&|it| it.drain.unwrap_or_default())),
        total: median(&|it| it.total),
        allocations: median(&|it| it.allocations),
    }
}

fn once(executor: &Arc<dyn Executor>, shape: Shape, tasks: usize, threads: usize) -> Measured {
    let before = heap::blocks();
    let (queued, total, count) = match shape {
        Shape::Separated => separated(executor, tasks, threads),
        Shape::Overlapped => {
            let countdown = Countdown::from(tasks);
            let start = Instant::now();
            (0..tasks).for_each(|_| submit(executor, countdown.task()));
            countdown.wait();
            (None, start.elapsed(), tasks)
        }
        Shape::Recursive { outer } => {
            // With fewer than a million tasks, `outer` shrinks first, and then `inner`.
            let inner = (1_000_000 / outer).min(tasks);
            let outer = (tasks / inner).max(1);
            (None, recursive(executor, outer, inner), outer * inner)
        }
    };
    let blocks = heap::blocks() - before;
    let each = |time: Duration| time.as_nanos() as f64 / count as f64;
    Measured {
        queue: queued.map(each),
        drain: queued.map(|queued| each(total - queued)),
        total: each(total),
        allocations: blocks as f64 / count as f64,
    }
}

fn submit(executor: &Arc<dyn Executor>, job: Job) {
    let mut job = job;
    // `ThreadPerJob` refuses a job while the system has no thread to give.
    while let Err(rejected) = executor.execute(job) {
        job = rejected.item;
        thread::yield_now();
    }
}

/// Queues all tasks while the workers are blocked at a gate, and then drains them. An executor
/// without an id has no workers to block, so its two phases are not timed separately.
fn separated(
    executor: &Arc<dyn Executor>,
    tasks: usize,
    threads: usize,
) -> (Option<Duration>, Duration, usize) {
    let countdown = Countdown::from(tasks);
    let holds_up = executor.id().is_some();
    let gate = Arc::new(Barrier::new(threads + 1));
    if holds_up {
        for _ in 0..threads {
            let gate = Arc::clone(&gate);
            submit(
                executor,
                Job::new(move || {
                    gate.wait();
                    gate.wait();
                }),
            );
        }
        gate.wait();
    }
    let start = Instant::now();
    (0..tasks).for_each(|_| submit(executor, countdown.task()));
    let queued = start.elapsed();
    if holds_up {
        gate.wait();
    }
    countdown.wait();
    (holds_up.then_some(queued), start.elapsed(), tasks)
}

fn recursive(executor: &Arc<dyn Executor>, outer: usize, inner: usize) -> Duration {
    let countdown = Countdown::from(outer * inner);
    let start = Instant::now();
    for _ in 0..outer {
        let same = Arc::clone(executor);
        submit(
            executor,
            Job::new(move || {
                (0..inner).for_each(|_| submit(&same, countdown.task()));
            }),
        );
    }
    countdown.wait();
    start.elapsed()
}
