//! One track for each thread: a deque into which the thread records, and out of which others take.

use super::timeline::Slice;
use crate::deque::{Builder, Flavor, Stealer, Worker};
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::thread::{self, per_thread};
use crate::sync::{AtomicBool, AtomicU64, Relaxed, Text, Unwatched, clock};
use alloc::format;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::time::Duration;

/// The name of the time in which a worker sleeps.
pub(super) const ASLEEP: u32 = 0;
/// Not spawned on any thread.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A slice as it is recorded: names and threads by number, times in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) name: u32,
    pub(super) spawned_on: u32,
    pub(super) spawned: u64,
    pub(super) began: u64,
    pub(super) ended: u64,
}

pub(super) struct Tracks {
    start: clock::Instant,
    /// Of each thread.
    capacity: usize,
    /// Taken when a thread comes, and by whoever looks; not for recording.
    known: Mutex<Known>,
}

struct Known {
    names: Vec<Text>,
    threads: Vec<Track>,
}

/// A thread, as others see it.
struct Track {
    thread: Text,
    slices: Stealer<Event>,
    side: Unwatched<Side>,
}

/// What a thread and others share beside the deque.
#[derive(Default)]
struct Side {
    lost: AtomicU64,
    /// The timeline is gone.
    is_over: AtomicBool,
}

/// A thread's own track.
pub(super) struct Mine {
    /// Whose. Another timeline can get this address when this one is over, and not before.
    timeline: *const Tracks,
    pub(super) number: u32,
    pub(super) asleep_since: Cell<Option<u64>>,
    slices: Worker<Event>,
    side: Unwatched<Side>,
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // a checker's macro has no such form
    static TRACKS: RefCell<Vec<Mine>> = RefCell::new(Vec::new());
}

impl Mine {
    pub(super) fn add(&self, event: Event) {
        if self.slices.try_push(event).is_err() {
            self.side.lost.fetch_add(1, Relaxed); // Relaxed: a statistic
        }
    }

    fn is_over(&self) -> bool {
        self.side.is_over.load(Relaxed) // Relaxed: what made the next timeline came after the end of this one
    }
}

/// Calls `f` with this thread's track of a timeline. `None` if the thread has ended its own storage.
pub(super) fn of_this_thread<R>(tracks: &Tracks, f: impl FnOnce(&Mine) -> R) -> Option<R> {
    let with = |all: &RefCell<Vec<Mine>>| {
        // Nobody is further down this stack who has borrowed it: `f` calls nothing of the user's.
        let mut all = all.borrow_mut();
        let known = all.iter().position(|it| core::ptr::eq(it.timeline, tracks) && !it.is_over());
        let index = known.unwrap_or_else(|| {
            all.retain(|it| !it.is_over());
            all.push(tracks.register());
            all.len() - 1
        });
        f(&all[index])
    };
    TRACKS.try_with(with).ok()
}

impl Tracks {
    pub(super) fn new(capacity: usize) -> Self {
        let known = Known { names: [Text::from("asleep")].into(), threads: Vec::new() };
        Tracks { start: clock::now(), capacity, known: Mutex::new(known) }
    }

    pub(super) fn now(&self) -> u64 {
        clock::nanos_since(self.start)
    }

    /// The number of a name, which may be there already.
    pub(super) fn name(&self, name: Text) -> u32 {
        let names = &mut self.known.lock().names;
        let known = names.iter().position(|it| *it == name);
        known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as u32
    }

    fn register(&self) -> Mine {
        let slices = Builder::new(Flavor::Fifo).max_capacity(self.capacity).build();
        let side = Unwatched::<Side>::default();
        let threads = &mut self.known.lock().threads;
        let number = threads.len();
        let thread = match thread::current().name() {
            Some(name) => Text::from(name),
            None => Text::from(format!("thread {number}")),
        };
        threads.push(Track { thread, slices: slices.stealer(), side: side.clone() });
        Mine { timeline: self, number: number as u32, asleep_since: Cell::new(None), slices, side }
    }

    pub(super) fn threads(&self) -> Vec<Text> {
        self.known.lock().threads.iter().map(|it| it.thread.clone()).collect()
    }

    pub(super) fn lost(&self) -> u64 {
        // Relaxed: a statistic.
        self.known.lock().threads.iter().map(|it| it.side.lost.load(Relaxed)).sum()
    }

    pub(super) fn take(&self) -> Vec<Slice> {
        let known = self.known.lock();
        let mut taken = Vec::new();
        for (number, track) in known.threads.iter().enumerate() {
            loop {
                match track.slices.steal() {
                    Steal::Success(event) => taken.push(known.slice(number, track, event)),
                    Steal::Retry => {}
                    Steal::Empty => break,
                }
            }
        }
        taken
    }
}

impl Known {
    fn slice(&self, number: usize, track: &Track, event: Event) -> Slice {
        let is_task = event.name != ASLEEP;
        Slice {
            name: self.names[event.name as usize].clone(),
            track: number,
            thread: track.thread.clone(),
            spawned_on: (event.spawned_on != NOWHERE).then_some(event.spawned_on as usize),
            spawned: is_task.then(|| Duration::from_nanos(event.spawned)),
            began: Duration::from_nanos(event.began),
            ended: Duration::from_nanos(event.ended),
        }
    }
}

impl Drop for Tracks {
    /// So that threads let go of their side of it, when they next make another.
    fn drop(&mut self) {
        for track in &self.known.lock().threads {
            track.side.is_over.store(true, Relaxed); // Relaxed: it guards nothing
        }
    }
}
