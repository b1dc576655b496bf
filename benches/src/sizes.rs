//! What it costs to ask a scheduler of many queues, and to wait for them, by their number: a cost that grows with the
//! square shows as a column that grows.

use filch::ThreadPool;
use filch::executor::Inline;
use filch::fair::FairScheduler;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// How many queues are asked for.
pub const QUEUES: [usize; 3] = [1024, 8192, 65_535];
/// How many threads wait, each for a queue of its own.
pub const THREADS: [usize; 3] = [50, 200, 800];

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
