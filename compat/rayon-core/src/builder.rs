//! `ThreadPoolBuilder`, which translates rayon's settings into those of a filch pool.

use crate::ThreadPool;
use crate::error::{Kind, ThreadPoolBuildError};
use crate::pool::{Built, max_num_threads};
use crate::registry::{AbortIfPanic, Open, PanicHandler, Registry};
use filch::pool::{Builder, WorkerThread, worker_index};
use std::error::Error;
use std::sync::Arc;
use std::{env, fmt, io, mem, process, thread};

type Handler = Box<dyn Fn(usize) + Send + Sync>;

/// Builds a [`ThreadPool`], or the global pool.
///
/// # Examples
///
/// ```
/// let builder = rayon_core::ThreadPoolBuilder::new().num_threads(2);
/// let pool = builder.thread_name(|index| format!("worker {index}")).build()?;
/// assert_eq!(pool.current_num_threads(), 2);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    options: Options,
    spawn: S,
}

#[derive(Default)]
struct Options {
    num_threads: usize,
    use_current_thread: bool,
    is_breadth_first: bool,
    stack_size: Option<usize>,
    thread_name: Option<Box<dyn FnMut(usize) -> String>>,
    panic_handler: Option<Box<PanicHandler>>,
    start_handler: Option<Handler>,
    exit_handler: Option<Handler>,
}

/// A thread that is to be started: `spawn_handler` gets it.
#[derive(Debug)]
pub struct ThreadBuilder {
    worker: WorkerThread,
    name: Option<String>,
    stack_size: Option<usize>,
    registry: Arc<Registry>,
}

/// How threads are started.
pub trait ThreadSpawn {
    #[doc(hidden)]
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// Threads are started by the standard library.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

/// Threads are started by a closure.
#[derive(Debug)]
pub struct CustomSpawn<F>(F);

impl ThreadSpawn for DefaultSpawn {
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        thread.builder().spawn(|| thread.run()).map(drop)
    }
}

impl<F: FnMut(ThreadBuilder) -> io::Result<()>> ThreadSpawn for CustomSpawn<F> {
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}

impl ThreadBuilder {
    /// The index of the thread in the pool.
    #[must_use]
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// What the thread is to be called.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How large its stack is to be, in bytes.
    #[must_use]
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Runs jobs on this thread, until the pool ends.
    pub fn run(self) {
        self.registry.as_worker(|| self.worker.run());
    }

    fn builder(&self) -> thread::Builder {
        let name = self.name.iter().fold(thread::Builder::new(), |it, name| it.name(name.clone()));
        self.stack_size.into_iter().fold(name, thread::Builder::stack_size)
    }
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        ThreadPoolBuilder { options: Options::default(), spawn: DefaultSpawn }
    }
}

impl ThreadPoolBuilder {
    /// As many threads as `RAYON_NUM_THREADS` says, or as the machine can run at once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `with_pool` with a pool whose threads may borrow: `wrapper` is called on each, and
    /// calls [`run`](ThreadBuilder::run). Returns when they have ended.
    /// Fails as [`build`](Self::build) does.
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Built<R>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        thread::scope(|scope| {
            let wrapper = &wrapper;
            let spawn = |thread: ThreadBuilder| {
                thread.builder().spawn_scoped(scope, move || wrapper(thread)).map(drop)
            };
            let pool = self.spawn_handler(spawn).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// How threads are started: `spawn` gets each, and has it [run](ThreadBuilder::run).
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder { options: self.options, spawn: CustomSpawn(spawn) }
    }

    /// What the threads are called.
    #[must_use]
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.options.thread_name = Some(Box::new(closure));
        self
    }

