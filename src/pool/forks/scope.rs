//! Scopes: jobs that borrow from the thread that waits for them.
//!
//! A scope lies on the stack of its *owner*, the thread that has opened it. The scope holds the
//! count of unfinished jobs, and the table of the operations that run and drop its jobs. The
//! address of that table is the scope's id.

use crate::executor::Executor;
use crate::idle::Park;
use crate::pool::frames::closure::{Closure, Room};
use crate::pool::frames::countdown::Countdown;
use crate::pool::frames::failures::Failures;
use crate::pool::frames::frame::{Core, runs_in_inner_waits_of};
use crate::pool::handle::ThreadPool;
use crate::pool::worker::local::Local;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, Relaxed, thread};
use crate::task::current::Waiter;
use crate::task::{Bed, CancelToken, Capture, Job, JoinError, Kind};
use core::marker::PhantomData;
use core::task::Waker;
use core::{mem, ptr};

/// A scope into which borrowing jobs are spawned: [`ThreadPool::scope`].
///
/// As in [`std::thread::scope`], `'env` is the lifetime of the borrowed values outside, and
/// `'scope` that of the scope itself.
pub struct Scope<'scope, 'env: 'scope> {
    pub(crate) pool: &'env ThreadPool,
    pub(crate) core: Core,
    /// Makes the type invariant in both lifetimes.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl ThreadPool {
    /// Calls `f` with a scope, waits until all its jobs have ended, and returns the result of `f`.
    ///
    /// The jobs may borrow all values that outlive the call. A caller that is a worker of this pool
    /// runs the jobs that are still in its own deque. Then it helps the workers that have taken the
    /// other jobs. Meanwhile it runs no other work, by the rule of [`join`](ThreadPool::join).
    /// Opening a scope allocates nothing.
    ///
    /// # Panics
    ///
    /// After all jobs have ended, resumes the panic of `f`, or else the first panic of a job.
    /// Panics if [`shutdown(Cancel)`](ThreadPool::shutdown) has dropped a job;
    /// [`scope_with`](ThreadPool::scope_with) returns an error instead. A panic that the
    /// [`join`](crate::pool::ScopedJoinHandle::join) of a handle has returned does not count, as in
    /// [`std::thread::scope`].
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(2)?;
    /// let mut squares = [1, 2, 3, 4];
    /// pool.scope(|scope| {
    ///     for number in &mut squares {
    ///         scope.spawn(move || *number *= *number);
    ///     }
    /// });
    /// assert_eq!(squares, [1, 4, 9, 16]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scope<'env, R>(
        &'env self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        let result = self.scope_of(None, f);
        result.unwrap_or_else(|error| panic!("a job of the scope has not run: {error}"))
    }

    /// Opens a scope, calls `f` with it, and waits for the scope's jobs. Drops each job that has
    /// not begun when `token` is cancelled. Returns an error if a job has not run.
    pub(crate) fn scope_of<'env, R>(
        &'env self,
        token: Option<CancelToken>,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R, JoinError> {
        let local = Local::of(self.shared());
        if let Some(guest) = local.map_or_else(|| self.guest(), |_| None) {
            return guest.run(|| self.scope_of(token, f));
        }
        let core = Core {
            kind: Kind { run, drop: drop_unrun },
            countdown: Countdown::default(),
            owner: local.map_or(0, |it| ptr::from_ref(it).addr()),
            depth: local.map_or(0, |it| it.depth.get()),
            within: local.map_or(0, |it| it.seat.services.innermost()),
            runs_in_inner_waits: AtomicBool::new(false),
            waiter: Waiter::this_thread(),
            token,
            bell: Mutex::default(),
            failures: Failures::default(),
            room: Room::default(),
        };
        let scope = Scope { pool: self, core, _scope: PhantomData, _env: PhantomData };
        let core = &scope.core;
        let stays = Stays;
        let result = match local {
            Some(local) => local.with_floor(|_| {
                let result = thread::catch(|| f(&scope));
                local.finish_scope(core);
                result
            }),
            None => {
                let result = thread::catch(|| f(&scope));
                sleep_until(|| core.countdown.is_over(), |bell| core.call(|| bell));
                result
            }
        };
        mem::forget(stays);
        core.failures.report(result)
    }
}

/// A guard for a wait that must not be left early, because jobs might still borrow from the frame.
/// A panic that drops the guard ends the process.
pub(crate) struct Stays;

