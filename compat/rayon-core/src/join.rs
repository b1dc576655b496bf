//! `join` and `join_context`, which run two closures, perhaps at the same time.

use crate::registry::{Here, Registry};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tells a closure of [`join_context`] how it is called.
#[derive(Debug)]
pub struct FnContext {
    is_migrated: bool,
    _is_not_send: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    fn new(is_migrated: bool) -> Self {
        FnContext { is_migrated, _is_not_send: PhantomData }
    }

    /// Whether the closure runs on another thread than the one that called `join_context`.
    #[inline]
    #[must_use]
    pub fn migrated(&self) -> bool {
        self.is_migrated
    }
}

/// Runs both closures, perhaps at the same time, and returns what they return. The second runs also
/// if the first panics.
///
/// In a task of a queue: [`filch::fair::Queue::join`]. Elsewhere [`filch::ThreadPool::join`], on
/// the pool whose worker this thread is, or on the global one.
///
/// # Panics
///
/// Goes on with the panic of the first closure, or else of the second, once neither runs any more.
///
/// # Examples
///
/// ```
/// assert_eq!(rayon_core::join(|| 6, || 7), (6, 7));
/// ```
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    // filch drops the second if the first panics and the second has not begun. rayon's programs
    // rely on both.
    let a = || catch_unwind(AssertUnwindSafe(oper_a));
    let b = || catch_unwind(AssertUnwindSafe(oper_b));
    let results = Here::with(|here| match here {
        Here::Queue(queue) => queue.join(a, b),
        Here::Worker(registry) => registry.pool.join(a, b),
        Here::Outside => Registry::global().pool.join(a, b),
    });
    match results {
        (Ok(a), Ok(b)) => (a, b),
        (Err(payload), _) | (_, Err(payload)) => resume_unwind(payload),
    }
}

/// Calls [`join`] with closures that learn whether they have changed the thread.
/// Panics as `join` does.
///
/// # Examples
///
/// ```
/// let (a, _) = rayon_core::join_context(|context| context.migrated(), |_| ());
/// assert!(a, "this thread is no worker");
/// ```
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let caller = this_thread();
    let call = move || FnContext::new(this_thread() != caller);
    join(move || oper_a(call()), move || oper_b(call()))
}

/// What tells this thread from every other that runs.
#[inline]
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|it| std::ptr::from_ref(it).addr())
}
