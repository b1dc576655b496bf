//! The word of a task: its flags and its number of references, in one atomic. The *claimer* of a
//! task is the thread that has set `CLAIMED`. It alone may run or drop the closure, or poll or drop
//! the future.

use super::error::{CancelledBy, JoinError};
use super::{FREED, POLLED, RESULT, WAITER};
use crate::sync::order::both;
use crate::sync::{AtomicBool, AtomicU64, Relaxed};
use core::borrow::Borrow;

/// A thread has claimed the task (I1).
const CLAIMED: u64 = 1;
const DONE: u64 = 1 << 1;
const ASKED: u64 = 1 << 2;
/// The handle has left a waker (I3).
const WAITED_FOR: u64 = 1 << 3;
/// There is a handle (I2).
const HELD: u64 = 1 << 4;
/// The task's queue counts the task until the task ends. The claimer takes the task off the count
/// (I8).
const COUNTED: u64 = 1 << 5;
/// The claimer has left the task in its queue's count. The thread that takes the task's job out of
/// the queue takes the task off the count (I8).
const LEFT: u64 = 1 << 6;
/// A thread has taken the task's job out of the queue.
const POPPED: u64 = 1 << 7;
/// The executor refused the task, and the caller has got the closure back.
const HANDED_BACK: u64 = 1 << 8;
/// The task is a future: its claim is given back after a poll (I9).
const FUTURE: u64 = 1 << 9;
/// A future has been woken while it was claimed.
const WOKEN: u64 = 1 << 10;
/// There is a job that polls the future (I9).
const HAS_JOB: u64 = 1 << 11;
const HAS_DEADLINE: u64 = 1 << 12;
/// One reference: the upper 51 bits of the word count the references (I4). The word has 64 bits on
/// 32-bit targets too. A word of 32 bits would leave 19 for the count: too few, because each waker
/// has a reference.
const REFERENCE: u64 = 1 << 13;

/// The word of a task. Each transition is one read-modify-write, so concurrent transitions have one
/// order.
pub(super) struct State(AtomicU64);

/// The outcome of a cancellation.
///
/// # Examples
///
/// ```
/// use filch::task::{Cancel, Job};
///
/// let (job, handle) = Job::with_handle(|| 7);
/// job.run();
/// assert_eq!(handle.cancel(), Cancel::Finished);
/// assert_eq!(handle.join().unwrap(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cancel {
    /// The task was not running, and never will be. The closure or the future has been dropped.
    Dequeued,
    /// The task is running, and [`is_cancelled`](super::is_cancelled) returns `true` in it from now
    /// on. A future is dropped if the current poll leaves it pending. If another thread is just
    /// cancelling the task, the outcome is `Requested`, too.
    Requested,
    /// The task was done or cancelled already.
    Finished,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Returned,
    Panicked,
    /// The queue of the task cancelled the task.
    Dropped,
    /// The task was refused, has expired, or was cancelled by something other than its queue.
    Cancelled,
}

impl Ended {
    pub(super) fn of<T, E: Borrow<JoinError>>(result: &Result<T, E>) -> Self {
        match result.as_ref().map_err(Borrow::borrow) {
            Ok(_) => Ended::Returned,
            Err(error) if error.is_panic() => Ended::Panicked,
            Err(error) if error.cancelled_by() == Some(CancelledBy::Queue) => Ended::Dropped,
            Err(_) => Ended::Cancelled,
        }
    }
}

/// The state of a future after a poll that left it pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    Asleep,
    /// The future was woken during the poll. The caller makes the next job.
    Woken,
    /// A thread asked for cancellation before the poll was over. The poller still has the claim.
    Asked,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Finished {
    /// Whether there is a handle, which then owns the result (I2).
    pub(super) is_held: bool,
    /// Whether there is a waker, which then belongs to the claimer (I3).
    pub(super) is_waited_for: bool,
}

// An access below without a comment is `Relaxed` because its caller needs only the bit. The caller
// relies on no other write of the thread that set the bit.
impl State {
    /// Returns the word of a queued closure, which has a job and a handle.
    pub(super) fn queued(has_deadline: bool) -> Self {
        State::with(0, has_deadline)
    }

    /// Returns the word of a future. Its handle has a reference, and so has its first job.
    pub(super) fn future(is_counted: bool, has_deadline: bool) -> Self {
        let counted = if is_counted { COUNTED } else { 0 };
        State::with(FUTURE | HAS_JOB | counted, has_deadline)
    }

    fn with(flags: u64, has_deadline: bool) -> Self {
        let deadline = if has_deadline { HAS_DEADLINE } else { 0 };
        State(AtomicU64::new((flags | deadline | HELD) + 2 * REFERENCE))
    }

    /// Notes that the future gets no job, because it ends before its first poll.
    pub(super) fn have_no_job(&self) {
        // Relaxed: apart from the caller, only a thread that closes the roll (`Living`) can have a
        // reference to the future.
        self.0.fetch_and(!HAS_JOB, Relaxed);
    }

