//! Executors that limit how many tasks run at once, also on threads that wait for them.

use super::any::AnyTask;
use super::cell::Ended;
use super::current::{self, Home};
use super::depth;
use super::job::Job;
use crate::idle::{Park, ThreadPark};
use crate::sync::Unwatched;
use crate::sync::spin::Patience;
use crate::sync::thread::per_thread;
use core::cell::Cell;
use core::fmt;
use core::time::Duration;
use core::{ptr, task::Waker};

/// The limit that tasks of an executor pass through to run on a thread that waits for them.
pub(crate) trait Gate: Send + Sync {
    /// The executor on whose threads they run.
    fn base(&self) -> Home;

    /// Which executor's they are.
    fn home(&self) -> Home;

    /// How many there are.
    fn places(&self) -> usize;

    /// Whether there is a place now.
    fn has_place(&self) -> bool;

    /// Runs a task in a free place, unless another thread has claimed it. Returns `false` if there
    /// is no place. In an ordered queue, the tasks before it run first.
    fn try_pass(&self, task: &AnyTask) -> bool;

    /// Runs a task in the place that this thread has already, further up its stack, unless another
    /// thread has claimed it.
    fn run_inside(&self, task: &AnyTask);

    /// Takes a counted task off the count, before a thread other than the server of the queue ends
    /// it. `has_job` tells whether its job is still in the queue.
    fn ends(&self, how: Ended, has_job: bool);

    /// Tells the queue that the task has ended.
    fn has_ended(&self);

    /// Returns whether the queue holds so many tombstones that a further one stays in its count.
    fn is_littered(&self) -> bool;

    /// From now on, the waker is woken when there is a place again. The caller tries once more
    /// afterwards.
    fn watch(&self, waker: Waker) -> usize;

    /// Takes the waker with this number back.
    fn unwatch(&self, number: usize);
}

/// How a [`Queue`](crate::fair::Queue) limits which threads may run its tasks while they wait for
/// them.
///
/// Only this crate makes one; an executor of your own that is a wrapper around a queue hands it on,
/// as [`Executor::limited`](crate::Executor::limited) shows.
#[derive(Clone)]
pub struct Limited(pub(crate) Unwatched<dyn Gate>);

/// A worker's own queue, out of which it can take a job that is claimed elsewhere.
pub(crate) trait Own {
    /// Whose worker it is.
    fn home(&self) -> Home;

    /// The job of this task, which the caller claims, if it is at hand. Otherwise it stays, for the
    /// owner to sweep.
    fn take_out(&self, task: &AnyTask) -> Option<Job>;

    /// How large its thread's stack is, if that was said.
    fn stack_size(&self) -> Option<usize>;

    /// As [`Park::park`]. Meanwhile another thread may take the worker's place.
    fn park(&self, timeout: Option<Duration>);

    /// As [`Park::unparker`].
    fn unparker(&self) -> Waker;
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static OWN: Cell<Option<*const dyn Own>> = Cell::new(None);
}

/// Runs `f` on the thread that has this queue.
pub(crate) fn with_own<R>(own: &(dyn Own + 'static), f: impl FnOnce() -> R) -> R {
    struct Gone;

    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = OWN.try_with(|it| it.set(None));
        }
    }

    let _ = OWN.try_with(|it| it.set(Some(ptr::from_ref(own))));
    depth::has_stack(own.stack_size());
    let _gone = Gone;
    f()
}

/// This thread's own queue, for the length of a call.
fn own<'a>() -> Option<&'a dyn Own> {
    let own = OWN.try_with(Cell::get).ok().flatten()?;
    // SAFETY: I5 — `with_own` is further up the stack, and takes the pointer back before it
    // returns.
    Some(unsafe { &*own })
}

/// The job of a task that the caller is about to claim, if it is at hand in this thread's own
/// queue.
pub(super) fn take_out(task: &AnyTask) -> Option<Job> {
    own().filter(|own| own.home() == task.home())?.take_out(task)
}

/// Where a thread sleeps that waits for tasks. Others may take its place meanwhile: in its pool,
/// and wherever it serves.
pub(crate) enum Bed<'a> {
    /// A worker's, whose pool sees to it.
    Worker(&'a dyn Own),
    Thread(&'a mut ThreadPark),
}

impl Bed<'_> {
    /// Lends this thread's.
    pub(crate) fn with<R>(sleep: impl FnOnce(&mut Bed<'_>) -> R) -> R {
        match own() {
            Some(own) => sleep(&mut Bed::Worker(own)),
            None => ThreadPark::with_own(|park| sleep(&mut Bed::Thread(park))),
        }
    }

    /// Spins for some microseconds if the thread is a worker, whose place another thread would
    /// take.
    pub(crate) fn hesitate(is_over: impl Fn() -> bool) {
        let mut patience = Patience::full();
        while own().is_some() && !is_over() && patience.lasts() {}
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
    /// It has run, or another thread runs it.
    Settled,
    /// It is not for this thread to run.
    NotOurs,
    /// It may, once there is a place.
    NoPlace,
}

/// Runs a task if this thread may.
pub(super) fn run_here(home: Home, limited: Option<&Limited>, task: &AnyTask) -> Here {
    depth::inside(|| run_inside(home, limited, task))
}

fn run_inside(home: Home, limited: Option<&Limited>, task: &AnyTask) -> Here {
    if current::may_run(home) {
        // Of a queue: in the place that this thread has already, and as a part of the task there.
        match limited {
            Some(Limited(gate)) => gate.run_inside(task),
            None => {
                let _job = take_out(task);
                task.run();
            }
        }
        return Here::Settled;
    }
    let Some(Limited(gate)) = limited else { return Here::NotOurs };
    if !current::may_run(gate.base()) {
        return Here::NotOurs;
    }
    if gate.try_pass(task) { Here::Settled } else { Here::NoPlace }
}

/// As long as it is there, a waker is woken when there is a place.
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

/// Whether this thread may run tasks that this limits, as soon as there is a place.
pub(super) fn waits_for_place(Limited(gate): &Limited) -> bool {
    current::may_run(gate.base())
}

/// Whether this thread may run the task, now or as soon as there is a place, but has not the stack
/// for it.
pub(super) fn is_too_deep(task: &AnyTask) -> bool {
    depth::is_exhausted()
        && (current::may_run(task.home()) || task.limited().is_some_and(waits_for_place))
        && !task.is_claimed()
}

/// Whether no place becomes free before this thread goes on: those that have one wait for it.
pub(super) fn is_hopeless(Limited(gate): &Limited) -> bool {
    current::places_of_waiters(gate.home()) >= gate.places()
}

/// Whether `run_here` would find a place.
pub(super) fn may_run_here(home: Home, limited: Option<&Limited>) -> bool {
    current::may_run(home)
        || limited.is_some_and(|it| current::may_run(it.0.base()) && it.0.has_place())
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Limited { .. }")
    }
}
