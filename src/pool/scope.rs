//! Jobs that borrow from whoever waits for them.
//!
//! What a scope has lies on the stack of its owner: the table of its jobs, by whose address they are known, and their
//! number. A job that captures two words or less lies in the deque, and a larger one in a box of its own.

use super::ThreadPool;
use super::closure::Closure;
use super::countdown::Countdown;
use super::worker::{CLOSED, Local};
use crate::deque::Stealer;
use crate::executor::Executor;
use crate::idle::Park;
use crate::steal::Steal;
use crate::sync::lock::Mutex;
use crate::sync::spin::relax;
use crate::sync::{AtomicBool, Relaxed, thread};
use crate::task::current::Waiter;
use crate::task::{Bed, CancelledBy, Capture, Job, JoinError, Kind};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::task::Waker;
use core::{fmt, mem, ptr};

/// Where jobs are spawned that borrow: [`ThreadPool::scope`].
///
/// As in [`std::thread::scope`], `'env` is what may be borrowed from outside, and `'scope` the scope itself.
pub struct Scope<'scope, 'env: 'scope> {
    pool: &'env ThreadPool,
    core: Core,
    /// Invariant in both.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// What its jobs know of a scope (I8).
#[repr(C)]
pub(super) struct Core {
    /// First, so that a pointer to it is a pointer to the whole.
    kind: Kind,
    pub(super) countdown: Countdown,
    /// The address of the worker that opened it; zero if that was another thread.
    owner: usize,
    /// In how many services that was.
    depth: usize,
    /// What waits at its end.
    waiter: Waiter,
    /// Whether a job may be where the owner does not look: in the injector.
    pub(super) is_scattered: AtomicBool,
    rest: Mutex<Rest>,
}

#[derive(Default)]
struct Rest {
    /// Wakes the owner, once it waits.
    bell: Option<Waker>,
    /// What went wrong first.
    first: Option<JoinError>,
}

impl ThreadPool {
    /// Calls `f` with a scope, and returns when every job that was spawned into it has come to its end.
    ///
    /// The jobs may borrow whatever outlives the call. On a worker of this pool, the worker then runs those that are still in
    /// its own deque, and helps those that have taken the others, as in [`join`](ThreadPool::join). It runs nothing else. Opening a
    /// scope allocates nothing.
    ///
    /// # Panics
    ///
    /// Goes on with the panic of `f`, or with the first of a job, after all have come to their ends. Panics if a
    /// job was dropped by [`shutdown(Cancel)`](ThreadPool::shutdown).
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
        let local = Local::of(self.shared());
        let core = Core {
            kind: Kind { run, drop: drop_unrun },
            countdown: Countdown::default(),
            owner: local.map_or(0, |it| ptr::from_ref(it).addr()),
            depth: local.map_or(0, Local::depth),
            waiter: Waiter::this_thread(),
            is_scattered: AtomicBool::new(false),
            rest: Mutex::default(),
        };
        let scope = Scope { pool: self, core, _scope: PhantomData, _env: PhantomData };
        let core = &scope.core;
        let stays = Stays;
        let result = match local {
            Some(local) => local.with_floor(|| {
                let result = thread::catch(|| f(&scope));
                local.finish_scope(core);
                result
            }),
            None => {
                let result = thread::catch(|| f(&scope));
                core.sleep();
                result
            }
        };
        mem::forget(stays);
        let first = core.rest.lock().first.take();
        match (result, first) {
            (Err(payload), _) => thread::resume(payload),
            (Ok(_), Some(error)) => match error.try_into_panic() {
                Ok(payload) => thread::resume(payload),
                Err(error) => panic!("a job of the scope has not run: {error}"),
            },
            (Ok(result), None) => result,
        }
    }
}

/// Ends the process if it is dropped by a panic: what jobs still borrow would go.
struct Stays;

