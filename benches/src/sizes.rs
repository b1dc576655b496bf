//! Measures costs that may depend on a number: of queues, threads, tasks of a token or group, or
//! tokens in a chain. Each cost is divided by its number. So a column that grows shows a total cost
//! that grows faster than the number.

use filch::executor::{Executor, ExecutorId, Inline, Rejected, TaskBuilder};
use filch::fair::FairScheduler;
use filch::task::{CancelToken, TaskGroup};
use filch::{Job, ThreadPool};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The numbers of queues in a report.
pub const QUEUES: [usize; 3] = [1024, 8192, 65_535];
/// The numbers of waiting threads. Each thread waits for a queue of its own.
pub const THREADS: [usize; 3] = [50, 200, 800];
/// The numbers of tasks in a token or a group, and of tokens in a chain.
pub const TASKS: [usize; 3] = [1024, 16_384, 131_072];

/// Measures two reports and their difference, in nanoseconds for each queue.
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

/// Measures threads in `wait_idle`, in microseconds for each thread. The time is that from resuming
/// the queues until all threads have returned.
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
        // Gives the waiting threads time to fall asleep.
        thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        queues.iter().for_each(|it| _ = it.resume());
        start
    })
    .elapsed()
}

/// An executor that keeps its jobs in FIFO order. A job runs only in a call of `run_one`.
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

/// Measures tasks that share one token, in nanoseconds for spawning and running each task.
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

/// Measures a chain of tokens: it is made, cancelled at its root, and dropped. The unit is
/// nanoseconds for each token.
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

/// Measures a group with `count` tasks, to which one task is added each time that one ends. The
/// unit is nanoseconds for each task that is added.
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
