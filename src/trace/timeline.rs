//! Timelines: handles that make contexts and hooks, and take and write slices. The recorded state
//! is in `tracks.rs`.

use super::chrome;
use super::record::Record;
use super::slice::Slice;
use super::tracks::{self, ASLEEP, Event, NOWHERE, Tracks};
use crate::sync::{Text, Unwatched};
use alloc::vec::Vec;
use std::io;

/// The default maximum of slices for each thread. It limits a thread's slices to 2 MiB of memory.
const SLICES: usize = 1 << 16;

/// Records which tasks ran on which threads, and when.
///
/// Clones are handles to the same timeline. Times count from the moment at which the timeline was
/// made.
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

impl Timeline {
    /// Makes a timeline that holds at most 65,536 slices for each thread.
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

    /// Makes a timeline that holds at most `slices` slices for each thread. A slice takes 32 bytes.
    /// A thread's memory grows with its slices.
    ///
    /// # Panics
    ///
    /// Panics if `slices` is zero.
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

    /// Returns a context that records tasks under this name. The context is for a
    /// [pool](crate::pool::Builder::context), for all [queues](crate::fair::Builder::context), or
    /// for [one queue](crate::fair::QueueBuilder::context). To use a second context beside it, pass
    /// a pair of both: a pair of contexts is a context.
    #[must_use]
    pub fn record(&self, name: impl Into<Text>) -> Record {
        Record::new(&self.0, self.0.name(name.into()))
    }

    /// Returns a hook for [`on_thread_park`](crate::pool::Builder::on_thread_park), which records
    /// that a worker falls asleep.
    pub fn parks(&self) -> impl Fn(usize) + Send + Sync + use<> {
        let tracks = Unwatched::clone(&self.0);
        move |_| {
            let now = tracks.now();
            tracks::of_this_thread(&tracks, |mine| mine.asleep_since.set(Some(now)));
        }
    }

    /// Returns a hook for [`on_thread_unpark`](crate::pool::Builder::on_thread_unpark), which
    /// records that a worker has woken up.
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

    /// Takes the recorded slices, ordered by their beginnings. A slice is recorded when it ends.
    #[must_use]
    pub fn take(&self) -> Vec<Slice> {
        let mut slices = self.0.take();
        slices.sort_by_key(|it| (it.began, core::cmp::Reverse(it.ended)));
        slices
    }

    /// Returns the number of slices that were left out, because the timeline already held the
    /// maximum for their thread.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }

    /// Writes slices in Chrome's trace event format, which [Perfetto](https://ui.perfetto.dev)
    /// opens too. The picture has a track for each thread, and colours slices by name. An arrow
    /// leads to a slice from the thread and time of the task's spawn, if that thread had a track.
    ///
    /// Makes many small writes, so wrap a file in a `BufWriter`.
    ///
    /// # Errors
    ///
    /// Returns the first error of `out`.
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

opaque!(Timeline, |it| threads: it.0.threads().len(), lost: it.lost());
