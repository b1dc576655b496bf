//! Tests the documentation of `Worker` and `Stealer`, promise by promise.

use filch::Steal::{self, Empty, Retry, Success};
use filch::deque::{Builder, Flavor, Full};
use filch::{Stealer, Worker};
use std::error::Error;
use std::panic::{UnwindSafe, catch_unwind};
use std::{iter, thread};

const FLAVORS: [Flavor; 2] = [Flavor::Lifo, Flavor::Fifo];

/// Returns the message of the panic of `f`.
fn panic_of<R>(f: impl FnOnce() -> R + UnwindSafe) -> String {
    match catch_unwind(f) {
        Ok(_) => panic!("it did not panic"),
        Err(payload) => match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => (*payload.downcast::<&str>().expect("a message")).to_owned(),
        },
    }
}

fn filled(flavor: Flavor, items: usize) -> Worker<usize> {
    let worker = Worker::with_capacity(flavor, 1);
    worker.push_batch(0..items);
    worker
}

#[test]
fn capacities_are_powers_of_two() {
    for (asked, given) in [(0, 1), (1, 1), (2, 2), (3, 4), (64, 64), (65, 128)] {
        for flavor in FLAVORS {
            assert_eq!(Worker::<u8>::with_capacity(flavor, asked).capacity(), given);
            assert_eq!(Builder::new(flavor).capacity(asked).build::<u8>().capacity(), given);
        }
    }
    assert_eq!(Worker::<u8>::new_lifo().capacity(), 64);
    assert_eq!(Worker::<u8>::new_fifo().capacity(), 64);
}

#[test]
fn a_deque_holds_its_maximum_and_no_more() {
    for flavor in FLAVORS {
        for most in [1, 2, 3, 5, 64] {
            let worker = Builder::new(flavor).max_capacity(most).build();
            assert_eq!(worker.max_capacity(), Some(most));
            assert!((0..most).all(|item| worker.try_push(item).is_ok()));
            assert_eq!(worker.try_push(99), Err(Full(99)));
            assert!(panic_of(|| worker.push(99)).contains(&format!("maximum capacity is {most}")));
            assert!(worker.pop().is_some());
            assert_eq!(worker.try_push(99), Ok(()), "there is room again");
        }
        assert_eq!(Worker::<u8>::with_capacity(flavor, 1).max_capacity(), None);
    }
}

/// The owner reads how much thieves have taken only when the deque seems full. Then it must find
/// the room.
#[test]
fn a_steal_makes_room_in_a_full_deque() {
    for flavor in FLAVORS {
        let worker = Builder::new(flavor).max_capacity(1).build();
        for item in 0..500 {
            assert_eq!(worker.try_push(item), Ok(()));
            assert_eq!(worker.try_push(999), Err(Full(999)));
            assert_eq!(worker.stealer().steal(), Success(item));
        }
    }
}

#[test]
fn a_maximum_of_nothing_is_refused() {
    let message = panic_of(|| Builder::new(Flavor::Lifo).max_capacity(0));
    assert_eq!(message, "`max_capacity` must be greater than zero");
}

#[test]
fn more_than_there_is_memory_is_refused() {
    for items in [usize::MAX, usize::MAX / 2 + 2, usize::MAX / 8] {
        assert_eq!(
            panic_of(|| Worker::<u64>::with_capacity(Flavor::Lifo, items)),
            "capacity overflow"
        );
        let worker = filled(Flavor::Fifo, 3);
        assert_eq!(panic_of(|| worker.reserve(items)), "capacity overflow");
        assert_eq!(worker.drain().collect::<Vec<_>>(), [0, 1, 2], "the deque goes on");
    }
}

#[test]
fn a_batch_of_nothing_is_refused() {
    let (worker, dest) = (filled(Flavor::Lifo, 3), Worker::new_lifo());
    let stealer = worker.stealer();
    let messages = [
        panic_of(|| stealer.steal_batch_with_limit(&dest, 0)),
        panic_of(|| stealer.steal_batch_with_limit_and_pop(&dest, 0)),
        panic_of(|| stealer.steal_into(&mut Vec::new(), 0)),
        panic_of(|| stealer.steal_batch_with_limit(&worker, 0)),
    ];
    assert_eq!(messages, ["`limit` must be greater than zero"; 4]);
    assert_eq!(worker.len(), 3);
}

