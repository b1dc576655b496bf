//! The park in which a worker sleeps for lack of jobs. The user may have made it.

use crate::idle::{Park, ThreadPark};
use crate::pool::data::pool::Pool;
use crate::pool::data::registry::Seat;
use crate::sync::thread::{Finally, per_thread};
use crate::sync::{Arc, Relaxed, Unwatched, thread};
use alloc::boxed::Box;
use alloc::task::Wake;
use core::cell::Cell;
use core::ptr;
use core::task::Waker;
use core::time::Duration;

/// Makes the park of the worker with this seat.
pub(super) fn make(pool: &Arc<Pool>, seat: &Arc<Seat>) -> Box<dyn Park> {
    let Some(make) = &pool.settings.make_park else { return Box::new(ThreadPark::new()) };
    let park = make(seat.index);
    Box::new(OwnPark { park, pool: Arc::clone(pool), seat: Arc::clone(seat) })
}

/// A park of the user's, whose wakers catch the panics of the user's wakers. Otherwise such a panic
/// would reach the notifier, which could then lose a job that it has just taken. A notifier that
/// closes the pool would leave it half closed.
struct OwnPark {
    park: Box<dyn Park>,
    pool: Arc<Pool>,
    seat: Arc<Seat>,
}

impl Park for OwnPark {
    /// Lets a panic of the user's park through. `Local::live` or `drive_park` catches the panic,
    /// and the pool reports it. The worker is active (I4) by then.
    fn park(&mut self, timeout: Option<Duration>) {
        self.park.park(timeout);
    }

    fn unparker(&self) -> Waker {
        let (pool, seat) = (Arc::clone(&self.pool), Arc::clone(&self.seat));
        Unwatched::new(OwnBell { waker: self.park.unparker(), pool, seat }).into()
    }
}

/// A waker of the user's. If the waker panics, the pool reports the panic. If the woken worker runs
/// a job in its park, it is busy. In both cases the pool notifies another worker, too.
#[derive(Clone)]
struct OwnBell {
    waker: Waker,
    pool: Arc<Pool>,
    seat: Arc<Seat>,
}

impl Wake for OwnBell {
    fn wake(self: Unwatched<Self>) {
        let OwnBell { waker, pool, seat } = Unwatched::unwrap_or_clone(self);
        if let Err(payload) = thread::catch(|| waker.wake()) {
            pass_on(&pool);
            // The panic handler can queue a job and wait for it. A `pass_on` in the handler must
            // not rely on the loop of an outer `pass_on`, which goes on only after the handler. So
            // `PASSING` is `NONE` during the handler, and a `pass_on` in it runs a loop of its own.
            let outer = passing(NONE);
            pool.report(payload);
            passing(outer);
        } else if seat.runs_in_park.load(Relaxed) {
            // Relaxed: the notifier has fenced, and `run_in_park` fences after it sets the flag. So
            // this load sees the flag, or `run_in_park` sees the notifier's change.
            pass_on(&pool)
        }
    }
}

per_thread! {
    /// The pool whose workers this thread notifies in `pass_on`, and whether a further call of
    /// `pass_on` has come meanwhile.
    static PASSING: Cell<Passing> = Cell::new(NONE);
}

type Passing = (*const Pool, bool);

const NONE: Passing = (ptr::null(), false);

/// Sets `PASSING`, and returns the value before. It stays `NONE` if the thread-local storage is
/// gone.
fn passing(now: Passing) -> Passing {
    PASSING.try_with(|it| it.replace(now)).unwrap_or(NONE)
}

/// Called when a notifier has taken worker N off the list of sleepers, but N looks for no job. N
/// runs a job in its park, or N's waker has panicked, and N perhaps sleeps on. Notifies another
/// worker in N's place.
///
/// If the other one, M, looks for no job either, M's waker calls `pass_on` again, on this thread.
/// That inner call only makes the loop below notify a further worker. A recursion might not end,
/// because a worker that has woken can soon be on the list again. The loop makes at most as many
/// rounds as there are workers. Then each worker is awake, has been awake, or is off the list.
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
        pool.idle.notify_spare();
        if passing((this, false)) != (this, true) {
            break;
        }
    }
}
