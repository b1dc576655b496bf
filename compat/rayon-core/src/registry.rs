//! The registry: the state that the threads of a pool share. `Here` tells where the current thread
//! stands: in a task of a queue, on a worker, or outside.

use crate::ThreadPoolBuilder;
use crate::error::{Kind, ThreadPoolBuildError};
use filch::executor::{Executor, Shutdown};
use filch::fair::Queue;
use filch::{Injector, pool};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::task::Waker;
use std::{mem, process, ptr};

pub(crate) type BoxedJob<'a> = Box<dyn FnOnce() + Send + 'a>;
pub(crate) type PanicHandler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;

/// What the threads of a pool share.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) pool: filch::ThreadPool,
    pub(crate) num_threads: usize,
    /// What each worker has spawned first in, first out.
    pub(crate) fifos: Vec<Injector<BoxedJob<'static>>>,
    pub(crate) is_breadth_first: bool,
    /// How many keep the pool open: its handle, and the jobs that it has accepted.
    open: AtomicUsize,
}

/// Keeps a pool open.
pub(crate) struct Open(pub(crate) Arc<Registry>);

/// Where the calling thread stands.
pub(crate) enum Here<'a> {
    /// In a task of a queue.
    Queue(&'a Queue),
    /// On a worker of a pool.
    Worker(&'a Arc<Registry>),
    /// Neither.
    Outside,
}

thread_local! {
    /// The registry whose worker this thread is; null if it is none.
    static CURRENT: Cell<*const Arc<Registry>> = const { Cell::new(ptr::null()) };
}

static GLOBAL: OnceLock<Open> = OnceLock::new();

impl Here<'_> {
    #[inline]
    pub(crate) fn with<R>(f: impl FnOnce(Here<'_>) -> R) -> R {
        Queue::with_current(|queue| match (queue, Registry::current()) {
            (Some(queue), _) => f(Here::Queue(queue)),
            (None, Some(registry)) => f(Here::Worker(registry)),
            (None, None) => f(Here::Outside),
        })
    }

    /// The pool on whose worker this thread is, or else the global one.
    pub(crate) fn registry<R>(f: impl FnOnce(&Arc<Registry>) -> R) -> R {
        f(Registry::current().unwrap_or_else(Registry::global))
    }
}

impl Registry {
    pub(crate) fn new(pool: filch::ThreadPool, is_breadth_first: bool) -> Arc<Self> {
        let (num_threads, open) = (pool.parallelism().get(), AtomicUsize::new(0));
        let fifos = (0..num_threads).map(|_| Injector::new()).collect();
        Arc::new(Registry { pool, num_threads, fifos, is_breadth_first, open })
    }

    /// The registry whose worker this thread is. Not for longer than it is.
    #[inline]
    pub(crate) fn current<'a>() -> Option<&'a Arc<Registry>> {
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: it is leaked; or `as_worker` is further up the stack, and keeps it until it
        // returns.
        unsafe { current.as_ref() }
    }

    /// Runs `f` as the life of a worker.
    pub(crate) fn as_worker(self: Arc<Self>, f: impl FnOnce()) {
        struct Back(*const Arc<Registry>);

        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }

        // A worker stays one if it tries to be another, which panics.
        let _back = Back(CURRENT.replace(&raw const self));
        f();
    }

    /// This thread is a worker for the rest of its life.
    pub(crate) fn stay(self: Arc<Self>) {
        CURRENT.set(Box::leak(Box::new(self)));
    }

    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        Registry::current().is_some_and(|it| ptr::eq(&**it, self))
    }

    /// The index of this thread, if it is a worker of this pool.
    pub(crate) fn current_index(&self) -> Option<usize> {
        if self.is_current() { pool::worker_index() } else { None }
    }

    pub(crate) fn global() -> &'static Arc<Registry> {
        let _ = Registry::set_global(|| ThreadPoolBuilder::new().build());
        let global = GLOBAL.get().expect("The global thread pool has not been initialized.");
        &global.0
    }

    /// Makes the global pool. An error if there was an attempt before.
    pub(crate) fn set_global(
        make: impl FnOnce() -> Result<crate::ThreadPool, ThreadPoolBuildError>,
    ) -> Result<(), ThreadPoolBuildError> {
        static ATTEMPT: Once = Once::new();
        let mut result = Err(ThreadPoolBuildError(Kind::GlobalPoolAlreadyInitialized));
        ATTEMPT.call_once(|| {
            result = make().map(|pool| drop(GLOBAL.set(Open::new(pool.registry()))));
        });
        result
    }

    /// Runs `f` on a worker of this pool, and waits for it.
    pub(crate) fn in_worker<R: Send>(self: &Arc<Self>, f: impl FnOnce() -> R + Send) -> R {
        if self.is_current() {
            f()
        } else if Registry::current().is_some() {
            self.in_worker_of_another(f)
        } else {
            let mut result = None;
            self.pool.scope(|scope| scope.spawn(|| result = Some(f())));
            result.expect("the scope has waited for it")
        }
    }

    /// Waits on a worker of another pool, which has as many threads as it ever gets: it runs what
    /// there is to run.
    #[cold]
    fn in_worker_of_another<R: Send>(self: &Arc<Self>, f: impl FnOnce() -> R + Send) -> R {
        let mut result = None;
        let place = &mut result;
        let latch = Arc::new(Latch::default());
        let mut errand = Errand { f: Some(f), _ends: Ends(Arc::clone(&latch)) };
        let job: BoxedJob<'_> = Box::new(move || {
            let errand = &mut errand;
            *place = errand.f.take().map(|f| catch_unwind(AssertUnwindSafe(f)));
        });
        let stays = AbortIfPanic;
        // SAFETY: what it borrows stays until it has run or was dropped: `run_until` waits for
        // that, since `Errand` drops the closure before it ends the latch, and the guard ends the
        // process rather than let a panic leave this frame.
        let job = unsafe { mem::transmute::<BoxedJob<'_>, BoxedJob<'static>>(job) };
        self.spawn(job);
        pool::run_until(|| latch.is_over.load(Ordering::Acquire), |waker| latch.tell(waker));
        mem::forget(stays);
        match result.expect("the pool has dropped the job: it was shut down") {
            Ok(result) => result,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Spawns a detached job.
    pub(crate) fn spawn(self: &Arc<Self>, f: impl FnOnce() + Send + 'static) {
        let open = Open::new(self);
        let job = move || {
            let _open = open;
            f();
        };
        self.pool.spawn_detached(job).expect("a pool that is open has threads");
    }
}

impl Open {
    pub(crate) fn new(registry: &Arc<Registry>) -> Self {
        registry.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(registry))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.pool.shutdown_background(Shutdown::Drain);
        }
    }
}

/// The end of a job.
#[derive(Default)]
struct Latch {
    is_over: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Latch {
    fn tell(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A closure that borrows from a thread that waits. Fields drop in this order: the closure goes
/// before the wait ends.
struct Errand<F> {
    f: Option<F>,
    _ends: Ends,
}

/// Ends the latch when it is dropped, also with a job that has not run.
struct Ends(Arc<Latch>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Ends the process if a panic drops it.
pub(crate) struct AbortIfPanic;

impl Drop for AbortIfPanic {
    fn drop(&mut self) {
        eprintln!("rayon-core on filch: a panic that nothing can catch; aborting");
        process::abort();
    }
}

/// Takes the oldest item. There is one.
pub(crate) fn take_oldest<T>(fifo: &Injector<T>) -> T {
    loop {
        if let Some(item) = fifo.steal().success() {
            return item;
        }
        std::hint::spin_loop();
    }
}
