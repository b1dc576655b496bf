//! Waits that end: what hangs fails.

use filch::JoinHandle;
use filch::task::JoinError;
use std::time::Duration;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// What becomes of a task within a minute.
pub(crate) fn ended<T>(task: JoinHandle<T>) -> Result<T, JoinError> {
    task.join_timeout(MINUTE).unwrap_or_else(|_| panic!("it hangs"))
}

/// The result of a task that ends within a minute.
pub(crate) fn done<T>(task: JoinHandle<T>) -> T {
    ended(task).unwrap()
}
