//! Tracks: each thread records into a deque of its own, from which other threads take.

use super::slice::Slice;
use crate::deque::{Builder, Flavor, Stealer, Worker};
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::thread::{self, per_thread};
use crate::sync::{AtomicBool, AtomicU64, Relaxed, Text, Unwatched, clock};
use alloc::format;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::mem;
use core::time::Duration;

/// The index in `Known::names` of the name for a sleeping worker.
pub(super) const ASLEEP: u32 = 0;
/// The value of `Event::spawned_on` if the slice is not a task, or the spawning thread had no
/// track.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A slice as it is recorded: names and threads are numbers, and times are in nanoseconds.
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
    /// The maximum of slices for each thread.
    capacity: usize,
    known: Mutex<Known>,
}

struct Known {
    names: Vec<Text>,
    threads: Vec<Text>,
    /// The tracks of threads that have not ended, or whose end `sweep` has not noticed yet.
    tracks: Vec<Track>,
    /// The slices of threads that have ended, each with the thread's number.
    left: Vec<(usize, Event)>,
    /// The number of slices that ended threads left out, because their deques were full.
    lost: u64,
}

/// The part of a track that other threads use.
struct Track {
    number: usize,
    slices: Stealer<Event>,
    side: Unwatched<Side>,
}

/// The state that a thread shares with other threads, beside the deque.
#[derive(Default)]
struct Side {
    lost: AtomicU64,
    /// Whether the timeline has been dropped.
    is_over: AtomicBool,
}

pub(super) struct Mine {
    /// The address of this track's timeline, only to compare it. Another timeline can get the same
    /// address only after `is_over` was set in `side`.
    timeline: *const Tracks,
    pub(super) number: u32,
    pub(super) asleep_since: Cell<Option<u64>>,
    slices: Worker<Event>,
    /// The last field, so it is dropped last. When `sweep` finds this reference dropped, all slices
    /// of the thread are in the deque.
    side: Unwatched<Side>,
}

per_thread! {
    static TRACKS: RefCell<Vec<Mine>> = RefCell::new(Vec::new());
}

impl Mine {
    pub(super) fn add(&self, event: Event) {
        if self.slices.try_push(event).is_err() {
            self.side.lost.fetch_add(1, Relaxed); // Relaxed: a statistic
        }
    }

    fn is_over(&self) -> bool {
        // Relaxed: a later timeline at the same address is made after this flag was set. A thread
        // that knows the later timeline therefore sees the flag.
        self.side.is_over.load(Relaxed)
    }
}

/// Calls `f` with this thread's track of a timeline. Returns `None` if the thread's thread-local
/// storage is gone.
pub(super) fn of_this_thread<R>(tracks: &Tracks, f: impl FnOnce(&Mine) -> R) -> Option<R> {
    let with = |all: &RefCell<Vec<Mine>>| {
        // No outer frame of this thread has borrowed the cell, because `f` calls no user code.
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
        let names = [Text::from("asleep")].into();
        let (threads, tracks, left) = (Vec::new(), Vec::new(), Vec::new());
        let known = Known { names, threads, tracks, left, lost: 0 };
        Tracks { start: clock::now(), capacity, known: Mutex::new(known) }
    }

    pub(super) fn now(&self) -> u64 {
        clock::nanos_since(self.start)
    }

    /// Returns the number of a name, and adds the name if it is new.
    pub(super) fn name(&self, name: Text) -> u32 {
        let names = &mut self.known.lock().names;
        // The first name is for sleeping workers, and never for tasks.
        let known = names.iter().skip(1).position(|it| *it == name).map(|it| it + 1);
        known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as u32
    }

    fn register(&self) -> Mine {
        let slices = Builder::new(Flavor::Fifo).max_capacity(self.capacity).build();
        let side = Unwatched::<Side>::default();
        let known = &mut *self.known.lock();
        known.sweep();
        let number = known.threads.len();
        let thread = match thread::current().name() {
            Some(name) => Text::from(name),
            None => Text::from(format!("thread {number}")),
        };
        known.threads.push(thread);
        known.tracks.push(Track { number, slices: slices.stealer(), side: side.clone() });
        Mine { timeline: self, number: number as u32, asleep_since: Cell::new(None), slices, side }
    }

    pub(super) fn threads(&self) -> Vec<Text> {
        self.known.lock().threads.clone()
    }

    pub(super) fn lost(&self) -> u64 {
        let known = self.known.lock();
        // Relaxed: a statistic.
        known.lost + known.tracks.iter().map(|it| it.side.lost.load(Relaxed)).sum::<u64>()
    }

    pub(super) fn take(&self) -> Vec<Slice> {
        let known = &mut *self.known.lock();
        known.sweep();
        let mut taken = mem::take(&mut known.left);
        known.tracks.iter().for_each(|track| track.take(&mut taken));
        taken.into_iter().map(|(number, event)| known.slice(number, event)).collect()
    }
}

impl Track {
    fn take(&self, taken: &mut Vec<(usize, Event)>) {
        loop {
            match self.slices.steal() {
                Steal::Success(event) => taken.push((self.number, event)),
                Steal::Retry => {}
                Steal::Empty => break,
            }
        }
    }
}

impl Known {
    /// Moves the slices of threads that have ended to `left`, and drops the deques of these
    /// threads.
    fn sweep(&mut self) {
        let (left, lost) = (&mut self.left, &mut self.lost);
        self.tracks.retain_mut(|track| {
            // Succeeds once the thread has dropped its own reference, after its last slice.
            let Some(side) = Unwatched::get_mut(&mut track.side) else { return true };
            *lost += side.lost.load(Relaxed); // Relaxed: a statistic
            track.take(left);
            false
        });
    }

    fn slice(&self, number: usize, event: Event) -> Slice {
        let is_task = event.name != ASLEEP;
        Slice {
            name: self.names[event.name as usize].clone(),
            track: number,
            thread: self.threads[number].clone(),
            spawned_on: (event.spawned_on != NOWHERE).then_some(event.spawned_on as usize),
            spawned: is_task.then(|| Duration::from_nanos(event.spawned)),
            began: Duration::from_nanos(event.began),
            ended: Duration::from_nanos(event.ended),
        }
    }
}

impl Drop for Tracks {
    /// Makes each thread drop its track of this timeline. A thread does so when it next adds a
    /// track for another timeline.
    fn drop(&mut self) {
        for track in &self.known.lock().tracks {
            track.side.is_over.store(true, Relaxed); // Relaxed: no other data depends on it
        }
    }
}
