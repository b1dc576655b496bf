//! Measures the cost of sharing an executor, and the shares that queues get on real threads.
//!
//! The rival is `RoundRobinThreadPool` as Toub's article prints it, over the same `ThreadPool`. It
//! has one lock, and submits one ticket for each task.

use filch::ThreadPool;
use filch::executor::Inline;
use filch::fair::{FairScheduler, Queue, RoundRobin, WeightedFair};
use std::collections::VecDeque;
use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 2;
/// The number of queues in the rows with many queues.
const MANY: usize = 1024;

/// Toub's pool (MSDN Magazine, January 2009): queues and a cursor under a lock. For each task,
/// `spawn` submits a ticket to the `ThreadPool`. A ticket runs one task of the next queue that has
/// one.
#[derive(Clone)]
struct Toub(Arc<(ThreadPool, Mutex<Queues>)>);

type Closure = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queues {
    queues: Vec<VecDeque<Closure>>,
    next: usize,
}

impl Toub {
    fn spawn(&self, queue: usize, f: impl FnOnce() + Send + 'static) {
        self.0.1.lock().unwrap().queues[queue].push_back(Box::new(f));
        let same = self.clone();
        self.0.0.spawn_detached(move || same.dequeue_and_execute()).unwrap();
    }

    fn dequeue_and_execute(&self) {
        let mut all = self.0.1.lock().unwrap();
        let count = all.queues.len();
        let order = (all.next..count).chain(0..all.next);
        let found = { order }.find(|&at| !all.queues[at].is_empty());
        let task = found.and_then(|at| {
            all.next = (at + 1) % count;
            all.queues[at].pop_front()
        });
        drop(all);
        if let Some(task) = task {
            task();
        }
    }
}

/// A contender, which runs a task for the queue with a given index.
trait Target {
    fn spawn(&self, queue: usize, done: &'static AtomicUsize);
}

struct Bare(ThreadPool);

struct Fair {
    queues: Vec<Queue>,
}

impl Target for Bare {
    fn spawn(&self, _: usize, done: &'static AtomicUsize) {
        self.0.spawn_detached(|| _ = done.fetch_sub(1, Release)).unwrap();
    }
}

impl Target for Fair {
    fn spawn(&self, queue: usize, done: &'static AtomicUsize) {
        self.queues[queue].spawn_detached(|| _ = done.fetch_sub(1, Release)).unwrap();
    }
}

impl Target for Toub {
    fn spawn(&self, queue: usize, done: &'static AtomicUsize) {
        Toub::spawn(self, queue, || _ = done.fetch_sub(1, Release));
    }
}

/// Blocks all workers of a pool until it is dropped.
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn on(pool: &ThreadPool) -> Self {
        let (open, held) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..WORKERS {
            let (open, held) = (open.clone(), held.clone());
            let wait = move || {
                held.fetch_add(1, AcqRel);
                while !open.load(Acquire) {
                    thread::sleep(Duration::from_micros(50));
                }
            };
            pool.spawn_detached(wait).unwrap();
        }
        while held.load(Acquire) < WORKERS {
            spin_loop();
        }
        Gate(open)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// Returns the nanoseconds for each task, from the first submission until all tasks have run. The
/// queues get tasks in turn. If `held`, a [`Gate`] blocks the workers until all are submitted.
fn time(pool: &ThreadPool, target: &dyn Target, queues: usize, items: usize, held: bool) -> f64 {
    let left: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(items)));
    let gate = held.then(|| Gate::on(pool));
    let start = Instant::now();
    (0..items).for_each(|item| target.spawn(item % queues, left));
    let submitted = start.elapsed();
    let start = Instant::now();
    drop(gate);
    while left.load(Acquire) > 0 {
        thread::yield_now();
    }
    let drained = start.elapsed();
    // Each blocked worker polls the gate every 50 µs, which is no part of a task's cost.
    (submitted + drained)
        .saturating_sub(if held { Duration::from_micros(60) } else { Duration::ZERO })
        .as_nanos() as f64
        / items as f64
}

/// A row of the table of costs. All times are nanoseconds for a task.
#[derive(Debug)]
pub struct Cost {
    /// The number of queues, and whether the workers are blocked while tasks are submitted.
    pub name: &'static str,
    /// The most that a task in filch's queues may take above the bare pool.
    pub goal: f64,
    /// The median times of the bare pool, of filch's queues and of `Toub`'s pool.
    pub times: [f64; 3],
    /// The median of the rounds' differences between filch's queues and the bare pool.
    pub above: f64,
}

/// Measures the cost of a task above the bare pool, in four rows.
#[must_use]
pub fn costs(rounds: usize) -> Vec<Cost> {
    let rows = [
        ("one queue, held up meanwhile", 30.0, 1, true),
        ("one queue, overlapped", 30.0, 1, false),
        ("1,024 ready queues, held up", 60.0, MANY, true),
        ("1,024 queues, overlapped", 60.0, MANY, false),
    ];
    rows.map(|(name, goal, queues, held)| {
        eprintln!("{name}");
        let pool = ThreadPool::new(WORKERS).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let of_fair =
            Fair { queues: (0..queues).map(|_| fair.queue("q").build().unwrap()).collect() };
        let bare = Bare(pool.clone());
        let all = Queues { queues: (0..queues).map(|_| VecDeque::new()).collect(), next: 0 };
        let toub = Toub(Arc::new((pool.clone(), Mutex::new(all))));
        let targets: [&dyn Target; 3] = [&bare, &of_fair, &toub];
        let mut times: [Vec<f64>; 3] = Default::default();
        let mut above = Vec::new();
        for round in 0..=rounds {
            let mut now = [0.0; 3];
            for turn in 0..3 {
                let who = (round + turn) % 3;
                now[who] = time(&pool, targets[who], queues, 100_000, held);
            }
            if round > 0 {
                (0..3).for_each(|who| times[who].push(now[who]));
                above.push(now[1] - now[0]);
            }
        }
        Cost { name, goal, times: times.map(median), above: median(above) }
    })
    .into()
}

