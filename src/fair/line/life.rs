//! The life word of a queue: its states, its leases and its pending tasks. A queue has a *slot*, a
//! number that a later queue may have again. A *server* is a thread that runs the queue's tasks.

use crate::executor::Reason;
use crate::fair::{ENDED, OPENED};
use crate::sync::order::both;
use crate::sync::{AtomicU64, Relaxed};

const CLOSED: u64 = 1;
const CANCELLED: u64 = 1 << 1;
/// The queue has a handle.
const HELD: u64 = 1 << 2;
/// The slot has a queue.
const TAKEN: u64 = 1 << 3;
const PAUSED: u64 = 1 << 4;
/// A thread has told the queue's end to the listeners of its token, or is about to.
const TOLD: u64 = 1 << 5;
/// One lease, in the word's count of leases.
const LEASE: u64 = 1 << 8;
/// One task, in the word's count of accepted tasks that have not ended.
const TASK: u64 = 1 << 24;

pub(crate) const MAX_LEASES: usize = 0xFFFF;
pub(crate) const MAX_TASKS: u64 = (1 << 40) - 2;

/// The state of a queue, the number of its leases, and that of accepted tasks that have not ended.
///
/// A slot is *taken* from `open` to `free`. A queue is *held* while it has a handle. A *closed*
/// queue accepts tasks only from its own tasks. A *cancelled* queue drops its queued tasks, but a
/// server that has taken a task already may still begin it. A *paused* queue is not served. A
/// *lease* is a thread's right to run tasks of the queue. A queue is *over* when it is closed and
/// has no handle, no lease and no task. A queue has *ended* when it is closed and has no lease and
/// no task, or is cancelled. Its end is *told* once, to the listeners of its token.
///
/// All this is in one word, so a thread checks the state and changes it in one step (I2, I3). The
/// step that counts a task also checks that the queue accepts the task. The step that begins a
/// server's lease also checks the limit. The step that makes the queue over shows that to its
/// thread.
#[derive(Debug)]
pub struct Life(AtomicU64);

/// The life word at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Look(u64);

impl Look {
    /// Returns whether the queue is closed.
    pub fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }
    /// Returns whether the queue is cancelled.
    pub fn is_cancelled(self) -> bool {
        self.0 & CANCELLED != 0
    }
    /// Returns whether the slot has a queue.
    pub fn is_taken(self) -> bool {
        self.0 & TAKEN != 0
    }
    /// Returns whether there is no queue, or the queue is over. No lease may begin then: the end of
    /// that lease would make the queue over a second time, and free the slot twice.
    fn is_gone(self) -> bool {
        !self.is_taken() || self.is_over_now()
    }
    /// Returns whether the queue is paused.
    #[inline]
    pub fn is_paused(self) -> bool {
        self.0 & PAUSED != 0
    }
    /// Returns how many leases the queue has.
    #[inline]
    pub fn leases(self) -> usize {
        (self.0 / LEASE) as usize & MAX_LEASES
    }
    /// Returns whether a thread that waits for the queue may sweep it (`sweeps.rs`): the queue is
    /// paused, and no thread serves it.
    #[inline]
    pub fn may_be_swept(self) -> bool {
        self.is_paused() && self.leases() == 0
    }
    /// Returns how many accepted tasks have not ended.
    #[inline]
    pub fn tasks(self) -> u64 {
        self.0 / TASK
    }
    /// Returns an error with the reason if the queue may not accept one more task. A closed queue
    /// still accepts the tasks that its own tasks spawn (`is_inside`). A free slot accepts no task.
    #[inline]
    pub fn may_accept(self, capacity: u64, is_inside: impl Fn() -> bool) -> Result<(), Reason> {
        if !self.is_taken() || self.is_cancelled() || (self.is_closed() && !is_inside()) {
            return Err(Reason::Closed);
        }
        if self.tasks() >= capacity {
            return Err(Reason::Full);
        }
        Ok(())
    }
    /// Returns whether the queue has no pending task and no lease.
    #[inline]
    pub fn is_idle(self) -> bool {
        self.tasks() == 0 && self.leases() == 0
    }
    /// Returns whether the queue is over. The thread whose step has made it so frees the slot (I3).
    #[inline]
    pub fn is_over_now(self) -> bool {
        self.0 & !(CANCELLED | PAUSED | TOLD) == TAKEN | CLOSED
    }
    /// Returns whether the queue's end is to be told now to the listeners of the token that reports
    /// it (`Line::end`). The queue is then closed, idle and not cancelled, and its end is not told
    /// yet. No further task can come (I2). The thread whose step leads to this state tells the end.
    #[inline]
    pub fn owes_end(self) -> bool {
        self.0 & !(HELD | PAUSED) == TAKEN | CLOSED
    }
    /// Returns whether the queue has ended: it was cancelled, or at some moment it was closed and
    /// idle. In the second case `TOLD` is set, or a thread is about to set it.
    pub fn has_ended(self) -> bool {
        self.0 & (CANCELLED | TOLD) != 0 || self.owes_end()
    }
}

/// Returns the word. Sets `TOLD` in it if the end is to be told now (`owes_end`).
fn told(word: u64) -> u64 {
    if Look(word).owes_end() { word | TOLD } else { word }
}

impl Life {
    /// Returns the life word of a slot without a queue.
    pub fn nothing() -> Self {
        Life(AtomicU64::new(0))
    }

    /// Reads the life word.
    #[inline]
    pub fn look(&self) -> Look {
        Look(self.0.load(ENDED.acquire()))
    }

    /// Opens a queue with a handle in the slot. No other thread uses the slot.
    pub fn open(&self, is_paused: bool) {
        let flags = TAKEN | HELD | if is_paused { PAUSED } else { 0 };
        self.0.store(flags, OPENED.release());
    }

