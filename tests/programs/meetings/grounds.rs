//! Makes *grounds*: the executors under a program's first scheduler.

use super::faults::{Faults, Marked};
use super::ledger::on_ground;
use crate::common::closures::{Counted, Counts};
use filch::executor::{Executor, Reason, Rejected, Shutdown, ThreadPerJob};
use filch::fair::{Builder, FairScheduler};
use filch::pool::LockedPool;
use filch::{Job, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most threads of a pool: more than a program blocks, so that one thread stays free.
const MOST_THREADS: usize = 96;

/// An executor's threads, and the operations on them that a program may use besides running tasks.
pub(crate) struct Ground {
    /// Returns a builder of a scheduler over the threads.
    pub(crate) builder: Box<dyn Fn() -> Builder>,
    /// The executor, for jobs that no scheduler knows of.
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) threads: usize,
    /// The executor as a pool, if it can be resized and replaces blocked threads.
    pub(crate) pool: Option<ThreadPool>,
    /// Shuts the executor down, if it can be shut down.
    pub(crate) shut: Option<Box<dyn Fn(Shutdown)>>,
    /// Whether the executor tells the scheduler that it has ended.
    pub(crate) tells_end: bool,
    /// Whether its threads end, so that tasks may keep handles in thread-locals.
    pub(crate) ends: bool,
}

/// Makes a ground of this kind, with `threads` threads if the kind has a choice.
pub(crate) type Make = fn(kind: u8, threads: usize, number: u64, faults: &Arc<Faults>) -> Ground;

impl Ground {
    /// Returns a ground over any executor.
    pub(crate) fn of(executor: Arc<dyn Executor>, number: u64, faults: &Arc<Faults>) -> Self {
        let (inner, faults) = (Arc::clone(&executor), Arc::clone(faults));
        let marked = move || {
            let (inner, faults) = (Arc::clone(&inner), Arc::clone(&faults));
            FairScheduler::builder(Marked { inner, faults, ground: number })
        };
        Ground {
            builder: Box::new(marked),
            threads: executor.parallelism().get(),
            pool: None,
            shut: None,
            tells_end: executor.end().is_some(),
            ends: false,
            executor,
        }
    }
}

/// Returns a ground over one of this crate's executors.
pub(crate) fn ours(kind: u8, threads: usize, number: u64, faults: &Arc<Faults>) -> Ground {
    match kind % 6 {
        0..=2 => stealing(threads, kind == 2, number, faults),
        3 => locked(threads, number, faults),
        4 => unit(threads, number).unwrap_or_else(|| locked(threads, number, faults)),
        _ => Ground { ends: true, ..Ground::of(Arc::new(ThreadPerJob), number, faults) },
    }
}

/// How many tasks each hook spawns.
const SPAWNS: usize = 20;

/// The pool into which its own hooks spawn, once it is set, and the counts of their closures.
#[derive(Default)]
struct Spawns {
    pool: Mutex<Option<ThreadPool>>,
    counts: Arc<Counts>,
}

impl Spawns {
    fn one(&self) {
        let pool = self.pool.lock().unwrap().clone();
        let counted = Counted::new(&self.counts);
        if let Some(pool) = pool {
            // A closed pool refuses this job.
            let _ = pool.spawn_detached(move || counted.runs());
        }
    }
}

/// Drops the hooks' handle of their own pool, which would keep the pool alive.
struct Ends(Arc<Spawns>);

impl Ends {
    /// Checks, after the pool's shutdown, that all closures of the hooks are dropped.
    fn check(&self) {
        self.0.counts.finish();
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let pool = self.0.pool.lock().unwrap().take();
        drop(pool);
    }
}

