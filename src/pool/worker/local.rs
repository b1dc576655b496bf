//! A worker's private state, and the pointer by which a thread finds the worker that it is.

use crate::deque::Worker;
use crate::idle::{Park, ThreadPark};
use crate::pool::data::helping::Views;
use crate::pool::data::pool::Pool;
use crate::pool::data::registry::Seat;
use crate::sync::clock::{self, Instant};
use crate::sync::{Arc, Index, thread};
use crate::task::{AnyTask, Job};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ptr;

/// A worker that has a seat in the pool, but no thread yet.
pub(crate) struct Vacancy {
    pub(crate) shared: Arc<Pool>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) deque: Worker<Job>,
    pub(crate) yielded: Worker<AnyTask>,
    pub(crate) bell: ThreadPark,
}

thread::per_thread! {
    /// The worker that this thread is, if it is one (I5).
    static CURRENT: Cell<*const Local> = Cell::new(ptr::null());
}

thread::per_thread! {
    /// The index of the worker that this thread is, also while its stop hook runs.
    static INDEX: Cell<Option<usize>> = Cell::new(None);
}

pub(crate) struct Local {
    pub(crate) shared: Arc<Pool>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) deque: Worker<Job>,
    /// The futures that have woken themselves on this worker, oldest first.
    pub(crate) yielded: Worker<AnyTask>,
    /// Where the worker sleeps for lack of jobs.
    pub(crate) park: RefCell<Box<dyn Park>>,
    /// Where the worker sleeps in a wait.
    pub(crate) bell: RefCell<ThreadPark>,
    /// How often the worker has begun to sleep in a wait; it wraps.
    pub(crate) sleeps: Cell<u32>,
    /// How many jobs the worker has run, with those inside other jobs; it wraps.
    pub(crate) turn: Cell<u32>,
    /// The value of `turn` when the worker last began a turn with `look_around`.
    pub(crate) looked_at: Cell<u32>,
    /// How many turns have begun with `look_around`; it wraps.
    pub(crate) looks: Cell<u32>,
    pub(crate) random: Cell<u32>,
    /// How many tasks this worker has claimed since its last `sweep`. A claimed task's job is a
    /// tombstone, and can still be in the deque.
    pub(crate) litter: Cell<usize>,
    /// The number of services that the worker is in now, one within the other.
    pub(crate) depth: Cell<usize>,
    /// The number of services that the worker has begun so far.
    pub(crate) services: Cell<u32>,
    /// The index in the deque at which the innermost service or scope began.
    pub(crate) floor: Cell<Option<Index>>,
    /// Whether the worker has a *place* to give away: the right to count as one of the threads that
    /// the pool is to run. A worker has no place before its start hook has returned, and while it
    /// parks for lack of jobs.
    pub(crate) has_place: Cell<bool>,
    /// Whether the worker has given its place away. `Seat::relies_on_others` says whether another
    /// thread has the place.
    pub(crate) has_stepped_aside: Cell<bool>,
    pub(crate) is_discharged: Cell<bool>,
    /// When the time `keep_alive` began, after which the worker may leave; `None` if it has not
    /// begun.
    pub(crate) may_go_since: Cell<Option<Instant>>,
    pub(crate) busy_since: Cell<Instant>,
    /// Whether the worker's last sleep for lack of work was shorter than `SHORT_SLEEP`.
    pub(crate) slept_briefly: Cell<bool>,
    /// The number of jobs that the worker had run when it last woke up.
    pub(crate) runs_at_wake: Cell<u64>,
    /// Memory that `leapfrog` reuses.
    pub(crate) views: Cell<Views>,
    /// Memory that `take_back_from_below` reuses.
    pub(crate) above: Cell<Vec<Job>>,
}

impl Local {
    #[inline]
    pub(crate) fn of(shared: &Pool) -> Option<&Local> {
        Local::current().filter(|it| ptr::eq(&*it.shared, shared))
    }

    /// Returns the worker that this thread is. The caller must not keep the result beyond the
    /// current job, because the worker might not exist afterwards.
    #[inline]
    pub(crate) fn current<'a>() -> Option<&'a Local> {
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: I5 — the pointer is null, or the worker is on this thread's stack or lives as
        // long as the thread.
        unsafe { current.as_ref() }
    }

    pub(crate) fn new(Vacancy { shared, seat, deque, yielded, bell }: Vacancy) -> Self {
        // Xorshift needs a seed other than zero. The seeds differ, so that workers begin at
        // different victims.
        let random = Cell::new(seat.index as u32 + 1);
        let has_place = Cell::new(seat.is_guest); // a guest has no start hook
        Local {
            shared,
            seat,
            deque,
            yielded,
            park: RefCell::new(Box::new(ThreadPark::new())),
            bell: RefCell::new(bell),
            sleeps: Cell::new(0),
            turn: Cell::new(0),
            looked_at: Cell::new(u32::MAX / 2), // long ago, so that the first turn looks around
            looks: Cell::new(0),
            random,
            litter: Cell::new(0),
            depth: Cell::new(0),
            services: Cell::new(0),
            floor: Cell::new(None),
            has_place,
            has_stepped_aside: Cell::new(false),
            is_discharged: Cell::new(false),
            may_go_since: Cell::new(None),
            busy_since: Cell::new(clock::now()),
            slept_briefly: Cell::new(false),
            runs_at_wake: Cell::new(u64::MAX),
            views: Cell::default(),
            above: Cell::default(),
        }
    }

    /// Makes this thread the worker `local`. With `None`, the thread is no worker any more.
    pub(crate) fn set_current(local: Option<&Local>) {
        Local::set_index(local.map(|it| it.seat.index));
        CURRENT.with(|it| it.set(local.map_or(ptr::null(), ptr::from_ref)));
    }

    /// Sets the result of `worker_index` on this thread.
    pub(crate) fn set_index(index: Option<usize>) {
        INDEX.with(|it| it.set(index));
    }

    /// Ends this thread's life as a worker. The thread keeps its index.
    pub(crate) fn retire() {
        CURRENT.with(|it| it.set(ptr::null()));
    }
}

/// Returns the index of the worker that this thread is. Indices begin at zero, and are those in the
/// threads' names and in [`WorkerMetrics::index`](crate::pool::WorkerMetrics::index). Returns
/// `None` on a thread that is no worker of a [`ThreadPool`](crate::pool::ThreadPool).
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
    INDEX.try_with(Cell::get).unwrap_or(None)
}
