//! Scopes: jobs of a queue that borrow from the thread that waits for them. The scope's *owner* is
//! the waiting thread, and its *latch* counts the unfinished jobs (`line/fork.rs`). The first four
//! small jobs that the owner spawns lie in the scope itself; all others are boxed.

use super::line::fork::{ForkHead, Latch};
use super::queue::Queue;
use super::serving::forking::{offer, wait_at};
use super::serving::frame::Serving;
use crate::pool::{Failures, Room, Stays};
use crate::sync::thread;
use crate::task::{CancelToken, Flow, JoinError, OnStack, StackKind};
use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem;

/// A scope of a queue, into which borrowing jobs are spawned. [`Queue::scope`] opens a scope.
///
/// As in [`std::thread::scope`], `'env` is the lifetime of the values that jobs may borrow from
/// outside, and `'scope` is the lifetime of the scope itself.
pub struct QueueScope<'scope, 'env: 'scope> {
    queue: &'env Queue,
    latch: Latch,
    failures: Failures,
    room: Room,
    token: Option<CancelToken>,
    /// Makes the scope invariant in both lifetimes.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

#[repr(C)]
struct ScopeJob<'a, F> {
    head: ForkHead,
    failures: &'a Failures,
    f: F,
}

impl<F: FnOnce() + Send> ScopeJob<'_, F> {
    // Dropping a job runs the job too, because the scope's owner waits for it.
    const BOXED: StackKind = StackKind { run: Self::run_boxed, give_back: Self::run_boxed };
    const PLACED: StackKind = StackKind { run: Self::run_placed, give_back: Self::run_placed };

    /// # Safety
    ///
    /// 1. I7 — `head` is the head of a boxed job of this type. The job's scope waits, and no other
    ///    thread has taken the job.
    unsafe fn run_boxed(head: *const OnStack) {
        // SAFETY: 1 — `offer` made the pointer from a box, and only this thread has taken the job.
        unsafe { Box::from_raw(head.cast::<Self>().cast_mut()) }.run();
    }

    /// # Safety
    ///
    /// 1. I7 — `head` is the head of a job of this type in `room`, where the scope holds small
    ///    jobs. The scope waits, and no other thread has taken the job.
    unsafe fn run_placed(head: *const OnStack) {
        // SAFETY: 1 — the room holds the job, and only this thread reads it.
        unsafe { head.cast::<Self>().read() }.run();
    }

    fn run(self) {
        let ScopeJob { head, failures, f } = self;
        let latch = head.latch();
        // SAFETY: I7 — the scope, and with it the latch, stays until `end`.
        let result = unsafe { &*latch }.run(Serving::owner(), || thread::catch(f));
        if let Err(payload) = result {
            failures.note(JoinError::panic(payload));
        }
        // SAFETY: I7 — the latch counts this job. The scope can be gone after this call, and
        // nothing below uses it.
        unsafe { Latch::end(latch, Serving::owner()) };
    }
}

