//! The life of a worker: find a job and run it, or sleep.

use super::crew::Vacancy;
use super::registry::Seat;
use super::waits::Depth;
use super::{CALLED, Shared};
use crate::deque::Worker;
use crate::idle::{Park, Resting, Search, ThreadPark};
use crate::injector::Injector;
use crate::sync::clock::{self, Instant};
use crate::sync::spin::relax;
use crate::sync::{Arc, Relaxed, thread};
use crate::task::{Job, current, depth, gate};
use alloc::boxed::Box;
use core::cell::{Cell, RefCell};
use core::ptr;
use core::time::Duration;

/// What calls for attention. Threads are to be started: all, at first, or those that the system has not given.
pub(super) const MISSING: usize = 1;
/// The pool takes no further jobs.
pub(super) const CLOSED: usize = 1 << 1;
/// What is queued is to be dropped.
pub(super) const DISCARD: usize = 1 << 2;
/// There are more workers than there are to be, and whoever sees it is to go.
pub(super) const SURPLUS: usize = 1 << 3;
/// There are more workers than there are to be, and whoever has nothing to do for long may go.
pub(super) const SPARE: usize = 1 << 4;
/// A worker has moved jobs that are to be dropped, and may be in a wait, in which it drops none.
pub(super) const MOVED: usize = 1 << 5;
/// Jobs are pinned to workers; they are counted from here on.
pub(super) const PINNED: usize = 1 << 6;

/// What a worker looks into before its next turn.
const URGENT: usize = !(MISSING | CLOSED | SPARE | MOVED);

thread::per_thread! {
    /// The worker that this thread is, if it is one (I5).
    static CURRENT: Cell<*const Local> = Cell::new(ptr::null());
}

thread::per_thread! {
    /// The index of the worker that this thread is, also while its stop hook runs.
    static INDEX: Cell<Option<usize>> = Cell::new(None);
}

/// What a worker has for itself.
pub(super) struct Local {
    pub(super) shared: Arc<Shared>,
    pub(super) seat: Arc<Seat>,
    pub(super) deque: Worker<Job>,
    /// Where it sleeps when there is nothing to do.
    pub(super) park: RefCell<Box<dyn Park>>,
    /// Where it sleeps while it waits for a half of a `join`, or for a scope.
    pub(super) bell: RefCell<ThreadPark>,
    pub(super) turn: Cell<u32>,
    pub(super) random: Cell<u32>,
    /// How many jobs in the deque may be of tasks that have been claimed, at most.
    pub(super) litter: Cell<usize>,
    /// In services.
    pub(super) depth: Depth,
    /// Whether it has given its place away, and if so, whether another has it.
    pub(super) place_is_taken: Cell<Option<bool>>,
    is_discharged: Cell<bool>,
    busy_since: Cell<Instant>,
    /// How many jobs it had run when it woke up the last time.
    polls_at_wake: Cell<u64>,
}

/// How a worker goes on.
pub(super) enum Next {
    /// With this job.
    Run(Job),
    /// From the beginning.
    Turn,
    /// Not at all.
    Leave,
}

impl Local {
    /// The worker that this thread is, if it is one of this pool.
    #[inline]
    pub(super) fn of(shared: &Shared) -> Option<&Local> {
        Local::current().filter(|it| ptr::eq(&*it.shared, shared))
    }

    /// The worker that this thread is. Not for longer than it is: callers return before the job does that
    /// called them.
    #[inline]
    pub(super) fn current<'a>() -> Option<&'a Local> {
        // An error means that the thread is past running jobs.
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: I5.
        unsafe { current.as_ref() }
    }

    pub(super) fn new(Vacancy { shared, seat, deque, bell }: Vacancy) -> Self {
        // Any seed but zero; a different one for each, so that they start at different victims.
        let random = Cell::new(seat.index as u32 + 1);
        Local {
            shared,
            seat,
            deque,
            park: RefCell::new(Box::new(ThreadPark::new())),
            bell: RefCell::new(bell),
            turn: Cell::new(0),
            random,
            litter: Cell::new(0),
            depth: Depth::default(),
            place_is_taken: Cell::new(None),
            is_discharged: Cell::new(false),
            busy_since: Cell::new(clock::now()),
            polls_at_wake: Cell::new(u64::MAX),
        }
    }

    /// This thread is this worker from now on; or none, if there is none.
    pub(super) fn set_current(local: Option<&Local>) {
        INDEX.with(|it| it.set(local.map(|it| it.seat.index)));
        CURRENT.with(|it| it.set(local.map_or(ptr::null(), ptr::from_ref)));
    }

