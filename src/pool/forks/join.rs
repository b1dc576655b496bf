//! `join`: runs two closures, its *halves*, perhaps at the same time.
//!
//! The second half lies on the stack of its *owner*, the worker that calls `join`. While the first
//! half runs, the owner *holds* the second in a list on its stack
//! ([`held`](crate::pool::frames::held)). If another worker wants work, the owner *offers* the
//! second to thieves: it pushes the half to its deque as a job. If no thread has taken the second
//! half when the first has ended, the owner runs it. In the common case the half was not offered,
//! and `join` costs no allocation and no fence.

use super::scope::Stays;
use crate::pool::data::helping::wait_id_of;
use crate::pool::frames::held::{DONE, Held, Link, OFFERED, RETURNED, RUNNING};
use crate::pool::handle::ThreadPool;
use crate::pool::worker::local::Local;
use crate::sync::place::Place;
use crate::sync::{Index, thread};
use crate::task::{Captured, Job, OnStack, StackKind};
use core::mem;

/// The second half, on the stack of its owner (I8).
#[repr(C)]
struct Half<B, R> {
    link: Link,
    closure: Place<B>,
    result: Place<Result<R, thread::Payload>>,
}

trait Second<R>: Send {
    fn run_here(self) -> R;

    fn run_elsewhere(self) -> R;
}

impl<R, F: FnOnce() -> R + Send> Second<R> for F {
    #[inline(always)]
    fn run_here(self) -> R {
        self()
    }

    fn run_elsewhere(self) -> R {
        self()
    }
}

/// A closure with the context in which `join` was called.
struct Carried<F>(Captured, F);

impl<R, F: FnOnce() -> R + Send> Second<R> for Carried<F> {
    fn run_here(self) -> R {
        (self.1)()
    }

    fn run_elsewhere(self) -> R {
        self.0.enter(self.1)
    }
}

impl<B: Second<R>, R: Send> Half<B, R> {
    const KIND: StackKind = StackKind { run: Self::run, give_back: Self::give_back };

    /// # Safety
    ///
    /// 1. I7 — `head` points to a half on its owner's stack. The owner waits until the half ends.
    unsafe fn run(head: *const OnStack) {
        // SAFETY: 1 — the owner waits, so the half is there.
        let this = unsafe { &*head.cast::<Self>() };
        this.link.set_mark(RUNNING);
        // SAFETY: 1 — this thread has the half's job, so no other thread touches the closure.
        let b = unsafe { this.closure.take() };
        let result = match Local::current() {
            Some(local) => {
                // SAFETY: 1 — this thread has the half's job, so the half was offered or taken.
                let within = unsafe { this.link.within() };
                local.serving(wait_id_of(head), within, || thread::catch(|| b.run_elsewhere()))
            }
            None => thread::catch(|| b.run_elsewhere()),
        };
        // SAFETY: I8 — the owner reads the place only after `DONE`, and the next line forgets
        // `result`.
        unsafe { this.result.put(&result) };
        mem::forget(result);
        // SAFETY: I8 — this thread has the half's job, and uses the frame no more.
        unsafe { this.link.end(DONE) };
    }

    /// Gives the half back to its owner, because the half's job is dropped unrun.
    ///
    /// # Safety
    ///
    /// 1. I7 — `head` is that of a half whose owner waits.
    unsafe fn give_back(head: *const OnStack) {
        // SAFETY: 1 — the owner waits, so the half is there.
        let this = unsafe { &*head.cast::<Self>() };
        // SAFETY: I8 — this thread has the half's job, and uses the frame no more.
        unsafe { this.link.end(RETURNED) };
    }
}

impl ThreadPool {
    /// Runs both closures, perhaps at the same time, and returns their results.
    ///
    /// On a worker of this pool the first closure runs at once. Meanwhile a worker without work can
    /// take the second, whatever the first does. In a closed pool, perhaps no such worker is left.
    /// If no worker takes the second, the caller runs it after the first. `join` allocates nothing,
    /// except in a wait that needs more memory than any earlier wait of its worker.
    ///
    /// If another worker has taken the second closure, the caller waits for that worker, and helps
    /// it. In this wait the caller runs only halves of joins and jobs of scopes that the second
    /// closure waits for, and calls of [`spawn_broadcast`](Self::spawn_broadcast). If there is only
    /// other work, another thread takes the caller's place until the wait ends, as in
    /// [`blocking`](crate::pool::blocking). The pool then has up to
    /// [`max_threads`](crate::pool::Builder::max_threads) threads.
    ///
    /// On other threads, the caller waits while a worker calls `join` with both closures, unless:
    ///
    /// - [Callers take part](crate::pool::Builder::callers_take_part), and the caller is no worker
    ///   of another pool. Then the caller becomes a worker for this call.
    /// - The pool is closed, or has no thread and can start none. Or
    ///   [`Shutdown::Cancel`](crate::executor::Shutdown::Cancel) drops the worker's call before it
    ///   begins. Then the caller runs the closures.
    ///
    /// # Panics
    ///
    /// When neither closure runs any more, resumes the panic of the first, or else of the second.
    /// If the first panics, and no other thread has taken the second, the second is dropped.
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
            Some(local) if self.shared().settings.context.is_none() => local.join(a, b),
            Some(local) => local.join_in_context(a, b),
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
        if let Some(guest) = self.guest() {
            return guest.run(|| self.join(a, b));
        }
        let mut call = (Some((a, b)), None);
        let (pool, place) = (self, &mut call);
        // On an error, `shutdown(Cancel)` has dropped the job. The closures are then still in
        // `call`, and run below.
        let _ = self.scope_of(None, |scope| {
            scope.spawn(move || {
                // If the pool refuses this job, `spawn` runs it on the caller. Then the closures
                // stay in `call`, and run below.
                if Local::of(pool.shared()).is_some() {
                    place.1 = place.0.take().map(|(a, b)| pool.join(a, b));
                }
            });
        });
        call.1.unwrap_or_else(|| {
            let (a, b) = call.0.expect("no worker has taken them");
            (a(), b())
        })
    }
}

