//! Measures costs that depend on a number: reports and waits by the number of queues, tasks by the
//! number in one token or group, and tokens by the length of their chain. A cost that grows with
//! the square shows as a column that grows.

use filch::executor::{Executor, ExecutorId, Inline, Rejected, TaskBuilder};
use filch::fair::FairScheduler;
use filch::task::{CancelToken, TaskGroup};
use filch::{Job, ThreadPool};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How many queues are asked for.
pub const QUEUES: [usize; 3] = [1024, 8192, 65_535];
/// How many threads wait, each for a queue of its own.
pub const THREADS: [usize; 3] = [50, 200, 800];
/// How many tasks a token or a group has, and how many tokens a chain.
pub const TASKS: [usize; 3] = [1024, 16_384, 131_072];

/// The nanoseconds a queue that two reports and their difference take.
#[must_use]
pub fn reports(rounds: usize) -> Vec<(usize, f64)> {
    let measure = |count: usize| {
        eprintln!("reports of {count} queues");
        let fair = FairScheduler::over(Inline);
        let queues: Vec<_> = (0..count).map(|_| fair.queue("q").build().unwrap()).collect();
        let best = (0..rounds).map(|_| {
            let start = Instant::now();
            let before = fair.report();
            assert!(fair.report().since(&before).queues.len() >= queues.len());
            start.elapsed().as_nanos() as f64 / count as f64
        });
        (count, best.fold(f64::MAX, f64::min))
    };
    QUEUES.map(measure).into()
}

/// The microseconds a thread until all have noticed that their queues are done.
#[must_use]
pub fn waits(rounds: usize) -> Vec<(usize, f64)> {
    let measure = |count: usize| {
        eprintln!("{count} threads that wait for a queue each");
        let best = (0..rounds).map(|_| wait(count).as_nanos() as f64 / 1e3 / count as f64);
        (count, best.fold(f64::MAX, f64::min))
    };
    THREADS.map(measure).into()
}

fn wait(threads: usize) -> Duration {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queues: Vec<_> = (0..threads).map(|_| fair.queue("q").paused().build().unwrap()).collect();
    queues.iter().for_each(|it| it.spawn_detached(|| ()).unwrap());
    let ready = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for queue in &queues {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                queue.wait_idle().unwrap();
            });
        }
        ready.wait();
        // For most of them to fall asleep.
        thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        queues.iter().for_each(|it| _ = it.resume());
        start
    })
    .elapsed()
}

/// The first in is the first to run, and only when it is asked for.
#[derive(Default)]
struct Held(Mutex<VecDeque<Job>>);

impl Executor for Held {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.lock().unwrap().push_back(job);
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn id(&self) -> Option<ExecutorId> {
        static ID: OnceLock<ExecutorId> = OnceLock::new();
        Some(*ID.get_or_init(ExecutorId::new))
    }
}

impl Held {
    fn run_one(&self) {
        let job = self.0.lock().unwrap().pop_front().expect("it was spawned");
        job.run();
    }
}

fn by_tasks(rounds: usize, what: &str, measure: impl Fn(usize) -> Duration) -> Vec<(usize, f64)> {
    let best = |count: usize| {
        eprintln!("{what}: {count}");
        let nanos = (0..rounds).map(|_| measure(count).as_nanos() as f64 / count as f64);
        (count, nanos.fold(f64::MAX, f64::min))
    };
    TASKS.map(best).into()
}

/// The nanoseconds a task that is spawned with a token which all have, and runs.
#[must_use]
pub fn tokens(rounds: usize) -> Vec<(usize, f64)> {
    by_tasks(rounds, "tasks of one token", |count| {
        let (held, token) = (Held::default(), CancelToken::new());
        let start = Instant::now();
        for _ in 0..count {
            TaskBuilder::on(&held).token(&token).spawn_detached(|| ()).unwrap();
        }
        (0..count).for_each(|_| held.run_one());
        start.elapsed()
    })
}

/// The nanoseconds a token of a chain, from when it is made until it is cancelled and gone.
#[must_use]
pub fn chains(rounds: usize) -> Vec<(usize, f64)> {
    by_tasks(rounds, "tokens in a chain", |count| {
        let root = CancelToken::new();
        let start = Instant::now();
        let last = (1..count).fold(root.child(), |token, _| token.child());
        root.cancel();
        assert!(last.is_cancelled());
        drop(last);
        start.elapsed()
    })
}

/// The nanoseconds a task that comes into a group as another ends, while the group has so many.
#[must_use]
pub fn groups(rounds: usize) -> Vec<(usize, f64)> {
    by_tasks(rounds, "tasks of a group", |count| {
        let (held, group) = (Held::default(), TaskGroup::new());
        let spawn = || TaskBuilder::on(&held).group(&group).spawn_detached(|| ()).unwrap();
        (0..count).for_each(|_| spawn());
        let start = Instant::now();
        for _ in 0..count {
            spawn();
            held.run_one();
        }
        let time = start.elapsed();
        (0..count).for_each(|_| held.run_one());
        group.wait().unwrap();
        time
    })
}
