//! Two closures, perhaps at the same time.
//!
//! The second is offered to thieves while the first runs: its job points to the stack of whoever waits. If
//! nobody has taken it, it is popped and called as if nothing had been, which is the common case and costs no
//! allocation and, but for the pop, no fence.

use super::helping::latch_of;
use super::registry::Seat;
use super::worker::Local;
use super::{JOINED, ThreadPool};
use crate::sync::place::Place;
use crate::sync::{Arc, AtomicUsize, Index, Relaxed, thread};
use crate::task::{Job, OnStack, StackKind};
use alloc::vec::Vec;
use core::mem;

/// Nobody has begun the second closure.
const PENDING: usize = 0;
/// A thief runs it.
const RUNNING: usize = 1;
/// A thief runs it, and its owner sleeps until that is done.
const AWAITED: usize = 2;
/// Its result is there.
const DONE: usize = 3;
/// The job was dropped unrun, which leaves the closure where it was.
const RETURNED: usize = 4;

/// The second half, on the stack of its owner (I8).
#[repr(C)]
struct Half<B, R> {
    /// First, so that a pointer to it is a pointer to the whole.
    head: OnStack,
    state: AtomicUsize,
    /// In the worker whose stack this is.
    owner: *const Arc<Seat>,
    closure: Place<B>,
    result: Place<Result<R, thread::Payload>>,
}

impl<B: FnOnce() -> R + Send, R: Send> Half<B, R> {
    const KIND: StackKind = StackKind { run: Self::run, give_back: Self::give_back };

    /// # Safety
    ///
    /// 1. I7 — `head` is that of a half whose owner waits.
    unsafe fn run(head: *const OnStack) {
        // SAFETY: 1.
        let this = unsafe { &*head.cast::<Self>() };
        // Relaxed: it tells the owner only that there is no job to be found any more.
        this.state.store(RUNNING, Relaxed);
        // SAFETY: 1; whoever has the job is the only one to touch the closure.
        let b = unsafe { this.closure.take() };
        let result = match Local::current() {
            Some(local) => local.serving(latch_of(&this.head), || thread::catch(b)),
            None => thread::catch(b),
        };
        // SAFETY: I8 — not done yet. Forgotten in the next line.
        unsafe { this.result.put(&result) };
        mem::forget(result);
        this.end(DONE);
    }

    /// # Safety
    ///
    /// 1. As for `run`.
    unsafe fn give_back(head: *const OnStack) {
        // SAFETY: 1.
        unsafe { &*head.cast::<Self>() }.end(RETURNED);
    }

    fn end(&self, state: usize) {
        // Before the frame may go (I8).
        // SAFETY: I8 — the owner waits.
        let owner = unsafe { (*self.owner).clone() };
        if self.state.swap(state, JOINED.release()) == AWAITED {
            owner.bell.wake_by_ref();
        }
    }
}

impl ThreadPool {
    /// Runs both closures, perhaps at the same time, and returns what they return.
    ///
    /// On a worker of this pool the first runs at once, and the second afterwards unless a thief has taken it
    /// meanwhile. Then the worker waits for the thief, and helps: it runs halves of joins within the second closure, and
    /// nothing else. If there is only other work, another thread takes the worker's place until the wait ends, as in
    /// [`blocking`](super::blocking), up to [`max_threads`](super::Builder::max_threads). Elsewhere the whole is run by the
    /// pool, or here if that is closed. Allocates nothing on a worker.
    ///
    /// # Panics
    ///
    /// Goes on with the panic of the first closure, or else of the second, once neither runs any more. If the
    /// first panics, the second may be dropped unrun. On a thread that is none of this pool's it also panics if
    /// [`Shutdown::Cancel`](super::Shutdown::Cancel) drops both before they begin.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::ThreadPool;
    ///
    /// fn fib(pool: &ThreadPool, n: u32) -> u32 {
    ///     if n < 2 {
    ///         return n;
    ///     }
    ///     let (a, b) = pool.join(|| fib(pool, n - 1), || fib(pool, n - 2));
    ///     a + b
    /// }
    ///
    /// let pool = ThreadPool::new(2)?;
    /// assert_eq!(fib(&pool, 20), 6765);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        match Local::of(self.shared()) {
            Some(local) => local.join(a, b),
            None => self.join_from_outside(a, b),
        }
    }

    #[cold]
    fn join_from_outside<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let mut results = None;
        let place = &mut results;
        self.scope(|scope| {
            scope.spawn(move || {
                *place = Some(match Local::of(self.shared()) {
                    Some(local) => local.join(a, b),
                    None => (a(), b()),
                });
            });
        });
        results.expect("the scope has waited for it")
    }
}

