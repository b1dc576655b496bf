//! The park in which a worker sleeps for lack of jobs. The user may have made it.

use crate::idle::{Park, ThreadPark};
use crate::pool::data::pool::Pool;
use crate::sync::{Arc, Unwatched, thread};
use alloc::boxed::Box;
use alloc::task::Wake;
use core::task::Waker;
use core::time::Duration;

/// Makes the park of the worker with this index.
pub(super) fn make(pool: &Arc<Pool>, index: usize) -> Box<dyn Park> {
    match &pool.settings.make_park {
        Some(make) => Box::new(OwnPark { park: make(index), pool: Arc::clone(pool) }),
        None => Box::new(ThreadPark::new()),
    }
}

/// A park of the user's, whose wakers do not panic.
///
/// A panic would otherwise reach the notifier. That can be a worker that has just taken a job, or a
/// thread that closes the pool. The one would lose the job, and the other would leave the pool half
/// closed.
struct OwnPark {
    park: Box<dyn Park>,
    pool: Arc<Pool>,
}

impl Park for OwnPark {
    /// Passes a panic on. The worker is active again (I4) when the pool reports it.
    fn park(&mut self, timeout: Option<Duration>) {
        self.park.park(timeout);
    }

    fn unparker(&self) -> Waker {
        Unwatched::new(OwnBell { waker: self.park.unparker(), pool: Arc::clone(&self.pool) }).into()
    }
}

/// A waker of the user's. If waking panics, the pool reports the panic.
#[derive(Clone)]
struct OwnBell {
    waker: Waker,
    pool: Arc<Pool>,
}

impl Wake for OwnBell {
    fn wake(self: Unwatched<Self>) {
        let OwnBell { waker, pool } = Unwatched::unwrap_or_clone(self);
        if let Err(payload) = thread::catch(|| waker.wake()) {
            pool.report(payload);
        }
    }
}
