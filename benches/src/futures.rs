//! Scenarios of futures: spawning and joining them, yields, and wakes by another thread. Each row
//! has the same three goals, in [`GOALS`].

use crate::scenarios::{Run, Scenario};
use filch::fair::{FairScheduler, Queue};
use futures_lite::future::block_on;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

/// The number of threads that poll futures, in every contender.
const WORKERS: usize = 2;
/// The number of futures in flight at once, in the rows for many futures.
const MANY: u64 = 1000;

/// A goal: one of filch's contenders, its rival, and the largest acceptable ratio of their times.
pub type Goal = (&'static str, &'static str, f64);

/// The goals of every row.
pub const GOALS: [Goal; 3] =
    [("pool", "async-executor", 0.9), ("pool", "tokio", 0.5), ("queue", "tokio", 1.0)];

/// An executor of futures as its users see it.
pub trait Spawner: Clone + Send + Sync + 'static {
    /// The contender's name in the tables.
    const NAME: &'static str;
    /// A task's handle, which is a future that ends with the task.
    type Handle: Future<Output: Send> + Send + Unpin + 'static;
    /// Starts an executor with `WORKERS` threads.
    fn start() -> Self;
    /// Spawns a future, and returns its handle.
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle;
}

/// filch's pool.
#[derive(Clone, Debug)]
pub struct Pool(filch::ThreadPool);

impl Spawner for Pool {
    const NAME: &'static str = "pool";
    type Handle = filch::JoinHandle<u64>;

    fn start() -> Self {
        Pool(filch::ThreadPool::new(WORKERS).expect("threads"))
    }

    #[inline]
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle {
        self.0.spawn_future(future)
    }
}

/// A queue of filch's scheduler over its pool.
#[derive(Clone, Debug)]
pub struct OfQueue(Queue);

impl Spawner for OfQueue {
    const NAME: &'static str = "queue";
    type Handle = filch::JoinHandle<u64>;

    fn start() -> Self {
        let pool = filch::ThreadPool::new(WORKERS).expect("threads");
        OfQueue(FairScheduler::over(pool).queue("futures").build().expect("open"))
    }

    #[inline]
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle {
        self.0.spawn_future(future)
    }
}

/// tokio's multi-threaded scheduler.
#[derive(Clone, Debug)]
pub struct Tokio(Arc<tokio::runtime::Runtime>);

impl Spawner for Tokio {
    const NAME: &'static str = "tokio";
    type Handle = tokio::task::JoinHandle<u64>;

    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Tokio(Arc::new(builder.worker_threads(WORKERS).build().expect("threads")))
    }

    #[inline]
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle {
        self.0.spawn(future)
    }
}

/// async-executor, on threads that call its `run` as smol's threads do.
#[derive(Clone, Debug)]
pub struct AsyncExecutor(Arc<async_executor::Executor<'static>>);

impl Spawner for AsyncExecutor {
    const NAME: &'static str = "async-executor";
    type Handle = async_executor::Task<u64>;

    fn start() -> Self {
        let executor = Arc::new(async_executor::Executor::new());
        for _ in 0..WORKERS {
            let executor = Arc::clone(&executor);
            thread::spawn(move || block_on(executor.run(std::future::pending::<()>())));
        }
        AsyncExecutor(executor)
    }

    #[inline]
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle {
        self.0.spawn(future)
    }
}

/// smol's global executor.
#[derive(Clone, Debug)]
pub struct Smol;

impl Spawner for Smol {
    const NAME: &'static str = "smol";
    type Handle = smol::Task<u64>;

    /// Returns smol's executor. Its first use starts `WORKERS` threads, because [`all`] has set
    /// `SMOL_THREADS`.
    fn start() -> Self {
        Smol
    }

    #[inline]
    fn spawn<F: Future<Output = u64> + Send + 'static>(&self, future: F) -> Self::Handle {
        smol::spawn(future)
    }
}

macro_rules! row {
    ($name:literal, $items:expr, $scenario:ident) => {
        Scenario {
            name: $name,
            goal: 0.0, // of `GOALS`
            items: $items,
            contenders: vec![
                row!($scenario, Pool),
                row!($scenario, OfQueue),
                row!($scenario, Tokio),
                row!($scenario, AsyncExecutor),
                row!($scenario, Smol),
            ],
        }
    };
    ($scenario:ident, $S:ty) => {
        (<$S>::NAME, $scenario::<$S>())
    };
}

/// Returns every scenario. Must be called while the process has only one thread, because it sets an
/// environment variable.
#[must_use]
pub fn all() -> Vec<Scenario> {
    // SAFETY: no other thread reads the environment meanwhile, since the process has one thread.
    unsafe { std::env::set_var("SMOL_THREADS", WORKERS.to_string()) };
    vec![
        row!("spawn and join, from outside", 100_000, outside),
        row!("spawn and join, inside", 100_000, inside),
        row!("spawn and join one, inside", 20_000, one_by_one),
        row!("yields, one future", 200_000, yields_of_one),
        row!("yields, 1,000 futures", 200_000, yields_of_many),
        row!("wakes by a thread, 1,000 futures", 100_000, wakes_of_many),
        row!("wake by a thread, and its answer", 5_000, wakes_of_one),
    ]
}

