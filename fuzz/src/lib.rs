//! Helpers that the fuzz targets share.

use arbitrary::{Error, Result, Unstructured};
use std::sync::OnceLock;
use std::{fs, thread};

/// A number in this range, both ends included.
///
/// The programs of the targets name this function for their fields: `arbitrary(with = from::<1, 4,
/// _>)`.
pub fn from<const LEAST: u64, const MOST: u64, N: TryFrom<u64>>(
    bytes: &mut Unstructured<'_>,
) -> Result<N> {
    bytes.int_in_range(LEAST..=MOST)?.try_into().map_err(|_| Error::IncorrectFormat)
}

/// Calls `run`, and waits until all threads that it has started are gone.
///
/// If a worker drops the last handle of its pool, it does not wait for the other workers. Their
/// memory would be reported as a leak of this program.
pub fn with_threads(run: impl FnOnce()) {
    static BEFORE: OnceLock<usize> = OnceLock::new();

    let before = *BEFORE.get_or_init(threads);
    run();
    while threads() > before {
        thread::yield_now();
    }
}

/// Returns the number of threads of the process. (Counting `/proc/self/task` misses some threads
/// while others end.)
fn threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
