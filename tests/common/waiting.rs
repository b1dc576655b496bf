//! Waits with a timeout of a minute, so that a hang fails.

use filch::task::JoinError;
use filch::{Executor, Job, JoinHandle};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Returns the result or error of the task. Panics if the task takes longer than a minute.
pub(crate) fn ended<T>(task: JoinHandle<T>) -> Result<T, JoinError> {
    task.join_timeout(MINUTE).unwrap_or_else(|_| panic!("it hangs"))
}

/// Returns the result of the task. Panics if the task fails or takes longer than a minute.
pub(crate) fn done<T>(task: JoinHandle<T>) -> T {
    ended(task).unwrap()
}

/// Runs `f` on a thread of its own. Panics if that takes longer than a minute.
pub(crate) fn in_a_minute(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(f);
    let end = Instant::now() + MINUTE;
    while !thread.is_finished() {
        assert!(Instant::now() < end, "it hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
}

/// Waits until the condition holds. Panics after a minute.
#[track_caller]
pub(crate) fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + MINUTE;
    while !condition() {
        assert!(Instant::now() < end, "it hangs");
        std::thread::yield_now();
    }
}

/// Occupies a thread of the executor until the sender is dropped, and returns when it has begun.
pub(crate) fn occupied(executor: &impl Executor) -> mpsc::Sender<()> {
    let ((release, released), (tell, begun)) = (mpsc::channel(), mpsc::channel());
    let job = Job::new(move || {
        tell.send(()).unwrap();
        let _ = released.recv_timeout(MINUTE);
    });
    executor.execute(job).unwrap();
    begun.recv_timeout(MINUTE).unwrap();
    release
}

/// A barrier that panics if not all threads arrive within a minute.
#[derive(Default)]
pub(crate) struct Meeting {
    here: Mutex<usize>,
    bell: Condvar,
}

impl Meeting {
    pub(crate) fn of(&self, parties: usize) {
        let mut here = self.here.lock().unwrap();
        *here += 1;
        self.bell.notify_all();
        let wait = self.bell.wait_timeout_while(here, MINUTE, |here| *here < parties);
        assert!(!wait.unwrap().1.timed_out(), "nobody comes");
    }
}
