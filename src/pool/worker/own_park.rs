//! The park in which a worker sleeps for lack of jobs. The user may have made it.

use crate::idle::{Park, ThreadPark};
use crate::pool::data::pool::Pool;
use crate::sync::thread::{Finally, per_thread};
use crate::sync::{Arc, Unwatched, thread};
use alloc::boxed::Box;
use alloc::task::Wake;
use core::cell::Cell;
use core::ptr;
use core::task::Waker;
use core::time::Duration;

/// Makes the park of the worker with this index.
pub(super) fn make(pool: &Arc<Pool>, index: usize) -> Box<dyn Park> {
    match &pool.settings.make_park {
        Some(make) => Box::new(OwnPark { park: make(index), pool: Arc::clone(pool) }),
        None => Box::new(ThreadPark::new()),
    }
}

/// A park of the user's, with wakers that do not panic.
///
/// A panic of the user's waker would otherwise reach the notifier. A worker that notifies after it
/// has taken a job would lose that job. A thread that notifies while it closes the pool would leave
/// the pool half closed.
struct OwnPark {
    park: Box<dyn Park>,
    pool: Arc<Pool>,
}

impl Park for OwnPark {
    /// Does not catch a panic of the user's park. The worker is active (I4) when the pool reports
    /// the panic, in `Local::live` or in `drive_park`.
    fn park(&mut self, timeout: Option<Duration>) {
        self.park.park(timeout);
    }

    fn unparker(&self) -> Waker {
        Unwatched::new(OwnBell { waker: self.park.unparker(), pool: Arc::clone(&self.pool) }).into()
    }
}

/// A waker of the user's. If the waker panics, the pool notifies another worker, and reports the
/// panic.
#[derive(Clone)]
struct OwnBell {
    waker: Waker,
    pool: Arc<Pool>,
}

impl Wake for OwnBell {
    fn wake(self: Unwatched<Self>) {
        let OwnBell { waker, pool } = Unwatched::unwrap_or_clone(self);
        if let Err(payload) = thread::catch(|| waker.wake()) {
            pass_on(&pool);
            // The panic handler can queue a job and wait for it. So a `pass_on` in the handler must
            // not rely on an outer one, which goes on only after the handler.
            let outer = passing(NONE);
            pool.report(payload);
            passing(outer);
        }
    }
}

per_thread! {
    /// The pool whose workers this thread notifies in `pass_on`, and whether another waker has
    /// panicked meanwhile.
    static PASSING: Cell<Passing> = Cell::new(NONE);
}

type Passing = (*const Pool, bool);

const NONE: Passing = (ptr::null(), false);

/// Sets `PASSING`, and returns the value before. It stays `NONE` if the thread-local storage is
/// gone.
fn passing(now: Passing) -> Passing {
    PASSING.try_with(|it| it.replace(now)).unwrap_or(NONE)
}

/// Notifies another worker in place of the worker whose waker has panicked. That worker is off the
/// list of sleepers, and perhaps sleeps on.
///
/// If the other worker's waker panics too, the loop notifies a further one. A recursion might not
/// end, because a worker that has woken can soon be on the list again. The loop makes at most as
/// many rounds as there are workers: then each is awake, has been, or is off the list.
#[cold]
fn pass_on(pool: &Pool) {
    let this = ptr::from_ref(pool);
    let outer = passing((this, true));
    if outer.0 == this {
        return; // this thread is in the loop below already, which now makes one more round
    }
    let _end = Finally(|| _ = passing(outer));
    for _ in 0..pool.registry.with(<[_]>::len) {
        passing((this, false));
        pool.idle.searchers.notify_many(1);
        pool.idle.spares.notify_many(1);
        if passing((this, false)) != (this, true) {
            break;
        }
    }
}
