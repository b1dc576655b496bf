//! `scope` and `scope_fifo`: jobs that borrow. A FIFO scope keeps the jobs of each worker in an
//! injector, and each job of filch's scope runs the oldest of these.

use crate::broadcast::BroadcastContext;
use crate::registry::{BoxedJob, Here, Registry, take_oldest};
use filch::{Injector, fair, pool};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where jobs are spawned that borrow: [`scope`].
#[derive(Debug)]
pub struct Scope<'scope>(Base<'scope>);

/// Where jobs are spawned that borrow, of which each thread runs its oldest first: [`scope_fifo`].
#[derive(Debug)]
pub struct ScopeFifo<'scope> {
    base: Base<'scope>,
    /// What each worker has spawned; or in a queue, all threads.
    fifos: Vec<Injector<BoxedJob<'scope>>>,
}

/// A scope of filch's, which is open as long as this can be reached.
#[derive(Debug)]
struct Base<'scope> {
    /// On which pool it is; `None` if it is a queue's.
    registry: Option<Arc<Registry>>,
    /// The scope: null before it is open.
    scope: AtomicPtr<()>,
    /// Invariant.
    _scope: PhantomData<&'scope mut &'scope ()>,
}

/// A scope that a job gets.
struct Pointer<T>(*const T);

// SAFETY: it gives out shared references only, to what is `Sync`.
unsafe impl<T: Sync> Send for Pointer<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    /// # Safety
    ///
    /// 1. The scope waits for the caller.
    unsafe fn get<'a>(&self) -> &'a T {
        // SAFETY: 1.
        unsafe { &*self.0 }
    }

    /// What a broadcast of the scope calls, with an index and the number of threads.
    fn with_context(self, body: impl Fn(&T, BroadcastContext<'_>)) -> impl Fn(usize, usize) {
        move |index, num_threads| {
            // SAFETY: the job is this scope's.
            let scope = unsafe { self.get() };
            BroadcastContext::with(index, num_threads, |context| body(scope, context));
        }
    }
}

/// Calls `op` with a scope on a worker, and returns when all jobs that were spawned into it have
/// ended.
///
/// In a task of a queue, the jobs are the queue's: [`filch::fair::Queue::scope`]. Elsewhere they
/// are jobs of the pool whose worker this thread is, or of the global one, on which `op` is then
/// called.
///
/// # Panics
///
/// Goes on with the panic of `op`, or else with one of a job.
///
/// # Examples
///
/// ```
/// let mut squares = [1, 2, 3, 4];
/// rayon_core::scope(|scope| {
///     for number in &mut squares {
///         scope.spawn(move |_| *number *= *number);
///     }
/// });
/// assert_eq!(squares, [1, 4, 9, 16]);
/// ```
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    on_worker(|| in_place_scope(op))
}

/// Calls [`scope`] with a scope of which each thread runs its oldest job first.
/// Panics as `scope` does.
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    on_worker(|| in_place_scope_fifo(op))
}

/// Calls `op` on this thread with a scope, and returns when all jobs that were spawned into it have
/// ended. Panics as [`scope`] does.
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    open_here(None, op)
}

/// Calls [`in_place_scope`] with a scope of which each thread runs its oldest job first.
/// Panics as `scope` does.
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    open_here(None, op)
}

fn on_worker<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let is_outside = Here::with(|here| matches!(here, Here::Outside));
    if is_outside { Registry::global().in_worker(f) } else { f() }
}

/// A kind of scope.
pub(crate) trait Opens {
    /// On this pool; on none if it is a queue's.
    fn new(registry: Option<Arc<Registry>>) -> Self;

    /// Calls `op` when the scope is open, on this thread.
    fn open<R>(&self, queue: Option<&fair::Queue>, op: impl FnOnce() -> R) -> R;
}

/// Opens a scope: on this pool, if there is one, or where this thread stands.
pub(crate) fn open_here<S: Opens, R>(
    registry: Option<&Arc<Registry>>,
    op: impl FnOnce(&S) -> R,
) -> R {
    let open = |registry: Option<&Arc<Registry>>, queue: Option<&fair::Queue>| {
        let scope = S::new(registry.cloned());
        scope.open(queue, || op(&scope))
    };
    if registry.is_some() {
        return open(registry, None);
    }
    Here::with(|here| match here {
        Here::Queue(queue) => open(None, Some(queue)),
        Here::Worker(registry) => open(Some(registry), None),
        Here::Outside => open(Some(Registry::global()), None),
    })
}

impl<'scope> Base<'scope> {
    fn new(registry: Option<Arc<Registry>>) -> Self {
        Base { registry, scope: AtomicPtr::default(), _scope: PhantomData }
    }

