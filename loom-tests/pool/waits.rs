//! Models of a worker that sleeps until an awaited job ends. It must wake up at that end, and for a
//! job that it may run meanwhile. For any other job, a *stranger*, it must wake up and let a spare
//! thread run in its stead. loom reports a sleeper that no thread wakes as a deadlock.

use crate::common::{Bound::*, model, spawn};
use filch::idle::{Park, ThreadPark};
use filch::pool::for_models::{Countdown, Idle, Waited};
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

const OURS: usize = 1;
const STRANGE: usize = 2;

/// The state that two workers of a pool share. One worker waits for a job that the other runs.
#[derive(Default)]
struct Board {
    idle: Idle,
    countdown: Countdown,
    bell: Mutex<Option<Waker>>,
    /// The job that can be run: `OURS`, `STRANGE`, or 0 for none.
    job: AtomicUsize,
    has_run: Mutex<bool>,
    told: Condvar,
}

impl Board {
    fn new() -> Arc<Self> {
        let board = Board::default();
        board.countdown.add_own();
        Arc::new(board)
    }

    fn push(&self, job: usize) {
        // Relaxed: only the fence of the notification orders it.
        self.job.store(job, Relaxed);
        self.idle.notify_one();
    }

    fn take(&self, job: usize) -> Option<usize> {
        (self.job.load(Relaxed) == job && self.job.swap(0, Relaxed) == job).then_some(job)
    }

    fn run(&self) {
        *self.has_run.lock().unwrap() = true;
        self.told.notify_one();
    }

    fn wait_until_run(&self) {
        let mut has_run = self.has_run.lock().unwrap();
        while !*has_run {
            has_run = self.told.wait(has_run).unwrap();
        }
    }

    fn end(&self) {
        let bell = || self.bell.lock().unwrap().clone();
        if let Some(bell) = self.countdown.end(bell) {
            bell.expect("it is there before it is called").wake();
        }
    }

    /// Waits as a worker does. After `Waited::Aside`, runs a stranger itself, in the role of the
    /// spare thread.
    fn wait(&self) {
        let mut park = ThreadPark::new();
        let is_over = || self.countdown.is_over();
        while !is_over() {
            self.bell.lock().unwrap().get_or_insert_with(|| park.unparker());
            self.countdown.call();
            let work = || (self.job.load(Relaxed) != 0, false);
            let take = || self.take(OURS);
            match self.idle.wait(&mut park, true, None, |_| is_over(), work, take) {
                Waited::Over => assert!(is_over()),
                Waited::Helps(_) => self.run(),
                Waited::Aside => {
                    if self.take(STRANGE).is_some() {
                        self.run();
                    }
                    while !is_over() {
                        park.park(None);
                    }
                }
            }
        }
    }
}

#[test]
fn a_worker_that_waits_wakes_up_at_the_end() {
    model("a_worker_that_waits_wakes_up_at_the_end", Preemptions(3), || {
        let board = Board::new();
        let same = board.clone();
        let thief = spawn(move || same.end());
        board.wait();
        thief.join().unwrap();
    });
}

/// The job is one that the waiting worker may run, and no other worker can.
#[test]
fn a_worker_that_waits_wakes_up_for_a_job_that_it_can_run() {
    model("a_worker_that_waits_wakes_up_for_a_job_that_it_can_run", Preemptions(3), || {
        let board = Board::new();
        let same = board.clone();
        let thief = spawn(move || {
            same.push(OURS);
            same.wait_until_run();
            same.end();
        });
        board.wait();
        thief.join().unwrap();
    });
}

/// The awaited job ends only after a stranger has run. So the waiting worker must step aside for
/// the thread that runs the stranger.
#[test]
fn a_worker_that_waits_gives_its_place_away_for_a_stranger() {
    model("a_worker_that_waits_gives_its_place_away_for_a_stranger", Preemptions(3), || {
        let board = Board::new();
        let same = board.clone();
        let thief = spawn(move || {
            same.push(STRANGE);
            same.wait_until_run();
            same.end();
        });
        board.wait();
        thief.join().unwrap();
    });
}

/// Returns the `Idle` of a pool in which this many workers run.
fn idle_with(workers: usize) -> Arc<Idle> {
    let idle = Arc::new(Idle::default());
    (0..workers).for_each(|_| {
        idle.activate();
        idle.step_back();
    });
    idle
}

/// At least one of two workers must run. Each may see that the other runs, and so prepare to sleep.
/// Afterwards each steps aside. They must not both sleep.
#[test]
fn of_two_workers_that_one_suffices_for_not_both_sleep() {
    model("of_two_workers_that_one_suffices_for_not_both_sleep", Preemptions(3), || {
        let idle = idle_with(2);
        let works = |idle: &Idle| {
            if idle.running() > 1 {
                let resting = idle.spares.search().prepare();
                let is_needed = || idle.running() < 1;
                let _ = idle.sleep(resting, &mut ThreadPark::new(), None, is_needed);
            }
            idle.step_aside();
            idle.notify_of_place();
        };
        let same = idle.clone();
        let other = spawn(move || works(&same));
        works(&idle);
        other.join().unwrap();
    });
}

/// Two of three workers must run. One steps aside while the other two ask whether enough others
/// run.
#[test]
fn no_spare_worker_misses_that_another_steps_aside() {
    model("no_spare_worker_misses_that_another_steps_aside", Preemptions(2), || {
        let idle = idle_with(3);
        let may_sleep = |idle: &Idle| {
            let resting = idle.spares.search().prepare();
            let is_needed = || idle.running() < 2;
            let (search, _) = idle.sleep(resting, &mut ThreadPark::new(), None, is_needed);
            search.found(|| false);
        };
        let [same, other] = [(); 2].map(|()| idle.clone());
        let spare = spawn(move || may_sleep(&same));
        let steps_aside = spawn(move || {
            other.step_aside();
            other.notify_of_place();
        });
        may_sleep(&idle);
        spare.join().unwrap();
        steps_aside.join().unwrap();
    });
}
