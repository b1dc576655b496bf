//! `Builder`, which collects the settings of a pool and makes it.

use super::ThreadPool;
use crate::executor::PanicHandler;
use crate::idle::Park;
use crate::injector::Injector;
use crate::pool::data::idle::Idle;
use crate::pool::data::pool::{Crew, MISSING, Pool};
use crate::pool::data::registry::Registry;
use crate::pool::data::settings::{Settings, Start, at_least_one};
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicUsize, Unwatched, thread};
use crate::task::{ContextFlow, End, ExecutorId, Flow, Living};
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::time::Duration;
use crossbeam_utils::CachePadded;
use std::io;

/// The default of `max_threads`: tokio's for blocking threads. Threads that block count too.
const MOST_THREADS: usize = 512;

/// Makes a [`ThreadPool`].
///
/// # Examples
///
/// ```
/// use filch::ThreadPool;
///
/// let pool = ThreadPool::builder().num_threads(2).thread_name("worker").build()?;
/// let name = pool.spawn(|| std::thread::current().name().map(str::to_owned)).join().unwrap();
/// assert!(name.unwrap().starts_with("worker-"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a builder is no pool"]
#[derive(Clone)]
pub struct Builder(pub(crate) Settings);

impl ThreadPool {
    /// Makes a pool of `threads` threads, which start with the first job.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if `threads` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::ThreadPool;
    ///
    /// assert!(ThreadPool::new(2).is_ok());
    /// let refused = ThreadPool::new(0).unwrap_err();
    /// assert_eq!(refused.to_string(), "a pool needs at least one thread");
    /// ```
    pub fn new(threads: usize) -> io::Result<ThreadPool> {
        ThreadPool::builder().num_threads(threads).build()
    }

    /// Returns a builder for a customized pool.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::builder().num_threads(2).stack_size(1 << 20).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

macro_rules! hooks {
    ($($(#[$meta:meta])* $name:ident: $when:literal;)*) => {
        $(
            #[doc = concat!("Sets a hook that is called ", $when, ", with the worker's index.")]
            ///
            /// The pool passes a panic of the hook to the [panic handler](Self::panic_handler), and
            /// the worker goes on. While a start hook blocks, no other thread takes the worker's
            /// place. So a start hook that waits for a job of the pool might wait for ever. If a
            /// spawn wakes a worker, the worker calls its unpark hook before it looks for the job.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let builder = filch::ThreadPool::builder().", stringify!($name), "(|index| println!(\"{index}\"));")]
            /// builder.num_threads(1).build()?.spawn(|| ()).join().unwrap();
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn $name(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
                self.0.$name = Some(Unwatched::new(hook));
                self
            }
        )*
    };
}

impl Builder {
    /// Returns a builder with the defaults: as many threads as the machine can run at once.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::pool::Builder::new().build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Builder(Settings {
            num_threads: None,
            max_threads: MOST_THREADS,
            keep_alive: Duration::from_secs(10),
            thread_name: "filch".into(),
            stack_size: None,
            start: Start::Lazy,
            make_park: None,
            panic_handler: PanicHandler::default(),
            context: None,
            on_thread_start: None,
            on_thread_stop: None,
            on_thread_park: None,
            on_thread_unpark: None,
            callers_take_part: false,
            is_hosted: false,
        })
    }

