//! What the fuzz targets share.

use arbitrary::{Error, Result, Unstructured};
use std::sync::OnceLock;
use std::{fs, thread};

/// A number in this range, both ends included.
///
/// Named by the fields of the programs that the targets run: `arbitrary(with = from::<1, 4, _>)`.
pub fn from<const LEAST: u64, const MOST: u64, N: TryFrom<u64>>(
    bytes: &mut Unstructured<'_>,
) -> Result<N> {
    bytes.int_in_range(LEAST..=MOST)?.try_into().map_err(|_| Error::IncorrectFormat)
}

/// Runs this, and waits until all threads that it has started are gone.
///
/// A pool whose last handle is dropped by one of its own workers does not wait for them, and what a
/// thread still has would be reported as a leak of the program that is run.
pub fn with_threads(run: impl FnOnce()) {
    static BEFORE: OnceLock<usize> = OnceLock::new();

    let before = *BEFORE.get_or_init(threads);
    run();
    while threads() > before {
        thread::yield_now();
    }
}

/// How many threads the process has. (Counting `/proc/self/task` misses some while others go.)
fn threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
