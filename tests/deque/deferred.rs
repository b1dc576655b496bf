//! Tests that no deque calls the functions that its user has deferred in crossbeam-epoch's default
//! collector. Such a function may use the very deque that is in the middle of an operation.
//!
//! The tests run in processes of their own: a thread that collects calls the deferred functions of
//! all threads.

use crate::common::alone::alone;
use crate::common::tally::{Counted, Tally};
use filch::Worker;
use filch::deque::{Builder, Flavor};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;

/// A receiver that disconnects when the deferred function is called.
type Deferred = mpsc::Receiver<()>;

fn shrinking<T>(flavor: Flavor) -> Worker<T> {
    Builder::new(flavor).capacity(8).shrinking(true).build()
}

thread_local! {
    static OWN: Worker<Counted> = shrinking(Flavor::Lifo);
    static DEST: Worker<Counted> = Worker::with_capacity(Flavor::Lifo, 4);
}

/// Defers a function, which the next collection of the default collector calls.
fn defer(f: impl FnOnce() + Send + 'static) -> Deferred {
    let (called, is_called) = mpsc::channel();
    let guard = crossbeam_epoch::pin();
    guard.defer(move || {
        drop(called);
        f();
    });
    guard.flush();
    is_called
}

/// Collects until the function has been called.
fn collect(deferred: &Deferred) {
    let is_over = || deferred.try_recv() == Err(mpsc::TryRecvError::Disconnected);
    for _ in 0..100 {
        let _ = catch_unwind(|| crossbeam_epoch::pin().flush());
        if is_over() {
            return;
        }
    }
    panic!("the deferred function is not called");
}

/// Leaves a quarter of 64 items, so that the next `pop` halves the buffer.
fn fill(own: &Worker<Counted>, tally: &Tally) {
    own.push_batch(tally.items(0..64));
    while own.len() > 16 {
        drop(own.pop());
    }
    assert_eq!(own.capacity(), 64);
}

#[test]
fn a_pop_that_halves_the_buffer_takes_an_item_once() {
    alone(|| {
        let tally = Tally::of(64);
        OWN.with(|own| {
            fill(own, &tally);
            let deferred = defer(|| OWN.with(|own| drop(own.pop())));
            drop(own.pop());
            assert_eq!(own.capacity(), 32);
            collect(&deferred);
            assert_eq!(own.len(), 14);
            own.drain().for_each(drop);
        });
        tally.assert_each_dropped_once(0..64);
    });
}

#[test]
fn a_deque_that_halves_its_buffer_overwrites_no_item() {
    alone(|| {
        let tally = Tally::of(128);
        OWN.with(|own| {
            fill(own, &tally);
            let deferred = defer(|| resume_unwind(Box::new("planted")));
            let _ = catch_unwind(AssertUnwindSafe(|| drop(own.pop())));
            tally.items(64..128).for_each(|item| own.push(item)); // makes no room ahead
            collect(&deferred);
            own.drain().for_each(drop);
        });
        tally.assert_each_dropped_once(0..128);
    });
}

#[test]
fn a_batch_takes_only_room_that_it_has_made() {
    // crossbeam-epoch also collects in every 128th pin of a thread.
    const ROUNDS: usize = 3 * 128;
    alone(|| {
        for flavor in [Flavor::Lifo, Flavor::Fifo] {
            let tally = Tally::of(ROUNDS * 8 + 4);
            let (theirs, more) = (shrinking(flavor), tally.clone());
            let stealer = theirs.stealer();
            let fill = move |dest: &Worker<_>| dest.push_batch(more.items(ROUNDS * 8..more.len()));
            let deferred = defer(move || DEST.with(fill));
            DEST.with(|dest| {
                for round in 0..ROUNDS {
                    theirs.push_batch(tally.items(round * 8..round * 8 + 8));
                    assert!(stealer.steal_batch_with_limit(dest, 4).is_success());
                    dest.drain().chain(theirs.drain()).for_each(drop);
                }
                collect(&deferred);
                dest.drain().for_each(drop);
            });
            tally.assert_each_dropped_once(0..tally.len());
        }
    });
}

/// The collector keeps its participant for this thread in a thread-local value, which is destroyed
/// before this deque.
#[test]
fn a_deque_shrinks_while_the_locals_of_its_thread_are_destroyed() {
    struct Last(Worker<u32>, Option<mpsc::Sender<usize>>);

    impl Drop for Last {
        fn drop(&mut self) {
            self.0.drain().for_each(drop);
            self.1.take().unwrap().send(self.0.capacity()).unwrap();
        }
    }

    thread_local! {
        static LAST: std::cell::RefCell<Last> =
            std::cell::RefCell::new(Last(shrinking(Flavor::Lifo), None));
    }

    let (tell, told) = mpsc::channel();
    let life = move || {
        LAST.with_borrow_mut(|last| {
            last.1 = Some(tell);
            last.0.push_batch(0..64);
            assert_eq!(last.0.capacity(), 64);
        });
    };
    thread::spawn(life).join().unwrap();
    assert_eq!(told.recv(), Ok(8));
}
