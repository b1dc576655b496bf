//! A lock and a bell, for what is not worth being lock-free.
//!
//! They are the standard library's, or loom's, without poisoning: no code of the user's runs under
//! a lock of this crate, so there is no state that a panic could leave half-changed.

#[cfg(any(loom, shuttle))]
use super::checker::sync as from;
#[cfg(not(any(loom, shuttle)))]
use std::sync as from;
use std::sync::Arc as Unwatched;
use std::sync::PoisonError;

pub(crate) use from::MutexGuard;

/// A value that one thread at a time may touch.
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

/// A value that several could take, and one gets.
pub(crate) struct Common<T>(Unwatched<Mutex<Option<T>>>);

impl<T> Common<T> {
    pub(crate) fn new(value: T) -> Self {
        Common(Unwatched::new(Mutex::new(Some(value))))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().take()
    }
}

impl<T> Clone for Common<T> {
    fn clone(&self) -> Self {
        Common(Unwatched::clone(&self.0))
    }
}

/// Where threads sleep that hold a lock and wait for what it guards to change.
pub(crate) struct Condvar(from::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(from::Condvar::new())
    }

    /// Sleeps while `waits` says so. The lock is given up meanwhile.
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
