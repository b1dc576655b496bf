//! Threads that wait for a place to run a task of a queue in.

use super::LOOK;
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed};
use alloc::vec::Vec;
use core::task::Waker;

/// Who is to be woken when the queue has a place again (I5).
#[derive(Default)]
#[allow(missing_debug_implementations)] // no part of the public API
pub struct Joiners {
    waiting: AtomicUsize,
    wakers: Mutex<Vec<(usize, Waker)>>,
}

impl Joiners {
    /// From now on the waker is woken when a place becomes free. The caller looks once more afterwards.
    pub fn add(&self, waker: Waker) -> usize {
        let mut wakers = self.wakers.lock();
        let number = wakers.last().map_or(0, |it| it.0 + 1);
        wakers.push((number, waker));
        // Relaxed: the fence orders it before the look that follows.
        self.waiting.store(wakers.len(), Relaxed);
        drop(wakers);
        LOOK.fence();
        number
    }

    /// No longer.
    pub fn remove(&self, number: usize) {
        let mut wakers = self.wakers.lock();
        let place = wakers.iter().position(|it| it.0 == number);
        let waker = place.map(|at| wakers.remove(at));
        self.waiting.store(wakers.len(), Relaxed); // Relaxed: as above
        drop(wakers);
        drop(waker);
    }

    /// A place has become free; the caller has fenced since.
    #[inline]
    pub fn wake(&self) {
        // Relaxed: that fence orders it.
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