impl Drop for Stays {
    fn drop(&mut self) {
        // A second panic, during unwinding, ends the process.
        panic!("a wait cannot be left before it is over");
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Spawns a closure. If the pool is closed, or has no thread and can start none, the calling
    /// thread runs the closure at once.
    ///
    /// Allocates once if the closure captures more than two words. But the first four such closures
    /// of up to six words need no allocation, if the worker that has opened the scope spawns them.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// let greeting = String::from("hello");
    /// pool.scope(|scope| scope.spawn(|| println!("{greeting}")));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn spawn<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        match (&self.pool.shared().settings.context, &self.core.token) {
            (None, None) => self.push(f),
            (None, Some(_)) => self.push_unless_cut(f),
            (Some(context), _) => self.push_unless_cut(context.around(f)),
        }
    }

    /// Lets the worker that has opened this scope run the scope's jobs in waits for inner scopes.
    ///
    /// By default, a worker that waits for a scope runs no job of the enclosing scopes. After this
    /// call, the worker that has opened this scope also runs jobs of this scope in its waits for
    /// inner scopes. These are the jobs that it has spawned since the inner scope began. It runs
    /// the newest first, until the inner scope's jobs have ended. The order is that of rayon.
    ///
    /// A job of this scope must not want a lock that its spawner holds during the inner scope. If
    /// the job runs on the thread that holds the lock, the job waits for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// let (pool, order) = (filch::ThreadPool::new(1)?, std::sync::Mutex::new(Vec::new()));
    /// let push = |number| order.lock().unwrap().push(number);
    /// let on_worker = || {
    ///     pool.scope(|outer| {
    ///         outer.run_in_inner_waits();
    ///         pool.scope(|inner| {
    ///             inner.spawn(|| push(1));
    ///             outer.spawn(|| push(2));
    ///             inner.spawn(|| push(3));
    ///         });
    ///     });
    /// };
    /// pool.scope(|scope| scope.spawn(on_worker));
    /// assert_eq!(order.into_inner().unwrap(), [3, 2, 1]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn run_in_inner_waits(&self) {
        self.core.runs_in_inner_waits.store(true, Relaxed);
    }

    /// Spawns a closure, and ignores the token and the context.
    #[inline]
    pub(crate) fn push<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        let (core, shared) = (&self.core, self.pool.shared());
        let local = Local::of(shared);
        let job = if core.is_owners(local) {
            core.countdown.add_own();
            // SAFETY: I8 — `is_owners` says that this thread is the owner, and a worker.
            unsafe { core.own_job(f) }
        } else {
            core.countdown.add();
            core.job(f)
        };
        // If the owner is a worker, a job from outside goes to the shelf (`data/shelf.rs`), where
        // the owner looks while it waits. In the injector the job might stay for ever: a waiting
        // owner takes no job from there, and might be the only worker.
        let is_for_shelf = local.is_none() && core.owner != 0;
        let refused = if is_for_shelf {
            shared.hand_over(job).err()
        } else {
            self.pool.execute(job).err().map(|it| it.item)
        };
        refused.into_iter().for_each(Job::run);
    }
}

impl Core {
    /// Returns the id of the wait that a job of this scope is within (`data/helping.rs`). If the
    /// owner runs the job, the run is part of the innermost service around the scope. So the result
    /// is then the wait that this service ends. On another thread it is the wait for the scope.
    pub(crate) fn around_job(&self) -> usize {
        if self.is_owners(Local::current()) { self.within } else { self.address() }
    }

    fn is_owners(&self, local: Option<&Local>) -> bool {
        local.is_some_and(|it| ptr::from_ref(it).addr() == self.owner)
    }

    /// Runs `f`. Unless this thread is the worker that owns the scope, `Waiter::run` notes
    /// meanwhile that the owner waits for `f`.
    pub(crate) fn run(&self, f: impl FnOnce()) {
        if self.is_owners(Local::current()) { f() } else { self.waiter.run(f) }
    }

    fn run_elsewhere(&self, f: impl FnOnce()) -> Result<(), thread::Payload> {
        thread::catch(|| self.waiter.run(f))
    }

