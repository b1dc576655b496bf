//! Fork and join within a queue: [`Queue::join`] and [`Queue::install`]. The two closures of a
//! `join` are its *halves*. The second half lies on the stack of its *owner*, the thread that runs
//! the `join`. Other threads that serve the queue may take it (`line/fork.rs`). Then the owner
//! waits at the half's *latch* until the half has run.

use super::line::fork::{ForkHead, Latch};
use super::line::life::MAX_TASKS;
use super::policy::Pick;
use super::queue::Queue;
use super::scheduler::submit::submit;
use super::serving::forking::{HalfContext, offer, wait_at};
use super::serving::frame::{Serving, charging};
use super::serving::pass::charge;
use crate::executor::{Executor, ExecutorId, Rejected, TaskBuilder};
use crate::pool::Stays;
use crate::sync::place::Place;
use crate::sync::thread;
use crate::task::current::{self, Waiter};
use crate::task::{CancelToken, Job, JoinError, Limited, OnStack, StackKind};
use core::mem;
use core::num::NonZeroUsize;

/// The second half of a `join`, on the stack of its owner (I7).
#[repr(C)]
struct ForkHalf<B, R> {
    head: ForkHead,
    latch: Latch,
    context: HalfContext,
    closure: Place<B>,
    result: Place<Result<R, thread::Payload>>,
}

impl<B: FnOnce() -> R + Send, R: Send> ForkHalf<B, R> {
    /// Dropping the half's job runs the half too, because the owner waits for the result.
    const KIND: StackKind = StackKind { run: Self::run, give_back: Self::run };

    /// # Safety
    ///
    /// 1. I7 — `head` is the head of a half that no other thread has taken, and whose owner waits.
    unsafe fn run(head: *const OnStack) {
        let this = head.cast::<Self>();
        // SAFETY: 1 — the half stays while its owner waits.
        let half = unsafe { &*this };
        // SAFETY: 1 — no other thread has taken the half, so its closure is still there.
        let b = unsafe { half.closure.take() };
        let result = half.latch.run(Serving::owner(), || thread::catch(|| half.context.within(b)));
        // SAFETY: I7 — the owner reads the result only after `end`. The next line forgets our copy.
        unsafe { half.result.put(&result) };
        mem::forget(result);
        // SAFETY: 1 — the half stays until `end`, and this takes only an address in it.
        let latch = unsafe { &raw const (*this).latch };
        // SAFETY: 1 — the latch counts this fork. The owner may free the half during this call, and
        // nothing below uses the half.
        unsafe { Latch::end(latch, Serving::owner()) };
    }
}

