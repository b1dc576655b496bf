//! Threads that wait for tasks: which tasks they run meanwhile, and where they sleep. A *gate*
//! limits how many threads run the tasks of a queue; a *place* is room for one of them. If a
//! scheduler's executor is a queue of another scheduler, that queue's gate is *below* those of the
//! first scheduler's queues.

use super::any::{AnyTask, Limited};
use super::cancel::is_telling;
use super::depth;
use super::error::Cause;
use super::job::Job;
use super::state::Cancel;
use super::{current, id::ExecutorId};
use crate::idle::{Park, ThreadPark};
use crate::sync::spin::Vigil;
use crate::sync::thread::{self, Finally, per_thread};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use core::cell::Cell;
use core::task::Waker;
use core::time::Duration;
use core::{iter, ptr};

/// A worker's own queue of jobs, such as its deque. Before the worker claims a task, it takes the
/// task's job out of this queue, if the job is easily found. If not, the job stays as a
/// *tombstone*, which has no task left to run.
pub(crate) trait Own {
    /// Returns the executor to which the worker belongs.
    fn home(&self) -> Option<ExecutorId>;

    /// Takes this task's job out of the queue if the job is easily found, such as the newest job of
    /// a deque. The caller is about to claim the task. The queue's owner later removes a job that
    /// was not found.
    fn take_out(&self, task: &AnyTask) -> Option<Job>;

    /// Parks like [`Park::park`]. Meanwhile another thread may take the worker's place.
    fn park(&self, timeout: Option<Duration>);

    fn unparker(&self) -> Waker;
}

per_thread! {
    static OWN: Cell<Option<*const dyn Own>> = Cell::new(None);
}