    /// Counts off a job that has ended.
    ///
    /// # Safety
    ///
    /// 1. I8 — the job is one of this scope, and the caller does not use the scope afterwards.
    unsafe fn end(this: *const Self) {
        // SAFETY: 1 — the scope stays until this job is counted off. `Countdown` has atomic words
        // only, and this thread uses none of them after that.
        let countdown = unsafe { &(*this).countdown };
        // SAFETY: 1 — `end` calls this before it counts the job off, so the scope is there.
        let bell = || unsafe { (*this).bell.lock().clone() };
        // SAFETY: 1 — this job is not counted off yet, so the scope is there.
        let is_own = unsafe { (*this).is_owners(Local::current()) };
        if is_own {
            countdown.end_own();
        } else if let Some(bell) = countdown.end(bell).flatten() {
            bell.wake();
        }
    }
}

/// Waits until `is_over` returns `true`, on a thread that is no worker of the pool. `call` gets a
/// waker. Another thread wakes it when the wait is over.
#[cold]
pub(crate) fn sleep_until(is_over: impl Fn() -> bool, call: impl FnOnce(Waker)) {
    Bed::hesitate(&is_over);
    Bed::with(|park| {
        if !is_over() {
            call(park.unparker());
        }
        while !is_over() {
            park.park(None);
        }
    });
}

/// Runs a job of a scope, and counts it off.
///
/// # Safety
///
/// 1. The words at `capture` hold a closure of the scope to which `kind` belongs. No thread uses
///    these words afterwards.
unsafe fn run(capture: *mut Capture, kind: *const Kind) -> bool {
    let this = kind.cast::<Core>();
    // SAFETY: I7 — the scope waits for the job, which is not counted off yet.
    let core = unsafe { &*this };
    // SAFETY: 1 — the words hold a closure of this kind, and no other call uses it.
    let closure = || unsafe { Closure::run(capture.cast()) };
    let result = match Local::current() {
        local if core.is_owners(local) => thread::catch(closure),
        Some(local) => local.serving(core.address(), core.within, || core.run_elsewhere(closure)),
        None => core.run_elsewhere(closure),
    };
    if let Err(payload) = result {
        core.failures.note(JoinError::panic(payload));
    }
    // SAFETY: I8 — the job is one of this scope, and the scope is not used below.
    unsafe { Core::end(this) };
    true
}

/// Drops a job of a scope, notes that it has not run, and counts it off.
///
/// # Safety
///
/// 1. The words at `capture` hold a closure of the scope to which `kind` belongs. No thread uses
///    these words afterwards.
unsafe fn drop_unrun(capture: *mut Capture, kind: *const Kind) {
    let this = kind.cast::<Core>();
    // SAFETY: 1 — the words hold a closure of this kind, and no other call reads it.
    let closure = unsafe { capture.cast::<Closure>().read() };
    // SAFETY: I7 — the scope waits for the job, which is not counted off yet.
    unsafe { &*this }.failures.count_dropped();
    let dropped = thread::catch(|| drop(closure));
    // SAFETY: I8 — the job is one of this scope, and the scope is not used below.
    unsafe { Core::end(this) };
    if let Err(payload) = dropped {
        thread::resume(payload);
    }
}

impl Local {
    fn finish_scope(&self, core: &Core) {
        self.run_own(core);
        if core.countdown.is_over() {
            return;
        }
        let is_over = || core.countdown.is_over();
        let calls = || {
            core.call(|| self.seat.bell.clone());
            true
        };
        self.wait_for(core.address(), is_over, calls, || self.run_own(core));
    }

    /// Runs the scope's jobs in this deque and on the shelf. Also runs jobs of this worker's outer
    /// scopes, if `run_in_inner_waits` was called for these scopes. Lays aside the other jobs that
    /// it meets in the deque, so that other workers find them.
    fn run_own(&self, core: &Core) {
        loop {
            while let Some(job) = self.pop_above_floor() {
                if job.is_of(core.address()) {
                    self.run(job);
                } else if core.countdown.is_over() {
                    self.deque.push(job);
                    self.notify_of_spawned();
                    return;
                } else if runs_in_inner_waits_of(&job, core.owner) {
                    self.run(job);
                } else {
                    self.lay_aside(job);
                }
            }
            if core.countdown.is_over() {
                return;
            }
            match self.shared.shelf.take_of(core.address()) {
                Some(job) => self.run(job),
                None => return,
            }
        }
    }
}

opaque!(Scope<'_, '_>, |it| pool: it.pool);