#[test]
fn a_batch_is_half_and_at_most_32_or_the_limit() {
    for flavor in FLAVORS {
        for (items, limit, moved) in
            [(1, 9, 1), (2, 9, 1), (3, 9, 2), (9, 3, 3), (100, 50, 50), (300, 99, 99)]
        {
            let (worker, dest) = (filled(flavor, items), Worker::new_fifo());
            assert_eq!(worker.stealer().steal_batch_with_limit(&dest, limit), Success(()));
            assert_eq!((worker.len(), dest.len()), (items - moved, moved));
        }
        let (worker, dest) = (filled(flavor, 100), Worker::new_fifo());
        assert_eq!(worker.stealer().steal_batch(&dest), Success(()));
        assert_eq!(dest.len(), 32);
        assert!(worker.stealer().steal_batch_and_pop(&dest).is_success());
        assert_eq!((worker.len(), dest.len()), (36, 32 + 31));
    }
}

#[test]
fn a_full_destination_takes_what_it_has_room_for() {
    for (flavor, dest) in [(Flavor::Lifo, Flavor::Fifo), (Flavor::Fifo, Flavor::Lifo)] {
        let (worker, dest) = (filled(flavor, 20), Builder::new(dest).max_capacity(3).build());
        let stealer = worker.stealer();
        assert_eq!(stealer.steal_batch(&dest), Success(()));
        assert_eq!((worker.len(), dest.len()), (17, 3));
        assert_eq!(stealer.steal_batch_with_limit(&dest, 5), Success(()), "it has items to pop");
        assert_eq!((worker.len(), dest.len()), (17, 3), "nothing moved");
        assert_eq!(stealer.steal_batch_and_pop(&dest), Success(3), "the oldest, and no other");
        assert_eq!((worker.len(), dest.len()), (16, 3));
        worker.drain().for_each(drop);
        assert_eq!(stealer.steal_batch(&dest), Empty);
        assert_eq!(stealer.steal_batch_and_pop(&dest), Empty);
    }
}

#[test]
fn steal_into_counts_what_it_gave() {
    let worker = filled(Flavor::Lifo, 5);
    let mut sink = Vec::new();
    assert_eq!(worker.stealer().steal_into(&mut sink, 3), Success(3));
    assert_eq!(worker.stealer().steal_into(&mut sink, 3), Success(2), "fewer were there");
    assert_eq!(worker.stealer().steal_into(&mut sink, 3), Empty);
    assert_eq!(sink, [0, 1, 2, 3, 4]);
}

#[test]
fn a_stealer_knows_its_worker() {
    let (ours, other) = (Worker::<u8>::new_lifo(), Worker::new_lifo());
    let stealer = ours.stealer();
    assert!(stealer.is_stealer_of(&ours) && stealer.clone().is_stealer_of(&ours));
    assert!(!stealer.is_stealer_of(&other));
    ours.push(1);
    assert_eq!((stealer.len(), other.stealer().len()), (1, 0), "whatever they hold");
    let ours = thread::spawn(|| ours).join().unwrap();
    assert!(stealer.is_stealer_of(&ours), "wherever they are");
}

#[test]
fn push_was_empty_tells_a_first_item_from_the_others() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 1);
        assert!(worker.push_was_empty(1));
        assert!(!worker.push_was_empty(2));
        assert!(worker.stealer().steal().is_success() && worker.stealer().steal().is_success());
        assert!(worker.push_was_empty(3), "thieves have taken the others");
        assert!(worker.pop().is_some());
        assert!(worker.push_was_empty(4));
    }
}

#[test]
fn draining_gives_what_popping_would() {
    for flavor in FLAVORS {
        let (drained, popped) = (filled(flavor, 100), filled(flavor, 100));
        assert!(drained.drain().eq(iter::from_fn(|| popped.pop())));
    }
}

#[test]
fn a_drain_leaves_what_it_has_not_given() {
    let worker = filled(Flavor::Lifo, 4);
    {
        let mut drain = worker.drain();
        assert_eq!(drain.size_hint(), (0, None));
        assert_eq!(drain.next(), Some(3));
        worker.push(9);
        assert_eq!(drain.next(), Some(9), "the deque may be used meanwhile");
        assert_eq!(worker.stealer().steal(), Success(0));
    }
    assert_eq!(worker.len(), 2);
}

#[test]
fn room_that_was_reserved_is_there() {
    for flavor in FLAVORS {
        let worker = filled(flavor, 3);
        worker.reserve(0);
        assert_eq!(worker.capacity(), 4);
        worker.reserve(1000);
        assert_eq!(worker.capacity(), 1024);
        worker.push_batch(0..1000);
        assert_eq!(worker.capacity(), 1024);
        let small = Builder::new(flavor).capacity(1).max_capacity(5).build::<u8>();
        small.reserve(usize::MAX);
        assert_eq!(small.capacity(), 8, "no more than the maximum needs");
    }
}

#[test]
fn only_a_deque_that_shrinks_shrinks_by_itself() {
    for flavor in FLAVORS {
        for (shrinks, left) in [(true, 8), (false, 1024)] {
            let worker = Builder::new(flavor).capacity(5).shrinking(shrinks).build();
            let stealer = worker.stealer();
            worker.push_batch(0..1000);
            while worker.pop().is_some() {}
            assert_eq!(worker.capacity(), left, "down to the initial capacity");
            drop(stealer);
        }
    }
}