impl Drop for Stays {
    fn drop(&mut self) {
        // A panic within a panic.
        panic!("a scope cannot be left before its jobs have come to their ends");
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a closure. If the pool is closed, it runs here, at once. Allocates if the closure captures more than two words.
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
        let core = &self.core;
        let local = Local::of(self.pool.shared());
        let depth = if core.is_owners(local) {
            core.countdown.add_own();
            core.depth
        } else {
            core.countdown.add();
            if local.is_none() {
                // Relaxed: the count or the injector publishes it, and it is looked at again.
                core.is_scattered.store(true, Relaxed);
            }
            0
        };
        if let Err(rejected) = self.pool.execute(core.job(depth, f)) {
            rejected.into_job().run();
        }
    }
}

impl Core {
    #[inline]
    fn job<F: FnOnce() + Send>(&self, depth: usize, f: F) -> Job {
        // SAFETY: I7 — `scope` waits for the job before the kind goes, which is for closures, or anything that they borrow.
        unsafe { Job::scoped(&raw const self.kind, depth, Closure::new(f)) }
    }

    /// By which its jobs are known.
    pub(super) fn address(&self) -> usize {
        (&raw const self.kind).addr()
    }

    fn is_owners(&self, local: Option<&Local>) -> bool {
        local.is_some_and(|it| ptr::from_ref(it).addr() == self.owner)
    }

    /// Has the owner woken by this.
    pub(super) fn call(&self, bell: impl FnOnce() -> Waker) {
        self.rest.lock().bell.get_or_insert_with(bell);
        self.countdown.call();
    }

    /// Runs a closure on another thread than the owner's.
    fn run(&self, closure: Closure) -> Result<(), thread::Payload> {
        thread::catch(|| self.waiter.run(|| closure.run()))
    }

    fn note(&self, error: JoinError) {
        let further = error.keep_first(&mut self.rest.lock().first);
        if let Some(further) = further {
            further.discard();
        }
    }

    /// Waits on a thread that is no worker of the pool.
    #[cold]
    fn sleep(&self) {
        let is_over = || self.countdown.is_over();
        Bed::hesitate(is_over);
        Bed::with(|park| {
            if !is_over() {
                self.call(|| park.unparker());
            }
            while !is_over() {
                park.park(None);
            }
        });
    }

    /// A job has ended.
    ///
    /// # Safety
    ///
    /// 1. I8 — it is one of this scope, and the caller forgets the scope.
    unsafe fn end(this: *const Self) {
        // SAFETY: 1. The reference is to atomic words only: they may go once they are written.
        let countdown = unsafe { &(*this).countdown };
        // SAFETY: 1 — called before.
        let bell = || unsafe { (*this).rest.lock().bell.clone() };
        // SAFETY: 1.
        let is_own = unsafe { (*this).is_owners(Local::current()) };
        if is_own {
            countdown.end_own();
        } else if let Some(bell) = countdown.end(bell).flatten() {
            bell.wake();
        }
    }
}

/// # Safety
///
/// 1. The words hold a closure of the scope of this kind, and nobody uses them afterwards.
unsafe fn run(capture: *mut Capture, kind: *const Kind) -> bool {
    let this = kind.cast::<Core>();
    // SAFETY: 1; I7 — the scope waits for the job.
    let core = unsafe { &*this };
    // SAFETY: 1.
    let closure = unsafe { capture.cast::<Closure>().read() };
    let result = match Local::current() {
        // The thread runs what the scope has begun in, and waits for this as for a call.
        local if core.is_owners(local) => thread::catch(|| closure.run()),
        Some(local) => local.serving(core.address(), || core.run(closure)),
        None => core.run(closure),
    };
    if let Err(payload) = result {
        core.note(JoinError::panic(payload));
    }
    // SAFETY: 1.
    unsafe { Core::end(this) };
    true
}

