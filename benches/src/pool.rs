//! Scenarios of the pools: Duffy's shapes (queuing and draining, apart or overlapped), recursion,
//! fork and join, and waking. Each row names the rival that its goal is about.

use crate::pools::{
    AsyncExecutor, Channel, Executors, Filch, Locked, Pool, Rayon, Threadpool, Tokio,
};
use crate::scenarios::{Run, Scenario};
use crate::threads::pinned;
use std::hint::spin_loop;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The number of worker threads. The goals were set on a machine with as many cores.
const WORKERS: usize = 2;

/// Makes a scenario, with each pool as a contender.
macro_rules! row {
    ($name:literal, $goal:literal, $against:literal, $items:literal, $scenario:ident) => {
        row!($name, $goal, $against, $items, $scenario,
            Filch Rayon Executors Channel Threadpool Tokio AsyncExecutor Locked)
    };
    ($name:literal, $goal:literal, $against:literal, $items:literal, $scenario:ident, $($P:ty)*) => {
        (
            Scenario {
                name: $name,
                goal: $goal,
                items: $items,
                contenders: vec![$((<$P as Pool>::NAME, $scenario::<$P>())),*],
            },
            $against,
        )
    };
}

/// Returns every scenario, each with the rival of its goal. The rival is a pool's name, or "best"
/// for the fastest pool that is not filch's.
#[must_use]
pub fn all() -> Vec<(Scenario, &'static str)> {
    vec![
        row!("queue, workers held up", 0.6, "best", 200_000, queue),
        row!("drain what was queued", 0.6, "best", 200_000, drain),
        row!("queue and drain, overlapped", 0.3, "best", 200_000, overlapped),
        row!("recursive, 2,000 × 100", 0.4, "best", 200_000, many_small),
        row!("recursive, 20 × 10,000", 0.4, "best", 200_000, few_large),
        fib("fib 27 by join, one thread", 1, false),
        fib("fib 27 by join, two threads", 2, false),
        // More threads than cores, so some of them always sleep.
        fib("fib 27 by join, eight threads", 8, false),
        fib("fib 27 from outside, one thread", 1, true),
        fib("fib 27 from outside, two threads", 2, true),
        row!("round trip on one CPU", 1.3, "LockedPool", 2_000, round_trip),
        row!("next task after 20 µs", 1.0, "rayon", 2_000, after_20_micros),
        row!("CPU in 100 ms after a burst", 1.3, "best", 1, after_a_burst),
    ]
}

/// A count of the tasks that are left. The last task wakes the waiting thread.
struct Countdown {
    left: AtomicUsize,
    waiter: Thread,
}

impl Countdown {
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

/// Returns a countdown that is never freed. So a task captures only a pointer to it, as in Duffy's
/// article.
fn leaked(tasks: usize) -> &'static Countdown {
    // Each round leaks a few dozen bytes.
    Box::leak(Box::new(Countdown { left: AtomicUsize::new(tasks), waiter: thread::current() }))
}

/// Makes the allocator sort the blocks that the previous contender has freed. Otherwise glibc would
/// sort them in the next contender's time, at its first large block, for some milliseconds.
fn settle_heap() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(64 << 10)));
}

/// Blocks every worker, and returns the barrier that the caller waits on once to release them.
fn hold_up<P: Pool>(pool: &P) -> Arc<Barrier> {
    let gate = Arc::new(Barrier::new(WORKERS + 1));
    for _ in 0..WORKERS {
        let gate = Arc::clone(&gate);
        pool.spawn(move || {
            gate.wait();
            gate.wait();
        });
    }
    gate.wait();
    gate
}

/// Blocks the workers while the tasks are queued. Returns the time to queue the tasks, and then the
/// time to run them.
fn phases<P: Pool>(pool: &P, items: u64) -> [Duration; 2] {
    let gate = hold_up(pool);
    let countdown = leaked(items as usize);
    settle_heap();
    let start = Instant::now();
    for _ in 0..items {
        pool.spawn(|| countdown.done());
    }
    let queued = start.elapsed();
    let start = Instant::now();
    gate.wait();
    countdown.wait();
    [queued, start.elapsed()]
}

fn queue<P: Pool>() -> Run {
    let pool = P::new(WORKERS);
    Box::new(move |items| (phases(&pool, items)[0], items))
}

fn drain<P: Pool>() -> Run {
    let pool = P::new(WORKERS);
    Box::new(move |items| (phases(&pool, items)[1], items))
}

fn overlapped<P: Pool>() -> Run {
    let pool = P::new(WORKERS);
    Box::new(move |items| {
        let countdown = leaked(items as usize);
        settle_heap();
        let start = Instant::now();
        for _ in 0..items {
            pool.spawn(|| countdown.done());
        }
        countdown.wait();
        (start.elapsed(), items)
    })
}

