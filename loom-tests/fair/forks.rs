//! Models of a fork: its owner offers a half, and takes it back unless another thread, which serves
//! the queue, has taken it.

use crate::common::trace::Trace;
use crate::common::tray::{Tray, scheduler};
use crate::common::{Bound::*, model, spawn};
use filch::fair::Queue;
use loom::sync::mpsc;
use loom::thread;

/// Runs a task that forks. Another thread runs the ticket that the task's offer submits, if the
/// ticket is on the tray by then.
fn forks(fork: fn(&Queue, [Trace; 3])) {
    let tray = Tray::new(2);
    let fair = scheduler(&tray).build();
    let (queue, traces) = (fair.default_queue().clone(), [(); 3].map(|()| Trace::new()));
    let (same, halves) = (queue.clone(), traces.clone());
    queue.spawn_detached(move || fork(&same, halves)).unwrap();
    let (ticket, same) = (tray.take().unwrap(), tray.clone());
    let worker = spawn(move || same.run_one());
    ticket.run();
    worker.join().unwrap();
    tray.run_all();
    assert_eq!(traces.each_ref().map(Trace::runs), [1; 3]);
}

/// The owner takes its offer back, or waits for the thread that has taken it.
#[test]
fn an_offer_is_taken_by_another_thread_or_taken_back() {
    model("an_offer_is_taken_by_another_thread_or_taken_back", Preemptions(2), || {
        forks(|queue, [a, b, c]| {
            queue.join(|| a.leave(), || b.leave());
            assert_eq!((a.runs(), b.runs()), (1, 1), "the halves have not ended");
            c.leave();
        });
    });
}

/// Another thread takes a half, which forks again. The inner fork ends only if a second thread runs
/// its second half. The outer fork's owner must do that, although the owner may be falling asleep.
#[test]
fn an_offer_wakes_an_owner_that_falls_asleep() {
    // With two preemptions, the model misses a thread that looks before it says that it sleeps.
    let bound = Long { preemptions: 3, seconds: 20 };
    model("an_offer_wakes_an_owner_that_falls_asleep", bound, || {
        forks(|queue, [a, b, c]| {
            let (owner, (sender, ran)) = (thread::current().id(), mpsc::channel());
            let half = move || {
                let is_taken = thread::current().id() != owner;
                let first = move || {
                    b.leave();
                    if is_taken {
                        ran.recv().unwrap();
                    }
                };
                let second = move || {
                    c.leave();
                    if is_taken {
                        sender.send(()).unwrap();
                    }
                };
                queue.join(first, second);
            };
            queue.join(|| a.leave(), half);
        });
    });
}