    /// How many threads there are; zero for as many as by default.
    #[must_use]
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.options.num_threads = num_threads;
        self
    }

    /// Has the thread that calls [`build`](Self::build) be the pool's first worker, for the rest of
    /// its life. It runs jobs in its waits only, and the handlers are not called for it.
    #[must_use]
    pub fn use_current_thread(mut self) -> Self {
        self.options.use_current_thread = true;
        self
    }

    /// Called with the panics of detached jobs and of the other handlers. Without it,
    /// such a panic ends the process; so does a panic of this handler.
    #[must_use]
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn std::any::Any + Send>) + Send + Sync + 'static,
    {
        self.options.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// How large the threads' stacks are, in bytes.
    #[must_use]
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.options.stack_size = Some(stack_size);
        self
    }

    /// Has [`spawn`](crate::spawn) do what [`spawn_fifo`](crate::spawn_fifo) does.
    #[must_use]
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.options.is_breadth_first = true;
        self
    }

    /// Has this called by each thread before its first job, with its index.
    #[must_use]
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.options.start_handler = Some(Box::new(start_handler));
        self
    }

    /// Has this called by each thread after its last job, with its index.
    #[must_use]
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.options.exit_handler = Some(Box::new(exit_handler));
        self
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds a pool, and starts its threads.
    ///
    /// # Errors
    ///
    /// That of starting a thread; and after [`use_current_thread`](Self::use_current_thread) one on
    /// a thread that is a worker already.
    pub fn build(mut self) -> Built<ThreadPool> {
        let mut options = self.options;
        let already = || ThreadPoolBuildError(Kind::CurrentThreadAlreadyInPool);
        if options.use_current_thread && worker_index().is_some() {
            return Err(already());
        }
        let handler = options.panic_handler;
        let mut builder = filch::ThreadPool::builder()
            .num_threads(wanted(options.num_threads).min(max_num_threads()))
            .panic_handler(move |payload| handle(handler.as_deref(), payload));
        builder = options.stack_size.into_iter().fold(builder, Builder::stack_size);
        builder = options.start_handler.into_iter().fold(builder, Builder::on_thread_start);
        builder = options.exit_handler.into_iter().fold(builder, Builder::on_thread_stop);
        let mut workers = Vec::new();
        let pool = builder.build_with(|worker| {
            workers.push(worker);
            Ok(())
        })?;
        let registry = Registry::new(pool, options.is_breadth_first);
        let pool = ThreadPool(Open::new(&registry));
        let mut workers = workers.into_iter();
        let own = if options.use_current_thread { workers.next() } else { None };
        for worker in workers {
            let name = options.thread_name.as_mut().map(|name| name(worker.index()));
            let (stack_size, registry) = (options.stack_size, Arc::clone(&registry));
            self.spawn.spawn(ThreadBuilder { worker, name, stack_size, registry })?;
        }
        if let Some(own) = own {
            own.run_in_waits().map_err(|_| already())?;
            registry.stay();
        }
        Ok(pool)
    }

    /// Builds the global pool, and waits until its threads have begun.
    /// Fails as [`build`](Self::build) does, and if there is a global pool already.
    pub fn build_global(self) -> Built<()> {
        Registry::set_global(|| self.build())?;
        let _ = Registry::global().pool.scope(|scope| scope.spawn_broadcast(drop::<usize>));
        Ok(())
    }
}

/// How many threads are wanted: so many, or, if that is zero, as many as the environment or the
/// machine says.
fn wanted(threads: usize) -> usize {
    let available = || thread::available_parallelism().map_or(1, usize::from);
    let said = |name| env::var(name).ok().and_then(|it| it.parse::<usize>().ok());
    match (threads, said("RAYON_NUM_THREADS")) {
        (0, None) => said("RAYON_RS_NUM_CPUS").filter(|it| *it > 0).unwrap_or_else(available),
        (0, Some(0)) => available(),
        (0, Some(threads)) | (threads, _) => threads,
    }
}

/// The panic of a detached job.
fn handle(handler: Option<&PanicHandler>, payload: Box<dyn std::any::Any + Send>) {
    let aborts = AbortIfPanic;
    match handler {
        Some(handler) => handler(payload),
        None => process::abort(),
    }
    mem::forget(aborts);
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ThreadPoolBuilder");
        debug.field("num_threads", &self.options.num_threads).finish_non_exhaustive()
    }
}

/// What [`ThreadPoolBuilder`] was before.
#[deprecated(note = "Use `ThreadPoolBuilder`")]
#[derive(Debug, Default)]
pub struct Configuration(ThreadPoolBuilder);

macro_rules! options {
    ($($name:ident: $type:ty;)*) => {
        $(
            #[doc = concat!("As [`ThreadPoolBuilder::", stringify!($name), "`].")]
            #[must_use]
            pub fn $name(self, value: $type) -> Self {
                Configuration(self.0.$name(value))
            }
        )*
    };
}

#[allow(deprecated)]
impl Configuration {
    /// As [`ThreadPoolBuilder::new`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`ThreadPoolBuilder::build`].
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error>> {
        self.0.build().map_err(Box::from)
    }

    /// As [`ThreadPoolBuilder::breadth_first`].
    #[must_use]
    pub fn breadth_first(self) -> Self {
        Configuration(self.0.breadth_first())
    }

    options! {
        num_threads: usize;
        stack_size: usize;
        thread_name: impl FnMut(usize) -> String + 'static;
        panic_handler: impl Fn(Box<dyn std::any::Any + Send>) + Send + Sync + 'static;
        start_handler: impl Fn(usize) + Send + Sync + 'static;
        exit_handler: impl Fn(usize) + Send + Sync + 'static;
    }
}

/// As [`ThreadPoolBuilder::build_global`].
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
#[allow(deprecated)]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.0.build_global().map_err(Box::from)
}
