//! Contexts, which go with a task from the thread that spawns it to the thread that runs it.

use super::job::Job;
use crate::sync::Unwatched;
use alloc::boxed::Box;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A value that belongs to the flow of control rather than to a thread: a tracing span, a request's
/// identity, a locale. The thread that spawns a task [captures](Self::capture) the value. The
/// thread that runs the task [enters](Self::enter) the value, and runs the task inside.
///
/// Jobs of a [scope](crate::ThreadPool::scope) and of a [broadcast](crate::ThreadPool::broadcast)
/// carry the context too, and a bare [`Job`] carries none. The second closure of a
/// [`join`](crate::ThreadPool::join) enters the context if another thread runs it. The calling
/// thread is in the context already.
///
/// A pool has no context by default, and then a task pays nothing. With a context, each task
/// allocates a box for the captured value.
///
/// # Examples
///
/// Every task that is spawned on behalf of a user knows the name of that user:
///
/// ```
/// use filch::task::ContextFlow;
/// use filch::ThreadPool;
/// use std::cell::Cell;
///
/// thread_local!(static USER: Cell<&'static str> = const { Cell::new("nobody") });
///
/// struct User;
///
/// impl ContextFlow for User {
///     type Snapshot = &'static str;
///
///     fn capture(&self) -> &'static str {
///         USER.get()
///     }
///
///     fn enter<R>(user: &'static str, run: impl FnOnce() -> R) -> R {
///         let before = USER.replace(user);
///         let result = run();
///         USER.set(before); // not reached after a panic: use a guard where that matters
///         result
///     }
/// }
///
/// let pool = ThreadPool::builder().num_threads(1).context(User).build()?;
/// USER.set("Ada");
/// assert_eq!(pool.spawn(|| USER.get()).join().unwrap(), "Ada");
/// assert_eq!(pool.task().without_context().spawn(|| USER.get()).join().unwrap(), "nobody");
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ContextFlow: Send + Sync + 'static {
    /// A captured context. Each poll of a future enters a clone of it, and so does each call of a
    /// broadcast. The second closure of a `join` enters a clone if another thread runs the closure.
    /// A queue's `join`, `scope` or `install` from outside enters a clone, too.
    type Snapshot: Clone + Send + 'static;

    /// Captures the context, on the thread that spawns the task. If `capture` panics, the spawning
    /// call panics, and no task is spawned.
    fn capture(&self) -> Self::Snapshot;

    /// Runs `run` in the context, on the thread that runs the task. If `run` panics, `enter` must
    /// restore the thread's state and panic too.
    fn enter<R>(snapshot: Self::Snapshot, run: impl FnOnce() -> R) -> R;
}

/// A [`ContextFlow`] whose type is erased. Executors keep their context in this form.
///
/// # Examples
///
/// A task gets this context in a pool that has no context of its own:
///
/// ```
/// use filch::task::{ContextFlow, Flow};
///
/// struct Spawner;
///
/// impl ContextFlow for Spawner {
///     type Snapshot = std::thread::ThreadId;
///
///     fn capture(&self) -> Self::Snapshot {
///         std::thread::current().id()
///     }
///
///     fn enter<R>(spawner: Self::Snapshot, run: impl FnOnce() -> R) -> R {
///         println!("on behalf of {spawner:?}");
///         run()
///     }
/// }
///
/// let (pool, spawner) = (filch::pool::LockedPool::new(1)?, Flow::new(Spawner));
/// assert_eq!(pool.task().context(&spawner).spawn(|| 7).join().unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Flow(Unwatched<dyn ErasedContext>);

trait ErasedContext: Send + Sync {
    fn capture(&self) -> Box<dyn Enter + Send>;
}

trait Enter {
    fn enter(self: Box<Self>, run: &mut dyn FnMut());
    fn enter_clone(&self, run: &mut dyn FnMut());
}

struct ErasedSnapshot<C: ContextFlow>(C::Snapshot);

impl<C: ContextFlow> ErasedContext for C {
    fn capture(&self) -> Box<dyn Enter + Send> {
        Box::new(ErasedSnapshot::<C>(ContextFlow::capture(self)))
    }
}

impl<C: ContextFlow> Enter for ErasedSnapshot<C> {
    fn enter(self: Box<Self>, run: &mut dyn FnMut()) {
        C::enter(self.0, run);
    }

    fn enter_clone(&self, run: &mut dyn FnMut()) {
        C::enter(self.0.clone(), run);
    }
}

/// A captured context that may be entered several times.
pub(crate) struct Captured(Box<dyn Enter + Send>);

impl Captured {
    pub(crate) fn within<T>(this: Option<&Self>, f: impl FnOnce() -> T) -> T {
        match this {
            Some(captured) => captured.enter(f),
            None => f(),
        }
    }

    pub(crate) fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let (mut f, mut result) = (Some(f), None);
        self.0.enter_clone(&mut || result = f.take().map(|f| f()));
        result.expect("`ContextFlow::enter` calls `run`")
    }
}

impl Flow {
    pub(crate) fn capture(&self) -> Captured {
        Captured(self.0.capture())
    }

    /// Erases the type of a context.
    pub fn new<C: ContextFlow>(context: C) -> Self {
        Flow(Unwatched::new(context))
    }

    /// Returns a job that runs the closure, in the context captured now if there is one.
    #[inline]
    pub(crate) fn job<F: FnOnce() + Send + 'static>(context: Option<&Flow>, f: F) -> Job {
        match context {
            None => Job::new(f),
            Some(context) => Job::new(context.around(f)),
        }
    }

    /// Returns a closure that runs `f` in the context captured now.
    pub(crate) fn around<T, F>(&self, f: F) -> impl FnOnce() -> T + Send + use<T, F>
    where
        F: FnOnce() -> T + Send,
    {
        let snapshot = self.0.capture();
        move || {
            let (mut f, mut result) = (Some(f), None);
            snapshot.enter(&mut || result = f.take().map(|f| f()));
            result.expect("`ContextFlow::enter` calls `run`")
        }
    }
}

// By the contract of `ContextFlow`, `enter` restores the thread's state even after a panic. So a
// caught panic leaves that state whole.
impl UnwindSafe for Flow {}
impl RefUnwindSafe for Flow {}

opaque!(Flow);

/// Two contexts: a task enters the first, and the second inside the first.
impl<A: ContextFlow, B: ContextFlow> ContextFlow for (A, B) {
    type Snapshot = (A::Snapshot, B::Snapshot);

    fn capture(&self) -> Self::Snapshot {
        (self.0.capture(), self.1.capture())
    }

    fn enter<R>((a, b): Self::Snapshot, run: impl FnOnce() -> R) -> R {
        A::enter(a, || B::enter(b, run))
    }
}
