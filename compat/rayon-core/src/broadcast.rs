//! `broadcast` and `spawn_broadcast`: one call of a closure on each thread of a pool.

use crate::registry::{Here, Open, Registry};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// Tells a closure of [`broadcast`] on which thread it is called.
#[derive(Debug)]
pub struct BroadcastContext<'a> {
    index: usize,
    num_threads: usize,
    _is_not_send: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    pub(crate) fn with<R>(
        index: usize,
        num_threads: usize,
        f: impl FnOnce(BroadcastContext<'_>) -> R,
    ) -> R {
        f(BroadcastContext { index, num_threads, _is_not_send: PhantomData })
    }

    /// The index of the thread.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many threads are called.
    #[inline]
    #[must_use]
    pub fn num_threads(&self) -> usize {
        self.num_threads
    }
}

/// Calls a closure once on each thread of the pool whose worker this thread is, or of the global
/// one, and returns what it returned, in the order of the threads. Also in a task of a queue: the
/// threads are the pool's.
///
/// A thread calls it before its next job, or while it waits.
///
/// # Panics
///
/// Goes on with the panic of one of the calls, once all have ended.
///
/// # Examples
///
/// ```
/// let indices = rayon_core::broadcast(|context| context.index());
/// assert_eq!(indices, (0..rayon_core::current_num_threads()).collect::<Vec<_>>());
/// ```
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    Here::registry(|registry| registry.broadcast(&op))
}

/// Spawns a closure that is called once on each thread, as [`broadcast`] does, and does not wait.
///
/// # Examples
///
/// ```
/// rayon_core::spawn_broadcast(|context| println!("thread {}", context.index()));
/// ```
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    Here::registry(|registry| registry.spawn_broadcast(op));
}

impl Registry {
    pub(crate) fn broadcast<OP, R>(self: &Arc<Self>, op: &OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        if !self.is_current() && Registry::current().is_some() {
            return self.in_worker(|| self.broadcast(op));
        }
        let results: Vec<_> = (0..self.num_threads).map(|_| Mutex::new(None)).collect();
        let call = |index: usize| {
            let result = BroadcastContext::with(index, self.num_threads, op);
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        };
        let accepted = self.pool.scope(|scope| scope.spawn_broadcast(call));
        accepted.expect("a pool that is open has threads");
        let take = |it: Mutex<_>| it.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A thread that was a worker for life may have ended.
        results.into_iter().filter_map(take).collect()
    }

    pub(crate) fn spawn_broadcast<OP>(self: &Arc<Self>, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        let (open, num_threads) = (Open::new(self), self.num_threads);
        let call = move |index| {
            let _ = &open;
            BroadcastContext::with(index, num_threads, &op);
        };
        self.pool.spawn_broadcast(call).expect("a pool that is open has threads");
    }
}
