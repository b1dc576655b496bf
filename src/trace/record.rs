//! The context that records. It notes the time and the thread when a task is spawned. When the task
//! ends, it adds a slice to the track of the thread that ran the task.

use super::tracks::{Event, NOWHERE, Tracks, of_this_thread};
use crate::sync::Unwatched;
use crate::task::ContextFlow;

/// A [context](ContextFlow) that records its tasks. Made by
/// [`Timeline::record`](super::Timeline::record).
///
/// # Examples
///
/// Together with another context:
///
/// ```
/// use filch::task::ContextFlow;
/// use filch::{trace::Timeline, ThreadPool};
/// # struct User;
/// # impl ContextFlow for User {
/// #     type Snapshot = ();
/// #     fn capture(&self) {}
/// #     fn enter<R>((): (), run: impl FnOnce() -> R) -> R { run() }
/// # }
///
/// let timeline = Timeline::new();
/// let pool = ThreadPool::builder().context((User, timeline.record("pool"))).build()?;
/// pool.spawn(|| ()).join().unwrap();
/// assert_eq!(timeline.take().len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Record {
    tracks: Unwatched<Tracks>,
    name: u32,
}

/// The record of a task that was spawned and has not run yet. Each poll of a future gets a clone,
/// and adds a slice of its own.
#[derive(Clone)]
pub struct Spawned {
    record: Record,
    on: u32,
    at: u64,
}

impl Record {
    pub(super) fn new(tracks: &Unwatched<Tracks>, name: u32) -> Self {
        Record { tracks: Unwatched::clone(tracks), name }
    }
}

impl ContextFlow for Record {
    type Snapshot = Spawned;

    fn capture(&self) -> Spawned {
        let on = of_this_thread(&self.tracks, |mine| mine.number).unwrap_or(NOWHERE);
        Spawned { on, at: self.tracks.now(), record: self.clone() }
    }

    fn enter<R>(spawned: Spawned, run: impl FnOnce() -> R) -> R {
        let began = spawned.record.tracks.now();
        let _running = Running { spawned, began };
        run()
    }
}

/// Records a task when it ends, even by a panic.
struct Running {
    spawned: Spawned,
    began: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Spawned { record: Record { tracks, name }, on, at } = &self.spawned;
        let (began, ended) = (self.began, tracks.now());
        let event = Event { name: *name, spawned_on: *on, spawned: *at, began, ended };
        of_this_thread(tracks, |mine| mine.add(event));
    }
}

opaque!(Record, |it| number: it.name);

opaque!(Spawned, |it| on: it.on, nanos: it.at);