impl Queue {
    /// Calls `f` with a scope, and returns when every job that was spawned in the scope has ended.
    ///
    /// The jobs may borrow everything that outlives the call. They are parts of a task of this
    /// queue, as the halves of a [`join`](Self::join) are. The queue's weight, limit and priority
    /// apply to them. They are never refused, and the queue is charged for them wherever they run.
    /// When `f` has returned, this thread runs the jobs that no other thread has begun, and waits
    /// for the others. During this wait, it runs only work that was forked within the scope.
    ///
    /// Inside a task of this queue, `f` runs as a part of that task. Elsewhere the whole call is a
    /// task of the queue, as in [`install`](Self::install).
    ///
    /// # Panics
    ///
    /// Resumes the panic of `f`, or else the first panic of a job, after all jobs have ended.
    /// Outside of the queue's tasks, `scope` also panics if the call is refused or dropped, or
    /// would wait for ever, as [`install`](Self::install) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(2)?);
    /// let queue = fair.queue("tenant").build()?;
    /// let mut squares = [1, 2, 3, 4];
    /// queue.scope(|scope| {
    ///     for number in &mut squares {
    ///         scope.spawn(move || *number *= *number);
    ///     }
    /// });
    /// assert_eq!(squares, [1, 4, 9, 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<'env, R: Send>(
        &'env self,
        f: impl for<'scope> FnOnce(&'scope QueueScope<'scope, 'env>) -> R + Send,
    ) -> R {
        let result = match Serving::of(self.line()) {
            Some(serving) => self.open(serving, None, f),
            None => self.install(|| self.open(self.serving(), None, f)),
        };
        result.unwrap_or_else(|_| unreachable!("a scope without a token runs every job"))
    }

    /// Calls [`scope`](Self::scope), but drops a job that has not begun when the token is
    /// cancelled, on the thread that would run it. Jobs that run can look at the token, and so can
    /// `f`.
    ///
    /// Inside a task of this queue, `f` is called even if the token is cancelled. Elsewhere the
    /// whole call is a task with this token. A cancellation before its beginning drops `f`, too.
    ///
    /// # Errors
    ///
    /// - The token's cancellation, if a job or `f` was dropped because of it. All jobs have ended.
    /// - Outside of the queue's tasks, the error with which the queue refuses or drops the whole
    ///   call. `scope` panics in that case.
    ///
    /// # Panics
    ///
    /// Resumes the panic of `f`, or else the first panic of a job, after all jobs have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    ///
    /// let (queue, token) = (fair.queue("tenant").build()?, CancelToken::new());
    /// let (same, mut has_run) = (token.clone(), false);
    /// let result = queue.scope_with(&token, |scope| {
    ///     same.cancel();
    ///     scope.spawn(|| has_run = true);
    /// });
    /// assert!(result.unwrap_err().is_cancelled());
    /// assert!(!has_run);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope_with<'env, R: Send>(
        &'env self,
        token: &CancelToken,
        f: impl for<'scope> FnOnce(&'scope QueueScope<'scope, 'env>) -> R + Send,
    ) -> Result<R, JoinError> {
        match Serving::of(self.line()) {
            Some(serving) => self.open(serving, Some(token), f),
            None => self.install_with(token, || self.open(self.serving(), Some(token), f))?,
        }
    }

    fn serving(&self) -> &Serving {
        Serving::of(self.line()).expect("a task of this queue runs")
    }

    /// Calls `f` with a new scope, then waits for the scope's jobs. Returns an error if the token's
    /// cancellation has dropped a job.
    fn open<'env, R>(
        &'env self,
        serving: &Serving,
        token: Option<&CancelToken>,
        f: impl for<'scope> FnOnce(&'scope QueueScope<'scope, 'env>) -> R,
    ) -> Result<R, JoinError> {
        let scope = QueueScope {
            queue: self,
            latch: Latch::new(&serving.owner),
            failures: Failures::default(),
            room: Room::default(),
            token: token.cloned(),
            _scope: PhantomData,
            _env: PhantomData,
        };
        let stays = Stays;
        let result = thread::catch(|| f(&scope));
        wait_at(&self.scheduler().queues, self.line(), serving, &scope.latch);
        mem::forget(stays);
        scope.failures.report(result)
    }
}

impl<'scope> QueueScope<'scope, '_> {
    /// Spawns a closure as a job of the scope.
    ///
    /// Allocates once, except for the first four small closures that the scope's owner, the thread
    /// that opened it, spawns. A small closure captures at most three words; with a token or a
    /// [context](super::QueueBuilder::context), at most one. With a context, allocates once more.
    ///
    /// The owner runs its newest job first, and the other threads take the oldest.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("tenant").build()?;
    /// let greeting = String::from("hello");
    /// queue.scope(|scope| scope.spawn(|| println!("{greeting}")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        match (&self.queue.0.context, &self.token) {
            (None, None) => self.offer(f),
            (None, Some(token)) => self.offer_unless_cut(token, f),
            (Some(context), None) => self.offer(Flow::around(context, f)),
            (Some(context), Some(token)) => self.offer_unless_cut(token, Flow::around(context, f)),
        }
    }

    /// Offers a closure that does not begin once the token is cancelled.
    #[cold]
    fn offer_unless_cut<F>(&'scope self, token: &'scope CancelToken, f: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        let failures = &self.failures;
        self.offer(move || match token.check() {
            Ok(()) => f(),
            Err(error) => {
                failures.cut(error);
                drop(f);
            }
        });
    }

    fn offer<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        let (scheduler, line) = (self.queue.scheduler(), self.queue.line());
        let latch = &raw const self.latch;
        let caller = Serving::of(line).map(|it| &it.owner);
        self.latch.add(caller);
        let head = ForkHead::new(&ScopeJob::<F>::PLACED, latch);
        let job = ScopeJob { head, failures: &self.failures, f };
        let placed = if self.latch.is_owners(caller) {
            // SAFETY: I7 — `is_owners` returned `true`, so this is the owner's frame. The owner
            // alone uses the room, which stays as long as the latch.
            unsafe { self.room.put(job) }
        } else {
            Err(job)
        };
        let job = placed.unwrap_or_else(|mut job| {
            job.head = ForkHead::new(&ScopeJob::<F>::BOXED, latch);
            Box::into_raw(Box::new(job))
        });
        // SAFETY: I7 — the job lies in `self.room` or in a box, and stays until it has run: the
        // scope waits for it.
        unsafe { offer(scheduler, line, job.cast::<ForkHead>(), latch) };
    }
}

opaque!(QueueScope<'_, '_>, |it| queue: it.queue);
