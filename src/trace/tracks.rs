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
use core::mem;
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
    /// What each thread is called.
    threads: Vec<Text>,
    /// The threads that may go on recording.
    tracks: Vec<Track>,
    /// What threads have left that have ended, each with its number.
    left: Vec<(usize, Event)>,
    /// How many slices those have left out.
    lost: u64,
}

/// A thread, as others see it.
struct Track {
    number: usize,
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
    /// Last, so that whoever finds it gone has all slices.
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
        let names = [Text::from("asleep")].into();
        let (threads, tracks, left) = (Vec::new(), Vec::new(), Vec::new());
        let known = Known { names, threads, tracks, left, lost: 0 };
        Tracks { start: clock::now(), capacity, known: Mutex::new(known) }
    }

    pub(super) fn now(&self) -> u64 {
        clock::nanos_since(self.start)
    }

    /// The number of a name, which may be there already.
    pub(super) fn name(&self, name: Text) -> u32 {
        let names = &mut self.known.lock().names;
        // The first is for the time in which workers sleep, and no task's.
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
    /// Takes what is there.
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
    /// Keeps of threads that have ended what they have recorded, and not the deques.
    fn sweep(&mut self) {
        let (left, lost) = (&mut self.left, &mut self.lost);
        self.tracks.retain_mut(|track| {
            // The thread's reference goes last: whoever sees that sees all that it has recorded.
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
    /// So that threads let go of their side of it, when they next make another.
    fn drop(&mut self) {
        for track in &self.known.lock().tracks {
            track.side.is_over.store(true, Relaxed); // Relaxed: it guards nothing
        }
    }
}