impl Local {
    #[inline]
    fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        let half = Half {
            head: OnStack(&Half::<B, RB>::KIND),
            state: AtomicUsize::new(PENDING),
            owner: &raw const self.seat,
            closure: Place::empty(),
            result: Place::empty(),
        };
        // SAFETY: I8 — nobody else has it. Forgotten in the next line.
        unsafe { half.closure.put(&b) };
        mem::forget(b);
        let place = self.deque.next_place();
        // SAFETY: I7 — below, every way out is behind the end of the job.
        let job = unsafe { Job::on_stack(&half.head) };
        self.deque.push(job);
        self.shared.idle.searchers.notify_one();
        let first = thread::catch(a);
        // Nobody has run the second, and nobody else has its job; or else it is done (I8).
        let is_ours =
            self.take_back(&half.head, place) || !self.wait_for_half(&half.head, &half.state);
        match (first, is_ours) {
            (Ok(a), true) => {
                // SAFETY: I8.
                let b = unsafe { half.closure.take() };
                (a, b())
            }
            (Ok(a), false) => {
                // SAFETY: I8.
                let b = unsafe { half.result.take() };
                (a, b.unwrap_or_else(|payload| thread::resume(payload)))
            }
            (Err(payload), true) => {
                // SAFETY: I8.
                drop(unsafe { half.closure.take() });
                thread::resume(payload)
            }
            (Err(payload), false) => {
                // SAFETY: I8.
                drop(unsafe { half.result.take() });
                thread::resume(payload)
            }
        }
    }

    /// Takes the job of a half out of our deque, if it is still there. What lies above it was spawned by the first
    /// half; it stays.
    #[inline(always)]
    fn take_back(&self, head: &OnStack, place: Index) -> bool {
        self.deque.take_back(place).unwrap_or_else(|| self.take_back_from_below(head, place))
    }

    #[cold]
    fn take_back_from_below(&self, head: &OnStack, place: Index) -> bool {
        let (mut above, mut is_there) = (Vec::new(), false);
        // What lies below is not to be moved: it would seem to have come later than it did.
        while self.deque.next_place() != place && !is_there {
            match self.deque.pop() {
                Some(job) if job.is_on_stack(head) => {
                    job.forget();
                    is_there = true;
                }
                Some(job) => above.push(job),
                None => break,
            }
        }
        self.deque.push_batch(above.into_iter().rev());
        // For a moment nobody could see them.
        self.shared.idle.searchers.notify_one();
        is_there
    }

    /// Waits for whoever has the other half. Returns whether it has run.
    #[cold]
    fn wait_for_half(&self, head: &OnStack, state: &AtomicUsize) -> bool {
        let now = || state.load(JOINED.acquire());
        // Relaxed, both: it publishes nothing, and is read again. A half that is pending is in a thief's hands.
        let is_awaited = || state.compare_exchange(RUNNING, AWAITED, Relaxed, Relaxed);
        let calls = || is_awaited().is_ok() || now() == AWAITED;
        self.wait_for(latch_of(head), || now() >= DONE, calls, || ());
        now() == DONE
    }
}
