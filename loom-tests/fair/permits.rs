//! Models of the permits of a queue's futures. A future is cancelled while a permit becomes free,
//! or while the future is woken. The executor is a *tray*: it keeps jobs until a thread of the
//! model takes them.
//!
//! A queue has a limited number of permits. A future in flight holds one. When the future ends, the
//! next future gets the permit.

use crate::common::tray::{Tray, scheduler};
use crate::common::{Bound::*, model, spawn};
use filch::JoinHandle;
use filch::fair::Queue;
use std::future::{pending, poll_fn, ready};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A queue with one permit, and its tray.
fn queue() -> (Queue, Tray) {
    let tray = Tray::new(1);
    let fair = scheduler(&tray).build();
    (fair.queue("q").max_in_flight(1).build().unwrap(), tray)
}

/// The last future gets the permit in the end, and all are counted once.
fn check(queue: &Queue, tray: &Tray, last: JoinHandle<()>, submitted: u64) {
    tray.run_all();
    assert!(last.is_finished(), "a permit was lost");
    last.join().unwrap();
    let metrics = queue.metrics();
    assert_eq!((metrics.pending, metrics.submitted), (0, submitted));
}

/// The thread that passes the permit on may give it to a future that is being cancelled. That
/// future must then pass the permit on to the next.
#[test]
fn no_permit_is_lost_to_a_future_that_is_cancelled() {
    model("no_permit_is_lost_to_a_future_that_is_cancelled", Preemptions(2), || {
        let (queue, tray) = queue();
        let first = queue.spawn_future(pending::<()>());
        let second = queue.spawn_future(ready(()));
        let third = queue.spawn_future(ready(()));
        let other = spawn(move || first.cancel());
        second.cancel();
        other.join().unwrap();
        check(&queue, &tray, third, 3);
    });
}

/// The future ends by the canceller, or with the poll. In both cases the permit is returned.
#[test]
fn a_future_cancelled_as_it_is_woken_returns_its_permit() {
    let name = "a_future_cancelled_as_it_is_woken_returns_its_permit";
    model(name, Long { preemptions: 2, seconds: 14 }, || {
        let (queue, tray) = queue();
        let place = Arc::new(Mutex::new(None::<Waker>));
        let same = place.clone();
        let first = queue.spawn_future(poll_fn(move |context| {
            *same.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        tray.run_all();
        let second = queue.spawn_future(ready(()));
        let waker = place.lock().unwrap().take().expect("it was polled");
        let worker = {
            let tray = tray.clone();
            spawn(move || {
                waker.wake();
                tray.run_one();
            })
        };
        first.cancel();
        assert!(first.join().unwrap_err().is_cancelled());
        worker.join().unwrap();
        check(&queue, &tray, second, 2);
        place.lock().unwrap().take();
    });
}