impl Local {
    /// Calls `join` with a second closure that carries the context. Not inlined: otherwise
    /// `ThreadPool::join` would contain the code of `join` twice.
    #[cold]
    fn join_in_context<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        match &self.shared.settings.context {
            Some(context) => self.join(a, Carried(context.capture(), b)),
            None => (a(), b()),
        }
    }

    #[inline]
    fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: Second<RB>,
        RB: Send,
    {
        let half = Half {
            link: Link::new(&Half::<B, RB>::KIND),
            closure: Place::empty(),
            result: Place::empty(),
        };
        // SAFETY: I8 — no other thread has the half yet, and `b` is forgotten in the next line.
        unsafe { half.closure.put(&b) };
        mem::forget(b);
        let held = &self.seat.held;
        // SAFETY: I7 — this call returns only after the half's job has ended. Joins within `a` let
        // go of their halves before `a` ends, so the newest half goes first.
        unsafe { held.hold((&raw const half).cast()) };
        if self.shared.idle.dozers.is_any() || held.is_called() {
            self.offer_new();
        }
        let first = thread::catch(a);
        let is_ours = held.let_go(&half.link) || self.reclaim(&half.link);
        if is_ours {
            // SAFETY: I8 — the half is the owner's, so no other thread has its closure.
            let b = unsafe { half.closure.take() };
            match first {
                Ok(a) => (a, b.run_here()),
                Err(payload) => thread::resume_after(payload, b),
            }
        } else {
            // SAFETY: I8 — the half is `DONE`, so its result is there, and only the owner still
            // uses the frame.
            let b = unsafe { half.result.take() };
            match first {
                Ok(a) => (a, b.unwrap_or_else(|payload| thread::resume(payload))),
                Err(payload) => thread::resume_after(payload, b),
            }
        }
    }

    /// Offers all held halves if another worker asks for halves, or this deque is empty. Otherwise
    /// the halves stay held, and a thief that later finds the deque empty asks for them.
    ///
    /// A panic here would end the newest half's frame, although another thread may have the half's
    /// job. So the guard `Stays` ends the process after such a panic. The guard is not in `join`,
    /// where each call would pay for it with instructions.
    #[cold]
    fn offer_new(&self) {
        let stays = Stays;
        if self.seat.held.is_called() || Held::finds_empty(&self.deque) {
            self.offer_held();
        }
        mem::forget(stays);
    }

    /// Decides what becomes of a half after `let_go` has returned `false`. Returns whether the half
    /// is the owner's, to run or to drop. If a thief has the half, first waits until the half's job
    /// has ended. Then the half is the owner's only if the job was dropped unrun.
    #[cold]
    fn reclaim(&self, link: &Link) -> bool {
        let (stays, held) = (Stays, &self.seat.held);
        let is_ours = if held.settle(link) {
            if held.is_called() {
                self.offer_held();
            }
            true
        } else {
            let was_offered = link.mark() == OFFERED;
            // SAFETY: I8 — the mark says that the half was offered, and only the owner offers. So
            // the half has an index.
            was_offered && self.take_back(&link.head, unsafe { link.index() })
                || !self.wait_for_half(link)
        };
        mem::forget(stays);
        is_ours
    }

    /// Pushes all halves that this worker holds to its deque.
    #[inline]
    pub(crate) fn offer_held(&self) {
        if self.seat.held.is_any() {
            self.offer_some();
        }
    }

    #[cold]
    fn offer_some(&self) {
        let within = self.seat.services.innermost();
        self.seat.held.offer(&self.seat.bell, within, |link| {
            let index = self.deque.next_index();
            // SAFETY: I7 — the half stays, since `join` waits for the end of its job.
            self.deque.push(unsafe { Job::on_stack(link.cast()) });
            index
        });
        self.shared.idle.notify_one();
    }

    /// Takes the job of a half out of this deque, if it is still there, and returns whether it was.
    /// The jobs above it, which the first closure has spawned, stay in the deque.
    #[inline(always)]
    fn take_back(&self, head: &OnStack, index: Index) -> bool {
        self.deque.take_back(index).unwrap_or_else(|| self.take_back_from_below(head, index))
    }

    #[cold]
    fn take_back_from_below(&self, head: &OnStack, index: Index) -> bool {
        let (mut above, mut is_there) = (self.above.take(), false);
        // The loop stops at the half's index. Otherwise a job from below the half might be pushed
        // back at a higher index, as if it was spawned later (I9).
        while self.deque.next_index() != index && !is_there {
            match self.deque.pop() {
                Some(job) if job.is_on_stack(head) => {
                    mem::forget(job);
                    is_there = true;
                }
                Some(job) => above.push(job),
                None => break,
            }
        }
        self.deque.push_batch(above.drain(..).rev());
        self.above.set(above);
        self.notify_of_spawned();
        is_there
    }

    /// Waits for the thread that has the half's job. Returns whether the half has run.
    fn wait_for_half(&self, link: &Link) -> bool {
        self.wait_for(wait_id_of(&link.head), || link.is_over(), || link.calls(), || ());
        link.mark() == DONE
    }
}