/// Returns a future that is pending `times` times, and wakes itself each time.
fn yields(times: u64) -> impl Future<Output = u64> + Send {
    let mut left = times;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(times);
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Spawns [`MANY`] futures from a thread outside the executor, which then waits for each of them.
fn outside<S: Spawner>() -> Run {
    let spawner = S::start();
    Box::new(move |items| {
        let rounds = items.div_ceil(MANY);
        let start = Instant::now();
        for _ in 0..rounds {
            block_on(spawn_and_join(&spawner));
        }
        (start.elapsed(), rounds * MANY)
    })
}

/// Spawns [`MANY`] futures from a task on the executor, which then awaits each of them.
fn inside<S: Spawner>() -> Run {
    by_a_task(|spawner: S, items| async move {
        for _ in 0..items.div_ceil(MANY) {
            spawn_and_join(&spawner).await;
        }
        items.div_ceil(MANY) * MANY
    })
}

async fn spawn_and_join<S: Spawner>(spawner: &S) {
    let spawn = |it| spawner.spawn(async move { it });
    let handles: Vec<_> = (0..MANY).map(spawn).collect();
    for handle in handles {
        handle.await;
    }
}

/// Repeatedly spawns a single future from a task on the executor, which awaits it each time.
fn one_by_one<S: Spawner>() -> Run {
    by_a_task(|spawner: S, items| async move {
        for item in 0..items {
            spawner.spawn(async move { item }).await;
        }
        items
    })
}

fn yields_of_one<S: Spawner>() -> Run {
    by_a_task(|_: S, items| yields(items))
}

fn yields_of_many<S: Spawner>() -> Run {
    by_a_task(|spawner: S, items| async move {
        let each = items.div_ceil(MANY);
        let handles: Vec<_> = (0..MANY).map(|_| spawner.spawn(yields(each))).collect();
        for handle in handles {
            handle.await;
        }
        each * MANY
    })
}

/// Runs `future` in a task on the executor. The future gets the number of items to do, and returns
/// the number that it did. The time is that from the task's first poll to the future's end.
fn by_a_task<S, F>(future: impl Fn(S, u64) -> F + 'static) -> Run
where
    S: Spawner,
    F: Future<Output = u64> + Send + 'static,
{
    let spawner = S::start();
    Box::new(move |items| {
        let outcome = Arc::new(Mutex::new(None));
        let (place, work) = (Arc::clone(&outcome), future(spawner.clone(), items));
        block_on(spawner.spawn(async move {
            let start = Instant::now();
            let done = work.await;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some((start.elapsed(), done));
            done
        }));
        let outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.expect("the task has ended")
    })
}

/// An event for which one future waits. Like an I/O driver, it keeps the future's waker.
#[derive(Default)]
struct Event {
    waker: Mutex<Option<Waker>>,
    /// How often the event has happened: the calls of `tell`.
    told: AtomicUsize,
}

impl Event {
    fn tell(&self) {
        self.told.fetch_add(1, Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A future that ends when its event has happened `until` times. It counts in `heard` the times
/// that it has noticed.
struct Listener {
    event: Arc<Event>,
    heard: Arc<AtomicUsize>,
    seen: usize,
    until: usize,
}

impl Future for Listener {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let waker = context.waker().clone();
        *self.event.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
        let told = self.event.told.load(Acquire);
        if told > self.seen {
            self.heard.fetch_add(told - self.seen, Release);
            self.seen = told;
        }
        if told == self.until { Poll::Ready(told as u64) } else { Poll::Pending }
    }
}

/// Wakes all futures repeatedly, from a thread outside the executor. The thread waits each time
/// until every future has been polled.
fn wakes<S: Spawner>(futures: u64) -> Run {
    let spawner = S::start();
    Box::new(move |items| {
        let rounds = items.div_ceil(futures) as usize;
        let heard = Arc::new(AtomicUsize::new(0));
        let events: Vec<_> = (0..futures).map(|_| Arc::new(Event::default())).collect();
        let handles: Vec<_> = events
            .iter()
            .map(|event| {
                let (event, heard) = (Arc::clone(event), Arc::clone(&heard));
                spawner.spawn(Listener { event, heard, seen: 0, until: rounds })
            })
            .collect();
        let start = Instant::now();
        for round in 1..=rounds {
            events.iter().for_each(|event| event.tell());
            while heard.load(Acquire) < round * futures as usize {
                thread::yield_now();
            }
        }
        let time = start.elapsed();
        block_on(async {
            for handle in handles {
                handle.await;
            }
        });
        (time, rounds as u64 * futures)
    })
}

fn wakes_of_many<S: Spawner>() -> Run {
    wakes::<S>(MANY)
}

fn wakes_of_one<S: Spawner>() -> Run {
    wakes::<S>(1)
}
