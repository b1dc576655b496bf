//! Waits until no task is pending. `end_lease` notifies the waiting threads.

use crate::executor::ShutdownError;
use crate::fair::line::Line;
use crate::fair::line::table::Table;
use crate::sync::clock::Instant;

/// Blocks until no task of a queue is pending and the handles of the last tasks report their ends.
/// Returns whether there was anything to wait for, or an error at the deadline.
pub(crate) fn wait_until_quiet(
    line: &Line,
    deadline: Option<Instant>,
) -> Result<bool, ShutdownError> {
    if line.is_idle() {
        return Ok(false);
    }
    // Preparing to wait has a fence. So the thread that ends the last lease sees `quiet`, or this
    // thread sees that the lease has ended.
    match line.quiet().wait_until(deadline, || line.is_idle()) {
        true => Ok(true),
        false => Err(ShutdownError::StillRunning),
    }
}

/// Blocks until one round finds no pending task in any queue. Returns an error at the deadline.
pub(crate) fn wait_until_all_quiet(
    table: &Table,
    deadline: Option<Instant>,
) -> Result<(), ShutdownError> {
    loop {
        let mut has_waited = false;
        for line in table.iter() {
            has_waited |= wait_until_quiet(line, deadline)?;
        }
        if !has_waited {
            return Ok(());
        }
    }
}
