//! Locks and condition variables, for operations too rare to be worth being lock-free.
//!
//! The types wrap those of the standard library, or in a model those of loom or shuttle. They
//! ignore poisoning. A panic cannot leave the guarded state half-changed: user code runs outside
//! these locks, or its panics are caught.

#[cfg(any(loom, shuttle))]
use super::checker::sync as from;
#[cfg(not(any(loom, shuttle)))]
use std::sync as from;
use std::sync::Arc as Unwatched;
use std::sync::{PoisonError, Weak};

pub(crate) use from::MutexGuard;

pub(crate) struct Mutex<T>(from::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(from::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

/// A value that several threads may try to take. Only one of them gets it.
pub(crate) struct TakeOnce<T>(Unwatched<Mutex<Option<T>>>);

impl<T> TakeOnce<T> {
    pub(crate) fn new(value: T) -> Self {
        TakeOnce(Unwatched::new(Mutex::new(Some(value))))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().take()
    }

    /// Returns a handle that can take the value, but does not keep it alive.
    pub(crate) fn weak(&self) -> WeakTakeOnce<T> {
        WeakTakeOnce(Unwatched::downgrade(&self.0))
    }
}

pub(crate) struct WeakTakeOnce<T>(Weak<Mutex<Option<T>>>);

impl<T> WeakTakeOnce<T> {
    pub(crate) fn take(&self) -> Option<T> {
        TakeOnce(self.0.upgrade()?).take()
    }
}

impl<T> Clone for TakeOnce<T> {
    fn clone(&self) -> Self {
        TakeOnce(Unwatched::clone(&self.0))
    }
}

pub(crate) struct Condvar(from::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(from::Condvar::new())
    }

    /// Blocks until `waits` returns `false`. The lock is released while the thread is blocked.
    pub(crate) fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while waits(&mut guard) {
            guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        guard
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
