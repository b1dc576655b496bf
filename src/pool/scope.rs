//! Jobs that borrow from whoever waits for them.

use super::ThreadPool;
use crate::executor::Executor;
use crate::sync::thread;
use crate::task::current::Waiter;
use crate::task::{self, Group};
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem;

/// Where jobs are spawned that borrow: [`ThreadPool::scope`].
///
/// As in [`std::thread::scope`], `'env` is what may be borrowed from outside, and `'scope` the scope itself.
pub struct Scope<'scope, 'env: 'scope> {
    pool: &'env ThreadPool,
    group: Group,
    /// Whoever waits at its end.
    waiter: Waiter,
    /// Invariant in both.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl ThreadPool {
    /// Calls `f` with a scope, and returns when every job that was spawned into it has come to its end.
    ///
    /// The jobs may borrow whatever outlives the call. On a worker of this pool, those that have not begun by the
    /// end of `f` are run by it, and no others.
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
        let group = Group::default();
        let waiter = Waiter::this_thread();
        let scope = Scope { pool: self, group, waiter, _scope: PhantomData, _env: PhantomData };
        let stays = Stays;
        let result = thread::catch(|| f(&scope));
        let outcome = scope.group.wait();
        mem::forget(stays);
        match (result, outcome) {
            (Err(payload), _) => thread::resume(payload),
            (Ok(_), Err(error)) => match error.try_into_panic() {
                Ok(payload) => thread::resume(payload),
                Err(error) => panic!("a job of the scope has not run: {error}"),
            },
            (Ok(result), Ok(())) => result,
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
    /// Spawns a closure. If the pool is closed it runs here, at once.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = filch::ThreadPool::new(1)?;
    /// let greeting = String::from("hello");
    /// pool.scope(|scope| scope.spawn(|| println!("{greeting}")));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        let member = self.group.member(f);
        let waiter = &self.waiter;
        let f: Box<dyn FnOnce() + Send + 'scope> = Box::new(move || waiter.run(|| member.run()));
        // SAFETY: I7 — only the lifetime changes. The member tells the group when the closure is gone, and `scope`
        // waits for that before anything that is borrowed can go.
        let f: Box<dyn FnOnce() + Send + 'static> = unsafe { mem::transmute(f) };
        let (job, handle) = task::task(f, self.pool.id(), None);
        self.group.add(handle.any());
        drop(handle);
        if let Err(rejected) = self.pool.execute(job) {
            rejected.into_job().run();
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("pool", &self.pool).finish_non_exhaustive()
    }
}
