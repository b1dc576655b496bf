//! What the documentation promises of single calls.
#![cfg(not(loom))]

use filch::deque::{Builder, Flavor, Full, Stealer, Worker};
use filch::Steal::{self, Empty, Retry, Success};
use std::error::Error;
use std::panic::{catch_unwind, AssertUnwindSafe, RefUnwindSafe, UnwindSafe};

/// What a panic says.
fn complaint(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|it| (*it).to_owned())).expect("a text")
}

const FLAVORS: [Flavor; 2] = [Flavor::Lifo, Flavor::Fifo];

#[test]
fn a_maximum_capacity_of_zero_is_refused() {
    let said = complaint(|| drop(Builder::<u8>::new(Flavor::Lifo).max_capacity(0)));
    assert!(said.contains("max_capacity(0)"), "{said}");
}

#[test]
fn a_capacity_beyond_memory_is_refused() {
    let said = complaint(|| drop(Worker::<u64>::with_capacity(Flavor::Lifo, usize::MAX)));
    assert!(said.contains("capacity overflow"), "{said}");
    let said = complaint(|| Worker::<u64>::new_lifo().reserve(usize::MAX));
    assert!(said.contains("capacity overflow"), "{said}");
}

#[test]
fn a_batch_of_at_most_zero_items_is_refused() {
    let (from, to) = (Worker::<u8>::new_lifo(), Worker::new_lifo());
    let stealer = from.stealer();
    for said in [
        complaint(|| _ = stealer.steal_batch_with_limit(&to, 0)),
        complaint(|| _ = stealer.steal_batch_with_limit_and_pop(&to, 0)),
        complaint(|| _ = stealer.steal_into(&mut Vec::new(), 0)),
    ] {
        assert!(said.contains("at most zero items"), "{said}");
    }
}

#[test]
fn a_full_deque_returns_the_item() {
    for flavor in FLAVORS {
        let worker = Builder::new(flavor).max_capacity(3).build();
        worker.push_batch(["a", "b", "c"]);
        assert_eq!(worker.try_push("d"), Err(Full("d")));
        let said = complaint(|| worker.push("d"));
        assert!(said.contains("maximum of 3 items"), "{said}");
        assert_eq!(worker.len(), 3);
        worker.pop();
        assert_eq!(worker.try_push("d"), Ok(()));
    }
}

/// What thieves take makes room, though the owner looks at them only when the deque seems full.
#[test]
fn a_steal_makes_room_in_a_full_deque() {
    let worker = Builder::new(Flavor::Lifo).max_capacity(1).build();
    for item in 0..500 {
        assert_eq!(worker.try_push(item), Ok(()));
        assert_eq!(worker.try_push(-1), Err(Full(-1)));
        assert_eq!(worker.stealer().steal(), Success(item));
    }
}

#[test]
fn full_is_an_error_whatever_it_holds() {
    struct NotDebug;
    let error: Box<dyn Error> = Box::new(Full(NotDebug));
    assert_eq!(error.to_string(), "the deque holds its maximum of items");
    assert_eq!(format!("{error:?}"), "Full(..)");
}

#[test]
fn a_batch_into_a_full_destination_moves_nothing() {
    for flavor in FLAVORS {
        let from = Worker::with_capacity(flavor, 8);
        from.push_batch(0..8);
        let to = Builder::new(flavor).max_capacity(2).build();
        to.push_batch([100, 101]);
        assert_eq!(from.stealer().steal_batch(&to), Success(()));
        assert_eq!((from.len(), to.len()), (8, 2));
        assert_eq!(from.stealer().steal_batch_and_pop(&to), Success(0));
        assert_eq!((from.len(), to.len()), (7, 2));
    }
}

#[test]
fn a_batch_fills_a_destination_to_its_maximum() {
    for flavor in FLAVORS {
        let from = Worker::with_capacity(flavor, 64);
        from.push_batch(0..64);
        let to = Builder::new(flavor).max_capacity(5).build();
        assert_eq!(from.stealer().steal_batch(&to), Success(()));
        assert_eq!((from.len(), to.len()), (59, 5));
    }
}