impl Queue {
    /// Runs both closures, perhaps at the same time, and returns their results.
    ///
    /// This thread runs the first closure. Another thread may run the second, as soon as the
    /// queue's weight, limit and priority allow. If no other thread has begun it, this thread runs
    /// it after the first. The closures, or *halves*, are parts of one task, so they take no
    /// capacity, and are not refused. The queue is charged for both. Its metrics count their time,
    /// but not their number.
    ///
    /// Inside a task of this queue, the halves belong to that task. Such a call usually allocates
    /// nothing. It allocates if the queue has a [context](super::QueueBuilder::context), or if the
    /// list of this thread's offered halves must grow. Elsewhere the whole call is a task, as in
    /// [`install`](Self::install).
    ///
    /// If another thread still runs the second closure when the first has ended, this thread waits.
    /// Meanwhile it runs only work that the second closure has forked, and otherwise sleeps. The
    /// queue is not charged for the sleep, and another thread may replace the sleeping thread at
    /// the executor. But the sleeping thread still counts towards the queue's limit.
    ///
    /// Halves still run in a queue that is paused, closed or cancelled, and after the executor has
    /// ended. So a task that has begun can end.
    ///
    /// # Panics
    ///
    /// Resumes the panic of the first closure, or else of the second, once neither runs any more.
    /// If the first closure panics, the second may be dropped unrun. Outside of the queue's tasks,
    /// `join` also panics if the call is refused or dropped, or would wait for ever, as
    /// [`install`](Self::install) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::{FairScheduler, Queue};
    ///
    /// fn fib(queue: &Queue, n: u32) -> u32 {
    ///     if n < 2 {
    ///         return n;
    ///     }
    ///     let (a, b) = queue.join(|| fib(queue, n - 1), || fib(queue, n - 2));
    ///     a + b
    /// }
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(2)?);
    /// let queue = fair.queue("tenant").weight(3).max_parallel(2).build()?;
    /// assert_eq!(fib(&queue, 16), 987);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        match Serving::of(self.line()) {
            Some(serving) => self.fork(serving, a, b),
            None => self.install(|| match Serving::of(self.line()) {
                Some(serving) => self.fork(serving, a, b),
                // The thread has dropped its thread-local state, and cannot fork.
                None => (a(), b()),
            }),
        }
    }

    /// Calls [`join`](Self::join), but drops a closure that has not begun when the token is
    /// cancelled. A closure that runs can look at the token. Outside of the queue's tasks, the
    /// whole call is a task with this token. A cancellation before its beginning drops it at once.
    ///
    /// # Errors
    ///
    /// - The token's cancellation, if a closure was dropped because of it. The other closure has
    ///   ended.
    /// - Outside of the queue's tasks, the error with which the queue refuses or drops the whole
    ///   call. `join` panics in that case.
    ///
    /// # Panics
    ///
    /// Resumes the panic of the first closure, or else of the second, when neither runs any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(2)?);
    ///
    /// let (queue, token) = (fair.queue("tenant").build()?, CancelToken::new());
    /// assert_eq!(queue.join_with(&token, || 1, || 2).unwrap(), (1, 2));
    /// token.cancel_with("enough");
    /// let error = queue.join_with(&token, || 1, || 2).unwrap_err();
    /// assert_eq!(error.reason(), Some("enough"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_with<A, B, RA, RB>(
        &self,
        token: &CancelToken,
        a: A,
        b: B,
    ) -> Result<(RA, RB), JoinError>
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (a, b) = (|| token.check().map(|()| a()), || token.check().map(|()| b()));
        let (a, b) = self.install_with(token, || self.join(a, b))?;
        Ok((a?, b?))
    }

    #[inline]
    fn fork<A, B, RA, RB>(&self, serving: &Serving, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        let (scheduler, line) = (self.scheduler(), self.line());
        let context = HalfContext::of(self.0.context.as_ref());
        let mut half = ForkHalf {
            head: ForkHead::new(&ForkHalf::<B, RB>::KIND, core::ptr::null()),
            latch: Latch::new(&serving.owner),
            context,
            closure: Place::empty(),
            result: Place::empty(),
        };
        half.head = ForkHead::new(&ForkHalf::<B, RB>::KIND, &raw const half.latch);
        // SAFETY: I7 — no other thread knows the half yet. The next line forgets our copy of `b`.
        unsafe { half.closure.put(&b) };
        mem::forget(b);
        half.latch.add(Some(&serving.owner));
        let outer = serving.owner.latch.get();
        // SAFETY: I7 — a panic of `a` is caught, so this frame stays until `take_back` returns
        // `true` or the wait ends.
        let shard = unsafe { offer(scheduler, line, &raw const half.head, outer) };
        let first = thread::catch(a);
        let is_ours = line.forks.get().is_some_and(|it| it.take_back(shard, &half.head));
        if is_ours {
            // SAFETY: I7 — the half was taken back, so no other thread has its closure.
            let b = unsafe { half.closure.take() };
            return match first {
                Ok(a) => (a, b()),
                Err(payload) => thread::resume_after(payload, b),
            };
        }
        wait_at(&scheduler.queues, line, serving, &half.latch);
        // SAFETY: I7 — the wait is over, so the fork has put its result and uses the half no more.
        let second = unsafe { half.result.take() };
        match (first, second) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(payload), second) => thread::resume_after(payload, second),
            (_, Err(payload)) => thread::resume(payload),
        }
    }

    /// Calls `f` with the queue whose task this thread runs.
    ///
    /// `f` gets `None` in three cases:
    /// - The thread runs no task of a queue.
    /// - The thread runs an unrelated job inside the task ([`yield_now`](crate::pool::yield_now)).
    /// - No handle of the queue is left.
    ///
    /// If `f` gets the queue, the thread takes a handle, which keeps the queue open. The thread
    /// drops the handle when it stops serving the queue, perhaps some tasks later.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::Queue;
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    ///
    /// let queue = fair.queue("tenant").build()?;
    /// let weight = || Queue::with_current(|queue| queue.map(|it| it.metrics().weight));
    /// assert_eq!(queue.spawn(weight).join()?, Some(1));
    /// assert_eq!(weight(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_current<R>(f: impl FnOnce(Option<&Queue>) -> R) -> R {
        f(Serving::innermost().and_then(Serving::queue))
    }

    /// Runs a closure as a task of this queue, and returns its result.
    ///
    /// Inside a task of this queue, this only calls the closure. Elsewhere the closure becomes a
    /// task of the queue, to which the queue's capacity does not apply. This thread waits for that
    /// task as [`join`](crate::JoinHandle::join) does. If this thread belongs to the executor, it
    /// runs the task itself, unless another thread has begun it. It does so once the queue is below
    /// its limit and not paused, perhaps before tasks that were queued earlier.
    ///
    /// # Panics
    ///
    /// Resumes the panic of the closure. Outside of the queue's tasks, also panics
    /// - if the queue is closed, or the executor is closed or full, so that the task is refused;
    /// - if the queue or the executor is cancelled, which drops the task;
    /// - if the wait would never end
    ///   ([`JoinError::is_deadlock`](crate::task::JoinError::is_deadlock)).
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("tenant").build()?;
    /// let words = ["a", "few", "words"];
    /// let letters: usize = queue.install(|| words.iter().map(|it| it.len()).sum());
    /// assert_eq!(letters, 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn install<F, R>(&self, f: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        if Serving::of(self.line()).is_some() {
            return f();
        }
        if current::is_within(Some(self.0.id)) {
            return self.install_inside(f);
        }
        let result = self.install_from_outside(None, f);
        result.unwrap_or_else(|error| panic!("the queue has not run the closure: {error}"))
    }

    /// Calls [`install`](Self::install), but drops a closure that has not begun when the token is
    /// cancelled. Returns an error if the closure has not run.
    pub(super) fn install_with<F, R>(&self, token: &CancelToken, f: F) -> Result<R, JoinError>
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        match Serving::of(self.line()).is_some() || current::is_within(Some(self.0.id)) {
            true => Ok(self.install(f)),
            false => self.install_from_outside(Some(token), f),
        }
    }

    #[cold]
    fn install_inside<R>(&self, f: impl FnOnce() -> R) -> R {
        let (scheduler, mut result) = (self.scheduler(), None);
        let start = scheduler.queues.clock.nanos();
        let charged = charging(scheduler, self.line(), start, Pick::of(self.slot()), || {
            result = Some(thread::catch(f));
            scheduler.queues.clock.nanos()
        });
        charge(&self.0.queue, &charged, 1);
        let result = result.expect("it has run");
        result.unwrap_or_else(|payload| thread::resume(payload))
    }

    /// Spawns a task of the queue that runs `f`, which stays in this frame. Waits until that task
    /// has ended, or cannot begin any more.
    #[cold]
    fn install_from_outside<F, R>(&self, token: Option<&CancelToken>, f: F) -> Result<R, JoinError>
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        // `capture` is the user's and may panic, so it is called before `stays` exists.
        // Once `stays` exists, a panic in this frame ends the process.
        let context = HalfContext::of(self.0.context.as_ref());
        let waiter = Waiter::this_thread();
        let mut call = Call { f: Some(f), result: None, context, waiter };
        let pointer = Pointer(&raw mut call as *mut (), Call::<F, R>::run);
        let run = move || pointer.run();
        let unbounded = Unbounded(self);
        let stays = Stays;
        let task = TaskBuilder::on(&unbounded).without_context();
        let task = token.map_or(task, |token| task.token(token));
        let ended = task.spawn(run).join_or_cancel();
        mem::forget(stays);
        match (ended, call.result.take()) {
            (Ok(()), Some(result)) => Ok(result),
            (Ok(()), None) => unreachable!("the task has run"),
            (Err(error), _) => match error.try_into_panic() {
                Ok(payload) => thread::resume(payload),
                Err(error) => Err(error),
            },
        }
    }
}