    /// The life of a worker's thread.
    pub(super) fn live(vacancy: Vacancy) {
        let local = Local::new(vacancy);
        let settings = &local.shared.settings;
        match thread::catch(|| settings.park(local.seat.index)) {
            Ok(park) => drop(local.park.replace(park)),
            Err(payload) => local.shared.report(payload),
        }
        Local::set_current(Some(&local));
        current::as_worker(Some(local.shared.id), Some(&local), || {
            depth::has_stack(settings.stack_size);
            gate::with_own(&local, || {
                local.hook(&local.shared.settings.on_thread_start);
                while let Err(payload) = thread::catch(|| local.serve()) {
                    local.seat.counters.polled();
                    local.shared.report(payload);
                }
            });
            // What the hook spawns goes to the injector, which takes it only if somebody else is there to run it.
            CURRENT.with(|it| it.set(ptr::null()));
            local.hook(&local.shared.settings.on_thread_stop);
        });
        Local::set_current(None);
        local.depart();
    }

    /// Runs jobs until it is time to leave, and gets up. A job that panics ends it; it is called again.
    fn serve(&self) {
        loop {
            while let Some(job) = self.next() {
                self.run(job);
            }
            if self.gets_up() {
                return;
            }
        }
    }

    /// Takes a turn; a tombstone costs none.
    #[inline]
    pub(super) fn run(&self, job: Job) {
        if job.try_run() {
            self.turn.set(self.turn.get().wrapping_add(1));
            self.seat.counters.polled();
        }
    }

    /// As `run`; a panic is reported.
    pub(super) fn run_caught(&self, job: Job) {
        if let Err(payload) = thread::catch(|| self.run(job)) {
            self.seat.counters.polled();
            self.shared.report(payload);
        }
    }

    /// The next job; sleeps until there is one. `None` if it is time to leave.
    #[inline]
    fn next(&self) -> Option<Job> {
        loop {
            // Relaxed: what it is about is looked at under a lock, or by `sleep` again.
            let attention = self.shared.attention.load(Relaxed);
            if attention & URGENT != 0 && self.attend() {
                return None;
            }
            // If this worker may be one too many, the others' jobs are not for it to take without a look.
            if attention & SPARE == 0 || !self.deque.is_empty() {
                if let Some(job) = self.find() {
                    return Some(job);
                }
            }
            match self.search() {
                // Relaxed: as above.
                Next::Run(job) if self.shared.attention.load(Relaxed) & DISCARD != 0 => {
                    self.shared.drop_caught(job);
                }
                Next::Run(job) => return Some(job),
                Next::Turn => {}
                Next::Leave => return None,
            }
        }
    }

    /// Does what it is called for. Returns whether that is to leave.
    #[cold]
    fn attend(&self) -> bool {
        while let Some(job) = self.take_urgent().or_else(|| self.take_from(&self.seat.pinned)) {
            self.run(job);
        }
        // Relaxed: what it is about is looked at under a lock, or found in a queue. After the pinned jobs, which may take long.
        let attention = self.shared.attention.load(Relaxed);
        if attention & DISCARD != 0 {
            self.discard();
        }
        if attention & SURPLUS != 0 && self.shared.discharges() {
            self.is_discharged.set(true);
            return true;
        }
        false
    }

    /// A job for this worker, which it also runs while it waits.
    pub(super) fn take_urgent(&self) -> Option<Job> {
        self.take_from(&self.seat.urgent)
    }

    pub(super) fn take_from(&self, pinned: &Injector<Job>) -> Option<Job> {
        let job = pinned.steal().success()?;
        self.shared.attention.fetch_sub(PINNED, Relaxed); // Relaxed: a hint
        Some(job)
    }

    /// Drops what is queued. Handles say that it was cancelled.
    fn discard(&self) {
        let everything = core::iter::from_fn(|| self.deque.pop().or_else(|| self.take_one()));
        everything.for_each(|job| self.shared.drop_caught(job));
    }