fn stealing(threads: usize, has_hooks: bool, number: u64, faults: &Arc<Faults>) -> Ground {
    let spawns = Arc::new(Spawns::default());
    // With the longer time, no timeout repairs a lost wake-up.
    let keep_alive = Duration::from_millis([1, 3_600_000][number as usize % 2]);
    let mut builder =
        ThreadPool::builder().num_threads(threads).max_threads(MOST_THREADS).keep_alive(keep_alive);
    if has_hooks {
        // The first call of each hook panics, and the next `SPAWNS` calls spawn.
        let hook = || {
            let (count, spawns) = (AtomicUsize::new(0), Arc::clone(&spawns));
            move |_: usize| match count.fetch_add(1, SeqCst) {
                0 => panic!("expected: a hook"),
                1..=SPAWNS => spawns.one(),
                _ => {}
            }
        };
        builder = builder.on_thread_start(hook()).on_thread_stop(hook());
        builder = builder.on_thread_park(hook()).on_thread_unpark(hook());
    }
    let pool = builder.build().unwrap();
    *spawns.pool.lock().unwrap() = Some(pool.clone());
    let (same, ends) = (pool.clone(), Ends(spawns));
    let shut = move |how| {
        same.shutdown(how).unwrap();
        ends.check();
    };
    Ground {
        shut: Some(Box::new(shut)),
        pool: Some(pool.clone()),
        ends: true,
        ..Ground::of(Arc::new(pool), number, faults)
    }
}

fn locked(threads: usize, number: u64, faults: &Arc<Faults>) -> Ground {
    let pool = Arc::new(LockedPool::new(threads).unwrap());
    let same = Arc::clone(&pool);
    let shut: Box<dyn Fn(Shutdown)> = Box::new(move |how| same.shutdown(how).unwrap());
    Ground { shut: Some(shut), ends: true, ..Ground::of(pool, number, faults) }
}

/// A pool, with its ground's number.
type Numbered = (Arc<LockedPool>, u64);

/// The pool behind each `Unit`; `None` while no program uses that unit.
static UNITS: [Mutex<Option<Numbered>>; 6] = [const { Mutex::new(None) }; 6];

/// An executor of size zero. All boxes of such executors have one address, which identifies none of
/// them.
struct Unit<const N: usize>;

impl<const N: usize> Executor for Unit<N> {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let unit = UNITS[N].lock().unwrap().clone();
        let Some((pool, number)) = unit else {
            return Err(Rejected { item: job, reason: Reason::Closed });
        };
        pool.execute(Job::new(move || {
            on_ground(number);
            job.run();
        }))
    }

    fn parallelism(&self) -> NonZeroUsize {
        let unit = UNITS[N].lock().unwrap();
        unit.as_ref().map_or(NonZeroUsize::MIN, |it| it.0.parallelism())
    }
}

/// Returns `None` if other programs use all units.
fn unit(threads: usize, number: u64) -> Option<Ground> {
    let pool = Arc::new(LockedPool::new(threads).unwrap());
    let mut units = UNITS.iter().enumerate();
    let place = units.find_map(|(place, unit)| {
        let mut unit = unit.lock().unwrap();
        unit.is_none().then(|| *unit = Some((Arc::clone(&pool), number)))?;
        Some(place)
    })?;
    fn made<const N: usize>() -> Box<dyn Fn() -> Builder> {
        Box::new(|| FairScheduler::builder(Unit::<N>))
    }
    let builders = [made::<0>, made::<1>, made::<2>, made::<3>, made::<4>, made::<5>];
    let vacates = Vacates(place);
    let same = Arc::clone(&pool);
    Some(Ground {
        builder: builders[place](),
        executor: pool,
        threads,
        pool: None,
        shut: Some(Box::new(move |how| {
            let _ = &vacates;
            same.shutdown(how).unwrap();
        })),
        tells_end: false,
        ends: true,
    })
}

/// Frees a unit when its ground is dropped.
struct Vacates(usize);

impl Drop for Vacates {
    fn drop(&mut self) {
        let unit = UNITS[self.0].lock().unwrap().take();
        drop(unit);
    }
}