    /// Sets how many threads run jobs. The default is the number that the machine can run at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().num_threads(3).build()?;
    /// assert_eq!(pool.parallelism().get(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn num_threads(mut self, threads: usize) -> Self {
        self.0.num_threads = Some(threads);
        self
    }

    /// Sets the maximum number of threads. This includes threads that wait, threads in a section
    /// marked by [`blocking`](crate::pool::blocking), and threads whose stop hook has not returned.
    /// The default is 512, and the maximum is never less than `num_threads`.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::builder().num_threads(2).max_threads(8).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.0.max_threads = threads;
        self
    }

    /// Sets how long a thread beyond `num_threads` stays in the pool without a job. Then the thread
    /// ends. A wake-up that brings no job does not prolong this time. While `num_threads` other
    /// threads are running, a new job does not wake such a thread. The default is ten seconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = filch::ThreadPool::builder().keep_alive(Duration::from_secs(1)).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.0.keep_alive = time;
        self
    }

    /// Sets the prefix of the threads' names: a dash and the worker's index follow. The default is
    /// "filch".
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::builder().thread_name("io").build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.0.thread_name = name.into();
        self
    }

    /// Sets the size of the threads' stacks, in bytes. The default is the standard library's.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::builder().stack_size(256 * 1024).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.0.stack_size = Some(bytes);
        self
    }

    /// Sets when the threads are started. The default is with the first job.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::builder().start(filch::pool::Start::Eager).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(mut self, start: Start) -> Self {
        self.0.start = start;
        self
    }

    /// Sets the function that makes the [`Park`] in which a worker sleeps, for example a driver of
    /// input and output. `make` is called on the worker's thread, with the worker's index.
    ///
    /// A busy worker also calls [`Park::park`], with a timeout of zero, about once in 60 jobs. A
    /// park may run jobs by [`yield_now`](crate::pool::yield_now).
    /// [`wait_idle`](ThreadPool::wait_idle) does not wait for jobs that a park runs in another way.
    ///
    /// The pool passes these panics to the [panic handler](Self::panic_handler):
    ///
    /// - of `make`: the worker then sleeps in the default park;
    /// - of the park: the worker goes on with the same park;
    /// - of the park's waker: the pool wakes another worker for the job, and the thread that has
    ///   called the waker goes on. A worker that the waker has not unparked can then sleep for
    ///   ever, and so can a thread that waits for the pool's end.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::idle::ThreadPark;
    ///
    /// let pool = filch::ThreadPool::builder().num_threads(1).parker(|_| ThreadPark::new()).build()?;
    /// assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn parker<P: Park + 'static>(
        mut self,
        make: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> Self {
        self.0.make_park =
            Some(Unwatched::new(move |index| Box::new(make(index)) as Box<dyn Park>));
        self
    }

    /// Sets the handler that is called with the payload of a panic in a detached job. By default
    /// the payload is dropped. In either case Rust's panic hook has printed the message by then,
    /// and [`PoolMetrics::panic_count`](crate::pool::PoolMetrics::panic_count) counts the panic.
    ///
    /// The process and the worker go on, even if the handler panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::{Executor, Job, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let (panics, inbox) = mpsc::channel();
    /// let pool = ThreadPool::builder()
    ///     .num_threads(1)
    ///     .panic_handler(move |payload| panics.send(payload).unwrap())
    ///     .build()?;
    /// pool.execute(Job::new(|| panic!("too bad"))).unwrap();
    /// assert_eq!(inbox.recv().unwrap().downcast_ref(), Some(&"too bad"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn panic_handler(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.0.panic_handler = PanicHandler::new(handler);
        self
    }

    /// Sets the context that goes with a task from the spawning thread to the thread that runs it.
    /// By default there is no context, which costs nothing.
    ///
    /// Spawned tasks, jobs of a `scope` or a broadcast, and the second closure of a `join` carry
    /// the context. A job of [`execute`](crate::Executor::execute) does not.
    ///
    /// # Examples
    ///
    /// See [`ContextFlow`].
    pub fn context<C: ContextFlow>(mut self, context: C) -> Self {
        self.0.context = Some(Flow::new(context));
        self
    }

    hooks! {
        on_thread_start: "by each thread before its first job";
        on_thread_stop: "by each thread after its last job";
        on_thread_park: "by a worker that is about to sleep";
        on_thread_unpark: "by a worker that has slept";
    }

    /// Sets whether an outside thread that calls [`join`](ThreadPool::join) or
    /// [`scope`](ThreadPool::scope) is a worker during the call, as in
    /// [`take_part`](ThreadPool::take_part). The default is `false`: it waits for the workers.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = filch::ThreadPool::builder().num_threads(1).callers_take_part(true);
    /// let (pool, here) = (builder.build()?, std::thread::current().id());
    /// let (first, _) = pool.join(|| std::thread::current().id(), || ());
    /// assert_eq!(first, here);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn callers_take_part(mut self, take_part: bool) -> Self {
        self.0.callers_take_part = take_part;
        self
    }

    /// Makes the pool.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidInput`](io::ErrorKind::InvalidInput) if the number of threads is zero, or
    /// if their name has a zero byte. Returns the system's error if the start is
    /// [eager](Start::Eager) and the system refuses a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = filch::ThreadPool::builder().num_threads(0).build().unwrap_err();
    /// assert_eq!(error.to_string(), "a pool needs at least one thread");
    /// ```
    pub fn build(self) -> io::Result<ThreadPool> {
        let start = self.0.start;
        let pool = self.make()?;
        if start == Start::Eager {
            Pool::start_all(pool.shared())?;
        }
        Ok(pool)
    }

    pub(crate) fn make(self) -> io::Result<ThreadPool> {
        let mut settings = self.0;
        let threads = match settings.num_threads {
            Some(threads) => at_least_one(threads)?,
            None => thread::available(),
        };
        if settings.thread_name.contains('\0') {
            let error = "the name of a pool's threads cannot contain a zero byte";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        settings.max_threads = settings.max_threads.max(threads.get());
        let missing = if settings.is_hosted { 0 } else { MISSING };
        Ok(ThreadPool::on(Arc::new(Pool {
            id: ExecutorId::new(),
            injector: Injector::new(),
            shelf: Default::default(),
            idle: Idle::default(),
            attention: CachePadded::new(AtomicUsize::new(missing)),
            registry: Registry::new(),
            crew: Mutex::new(Crew { target: threads.get(), ..Crew::default() }),
            threads: AtomicUsize::new(threads.get()),
            present: AtomicUsize::new(0),
            living: Living::default(),
            end: End::default(),
            settings,
            panicked: AtomicUsize::new(0),
        })))
    }
}

opaque!(Builder, |it|
    num_threads: it.0.num_threads,
    max_threads: it.0.max_threads,
    keep_alive: it.0.keep_alive,
    thread_name: it.0.thread_name,
    stack_size: it.0.stack_size,
    start: it.0.start
);