    pub(super) fn is_future(&self) -> bool {
        self.0.load(Relaxed) & FUTURE != 0
    }

    #[inline]
    pub(super) fn may_yield(&self) -> bool {
        self.0.load(Relaxed) & (FUTURE | HAS_DEADLINE) == FUTURE // Relaxed: only the claimer clears the bit
    }

    #[inline]
    pub(super) fn wants_care(&self) -> bool {
        self.0.load(Relaxed) & (COUNTED | HAS_DEADLINE) != 0
    }

    #[inline]
    pub(super) fn has_deadline(&self) -> bool {
        self.0.load(Relaxed) & HAS_DEADLINE != 0 // Relaxed: only the claimer clears the bit
    }

    /// Notes that the task begins in time, so that its deadline no longer applies.
    pub(super) fn meets_deadline(&self) {
        self.0.fetch_and(!HAS_DEADLINE, Relaxed);
    }

    #[inline]
    pub(super) fn claim_to_poll(&self) -> bool {
        // The last poll and the wake-up that led to this poll have each released this word. All
        // later changes are read-modify-writes. So this claim acquires both releases, and the
        // claimer sees the writes that came before them.
        self.0.fetch_or(CLAIMED, POLLED.acquire()) & CLAIMED == 0
    }

    /// Returns whether the future has been woken since the caller began to poll it.
    pub(super) fn is_woken(&self) -> bool {
        self.0.load(Relaxed) & WOKEN != 0
    }

    /// Gives the claim back after a poll that has left the future pending. Exception: if a thread
    /// has asked for cancellation, changes nothing, and the caller keeps the claim. If the future
    /// was woken during the poll, adds `references` references for the next job. `has_yielded` says
    /// whether the poll or a fork inside it has woken the future (`OwnWake`).
    pub(super) fn rest(&self, has_yielded: bool, references: usize) -> Rest {
        // Relaxed: the load reads only whether the future was asked to end, or woken.
        let mut state = self.0.load(Relaxed);
        loop {
            if state & ASKED != 0 {
                return Rest::Asked;
            }
            let (next, rest) = match state & WOKEN {
                0 if !has_yielded => (state & !(CLAIMED | HAS_JOB), Rest::Asleep),
                _ => ((state & !(CLAIMED | WOKEN)) + references as u64 * REFERENCE, Rest::Woken),
            };
            match self.0.compare_exchange_weak(state, next, POLLED.release(), Relaxed) {
                Ok(_) => return rest,
                Err(other) => state = other,
            }
        }
    }

    /// Wakes the future. Returns whether the caller must make the job that polls it. If so, this
    /// call has counted a reference for the job.
    pub(super) fn wake(&self) -> bool {
        let woken = |state| match state & (CLAIMED | HAS_JOB) {
            0 => (state | HAS_JOB) + REFERENCE,
            HAS_JOB => state,
            _ => state | WOKEN,
        };
        // Stores even if the future was woken before, so that the poll sees the earlier writes of
        // every thread that wakes the future.
        let before = self.0.fetch_update(POLLED.release(), Relaxed, |it| Some(woken(it)));
        before.unwrap_or_else(|same| same) & (CLAIMED | HAS_JOB) == 0
    }

    /// Orders the last poll before the caller, which has claimed the future and will drop it.
    pub(super) fn begin_end(&self) {
        // A load is enough: it reads the caller's claim or a later value. That value is in the
        // release sequence of the last poll, because every change is a read-modify-write.
        self.0.load(POLLED.acquire());
    }

    /// Returns whether the future has a job that polls it, perhaps the job that the caller runs.
    /// The answer does not change while the future is claimed.
    pub(super) fn has_job(&self) -> bool {
        self.0.load(Relaxed) & HAS_JOB != 0 // Relaxed: the caller's claim is in the same word
    }

    /// Claims the task. If several threads call this or [`ask`](Self::ask), only one gets the
    /// claim.
    #[inline]
    pub(super) fn claim(&self) -> bool {
        // Relaxed: the closure was stored before the caller got its reference to the task.
        self.0.fetch_or(CLAIMED, Relaxed) & CLAIMED == 0
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.0.load(Relaxed) & CLAIMED != 0
    }

    /// Marks the task as counted in its queue's count of tasks, unless a thread has claimed the
    /// task. Returns whether it was marked. A claimer of a marked task takes it off the count. If
    /// `others_know` is `false`, other claimers would not do so. Then this call marks the task only
    /// if the caller has the last reference, and so alone can claim it. Called at most once for
    /// each task.
    pub(super) fn be_counted(&self, others_know: bool) -> bool {
        let may_be = |state| state & CLAIMED == 0 && (others_know || state < 2 * REFERENCE);
        let counted = |state| may_be(state).then_some(state | COUNTED);
        // Relaxed: a claim is a later change of this same word, so the claimer sees the mark.
        self.0.fetch_update(Relaxed, Relaxed, counted).is_ok()
    }

