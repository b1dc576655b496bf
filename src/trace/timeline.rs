//! What is recorded, and how to get it.

use super::chrome;
use super::record::Record;
use super::tracks::{self, ASLEEP, Event, NOWHERE, Tracks};
use crate::sync::{Text, Unwatched};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::io;

/// How many slices a thread keeps, unless somebody says otherwise: 2 MiB.
const SLICES: usize = 1 << 16;

/// Records which tasks ran where and when.
///
/// Clones are handles to the same timeline. Times are since it was made.
///
/// # Examples
///
/// ```
/// use filch::{trace::Timeline, FairScheduler, ThreadPool};
///
/// let timeline = Timeline::new();
/// let pool = ThreadPool::builder()
///     .num_threads(2)
///     .on_thread_park(timeline.parks())
///     .on_thread_unpark(timeline.unparks())
///     .build()?;
/// let fair = FairScheduler::over(pool);
/// let gold = fair.queue("gold").weight(3).context(timeline.record("gold")).build()?;
/// let free = fair.queue("free").context(timeline.record("free")).build()?;
/// let tasks = (0..50).flat_map(|i| [gold.spawn(move || i), free.spawn(move || i)]);
/// tasks.collect::<Vec<_>>().into_iter().for_each(|task| drop(task.join()));
///
/// let mut picture = Vec::new(); // or a file, for <https://ui.perfetto.dev>
/// timeline.write_chrome(&timeline.take(), &mut picture)?;
/// assert!(picture.starts_with(b"{\"traceEvents\":["));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timeline(Unwatched<Tracks>);

/// A task that ran, or a time in which a worker slept.
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
    /// What it was [recorded as](Timeline::record), or "asleep".
    pub name: Text,
    /// On which track: one for each thread that the timeline has met, from zero.
    pub track: usize,
    /// What that thread is called; "thread" and its track if it has no name.
    pub thread: Text,
    /// On which track the task was spawned; `None` if the worker slept.
    pub spawned_on: Option<usize>,
    /// When the task was spawned; `None` if the worker slept.
    pub spawned: Option<Duration>,
    /// When it began.
    pub began: Duration,
    /// When it ended, by a panic perhaps.
    pub ended: Duration,
}

impl Timeline {
    /// A timeline of at most 65,536 slices a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(filch::trace::Timeline::new().take().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Timeline::with_capacity(SLICES)
    }

    /// A timeline of at most this many slices a thread, of 40 bytes each. Memory is taken as slices come.
    ///
    /// # Panics
    ///
    /// If it is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{trace::Timeline, ThreadPool};
    ///
    /// let timeline = Timeline::with_capacity(1);
    /// let pool = ThreadPool::builder().num_threads(1).context(timeline.record("pool")).build()?;
    /// (0..3).for_each(|_| pool.spawn(|| ()).join().unwrap());
    /// assert_eq!((timeline.take().len(), timeline.lost()), (1, 2));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_capacity(slices: usize) -> Self {
        assert!(slices > 0, "a timeline needs room for at least one slice");
        Timeline(Unwatched::new(Tracks::new(slices)))
    }

    /// A context that records tasks under this name: of a [pool](crate::pool::Builder::context), of all
    /// [queues](crate::fair::Builder::context), or of [one](crate::fair::QueueBuilder::context). With another context, as
    /// a pair of both.
    ///
    /// # Examples
    ///
    /// See [`Timeline`].
    #[must_use]
    pub fn record(&self, name: impl Into<Text>) -> Record {
        Record::new(&self.0, self.0.name(name.into()))
    }

    /// For [`on_thread_park`](crate::pool::Builder::on_thread_park): the worker falls asleep.
    ///
    /// # Examples
    ///
    /// See [`Timeline`].
    pub fn parks(&self) -> impl Fn(usize) + Send + Sync + use<> {
        let tracks = Unwatched::clone(&self.0);
        move |_| {
            let now = tracks.now();
            tracks::of_this_thread(&tracks, |mine| mine.asleep_since.set(Some(now)));
        }
    }

    /// For [`on_thread_unpark`](crate::pool::Builder::on_thread_unpark): the worker has slept.
    ///
    /// # Examples
    ///
    /// See [`Timeline`].
    pub fn unparks(&self) -> impl Fn(usize) + Send + Sync + use<> {
        let tracks = Unwatched::clone(&self.0);
        move |_| {
            let ended = tracks.now();
            tracks::of_this_thread(&tracks, |mine| {
                if let Some(began) = mine.asleep_since.take() {
                    let (name, spawned_on, spawned) = (ASLEEP, NOWHERE, 0);
                    mine.add(Event { name, spawned_on, spawned, began, ended });
                }
            });
        }
    }

    /// Takes what has been recorded, in the order in which it began. What runs or sleeps now will be there when it
    /// has ended.
    ///
    /// # Examples
    ///
    /// See [`Slice`].
    #[must_use]
    pub fn take(&self) -> Vec<Slice> {
        let mut slices = self.0.take();
        slices.sort_by_key(|it| (it.began, core::cmp::Reverse(it.ended)));
        slices
    }

    /// How many slices were left out since a thread had recorded its maximum.
    ///
    /// # Examples
    ///
    /// See [`with_capacity`](Self::with_capacity).
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// Writes slices in Chrome's trace event format, which [Perfetto](https://ui.perfetto.dev) opens too: a track for
    /// each thread, slices coloured by name, arrows from where tasks were spawned.
    ///
    /// Of many small writes: give it a `BufWriter` if it is a file.
    ///
    /// # Errors
    ///
    /// The writer's.
    ///
    /// # Examples
    ///
    /// See [`Timeline`].
    pub fn write_chrome(
        &self,
        slices: &[Slice],
        out: &mut (impl io::Write + ?Sized),
    ) -> io::Result<()> {
        chrome::write(out, slices, &self.0.threads(), self.lost())
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline::new()
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("threads", &self.0.threads().len())
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