struct Call<F, R> {
    f: Option<F>,
    result: Option<R>,
    context: HalfContext,
    waiter: Waiter,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    /// # Safety
    ///
    /// 1. `this` points to a live `Call<F, R>`, and no other thread uses it meanwhile.
    unsafe fn run(this: *mut ()) {
        // SAFETY: 1 — the `Call` is live, and no other thread uses it.
        let this = unsafe { &mut *this.cast::<Self>() };
        let f = this.f.take().expect("a task runs once");
        this.result = Some(this.waiter.run(|| this.context.within(f)));
    }
}

struct Pointer(*mut (), unsafe fn(*mut ()));

// SAFETY: I7 — the closure and its result are `Send`, and the waiting thread uses the `Call` only
// before and after the task.
unsafe impl Send for Pointer {}

impl Pointer {
    fn run(self) {
        // SAFETY: I7 — `install_from_outside` waits until the task has ended or cannot begin.
        unsafe { (self.1)(self.0) };
    }
}

/// A queue as an executor that ignores the queue's capacity.
struct Unbounded<'a>(&'a Queue);

impl Executor for Unbounded<'_> {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        submit(self.0.scheduler(), self.0.line(), MAX_TASKS, job)
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }

    fn limited(&self) -> Option<Limited> {
        self.0.limited()
    }
}
