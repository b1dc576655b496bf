//! Items of every size, alignment and kind go through a deque unchanged.
#![cfg(not(loom))]

use filch::deque::{Builder, Flavor, Worker};
use filch::Steal;
use std::fmt::Debug;
use std::num::NonZeroU16;
use std::ptr::NonNull;
use std::rc::Rc;
use std::thread;

/// Through growth, every kind of taking, and the wrap of the indices.
fn goes_through<T: Clone + PartialEq + Debug>(make: impl Fn(u8) -> T) {
    for flavor in [Flavor::Lifo, Flavor::Fifo] {
        let (worker, dest) = (Worker::with_capacity(flavor, 1), Worker::with_capacity(flavor, 1));
        let stealer = worker.stealer();
        for round in 0..20_u8 {
            let items: Vec<T> = (0..20).map(|it| make(it ^ round)).collect();
            worker.push_batch(items.iter().cloned());
            assert_eq!(stealer.steal(), Steal::Success(items[0].clone()));
            assert_eq!(stealer.steal_batch_with_limit(&dest, 4), Steal::Success(()));
            let mut moved: Vec<T> = dest.drain().collect();
            let mut rest: Vec<T> = worker.drain().collect();
            if flavor == Flavor::Lifo {
                moved.reverse();
                rest.reverse();
            }
            assert_eq!([moved, rest].concat(), items[1..]);
        }
    }
}

#[test]
fn items_of_odd_sizes() {
    goes_through(|it| it);
    goes_through(|it| [it; 2]);
    goes_through(|it| [it, !it, it]);
    goes_through(|it| [it, !it, it, 3, 4]);
    goes_through(|it| [it; 7]);
    goes_through(|it| [u32::from(it), 1, 2]);
    goes_through(|it| [u64::from(it), 1, 2]);
    goes_through(|it| ([it; 13], it));
}

#[test]
fn items_with_padding() {
    goes_through(|it| (it, u32::from(it)));
    goes_through(|it| (u64::from(it), it, u16::from(it)));
    goes_through(|it| (it % 2 == 0).then_some(u64::from(it)));
}

#[test]
fn items_of_large_alignment() {
    #[repr(align(32))]
    #[derive(Clone, PartialEq, Debug)]
    struct Wide(u8);
    #[repr(align(64))]
    #[derive(Clone, PartialEq, Debug)]
    struct Wider(u8, u64);
    goes_through(Wide);
    goes_through(|it| Wider(it, u64::from(it) << 32));
}

#[test]
fn items_with_forbidden_values() {
    goes_through(|it| NonZeroU16::new(u16::from(it) + 1));
    goes_through(|it| NonNull::from(&*Box::leak(Box::new(it))).as_ptr() as usize);
    goes_through(char::from);
    goes_through(|it| it % 2 == 0);
}

#[test]
fn items_that_own_memory() {
    goes_through(|it| it.to_string());
    goes_through(|it| vec![it; usize::from(it)]);
}

/// As large as rayon's `JobRef`, and made like it.
#[test]
fn items_of_two_words() {
    fn run(data: *const ()) -> usize {
        data as usize
    }
    goes_through(|it| (usize::from(it) as *const (), run as fn(*const ()) -> usize));
}

#[test]
fn items_of_no_size() {
    #[derive(Clone, PartialEq, Debug)]
    struct Nothing;
    goes_through(|_| Nothing);
    goes_through(|_| ());
    let worker = Worker::new_fifo();
    worker.push_batch([(); 1000]);
    assert_eq!(worker.drain().count(), 1000);
}

#[test]
fn boxed_closures_can_be_called() {
    let worker: Worker<Box<dyn FnOnce() -> u32 + Send>> = Worker::new_lifo();
    for item in 0..100 {
        worker.push(Box::new(move || item));
    }
    let stealer = worker.stealer();
    let thief = thread::spawn(move || stealer.steal().success().map(|it| it()));
    assert_eq!(thief.join().unwrap(), Some(0));
    assert_eq!(worker.drain().map(|it| it()).sum::<u32>(), (1..100).sum());
}

/// A deque of items that are not `Send` is of use to its owner, and to nobody else.
#[test]
fn items_need_not_be_send_on_one_thread() {
    let item = Rc::new(1);
    let worker = Worker::new_lifo();
    worker.push(item.clone());
    let stolen = worker.stealer().steal().success();
    assert_eq!(Rc::strong_count(&item), 2);
    drop(stolen);
    assert_eq!(Rc::strong_count(&item), 1);
}

/// Row 13 of the list of known bugs: a buffer of slots is made where it stays, so a thread needs
/// stack for the items that it holds itself, and not for a buffer of them.
#[test]
fn large_items_need_no_large_stack() {
    const SIZE: usize = 32 << 10;
    // A few copies of one item, where the compiler makes them; a buffer of 64 would be 2 MiB.
    let builder = thread::Builder::new().stack_size(12 * SIZE);
    let thread = builder.spawn(|| {
        let worker = Builder::<[u8; SIZE]>::new(Flavor::Lifo).capacity(1).shrinking(true).build();
        for item in 0..100 {
            worker.push([item; SIZE]);
        }
        let dest = Worker::with_capacity(Flavor::Fifo, 1);
        assert!(worker.stealer().steal_batch(&dest).is_success());
        assert_eq!(dest.len(), 32);
        assert_eq!(worker.pop().map(|it| it[SIZE - 1]), Some(99));
        assert_eq!(worker.stealer().steal().map(|it| it[0]), Steal::Success(32));
    });
    thread.unwrap().join().unwrap();
}
