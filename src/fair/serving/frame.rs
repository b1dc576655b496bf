//! Frames of service. A *frame* lies on the stack of a thread that serves a queue. It says which
//! queue the thread serves, and for how much of the thread's time the queue is charged. The
//! thread-local `SERVING` points to the thread's innermost frame.

use crate::fair::line::Line;
use crate::fair::line::fork::Owner;
use crate::fair::policy::{Pick, Service};
use crate::fair::queue::Queue;
use crate::fair::queue::handle::QueueHandle;
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::queues::Queues;
use crate::sync::Weak;
use crate::sync::thread::{Finally, per_thread};
use crate::task::{ExecutorId, current};
use core::cell::{Cell, OnceCell};
use core::ptr;
use core::time::Duration;

pub(crate) struct Serving {
    queues: *const Queues,
    slot: usize,
    home: Option<ExecutorId>,
    /// The time at which the frame began, in nanoseconds.
    start: u64,
    /// The nanoseconds of the frame in which the thread did not serve the queue. In this time the
    /// thread ran tasks of other queues, or slept while other threads ran the queue's forks.
    away: Cell<u64>,
    /// The service for which the policy has charged the queue already, in nanoseconds.
    charged: Cell<u64>,
    /// The pick that the next call of `Policy::served` gets. At first this is the pick that began
    /// the frame; later it is a pick without a note.
    pick: Cell<Pick>,
    /// How many *strangers* were on this thread's stack when the frame began. A stranger is a job
    /// for which no frame further up the stack waits (`task/current.rs`).
    strangers: usize,
    pub(crate) owner: Owner,
    /// Empty until a task asks for its queue. Then a handle of the queue, or `None` if no handle
    /// was left.
    pub(crate) queue: OnceCell<Option<Queue>>,
}

pub(crate) struct Charge {
    /// The whole service, in nanoseconds.
    pub(crate) nanos: u64,
    /// The service that the policy does not know of yet, in nanoseconds.
    pub(crate) left: u64,
    pub(crate) pick: Pick,
}

per_thread! {
    static SERVING: Cell<*const Serving> = Cell::new(ptr::null());
}

impl Serving {
    /// Returns the innermost frame of this thread. The reference is valid until the caller returns.
    #[inline]
    pub(crate) fn innermost<'a>() -> Option<&'a Self> {
        // SAFETY: I6 — the frame is further up this thread's stack, and outlives the current call.
        SERVING.try_with(|it| unsafe { it.get().as_ref() }).unwrap_or(None)
    }

    /// Returns the slot of the queue whose task this thread runs, if the queue is one of `queues`.
    /// Returns `None` while this thread runs a stranger within its innermost frame.
    pub(crate) fn slot_in(queues: &Queues) -> Option<usize> {
        let is_its = |it: &&Self| ptr::eq(it.queues, queues) && !it.has_stranger();
        Serving::innermost().filter(is_its).map(|it| it.slot)
    }

    /// Returns whether this thread runs an unrelated job (a stranger) within the frame.
    fn has_stranger(&self) -> bool {
        self.strangers != current::strangers()
    }

    #[inline]
    pub(crate) fn owner<'a>() -> Option<&'a Owner> {
        Serving::innermost().map(|it| &it.owner)
    }

    /// Returns the innermost frame of this thread, if the frame serves the queue of `line`.
    #[inline]
    pub(crate) fn of<'a>(line: &Line) -> Option<&'a Self> {
        Serving::innermost().filter(|it| it.home == line.id())
    }

    /// Returns a handle of the queue, if one is left. Returns `None` while this thread runs a
    /// stranger within the frame.
    pub(crate) fn queue(&self) -> Option<&Queue> {
        if self.has_stranger() {
            return None;
        }
        let find = || {
            // SAFETY: I6 — the frame's service has not ended, and borrows the scheduler until then.
            let line = unsafe { &*self.queues }.table.get(self.slot)?;
            let handle = line.handle.lock();
            handle.as_ref()?.downcast_ref::<Weak<QueueHandle>>()?.upgrade().map(Queue)
        };
        self.queue.get_or_init(find).as_ref()
    }

    pub(crate) fn away(&self) -> u64 {
        self.away.get()
    }

    pub(crate) fn add_away(&self, nanos: u64) {
        self.away.set(self.away.get().saturating_add(nanos));
    }

    /// Charges the queue for its service up to `now`, before this thread sleeps. Otherwise the
    /// policy would learn of this service only after the wait.
    pub(crate) fn settle(&self, queues: &Queues, line: &Line, now: u64) {
        let nanos = now.saturating_sub(self.start).saturating_sub(self.away.get());
        let left = nanos.saturating_sub(self.charged.get());
        self.charged.set(self.charged.get() + left);
        let pick = self.pick.replace(Pick::of(self.slot));
        let service = Service { time: Duration::from_nanos(left), tasks: 1, weight: line.weight() };
        queues.charge(line, pick, service);
    }
}

/// Runs `f` as a server of this queue, and returns the service to charge. `f` returns the time at
/// which `f` ends.
pub(crate) fn serving(
    scheduler: &Scheduler,
    line: &Line,
    start: u64,
    pick: Pick,
    ticket: Option<&(dyn current::Ticket + 'static)>,
    f: impl FnOnce() -> u64,
) -> Charge {
    charging(scheduler, line, start, pick, || {
        current::as_server(line.id(), scheduler.below.base(), &line.is_cancelled, ticket, f)
    })
}

/// Runs `f` in a new frame, and returns the service to charge. A thread that already counts
/// as a server of this queue, further up its stack, calls this instead of `serving`.
pub(crate) fn charging(
    scheduler: &Scheduler,
    line: &Line,
    start: u64,
    pick: Pick,
    f: impl FnOnce() -> u64,
) -> Charge {
    let this = Serving {
        queues: &scheduler.queues,
        slot: line.slot,
        home: line.id(),
        start,
        away: Cell::new(0),
        charged: Cell::new(0),
        pick: Cell::new(pick),
        strangers: current::strangers(),
        owner: Owner::new(),
        queue: OnceCell::new(),
    };
    let outer = SERVING.try_with(|it| it.replace(&raw const this)).unwrap_or(ptr::null());
    // A `Finally`: if a destructor or a waker in `f` panics, `SERVING` must not keep a pointer to
    // this frame.
    let back = Finally(|| _ = SERVING.try_with(|it| it.set(outer)));
    let end = f();
    drop(back);
    if let Some(forks) = line.forks.get() {
        forks.give_back(&this.owner);
    }
    let (whole, away) = (end.saturating_sub(start), this.away.get());
    if let Some(outer) = Serving::innermost() {
        // If this scheduler's executor is the outer frame's queue, this frame's service is service
        // of that queue too. Otherwise the outer queue was not served during this frame.
        outer.add_away(if outer.home == scheduler.below.base() { away } else { whole });
    }
    if let Some(queue) = this.queue.into_inner().flatten() {
        // This may be the last handle, whose drop runs destructors of the user's. The caller still
        // has its lease, so a destructor must not wait for the scheduler.
        scheduler.below.as_dropper(|| scheduler.below.panics.take(|| drop(queue)));
    }
    let nanos = whole.saturating_sub(away);
    Charge { nanos, left: nanos.saturating_sub(this.charged.get()), pick: this.pick.get() }
}
