//! The executor below a scheduler, and the scheduler's record of the executor. A *ticket* is a job
//! that the scheduler submits to the executor, and that serves queues. The record says how many
//! tickets there may be, and whether the executor runs a ticket within the call that submits it. It
//! also says whether the executor has ended.

use super::reserve::Reserves;
use super::tickets::MOST_TICKETS;
use crate::executor::{Executor, ExecutorId, PanicHandler, WouldDeadlock};
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, AtomicUsize, Relaxed, Text};
use crate::task::{CancelLink, CancelToken, CancelledBy, Cause, Limited, current, is_dropping};
use alloc::boxed::Box;
use core::task::Waker;

pub(crate) struct Below {
    pub(crate) executor: Box<dyn Executor>,
    /// The executor's id, or a new id that stands for an executor without an id. Stored because
    /// each lease needs the id.
    base: ExecutorId,
    /// The scheduler's id, which `as_dropper` notes on the threads that drop the scheduler's tasks.
    id: ExecutorId,
    pub(crate) panics: PanicHandler,
    most_tickets: AtomicUsize,
    /// Whether the executor has ever run a ticket within its submission, on the submitting thread.
    runs_at_once: AtomicBool,
    is_ended: AtomicBool,
    /// The token that reports the executor's end, and the link by which the token wakes the
    /// scheduler. `None` unless `watch_end` has got the token from the executor. `watch_end` first
    /// stores the token alone, because the woken code reads the token here. It then makes the link,
    /// unless the token is cancelled already.
    end: Mutex<Option<(CancelToken, Option<CancelLink>)>>,
}

impl Below {
    pub(crate) fn new(executor: Box<dyn Executor>, panics: PanicHandler) -> Self {
        Below {
            base: executor.id().unwrap_or_else(ExecutorId::new),
            id: ExecutorId::new(),
            executor,
            panics,
            most_tickets: AtomicUsize::new(1),
            runs_at_once: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            end: Mutex::default(),
        }
    }

    pub(crate) fn base(&self) -> Option<ExecutorId> {
        Some(self.base)
    }

    pub(crate) fn most_tickets(&self) -> usize {
        self.most_tickets.load(Relaxed) // Relaxed: a setting, which publishes no other data
    }

    /// Returns how many tickets there may be: `MOST_TICKETS` if the executor queues surplus jobs,
    /// and otherwise the executor's parallelism (DESIGN.md, *How many*). Asks the executor anew.
    pub(crate) fn refresh_most_tickets(&self, reserves: &Reserves) -> usize {
        let most = || {
            let is_enforced = self.executor.enforces_parallelism();
            if is_enforced && reserves.are_none() {
                return MOST_TICKETS;
            }
            let width = self.executor.parallelism().get();
            reserves.set_width(width);
            if is_enforced { MOST_TICKETS } else { width.min(MOST_TICKETS) }
        };
        let most = self.panics.take(most).unwrap_or_else(|| self.most_tickets());
        if most != self.most_tickets() {
            self.most_tickets.store(most, Relaxed);
        }
        most
    }

    pub(crate) fn runs_at_once(&self) -> bool {
        // Relaxed: a ticket that runs within its submission runs on the submitting thread. That
        // thread sets this flag first, so the ticket's tasks see it.
        self.runs_at_once.load(Relaxed)
    }

    pub(crate) fn note_run_at_once(&self) {
        self.runs_at_once.store(true, Relaxed);
    }

    /// Returns an error if this thread belongs to the executor, or drops tasks of the scheduler or
    /// of a queue below the scheduler. Such a thread might wait for itself.
    pub(crate) fn may_wait(&self) -> Result<(), WouldDeadlock> {
        let is_below = || self.limited().is_some_and(|it| is_dropping(&it));
        let is_hopeless = current::may_run(self.base()) || self.is_dropper() || is_below();
        if is_hopeless { Err(WouldDeadlock) } else { Ok(()) }
    }

    pub(crate) fn is_dropper(&self) -> bool {
        current::is_dropper(|it| it == self.id)
    }

    /// Runs `f`, which drops tasks. If a destructor within `f` waits for the scheduler, the wait
    /// fails with the error of `may_wait`.
    pub(crate) fn as_dropper<R>(&self, f: impl FnOnce() -> R) -> R {
        current::as_dropper(self.id, f)
    }

    /// Returns whether the executor runs none of its queued jobs any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.panics.take(|| self.executor.is_cancelled()).unwrap_or(false)
    }

    /// Returns whether the executor is cancelled and this thread drops the executor's jobs. At that
    /// time the executor may not have reported its end yet.
    pub(crate) fn is_canceller(&self) -> bool {
        // A thread that drops a pool's jobs counts them as `strangers`. This cheap check comes
        // before `is_dropper`, which reads all frames.
        current::strangers() != 0
            && current::is_dropper(|it| it == self.base)
            && self.is_cancelled()
    }

    /// Returns the cause with which the tasks end, if the token of the executor's end is cancelled.
    pub(crate) fn cause_by_token(&self) -> Option<Cause> {
        let is_told = self.end.lock().as_ref().is_some_and(|(token, _)| token.is_cancelled());
        is_told.then(|| self.cause())
    }

    /// Registers a waker for the executor's end. Returns whether the executor has ended already.
    pub(crate) fn watch_end(&self, waker: impl FnOnce() -> Waker) -> bool {
        let Some(token) = self.panics.take(|| self.executor.end()).flatten() else { return false };
        // The token is stored before the waker can be woken, because the waker's code asks the
        // stored token for the reason (`end_reason`).
        *self.end.lock() = Some((token.clone(), None));
        match token.link_waker(waker()) {
            Ok(link) => {
                *self.end.lock() = Some((token, Some(link)));
                false
            }
            Err(_) => true,
        }
    }

    /// Returns whether the scheduler knows that the executor has ended. The load is relaxed;
    /// each caller says why that is enough.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Relaxed)
    }

    pub(crate) fn note_end(&self) {
        self.is_ended.store(true, Relaxed); // Relaxed: the caller fences after this store
    }

    pub(crate) fn cause(&self) -> Cause {
        Cause::Cancelled(CancelledBy::Executor, self.end_reason())
    }

    pub(crate) fn end_reason(&self) -> Option<Text> {
        let told = self.end.lock().as_ref().and_then(|(token, _)| token.reason());
        // If the executor is a cancelled queue, it drops the tickets before it cancels this token.
        // Until then the token has no reason, but the queue's gate knows the reason.
        told.or_else(|| self.limited()?.0.end_reason())
    }

    /// Returns the executor's gate, if the executor is a queue. A gate decides which threads may
    /// run the queue's tasks.
    pub(crate) fn limited(&self) -> Option<Limited> {
        self.panics.take(|| {
            let (limited, id) = (self.executor.limited()?, self.executor.id());
            if limited.0.home() == id {
                return Some(limited);
            }
            // The executor may be a scheduler. Its id is that of its default queue, and this call
            // returns that queue's gate. If this thread runs a task of another queue of that
            // scheduler, `limited` has returned the other queue's gate. So this asks the
            // scheduler's `Futures`, which always return the default queue's gate.
            self.executor.futures()?.0.limited().filter(|it| it.0.home() == id)
        })?
    }
}
