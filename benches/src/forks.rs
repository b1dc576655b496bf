//! Measures forks in a queue: the cost above a fork in the bare pool, and the shares if only one of
//! two queues forks. Also measures how long an urgent task waits beside long tasks.

use crate::fair::median;
use filch::executor::{Executor, TaskBuilder};
use filch::fair::{FairScheduler, Priority, Queue};
use filch::{ThreadPool, fair};
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

/// The goal for a fork in a queue: the most nanoseconds above a fork in the bare pool.
pub const GOAL: f64 = 60.0;
/// The fair share of a queue of weight 3 beside one of weight 1, and the goal for the deviation.
pub const SHARE: (f64, f64) = (0.75, 0.03);
/// The goal for the median wait of an urgent task for which a worker is kept, in milliseconds.
pub const WAIT: f64 = 1.0;

/// How many times a program runs in each round. Only the least time counts, because the kernel may
/// preempt any of the runs.
const TRIES: usize = 10;

/// A place in which a program forks: the bare pool, or a queue.
trait Place: Executor + Clone + Send + Sync + 'static {
    fn join<A: Send, B: Send>(
        &self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B);

    /// Runs `a` and `b` as the two jobs of a scope.
    fn both(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send);
}

macro_rules! place {
    ($P:ty) => {
        impl Place for $P {
            #[inline]
            fn join<A: Send, B: Send>(
                &self,
                a: impl FnOnce() -> A + Send,
                b: impl FnOnce() -> B + Send,
            ) -> (A, B) {
                <$P>::join(self, a, b)
            }

            #[inline]
            fn both(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
                self.scope(|scope| {
                    scope.spawn(a);
                    scope.spawn(b);
                });
            }
        }
    };
}

place!(ThreadPool);
place!(Queue);

fn by_join<P: Place>(place: &P, n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (a, b) = place.join(|| by_join(place, n - 1), || by_join(place, n - 2));
    a + b
}

fn by_scope<P: Place>(place: &P, n: u32) -> u64 {
    if n < 2 {
        return n.into();
    }
    let (mut a, mut b) = (0, 0);
    place.both(|| a = by_scope(place, n - 1), || b = by_scope(place, n - 2));
    a + b
}

/// A program that computes the Fibonacci number of `n` in either place. Each branch of its
/// recursion forks `forks` times.
struct Program {
    name: &'static str,
    n: u32,
    forks: u64,
    bare: fn(&ThreadPool, u32) -> u64,
    queued: fn(&Queue, u32) -> u64,
}

const PROGRAMS: [Program; 2] = [
    Program { name: "fib 20 by join", n: 20, forks: 1, bare: by_join, queued: by_join },
    Program { name: "fib 17 by scopes of two", n: 17, forks: 2, bare: by_scope, queued: by_scope },
];

impl Program {
    /// Returns the nanoseconds for each fork.
    fn time<P: Place>(&self, place: &P, fib: fn(&P, u32) -> u64) -> f64 {
        let (same, n) = (place.clone(), self.n);
        let task = TaskBuilder::on(place).spawn(move || {
            let start = Instant::now();
            black_box(fib(&same, n));
            start.elapsed()
        });
        let time = task.join().expect("no panic");
        let mut numbers = [0, 1];
        (0..n).for_each(|_| numbers = [numbers[1], numbers[0] + numbers[1]]);
        // The recursion has fib(n + 1) leaves, and one branch less than leaves.
        time.as_nanos() as f64 / ((numbers[1] - 1) * self.forks) as f64
    }
}

/// A row of the table of forks. All times are nanoseconds for a fork.
#[derive(Debug)]
pub struct Cost {
    /// The program, and the number of workers.
    pub name: String,
    /// The median times in the bare pool and in a queue.
    pub times: [f64; 2],
    /// The median of the rounds' differences between the queue and the bare pool.
    pub above: f64,
}

/// Measures the cost of a fork in the bare pool, and in a queue over that pool.
#[must_use]
pub fn costs(rounds: usize) -> Vec<Cost> {
    let row = |threads: usize, it: &Program| {
        let name = format!("{}, {threads} workers", it.name);
        eprintln!("{name}");
        let pool = ThreadPool::new(threads).unwrap();
        let queue = FairScheduler::over(pool.clone()).queue("q").build().unwrap();
        let (mut times, mut above) = ([Vec::new(), Vec::new()], Vec::new());
        for round in 0..=rounds {
            let mut now = [f64::MAX; 2];
            for turn in (round..round + 2 * TRIES).map(|it| it % 2) {
                let time = match turn {
                    0 => it.time(&pool, it.bare),
                    _ => it.time(&queue, it.queued),
                };
                now[turn] = time.min(now[turn]);
            }
            // The first round warms up.
            if round > 0 {
                (0..2).for_each(|it| times[it].push(now[it]));
                above.push(now[1] - now[0]);
            }
        }
        Cost { name, times: times.map(median), above: median(above) }
    };
    [1, 2].iter().flat_map(|threads| PROGRAMS.iter().map(|it| row(*threads, it))).collect()
}