#[test]
fn shrink_to_fit_waits_for_the_last_stealer() {
    for flavor in FLAVORS {
        let mut worker = filled(flavor, 1000);
        worker.drain().take(997).for_each(drop);
        let stealer = worker.stealer();
        worker.shrink_to_fit();
        assert_eq!(worker.capacity(), 1024, "a stealer may be looking");
        drop(stealer);
        worker.shrink_to_fit();
        assert_eq!((worker.capacity(), worker.len()), (4, 3));

        let mut worker = Builder::new(flavor).shrinking(true).build();
        let stealer = worker.stealer();
        worker.push_batch(0..3);
        worker.shrink_to_fit();
        assert_eq!((worker.capacity(), stealer.steal()), (4, Success(0)), "below the initial");
    }
}

#[test]
fn a_default_worker_is_lifo_and_can_be_extended() {
    let mut worker = Worker::default();
    worker.extend([1, 2]);
    worker.extend(vec![3]);
    assert_eq!((worker.flavor(), worker.capacity()), (Flavor::Lifo, 64));
    assert_eq!(worker.pop(), Some(3));
    assert_eq!(Worker::<u8>::new_fifo().flavor(), Flavor::Fifo);
}

#[test]
fn handles_and_results_can_be_shown() {
    struct Opaque;

    let worker = Worker::<Opaque>::new_lifo();
    worker.push(Opaque);
    assert_eq!(format!("{worker:?}"), "Worker { flavor: Lifo, len: 1, .. }");
    assert_eq!(format!("{:?}", worker.stealer()), "Stealer { flavor: Lifo, len: 1, .. }");
    let shown = format!("{:?}", Worker::<u8>::new_fifo().drain());
    assert_eq!(shown, "Drain(Worker { flavor: Fifo, len: 0, .. })");
    let shown = [Empty, Success(Opaque), Retry].map(|steal| format!("{steal:?}"));
    assert_eq!(shown, ["Empty", "Success(..)", "Retry"]);
    assert_eq!(format!("{:?}", Full(Opaque)), "Full(..)");
    let error: Box<dyn Error> = Box::new(Full(Opaque));
    assert_eq!(
        error.to_string(),
        "the deque is full: the owner can push again when an item has been taken"
    );
    assert_eq!(Full(7).0, 7);
}

#[test]
fn a_steal_is_one_of_three() {
    let all: [Steal<u8>; 3] = [Empty, Success(1), Retry];
    assert_eq!(all.map(|it| it.is_empty()), [true, false, false]);
    assert_eq!(all.map(|it| it.is_success()), [false, true, false]);
    assert_eq!(all.map(|it| it.is_retry()), [false, false, true]);
    assert_eq!(all.map(Steal::success), [None, Some(1), None]);
    assert_eq!(all.map(|it| it.map(|item| item + 1)), [Empty, Success(2), Retry]);
}

#[test]
fn two_attempts_are_as_good_as_the_better() {
    let all: [Steal<u8>; 3] = [Empty, Success(2), Retry];
    assert_eq!(all.map(|second| Empty.or_else(|| second)), [Empty, Success(2), Retry]);
    assert_eq!(all.map(|second| Retry.or_else(|| second)), [Retry, Success(2), Retry]);
    assert_eq!(Success(1).or_else(|| unreachable!("it has an item")), Success(1));

    let collected = |attempts: &[Steal<u8>]| attempts.iter().copied().collect::<Steal<u8>>();
    assert_eq!(collected(&[]), Empty);
    assert_eq!(collected(&[Empty, Empty]), Empty);
    assert_eq!(collected(&[Empty, Retry, Empty]), Retry);
    assert_eq!(collected(&[Retry, Success(1), Success(2), Retry]), Success(1));
    let mut attempts = [Retry, Success(1), Empty].into_iter();
    assert_eq!(attempts.by_ref().collect::<Steal<u8>>(), Success(1));
    assert_eq!(attempts.len(), 1, "it looks no further");
}

#[test]
fn the_deque_lives_as_long_as_its_last_handle() {
    for flavor in FLAVORS {
        let worker = filled(flavor, 3);
        let stealer: Stealer<usize> = worker.stealer();
        drop(worker);
        assert_eq!((stealer.len(), stealer.is_empty()), (3, false));
        assert_eq!(stealer.clone().steal(), Success(0));
        let dest = Worker::new_fifo();
        assert_eq!(stealer.steal_batch(&dest), Success(()));
        assert_eq!((stealer.len(), dest.len()), (1, 1));
    }
}