    /// Sleeps until there may be a job. The last look counts as work whatever is not certainly nothing. `None` if it
    /// is time to leave.
    pub(super) fn sleep<'a>(&self, resting: Resting<'a>) -> Option<Search<'a>> {
        let shared = &*self.shared;
        // Before the look: once it is closed and empty it stays so (I2).
        let attention = shared.attention.load(CALLED.acquire());
        let is_surplus = shared.run_enough(1);
        if !is_surplus && shared.is_there_work() || self.is_called() {
            let search = resting.cancel();
            relax();
            return Some(search);
        }
        if attention & CLOSED != 0 {
            return None;
        }
        self.hook(&shared.settings.on_thread_park);
        if !self.deque.is_empty() {
            // The hook has spawned, and nobody else may come for it (I4).
            let search = resting.cancel();
            self.hook(&shared.settings.on_thread_unpark);
            return Some(search);
        }
        let since = self.note_end_of_work();
        let timeout = (attention & SPARE != 0).then_some(shared.settings.keep_alive);
        let (search, is_told) = shared.idle.at_rest(|| {
            if is_surplus && !shared.run_enough(0) {
                // Others have thought the same at this moment.
                return (resting.cancel(), true);
            }
            resting.commit_in(&mut **self.park.borrow_mut(), timeout)
        });
        let slept = self.note_begin_of_work(since);
        self.hook(&shared.settings.on_thread_unpark);
        if !is_told && timeout.is_some_and(|time| slept >= time) && shared.discharges() {
            self.is_discharged.set(true);
            return None;
        }
        Some(search)
    }

    fn note_end_of_work(&self) -> Instant {
        let (counters, now) = (&self.seat.counters, clock::now());
        if counters.polls() == self.polls_at_wake.get() {
            counters.was_noop();
        }
        counters.was_busy(now.saturating_duration_since(self.busy_since.get()));
        counters.parked();
        now
    }

    /// Returns how long it has slept.
    fn note_begin_of_work(&self, slept_since: Instant) -> Duration {
        let now = clock::now();
        self.busy_since.set(now);
        self.polls_at_wake.set(self.seat.counters.polls());
        now.saturating_duration_since(slept_since)
    }

    /// Gets up from its seat, unless it is to stay after all. Leaves nothing behind (I2): a worker that is discharged has given
    /// its jobs away, or keeps its seat, where others find them.
    fn gets_up(&self) -> bool {
        while let Some(job) = self.deque.pop() {
            if let Err(job) = self.shared.hand_over(job) {
                self.deque.push(job);
                break;
            }
        }
        let gets_up = Shared::unseat(&self.shared, &self.seat, self.is_discharged.get());
        self.is_discharged.set(gets_up && self.is_discharged.get());
        gets_up
    }

    /// Goes, with nothing left.
    pub(super) fn depart(&self) {
        let shared = &*self.shared;
        shared.vacate(&self.seat, self.is_discharged.get());
        shared.idle.rest();
        // A notification may have been meant for whoever sleeps, and this worker was told instead.
        shared.idle.searchers.notify_one();
        shared.go();
    }

    /// Calls a hook of the user's. If it panics, that is reported as if it were a job.
    fn hook(&self, hook: &Option<super::builder::Hook>) {
        if let Some(hook) = hook {
            if let Err(payload) = thread::catch(|| hook(self.seat.index)) {
                self.shared.report(payload);
            }
        }
    }
}

/// Its place in the pool, which another thread takes while it blocks.
impl current::Ticket for Local {
    fn step_aside(&self) {
        // In its stop hook it has none.
        if Local::current().is_some_and(|it| ptr::eq(it, self)) {
            self.offer_held();
            self.shared.idle.step_aside();
            self.place_is_taken.set(Some(Shared::begin_blocking(&self.shared, &self.seat)));
        }
    }

    fn step_back(&self) {
        if self.place_is_taken.take().is_some() {
            self.shared.end_blocking(&self.seat);
            self.shared.idle.step_back();
        }
    }
}

impl Shared {
    /// A job has panicked that nobody waits for, or a hook has. The panic hook has printed the message.
    pub(super) fn report(&self, payload: thread::Payload) {
        self.panicked.fetch_add(1, Relaxed); // Relaxed: a statistic
        self.settings.panic_handler.handle(payload);
    }
}

/// Which worker of its pool this thread is: from zero, as in the thread's name and in
/// [`WorkerMetrics::index`](super::WorkerMetrics::index). `None` on a thread of no [`ThreadPool`](super::ThreadPool).
///
/// # Examples
///
/// ```
/// use filch::{pool, ThreadPool};
///
/// let pool = ThreadPool::new(1)?;
/// assert_eq!(pool.spawn(pool::worker_index).join().unwrap(), Some(0));
/// assert_eq!(pool::worker_index(), None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn worker_index() -> Option<usize> {
    // An error means that the thread is past running anything.
    INDEX.try_with(Cell::get).unwrap_or(None)
}