/// The leaves of the trees of forks: `run` computes or sleeps for `time`. They run on a pool of
/// `workers` workers.
struct Leaves {
    name: &'static str,
    workers: usize,
    time: Duration,
    run: fn(Duration),
}

const LEAVES: [Leaves; 2] = [
    Leaves { name: "2 workers compute", workers: 2, time: Duration::from_micros(100), run: spin },
    Leaves { name: "8 workers sleep", workers: 8, time: Duration::from_millis(1), run: sleep },
];

/// The levels of forks in each task of the queue that forks, so a task has 2⁴ leaves.
const DEPTH: u32 = 4;
/// How long both queues are served before their shares are read.
const SERVED: Duration = Duration::from_millis(400);

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
    }
}

fn sleep(time: Duration) {
    thread::sleep(time);
}

fn tree(queue: &Queue, is_join: bool, depth: u32, leaf: &(impl Fn() + Sync)) {
    let half = || tree(queue, is_join, depth - 1, leaf);
    match depth {
        0 => leaf(),
        _ if is_join => _ = queue.join(half, half),
        _ => queue.both(half, half),
    }
}

impl Leaves {
    /// Returns the share of a queue of weight 3 whose tasks fork. The tasks of the other queue, of
    /// weight 1, do not. The share is a part of the time that all leaves took by their own clocks.
    fn share(&self, is_join: bool) -> f64 {
        let fair = FairScheduler::over(ThreadPool::new(self.workers).unwrap());
        let [forks, flat] = [3, 1].map(|it| fair.queue("q").weight(it).paused().build().unwrap());
        let times = Arc::new([const { AtomicU64::new(0) }; 2]);
        let leaf = |queue: usize| {
            let (times, run, time) = (times.clone(), self.run, self.time);
            move || {
                let start = Instant::now();
                run(time);
                times[queue].fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
            }
        };
        // Twice as many leaves as the workers can run in `SERVED`, so neither queue runs dry.
        let leaves = 2 * self.workers * (SERVED.as_nanos() / self.time.as_nanos()) as usize;
        for _ in 0..leaves {
            flat.spawn_detached(leaf(1)).unwrap();
        }
        for _ in 0..leaves >> DEPTH {
            let (same, leaf) = (forks.clone(), leaf(0));
            forks.spawn_detached(move || tree(&same, is_join, DEPTH, &leaf)).unwrap();
        }
        [&forks, &flat].iter().for_each(|it| _ = it.resume());
        thread::sleep(SERVED);
        assert_eq!(fair.report().backlogged().count(), 2, "both always had something to do");
        let [of_forks, of_flat] = times.each_ref().map(|it| it.load(Relaxed) as f64);
        [&forks, &flat].iter().for_each(|it| _ = it.cancel());
        fair.wait_idle().unwrap();
        of_forks / (of_forks + of_flat)
    }
}

/// Measures the share of the queue that forks, by `join` and by scopes, for each kind of leaves.
#[must_use]
pub fn shares(rounds: usize) -> Vec<(String, f64)> {
    let row = |is_join: bool, leaves: &Leaves| {
        let name = format!("{}, {}", if is_join { "join" } else { "scope" }, leaves.name);
        eprintln!("shares: {name}");
        (name, median((0..rounds).map(|_| leaves.share(is_join)).collect()))
    };
    [true, false].iter().flat_map(|is_join| LEAVES.iter().map(|it| row(*is_join, it))).collect()
}

/// The number of workers, all of which have long tasks unless one is kept.
const LONG: usize = 4;

/// Measures how long an urgent task waits beside tasks that each take a worker for 50 ms. Returns
/// the median and the longest wait in milliseconds, without and with a worker kept for it.
#[must_use]
pub fn waits(rounds: usize) -> [(&'static str, [f64; 2]); 2] {
    let keep = |it: fair::Builder| it.reserve(Priority::Highest, 1);
    [
        ("no worker kept", wait(rounds * 8, |it| it)),
        ("reserve(Priority::Highest, 1)", wait(rounds * 8, keep)),
    ]
}

fn wait(samples: usize, settings: impl Fn(fair::Builder) -> fair::Builder) -> [f64; 2] {
    eprintln!("{samples} urgent tasks beside long ones");
    let fair = settings(FairScheduler::builder(ThreadPool::new(LONG).unwrap())).build();
    let long = fair.queue("long").build().unwrap();
    let urgent = fair.queue("urgent").priority(Priority::Highest).build().unwrap();
    for _ in 0..3 * LONG * samples {
        long.spawn_detached(|| sleep(Duration::from_millis(50))).unwrap();
    }
    let waits = (0..samples).map(|sample| {
        // The pauses vary, so that urgent tasks arrive at different moments of the long tasks.
        sleep(Duration::from_millis(3 + sample as u64 * 7 % 47));
        let start = Instant::now();
        let wait = urgent.spawn(move || start.elapsed()).join().expect("no panic");
        wait.as_secs_f64() * 1e3
    });
    let waits: Vec<f64> = waits.collect();
    assert!(long.metrics().pending > LONG as u64, "the workers always had something to do");
    long.cancel();
    fair.wait_idle().unwrap();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    [median(waits), longest]
}