    /// Returns whether the task is counted. The answer is final once the task is claimed.
    pub(super) fn is_counted(&self) -> bool {
        self.0.load(Relaxed) & COUNTED != 0
    }

    /// Leaves the task in its queue's count: the thread that takes the task's job out of the queue
    /// takes the task off the count. Returns `false` if a thread has taken the job already. The
    /// caller must then take the task off the count.
    pub(super) fn leave(&self) -> bool {
        // Relaxed: `leave` and `is_left` change this same word, so the later call sees the bit that
        // the earlier call has set.
        self.0.fetch_or(LEFT, Relaxed) & POPPED == 0
    }

    pub(super) fn is_left(&self) -> bool {
        self.0.fetch_or(POPPED, Relaxed) & LEFT != 0 // Relaxed: see `leave`
    }

    pub(super) fn hand_back(&self) {
        self.0.fetch_or(HANDED_BACK, Relaxed); // Relaxed: no other thread has the job
    }

    pub(super) fn is_handed_back(&self) -> bool {
        self.0.load(Relaxed) & HANDED_BACK != 0
    }

    /// Asks for cancellation. If this returns `Dequeued`, the caller has claimed the task.
    pub(super) fn ask(&self) -> Cancel {
        // Relaxed: the closure was stored before the caller got its reference to the task, and a
        // request orders no other access.
        match self.0.fetch_or(CLAIMED | ASKED, Relaxed) {
            before if before & CLAIMED == 0 => Cancel::Dequeued,
            before if before & DONE == 0 => Cancel::Requested,
            _ => Cancel::Finished,
        }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Relaxed) & ASKED != 0
    }

    pub(super) fn is_held(&self) -> bool {
        self.0.load(Relaxed) & HELD != 0
    }

    /// Notes that the result is stored. The claimer calls this, once.
    #[inline]
    pub(super) fn finish(&self) -> Finished {
        let order = both(WAITER.acquire(), RESULT.release());
        let before = self.0.fetch_or(DONE, order);
        Finished { is_held: before & HELD != 0, is_waited_for: before & WAITED_FOR != 0 }
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.0.load(RESULT.acquire()) & DONE != 0
    }

    /// Notes that the handle has left a waker. Returns `false` if the task is done: the waker then
    /// still belongs to the handle (I3).
    pub(super) fn wait(&self) -> bool {
        let order = both(RESULT.acquire(), WAITER.release());
        self.0.fetch_or(WAITED_FOR, order) & DONE == 0
    }

    /// Takes the waker back for the handle. Returns `false` if the task is done: the waker then
    /// belongs to the claimer (I3).
    pub(super) fn stop_waiting(&self) -> bool {
        self.0.fetch_and(!WAITED_FOR, RESULT.acquire()) & DONE == 0
    }

    /// Notes that there is no handle any more. Returns whether the result belongs to the handle:
    /// the task is done, and there was a handle until now (I2).
    pub(super) fn let_go(&self) -> bool {
        self.0.fetch_and(!HELD, RESULT.acquire()) & (DONE | HELD) == DONE | HELD
    }

    pub(super) fn refer(&self) {
        // Relaxed: the caller has a reference.
        self.0.fetch_add(REFERENCE, Relaxed);
    }

    /// Adds a reference, unless none is left. Returns whether it added one.
    pub(super) fn try_refer(&self) -> bool {
        let one_more = |state| (state >= REFERENCE).then_some(state + REFERENCE);
        // Relaxed: the caller holds a lock that keeps the task from being freed, and that orders
        // earlier accesses.
        self.0.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Removes a reference. Returns whether it was the last.
    #[inline]
    pub(super) fn release(&self) -> bool {
        let order = both(FREED.acquire(), FREED.release());
        self.0.fetch_sub(REFERENCE, order) < 2 * REFERENCE
    }
}

/// Whether the current poll has woken the future, by itself or by a *fork*. A fork is a half of a
/// `join`, or a job of a scope, inside the poll. A store sets this flag, and no read-modify-write
/// as in `State::wake`. The store suffices because the claimer reads the flag only after all forks
/// of the poll have ended (I9).
#[derive(Default)]
pub(super) struct OwnWake(AtomicBool);

impl OwnWake {
    pub(super) fn note(&self) {
        self.0.store(true, Relaxed); // Relaxed: the poll ends, and calls `take`, after this part
    }

    /// Returns whether a part of the poll has noted a wake-up, and clears that note. The claimer
    /// calls this at the end of a poll.
    pub(super) fn take(&self) -> bool {
        let is_noted = self.0.load(Relaxed); // Relaxed: all parts of the poll have ended
        if is_noted {
            self.0.store(false, Relaxed); // Relaxed: `rest` orders this before the next poll
        }
        is_noted
    }
}