/// The numbers of ready queues for which a lease is measured. Beside each number stands the goal
/// for a weighted lease, in nanoseconds.
pub const READY: [(usize, Option<f64>); 5] =
    [(2, Some(150.0)), (64, None), (1024, None), (16_384, Some(600.0)), (65_535, Some(800.0))];

/// Returns, for each row of [`READY`], the nanoseconds of a lease of one task. The first number is
/// for round robin, the second for weighted fair.
#[must_use]
pub fn leases(rounds: usize) -> Vec<(usize, Option<f64>, [f64; 2])> {
    READY
        .map(|(ready, goal)| {
            eprintln!("a lease with {ready} ready queues");
            let mut times: [Vec<f64>; 2] = Default::default();
            for _ in 0..rounds {
                times[0].push(lease(false, ready));
                times[1].push(lease(true, ready));
            }
            (ready, goal, times.map(median))
        })
        .into()
}

/// Returns the nanoseconds of a lease of one task, while up to `ready` queues are ready.
#[must_use]
pub fn lease(is_weighted: bool, ready: usize) -> f64 {
    let builder = FairScheduler::builder(Inline)
        .quantum(Duration::from_secs(3600))
        .tasks_per_lease(NonZeroUsize::MIN);
    let builder = if is_weighted {
        builder.policy(WeightedFair::new)
    } else {
        builder.policy(RoundRobin::new)
    };
    pick(&builder.build(), ready)
}

fn pick(fair: &FairScheduler, ready: usize) -> f64 {
    let queues: Vec<_> = (0..ready).map(|_| fair.queue("q").paused().build().unwrap()).collect();
    let each = (40_000 / ready).max(4);
    // On `Inline` this task runs inside the only ticket. So no queue is served before the task has
    // resumed all of them.
    let (same, measured) = (queues.clone(), Arc::new(Mutex::new(None)));
    let start = measured.clone();
    for queue in &queues {
        queue.spawn_batch((0..each + 2).map(|_| || ())).unwrap();
    }
    let first = fair.spawn(move || {
        same.iter().for_each(|it| _ = it.resume());
        *start.lock().unwrap() = Some(Instant::now());
    });
    let elapsed = measured.lock().unwrap().expect("inline").elapsed();
    first.join().unwrap();
    elapsed.as_nanos() as f64 / (ready * (each + 2)) as f64
}

/// The results when a small batch arrives while a large one runs: Toub's question, on real threads.
#[derive(Clone, Copy, Debug)]
pub struct Batches {
    /// The small batch's time from its arrival to its end, divided by its fair time.
    pub small: f64,
    /// The time of both batches, divided by their work for each worker.
    pub all: f64,
}

/// Measures both batches in one queue, then in two queues by round robin and by weighted fair.
#[must_use]
pub fn batches(rounds: usize) -> [(&'static str, Batches); 3] {
    let run = |name, make: &dyn Fn() -> FairScheduler, separate| {
        eprintln!("a small batch after a large one, {name}");
        let runs: Vec<_> = (0..rounds).map(|_| two_batches(&make(), separate)).collect();
        let small = median(runs.iter().map(|it| it.small).collect());
        (name, Batches { small, all: median(runs.iter().map(|it| it.all).collect()) })
    };
    let pool = || ThreadPool::new(WORKERS).unwrap();
    [
        run("one queue (FIFO)", &|| FairScheduler::over(pool()), false),
        run(
            "round robin",
            &|| FairScheduler::builder(pool()).policy(RoundRobin::new).build(),
            true,
        ),
        run("weighted fair", &|| FairScheduler::over(pool()), true),
    ]
}

fn two_batches(fair: &FairScheduler, separate: bool) -> Batches {
    const LARGE: u32 = 2000;
    const SMALL: u32 = 200;
    const COST: Duration = Duration::from_micros(100);
    let work = || {
        let start = Instant::now();
        while start.elapsed() < COST {
            spin_loop();
        }
    };
    let large = fair.queue("large").build().unwrap();
    let small = if separate { fair.queue("small").build().unwrap() } else { large.clone() };
    let start = Instant::now();
    (0..LARGE).for_each(|_| large.spawn_detached(work).unwrap());
    thread::sleep(COST * LARGE / 8);
    let arrival = Instant::now();
    let left = Arc::new(AtomicUsize::new(SMALL as usize));
    let end = Arc::new(Mutex::new(arrival));
    for _ in 0..SMALL {
        let (left, end) = (left.clone(), end.clone());
        let task = move || {
            work();
            if left.fetch_sub(1, AcqRel) == 1 {
                *end.lock().unwrap() = Instant::now();
            }
        };
        small.spawn_detached(task).unwrap();
    }
    fair.wait_idle().unwrap();
    let all = start.elapsed();
    let small = end.lock().unwrap().duration_since(arrival);
    // The fair time: the small batch has half of the workers until it is done.
    let fair_time = COST * SMALL * 2 / WORKERS as u32;
    let whole = COST * (LARGE + SMALL) / WORKERS as u32;
    Batches {
        small: small.as_secs_f64() / fair_time.as_secs_f64(),
        all: all.as_secs_f64() / whole.as_secs_f64(),
    }
}

pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