/// Runs `f`, and makes `own` this thread's own queue during the call.
pub(crate) fn with_own<R>(own: &(dyn Own + 'static), f: impl FnOnce() -> R) -> R {
    let outer = OWN.try_with(|it| it.replace(Some(ptr::from_ref(own)))).unwrap_or(None);
    let _back = Finally(|| _ = OWN.try_with(|it| it.set(outer)));
    f()
}

/// Sets this thread's own queue until the next call, or removes it if `own` is `None`.
pub(crate) fn have_own(own: Option<&(dyn Own + 'static)>) {
    let _ = OWN.try_with(|it| it.set(own.map(ptr::from_ref)));
}

/// Returns this thread's own queue. The calling function must drop the reference before that
/// function returns.
fn own<'a>() -> Option<&'a dyn Own> {
    let own = OWN.try_with(Cell::get).ok().flatten()?;
    // SAFETY: I5 — if `with_own` has set the pointer, its caller keeps the queue until `with_own`
    // has reset the pointer. If `have_own` has set the pointer, the caller of `have_own`
    // (`WorkerLife`) resets the pointer before it frees the worker.
    Some(unsafe { &*own })
}

/// Takes a task's job out of this thread's own queue, as [`Own::take_out`] does.
pub(super) fn take_out(task: &AnyTask) -> Option<Job> {
    own().filter(|own| own.home() == task.home())?.take_out(task)
}

/// The park in which a thread sleeps while it waits for tasks. Meanwhile other threads may take the
/// sleeper's place in its pool and in each scheduler that it serves.
pub(crate) enum Bed<'a> {
    Worker(&'a dyn Own),
    Thread(&'a mut ThreadPark),
}

impl Bed<'_> {
    pub(crate) fn with<R>(sleep: impl FnOnce(&mut Bed<'_>) -> R) -> R {
        match own() {
            Some(own) => sleep(&mut Bed::Worker(own)),
            None => ThreadPark::with_own(|park| sleep(&mut Bed::Thread(park))),
        }
    }

    /// On a worker, yields until `is_over` returns `true`, for some microseconds at most. If the
    /// worker slept instead, another thread would take the worker's place.
    pub(crate) fn hesitate(is_over: impl Fn() -> bool) {
        let mut vigil = Vigil::new();
        while own().is_some() && !is_over() && vigil.goes_on() {}
    }
}

impl Park for Bed<'_> {
    fn park(&mut self, timeout: Option<Duration>) {
        match self {
            Bed::Worker(own) => own.park(timeout),
            Bed::Thread(park) => current::aside(|| park.park(timeout)),
        }
    }

    fn unparker(&self) -> Waker {
        match self {
            Bed::Worker(own) => own.unparker(),
            Bed::Thread(park) => park.unparker(),
        }
    }
}

/// The outcome of an attempt to run a task on the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Here {
    /// This thread has run or dropped the task, or another thread has claimed it.
    Settled,
    /// This thread may not run the task.
    NotOurs,
    /// This thread may run the task as soon as the task's gate has a free place.
    NoPlace,
}

impl AnyTask {
    /// Cancels the task if it has not begun. Otherwise asks the task to end.
    pub(crate) fn cancel(&self, cause: impl Into<Cause>) -> Cancel {
        let cause = cause.into();
        let _job = if self.is_claimed() { None } else { take_out(self) };
        self.0.note_cause(&cause);
        let outcome = self.state().ask();
        if outcome == Cancel::Dequeued {
            // SAFETY: I1 — `Dequeued` says that this call has claimed the task.
            unsafe { self.0.cancel_claimed(cause, None) };
        }
        outcome
    }

    /// Runs the task, for which this thread waits, if this thread may run it. But if the task's
    /// queue is cancelled, or this thread is dropping the queue's tasks, drops the task instead.
    /// If another thread cancels the queue, it might never drop the task, because it may itself
    /// wait for this thread.
    pub(super) fn run_here(&self) -> Here {
        depth::inside(|| self.run_inside(self.home(), self.limited()))
    }

    fn run_inside(&self, home: Option<ExecutorId>, limited: Option<&Limited>) -> Here {
        if limited.is_some_and(|Limited(gate)| gate.drops_here(Some(self))) {
            return Here::Settled;
        }
        if self.is_future() {
            return Here::NotOurs;
        }
        if current::may_run(home) {
            match limited {
                Some(Limited(gate)) => gate.run_inside(self),
                // A destructor that panics here must not unwind into the code that waits.
                None => {
                    _ = thread::completes(|| {
                        let _job = take_out(self);
                        self.run();
                    })
                }
            }
            return Here::Settled;
        }
        let Some(Limited(gate)) = limited else { return Here::NotOurs };
        if !current::may_run(gate.base()) {
            return Here::NotOurs;
        }
        if gate.try_pass(self) { Here::Settled } else { Here::NoPlace }
    }

    /// Returns whether the task cannot end while this thread waits for it. `here` is the result of
    /// `run_here`.
    pub(super) fn is_hopeless(&self, here: Here) -> bool {
        let is_stuck = match here {
            Here::NoPlace => is_hopeless,
            _ if self.is_future() => is_hopeless_to_poll,
            _ => |_: &_| false,
        };
        let is_unclaimed = || !self.is_claimed();
        let Some(limited) = self.limited().filter(|_| is_unclaimed()) else { return false };
        // Another thread may have cancelled the queue since `run_here` looked. Then that thread
        // drops the task, or the next `run_here` does.
        let is_lost = || is_stuck(limited) || is_dropping(limited);
        is_lost() && is_unclaimed() && !may_drop(limited)
    }

    /// Returns whether `run_here` would now drop the task, or run it. A task that needs a place
    /// runs only if its gate has a free one.
    pub(super) fn may_run_here(&self) -> bool {
        let may_end = |limited: &Limited| {
            waits_for_place(limited) && limited.0.has_place() || may_drop(limited)
        };
        current::may_run(self.home()) || self.limited().is_some_and(may_end)
    }
}

/// The registration of a waker at a gate. The gate wakes the waker when a place becomes free.
/// Dropping the registration removes the waker.
pub(super) struct Watched {
    limited: Limited,
    number: usize,
}

impl Watched {
    pub(super) fn new(limited: Limited, waker: Waker) -> Self {
        let number = limited.0.watch(waker);
        Watched { limited, number }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.limited.0.unwatch(self.number);
    }
}

/// Returns whether this thread may run the tasks of this gate as soon as the gate has a free place.
pub(super) fn waits_for_place(Limited(gate): &Limited) -> bool {
    current::may_run(gate.base())
}

pub(super) fn may_run_here(kin: &[AnyTask]) -> bool {
    kin.last().is_some_and(AnyTask::may_run_here)
}

/// Returns the gate that these tasks share, if [`waits_for_place`] is true of it.
pub(super) fn limit(kin: &[AnyTask]) -> Option<&Limited> {
    kin.last()?.limited().filter(|it| waits_for_place(it))
}

/// Returns whether this thread drops a task of the gate's queue when it begins to wait for the
/// task.
fn may_drop(Limited(gate): &Limited) -> bool {
    gate.drops_here(None) || gate.is_cancelled()
}

/// Returns whether this thread may run the gate's tasks once there is a free place, or may drop
/// them.
fn may_end_here(limited: &Limited) -> bool {
    waits_for_place(limited) || may_drop(limited)
}

/// Returns whether only a lack of stack keeps this thread from dropping or running the task. The
/// task may need a place first.
pub(super) fn is_too_deep(task: &AnyTask) -> bool {
    depth::is_exhausted()
        && (current::may_run(task.home()) || task.limited().is_some_and(may_end_here))
        && !task.is_claimed()
}

/// Returns whether this thread and the threads that wait for it hold all places of this gate. Then
/// no place becomes free before this thread continues.
pub(super) fn is_hopeless(Limited(gate): &Limited) -> bool {
    current::places_of_waiters(gate.home()) >= gate.places()
}

/// Returns whether this thread is dropping the tasks of this gate's queue, or of a queue below.
pub(crate) fn is_dropping(limited: &Limited) -> bool {
    // A thread without frames drops no tasks, unless it tells a token's listeners. This check is
    // first because the gates cost more.
    (!current::is_outside() || is_telling()) && with_below(limited).any(|it| it.0.drops_here(None))
}

/// Returns this gate and the gates below it.
fn with_below(limited: &Limited) -> impl Iterator<Item = Limited> {
    iter::successors(Some(limited.clone()), |it| it.0.below())
}

/// Of this gate and the gates below, returns those at which this thread, or a thread that waits for
/// this one, holds a place.
pub(super) fn held(limited: &Limited) -> Vec<Limited> {
    with_below(limited).filter(|it| current::places_of_waiters(it.0.home()) != 0).collect()
}

/// Returns whether no thread can poll a future of this gate until this thread continues. The poll
/// needs a place of this gate and of each gate below.
pub(super) fn is_hopeless_to_poll(limited: &Limited) -> bool {
    with_below(limited).any(|it| {
        // After the limit was lowered, more threads than `places` can serve the queue. One of them
        // that does not wait for this thread can still poll the future.
        is_hopeless(&it) && current::places_of_waiters(it.0.home()) >= it.0.leases()
    })
}

/// The gates at which a group's futures are polled, each with the number of these futures.
#[derive(Default)]
pub(super) struct PollGates(BTreeMap<Option<ExecutorId>, (Limited, usize)>);

impl PollGates {
    pub(super) fn has(&self, limited: &Limited) -> bool {
        self.0.contains_key(&limited.0.home())
    }

    pub(super) fn add(&mut self, limited: &Limited) {
        let gate = self.0.entry(limited.0.home()).or_insert_with(|| (limited.clone(), 0));
        gate.1 += 1;
    }

    /// Notes that a future of this gate has ended. The caller holds the group's lock, and must keep
    /// `limited`: a drop of the gate's last reference under that lock could free a scheduler.
    pub(super) fn remove(&mut self, limited: &Limited) {
        if let Entry::Occupied(mut gate) = self.0.entry(limited.0.home()) {
            gate.get_mut().1 -= 1;
            if gate.get().1 == 0 {
                gate.remove();
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Limited> {
        self.0.values().map(|it| &it.0)
    }
}