    /// Marks the slot as free. Only the thread whose own update of the word has made the queue over
    /// calls this.
    pub fn free(&self) {
        // Relaxed: the registry's lock orders this store before the next `open`. No thread changes
        // the word of a queue that is over.
        self.0.store(0, Relaxed);
    }

    /// Accepts and counts one more task, or returns the reason for the refusal.
    #[inline]
    pub fn accept(&self, capacity: u64, is_inside: impl Fn() -> bool) -> Result<(), Reason> {
        // Relaxed: the queue's injector orders the submitter's writes before the task.
        let mut word = self.0.load(Relaxed);
        loop {
            Look(word).may_accept(capacity, &is_inside)?;
            match self.0.compare_exchange_weak(word, word + TASK, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => word = other,
            }
        }
    }

    /// Takes `count` ended tasks off the word's count of tasks, and returns the new word.
    #[inline]
    pub fn end_tasks(&self, count: u64) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        Look(self.0.fetch_sub(TASK * count, order) - TASK * count)
    }

    /// Begins a lease, unless the slot has no queue, or the queue is over, is paused, or has
    /// `limit` or more leases. Returns whether the lease has begun.
    #[inline]
    pub fn begin_lease(&self, limit: usize) -> bool {
        self.begin(|look| !look.is_paused() && look.leases() < limit)
    }

    /// Begins a lease even above the limit and in a paused queue. Returns `false` if the slot has
    /// no queue, or the queue is over.
    pub fn begin_lease_anyway(&self) -> bool {
        self.begin(|_| true)
    }

    /// Begins the lease of a *sweep*, which takes the jobs of ended tasks out of a paused queue.
    /// Begins no lease, and returns `false`, if the queue is not paused, has a lease, or is over.
    /// This call releases the word, and the beginning of each later lease acquires it (`OPENED`).
    /// So the thread of a later lease sees the caller's writes before this call.
    pub fn begin_sweep(&self) -> bool {
        let may = |look: Look| !look.is_gone() && look.may_be_swept();
        let begun = |word| may(Look(word)).then_some(word + LEASE);
        let order = both(OPENED.acquire(), OPENED.release());
        self.0.fetch_update(order, Relaxed, begun).is_ok()
    }

    #[inline]
    fn begin(&self, may: impl Fn(Look) -> bool) -> bool {
        let begun = |word| (!Look(word).is_gone() && may(Look(word))).then_some(word + LEASE);
        self.0.fetch_update(OPENED.acquire(), Relaxed, begun).is_ok()
    }

    /// Ends a lease. Returns the new word, from which the caller sees whether the queue is over.
    #[inline]
    pub fn end_lease(&self) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        Look(self.0.fetch_sub(LEASE, order) - LEASE)
    }

    /// Closes the queue, and returns the word as it was before. If the queue was open and idle,
    /// this call also sets `TOLD`, and the caller reports the queue's end.
    pub fn close(&self) -> Look {
        let closed = |word| if word & CLOSED == 0 { told(word | CLOSED) } else { word };
        let before = self.0.fetch_update(ENDED.acquire(), Relaxed, |word| Some(closed(word)));
        Look(before.expect("always some"))
    }

    /// Sets `TOLD`. Returns whether this call has set it; then the caller reports the queue's end.
    /// The queue is closed. The caller has a lease or a handle, so the queue is not over.
    pub fn tell(&self) -> bool {
        // Relaxed: the lock of the token orders what the listeners see.
        self.0.fetch_or(TOLD, Relaxed) & TOLD == 0
    }

    /// Closes and cancels the queue.
    pub fn cancel(&self) {
        // Relaxed: the reason for the cancellation is under a lock, and `CANCELLED` publishes no
        // other data.
        self.0.fetch_or(CLOSED | CANCELLED, Relaxed);
    }

    /// Pauses or resumes the queue, if it is not cancelled. Returns whether this was a change.
    pub fn pause(&self, is_paused: bool) -> bool {
        let (from, to) = if is_paused { (0, PAUSED) } else { (PAUSED, 0) };
        let paused = |word| (word & (PAUSED | CANCELLED) == from).then_some(word & !PAUSED | to);
        // Relaxed: the caller passes a `LOOK` fence afterwards.
        self.0.fetch_update(Relaxed, Relaxed, paused).is_ok()
    }

    /// Ends the pause of a cancelled queue. The caller has set `Line::is_cancelled`. The beginning
    /// of each later lease acquires this step (`OPENED`), so that lease's thread sees the flag.
    pub fn end_pause(&self) {
        self.0.fetch_and(!PAUSED, OPENED.release());
    }

    /// Closes the queue, because its last handle is dropped. Resumes a paused queue, because no
    /// handle is left to resume it. But a cancelled queue stays paused: its canceller ends the
    /// pause once no further task can begin. Returns the new word, from which the caller sees
    /// whether the queue is over.
    ///
    /// If the end is to be told now (`owes_end`), sets `TOLD` in the same step, and the caller then
    /// tells the end. A listener may wait until the queue is idle, which it is only once `TOLD` is
    /// set (`Line::is_idle`). So `TOLD` is set before a listener is told.
    pub fn let_go(&self) -> Look {
        let order = both(ENDED.acquire(), ENDED.release());
        let paused = |word| if Look(word).is_cancelled() { 0 } else { PAUSED };
        let let_go = |word| told((word | CLOSED) & !(HELD | paused(word)));
        let before = self.0.fetch_update(order, Relaxed, |word| Some(let_go(word)));
        Look(let_go(before.expect("always some")))
    }
}