/// Spawns `outer(items)` tasks from outside the pool, each of which spawns `inner` tasks.
fn recursive<P: Pool>(outer: impl Fn(u64) -> u64 + 'static, inner: u64) -> Run {
    let pool: &'static P = Box::leak(Box::new(P::new(WORKERS)));
    Box::new(move |items| {
        let outer = outer(items);
        let countdown = leaked((outer * inner) as usize);
        settle_heap();
        let start = Instant::now();
        for _ in 0..outer {
            pool.spawn(move || {
                for _ in 0..inner {
                    pool.spawn(|| countdown.done());
                }
            });
        }
        countdown.wait();
        (start.elapsed(), outer * (inner + 1))
    })
}

fn many_small<P: Pool>() -> Run {
    recursive::<P>(|items| items.div_ceil(100), 100)
}

fn few_large<P: Pool>() -> Run {
    recursive::<P>(|items| items.div_ceil(10_000), 10_000)
}

/// Computes fib 27 by `join`, and measures the time for each `join`. If `from_outside`, filch's
/// outermost `join` is called on a thread that is no worker.
fn fib(name: &'static str, threads: usize, from_outside: bool) -> (Scenario, &'static str) {
    const N: u32 = 27;
    const JOINS: u64 = 317_810;

    fn with_filch(pool: &filch::ThreadPool, n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (a, b) = pool.join(|| with_filch(pool, n - 1), || with_filch(pool, n - 2));
        a + b
    }
    fn with_rayon(n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (a, b) = rayon::join(|| with_rayon(n - 1), || with_rayon(n - 2));
        a + b
    }
    fn with_chili(scope: &mut chili::Scope<'_>, n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (a, b) = scope.join(|scope| with_chili(scope, n - 1), |scope| with_chili(scope, n - 2));
        a + b
    }
    fn timed(mut f: impl FnMut() -> u32 + 'static) -> Run {
        Box::new(move |_| {
            let start = Instant::now();
            assert_eq!(f(), 196_418);
            (start.elapsed(), JOINS)
        })
    }

    let filch = Filch::new(threads).0;
    let rayon = Rayon::new(threads).0;
    // In chili the calling thread counts as one of the pool's threads.
    let config = chili::Config { thread_count: NonZero::new(threads), ..Default::default() };
    let chili = chili::ThreadPool::with_config(config);
    let contenders = vec![
        (
            "filch",
            timed(move || {
                if from_outside {
                    return with_filch(&filch, N);
                }
                let pool = filch.clone();
                filch.spawn(move || with_filch(&pool, N)).join().expect("no panic")
            }),
        ),
        ("rayon", timed(move || rayon.install(|| with_rayon(N)))),
        ("chili", timed(move || with_chili(&mut chili.scope(), N))),
    ];
    (Scenario { name, goal: 0.6, items: JOINS, contenders }, "rayon")
}

/// Spawns a task and waits for it, with all threads on one CPU. So the time has the instructions
/// and the kernel's thread switches, but no moves of cache lines.
fn round_trip<P: Pool>() -> Run {
    Box::new(|items| {
        let time = pinned(0, move || {
            let pool = P::new(WORKERS);
            let countdown = leaked(0);
            let ask = || {
                countdown.left.store(1, Relaxed);
                pool.spawn(|| countdown.done());
                countdown.wait();
            };
            (0..100).for_each(|_| ask());
            let start = Instant::now();
            (0..items).for_each(|_| ask());
            start.elapsed()
        });
        (time, items)
    })
}

/// Spawns a task 20 µs after the previous one has begun. The time is that until the task begins,
/// while the spawning thread spins.
fn after_20_micros<P: Pool>() -> Run {
    let pool = P::new(WORKERS);
    Box::new(move |items| {
        let mut total = Duration::ZERO;
        for _ in 0..items {
            let has_begun = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&has_begun);
            let start = Instant::now();
            pool.spawn(move || flag.store(true, Release));
            while !has_begun.load(Acquire) {
                spin_loop();
            }
            total += start.elapsed();
            let ended = Instant::now();
            while ended.elapsed() < Duration::from_micros(20) {
                spin_loop();
            }
        }
        (total, items)
    })
}

/// Measures the processor time of the process in the 100 ms after a burst of 1,000 tasks.
fn after_a_burst<P: Pool>() -> Run {
    let pool = P::new(WORKERS);
    Box::new(move |_| {
        let countdown = leaked(1000);
        for _ in 0..1000 {
            pool.spawn(|| countdown.done());
        }
        countdown.wait();
        let before = crate::threads::cpu_time();
        thread::sleep(Duration::from_millis(100));
        (crate::threads::cpu_time() - before, 1)
    })
}