    /// A FIFO scope's jobs do not run in waits for inner scopes: each stands for the oldest of a
    /// thread, which may be older than the inner scope.
    fn open<R>(&self, queue: Option<&fair::Queue>, is_fifo: bool, op: impl FnOnce() -> R) -> R {
        // Relaxed: a thread that spawns has got the scope from this one.
        let begin = |scope: *const ()| self.scope.store(scope.cast_mut(), Ordering::Relaxed);
        match (&self.registry, queue) {
            (Some(registry), _) => registry.pool.scope(|scope| {
                begin((&raw const *scope).cast());
                if !is_fifo {
                    scope.run_in_inner_waits();
                }
                op()
            }),
            (None, Some(queue)) => {
                let stays = Stays(op);
                let result = queue.scope(move |scope| {
                    begin((&raw const *scope).cast());
                    Stays(stays.into_inner()())
                });
                result.into_inner()
            }
            (None, None) => unreachable!("a scope is of a pool or of a queue"),
        }
    }

    fn spawn(&self, f: impl FnOnce() + Send + 'scope) {
        let scope = self.scope.load(Ordering::Relaxed);
        match &self.registry {
            // SAFETY: a pool's scope, which is open: it waits for the caller, or the caller is
            // called by it. `'scope` outlives the call that has opened it; the reference is used
            // for this call only.
            Some(_) => unsafe { &*scope.cast::<pool::Scope<'scope, 'scope>>() }.spawn(f),
            // SAFETY: the same of a queue's scope.
            None => unsafe { &*scope.cast::<fair::QueueScope<'scope, 'scope>>() }.spawn(f),
        }
    }

    fn spawn_broadcast(&self, f: impl Fn(usize, usize) + Send + Sync + 'scope) {
        let Some(registry) = &self.registry else {
            // The threads are those of the pool, if there is one below the queue.
            return self.spawn(move || {
                Here::registry(|it| it.broadcast(&|it| f(it.index(), it.num_threads())).clear())
            });
        };
        let (num_threads, scope) = (registry.num_threads, self.scope.load(Ordering::Relaxed));
        // SAFETY: as in `spawn`.
        let scope = unsafe { &*scope.cast::<pool::Scope<'scope, 'scope>>() };
        let accepted = scope.spawn_broadcast(move |index| f(index, num_threads));
        accepted.expect("a pool that is open has threads");
    }
}

/// What stays on this thread: a queue calls a scope's closure here if it is called within a task of
/// its.
struct Stays<T>(T);

// SAFETY: it is used where `Here::Queue` has been seen, in which case `Queue::scope` calls its
// closure on this thread.
unsafe impl<T> Send for Stays<T> {}

impl<T> Stays<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

impl Opens for Scope<'_> {
    fn new(registry: Option<Arc<Registry>>) -> Self {
        Scope(Base::new(registry))
    }

    fn open<R>(&self, queue: Option<&fair::Queue>, op: impl FnOnce() -> R) -> R {
        self.0.open(queue, false, op)
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns a job, which gets the scope and can spawn further ones. If it panics, the scope does.
    ///
    /// # Examples
    ///
    /// ```
    /// let greeting = String::from("hello");
    /// rayon_core::scope(|scope| scope.spawn(|_| println!("{greeting}")));
    /// ```
    pub fn spawn<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        let this = Pointer(&raw const *self);
        // SAFETY: the job is this scope's.
        self.0.spawn(move || body(unsafe { this.get() }));
    }

    /// Spawns a closure that is called once on each thread of the pool.
    ///
    /// # Examples
    ///
    /// ```
    /// rayon_core::scope(|scope| scope.spawn_broadcast(|_, context| println!("{}", context.index())));
    /// ```
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        self.0.spawn_broadcast(Pointer(&raw const *self).with_context(body));
    }
}

impl Opens for ScopeFifo<'_> {
    fn new(registry: Option<Arc<Registry>>) -> Self {
        let threads = registry.as_ref().map_or(1, |it| it.num_threads);
        ScopeFifo {
            base: Base::new(registry),
            fifos: (0..threads).map(|_| Injector::new()).collect(),
        }
    }

    fn open<R>(&self, queue: Option<&fair::Queue>, op: impl FnOnce() -> R) -> R {
        self.base.open(queue, true, op)
    }
}

impl<'scope> ScopeFifo<'scope> {
    /// Spawns a job, which gets the scope and can spawn further ones. If it panics, the scope does.
    ///
    /// # Examples
    ///
    /// ```
    /// rayon_core::scope_fifo(|scope| scope.spawn_fifo(|_| println!("hello")));
    /// ```
    pub fn spawn_fifo<BODY>(&self, body: BODY)
    where
        BODY: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        let (this, same) = (Pointer(&raw const *self), Pointer(&raw const *self));
        // SAFETY: the job is this scope's.
        let job = move || body(unsafe { same.get() });
        let index = self.base.registry.as_ref().map_or(Some(0), |it| it.current_index());
        let Some(index) = index else { return self.base.spawn(job) };
        self.fifos[index].push(Box::new(job));
        // A job that stands for the oldest of those that this worker has spawned.
        // SAFETY: as above.
        self.base.spawn(move || take_oldest(&unsafe { this.get() }.fifos[index])());
    }

    /// Spawns a closure that is called once on each thread of the pool.
    pub fn spawn_broadcast<BODY>(&self, body: BODY)
    where
        BODY: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        self.base.spawn_broadcast(Pointer(&raw const *self).with_context(body));
    }
}
