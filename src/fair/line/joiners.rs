//! *Joiners* are threads that wait until a queue may run one more task, so that they can run a task
//! of the queue themselves. `place_is_free` (`scheduler/look.rs`) wakes all joiners, and so does a
//! cancellation. Each joiner then looks again whether it may run its task, or must drop it.

use crate::fair::LOOK;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use alloc::vec::Vec;
use core::task::Waker;

/// The wakers of the threads that wait until the queue may run one more task (I5).
#[derive(Default)]
#[allow(missing_debug_implementations)] // no part of the public API
pub struct Joiners {
    /// The number of wakers, written under the lock of `wakers` and read without it.
    waiting: AtomicUsize,
    wakers: Mutex<Vec<(usize, Waker)>>,
}

impl Joiners {
    /// Registers a waker for the moment at which the queue may run one more task. Returns the
    /// waker's number. The caller then looks once more whether it may run its task now.
    pub fn add(&self, waker: Waker) -> usize {
        let mut wakers = self.wakers.lock();
        let number = wakers.last().map_or(0, |it| it.0 + 1);
        wakers.push((number, waker));
        // Relaxed: the fence orders this store before the caller's look.
        self.waiting.store(wakers.len(), Relaxed);
        drop(wakers);
        LOOK.fence();
        number
    }

    /// Removes the waker with this number.
    pub fn remove(&self, number: usize) {
        let mut wakers = self.wakers.lock();
        let index = wakers.iter().position(|it| it.0 == number);
        let waker = index.map(|at| wakers.remove(at));
        self.waiting.store(wakers.len(), Relaxed); // Relaxed: a joiner that leaves needs no wake-up
        drop(wakers);
        drop(waker);
    }

    /// Wakes the joiners, because the queue may run one more task or is cancelled. The caller has
    /// passed a `LOOK` fence since that change. The fence orders the relaxed load here.
    #[inline]
    pub fn wake(&self) {
        if self.waiting.load(Relaxed) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let wakers: Vec<_> = self.wakers.lock().iter().map(|it| it.1.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }
}