#[test]
fn an_unshared_deque_gives_its_memory_back() {
    for flavor in FLAVORS {
        let mut worker = Worker::with_capacity(flavor, 4);
        worker.push_batch(0..100);
        let stealer = worker.stealer();
        while worker.len() > 5 {
            worker.pop();
        }
        worker.shrink_to_fit();
        assert_eq!(worker.capacity(), 128, "a stealer may be reading the old buffers");
        drop(stealer);
        worker.shrink_to_fit();
        assert_eq!((worker.capacity(), worker.len()), (8, 5));
        worker.push_batch(0..100);
        assert_eq!(worker.drain().count(), 105);
    }
}

#[test]
fn a_shrinking_deque_gives_its_memory_back_under_a_stealer() {
    for flavor in FLAVORS {
        let mut worker = Builder::new(flavor).capacity(4).shrinking(true).build();
        let stealer = worker.stealer();
        worker.push_batch(0..1000);
        assert_eq!(worker.capacity(), 1024);
        while worker.len() > 1 {
            worker.pop();
        }
        assert_eq!(worker.capacity(), 4);
        worker.shrink_to_fit();
        assert_eq!(worker.capacity(), 1);
        assert!(stealer.steal().is_success());
    }
}

#[test]
fn a_deque_that_keeps_its_memory_keeps_it() {
    let worker = Worker::new_lifo();
    worker.push_batch(0..1000);
    while worker.pop().is_some() {}
    assert_eq!(worker.capacity(), 1024);
}

#[test]
fn reserved_room_is_there() {
    let worker = Worker::with_capacity(Flavor::Fifo, 1);
    worker.reserve(0);
    assert_eq!(worker.capacity(), 1);
    worker.push(0);
    worker.reserve(7);
    assert_eq!(worker.capacity(), 8);
    worker.push_batch(1..8);
    assert_eq!(worker.capacity(), 8);
}

#[test]
fn a_threshold_leaves_the_owner_its_last_items() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 8);
        worker.push_batch(0..4);
        let stealer = worker.stealer();
        assert_eq!(stealer.steal_if(5), Empty);
        assert_eq!(stealer.steal_if(4), Success(0));
        assert_eq!(stealer.steal_if(4), Empty);
        assert_eq!(stealer.steal_if(0), Success(1));
        assert_eq!(worker.len(), 2);
    }
}

#[test]
fn a_stealer_knows_its_worker() {
    let (one, other) = (Worker::<u8>::default(), Worker::default());
    assert!(one.stealer().clone().is_stealer_of(&one));
    assert!(!one.stealer().is_stealer_of(&other));
}

#[test]
fn the_default_is_lifo_and_extends() {
    let mut worker = Worker::default();
    assert_eq!(worker.flavor(), Flavor::Lifo);
    worker.extend([1, 2]);
    assert_eq!(worker.drain().collect::<Vec<_>>(), [2, 1]);
    assert_eq!(format!("{worker:?} {:?}", worker.stealer()), "Worker { .. } Stealer { .. }");
}

#[test]
fn a_push_tells_whether_the_deque_was_empty() {
    let worker = Worker::new_fifo();
    assert!(worker.push_was_empty(1));
    assert!(!worker.push_was_empty(2));
    let _ = worker.stealer().steal_into(&mut Vec::new(), 2);
    assert!(worker.push_was_empty(3));
}

#[test]
fn the_first_success_wins_and_a_retry_is_remembered() {
    let collect = |it: &[Steal<i32>]| it.iter().copied().collect::<Steal<i32>>();
    assert_eq!(collect(&[]), Empty);
    assert_eq!(collect(&[Empty, Retry, Empty]), Retry);
    assert_eq!(collect(&[Retry, Success(1), Success(2)]), Success(1));
    let mut looked = 0;
    let attempts = [Success(1), Success(2)].into_iter().inspect(|_| looked += 1);
    assert_eq!(attempts.collect::<Steal<_>>(), Success(1));
    assert_eq!(looked, 1, "nothing is taken after the first success");
}

#[test]
fn handles_have_the_auto_traits_of_their_documentation() {
    fn worker<T: Send + UnwindSafe + RefUnwindSafe>(_: &T) {}
    fn stealer<T: Send + Sync + Clone + UnwindSafe + RefUnwindSafe>(_: &T) {}
    // Items need only be `Send`: a cell is not `Sync`.
    let of_cells = Worker::<std::cell::Cell<u8>>::new_lifo();
    worker(&of_cells);
    stealer::<Stealer<_>>(&of_cells.stealer());
}
