//! The records of a timeline.

use crate::sync::Text;
use core::time::Duration;

/// A task that ran, or a period in which a worker slept.
///
/// # Examples
///
/// ```
/// use filch::{trace::Timeline, ThreadPool};
///
/// let timeline = Timeline::new();
/// let pool = ThreadPool::builder().num_threads(1).context(timeline.record("pool")).build()?;
/// pool.spawn(|| ()).join().unwrap();
/// let slice = &timeline.take()[0];
/// assert_eq!((&*slice.name, &*slice.thread), ("pool", "filch-0"));
/// assert!(slice.spawned <= Some(slice.began) && slice.began <= slice.ended);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Slice {
    /// The name under which the task was [recorded](super::Timeline::record), or "asleep".
    pub name: Text,
    /// The number of the track. Each thread that the timeline has met has a track, counted from
    /// zero.
    pub track: usize,
    /// The name of the thread of this track. A thread without a name is called "thread" and the
    /// number of its track.
    pub thread: Text,
    /// The track of the thread that spawned the task. `None` if the worker slept, or if the
    /// spawning thread was ending.
    pub spawned_on: Option<usize>,
    /// When the task was spawned; `None` if the worker slept.
    pub spawned: Option<Duration>,
    /// When the task or the sleep began.
    pub began: Duration,
    /// When the task or the sleep ended. A task may have ended by a panic.
    pub ended: Duration,
}