/// # Safety
///
/// 1. As for `run`.
unsafe fn drop_unrun(capture: *mut Capture, kind: *const Kind) {
    let this = kind.cast::<Core>();
    // SAFETY: 1.
    let closure = unsafe { capture.cast::<Closure>().read() };
    let dropped = thread::catch(|| drop(closure));
    // SAFETY: 1; I7 — the scope waits for the job.
    unsafe { &*this }.note(JoinError::dropped(CancelledBy::Executor));
    // SAFETY: 1.
    unsafe { Core::end(this) };
    if let Err(payload) = dropped {
        thread::resume(payload);
    }
}

/// Tells the scope of a job, if it is of one, that it goes to the injector.
pub(super) fn scatter(job: &Job) {
    if let Some(kind) = job.scope() {
        // SAFETY: I7 — the scope waits for the job.
        let core = unsafe { &*kind.cast::<Core>() };
        core.is_scattered.store(true, Relaxed); // Relaxed: the owner looks again
    }
}

impl Local {
    /// Waits for the jobs of a scope of which this is the owner, above the floor, which is where the scope began.
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

    /// Runs the jobs of the scope that are in our deque, and those that it finds in the injector.
    fn run_own(&self, core: &Core) {
        loop {
            if core.is_scattered.load(Relaxed) {
                self.fetch(core.address()); // Relaxed: it is looked at again
            }
            let mut has_run = false;
            while let Some(job) = self.pop_above_floor() {
                if job.is_of(core.address()) {
                    self.run(job);
                    has_run = true;
                } else if core.countdown.is_over() {
                    self.deque.push(job);
                    // What was fetched for others is not to stay where they do not look.
                    self.shed(self.floor(), |_| false);
                    return;
                } else if !self.lay_aside(job, core.address()) {
                    return;
                }
            }
            if !has_run || core.countdown.is_over() {
                return;
            }
        }
    }

    /// Moves a stranger out of the way of the scope's jobs below it: to the injector, or if that is closed, below them. `false` if
    /// there are none.
    #[cold]
    fn lay_aside(&self, job: Job, scope: usize) -> bool {
        let searchers = &self.shared.idle.searchers;
        scatter(&job);
        match self.shared.injector.try_push(job) {
            Ok(()) => {
                searchers.notify_one();
                true
            }
            Err(closed) => {
                let all = core::iter::once(closed.into_inner());
                let all = all.chain(core::iter::from_fn(|| self.pop_above_floor()));
                let (ours, others): (Vec<_>, Vec<_>) = all.partition(|it| it.is_of(scope));
                let is_some = !ours.is_empty();
                self.deque.push_batch(others.into_iter().rev());
                self.deque.push_batch(ours.into_iter().rev());
                // For a moment nobody could see them (I3).
                searchers.notify_one();
                is_some
            }
        }
    }

    /// Takes what is in the injector into our deque, up to a job of the scope: this may be the only worker.
    #[cold]
    fn fetch(&self, scope: usize) {
        let mut is_found = false;
        while let Some(job) = if is_found { None } else { self.take_one() } {
            is_found = job.is_of(scope);
            self.deque.push(job);
        }
        // Relaxed: it is looked at again. Who has taken our job out of the closed injector cannot give it back.
        if !is_found && self.shared.attention.load(Relaxed) & CLOSED != 0 {
            self.shared.registry.with(|seats| {
                let others = seats.iter().filter(|it| it.index != self.seat.index);
                others.into_iter().any(|it| self.fetch_from(&it.stealer, scope))
            });
        }
        self.shared.idle.searchers.notify_one();
    }

    fn fetch_from(&self, stealer: &Stealer<Job>, scope: usize) -> bool {
        loop {
            match stealer.steal_such(|_, words| !Job::are_half(words)) {
                Steal::Success(job) => {
                    let is_found = job.is_of(scope);
                    self.deque.push(job);
                    if is_found {
                        return true;
                    }
                }
                Steal::Empty => return false,
                Steal::Retry => relax(),
            }
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("pool", &self.pool).finish_non_exhaustive()
    }
}
