//! Tests deques of items of any type: of every size and alignment, with padding, of no size, and
//! far too large.

use crate::common::COPIED;
use filch::deque::{Builder, Drain, Flavor, Full};
use filch::{Steal, Stealer, Worker};
use std::cell::Cell;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

const FLAVORS: [Flavor; 2] = [Flavor::Lifo, Flavor::Fifo];

/// Takes items through a deque, twice around a ring. They are pushed, moved to larger and smaller
/// buffers, stolen, copied between deques in the same and in the reverse order, and popped.
fn all_come_back<T: PartialEq + Debug>(make: impl Fn(usize) -> T) {
    for (source, dest) in FLAVORS.into_iter().flat_map(|it| FLAVORS.map(|other| (it, other))) {
        let mut worker = Worker::with_capacity(source, 1);
        let dest = Worker::with_capacity(dest, 1);
        for _ in 0..2 {
            worker.push_batch((0..100).map(&make));
            let mut found = Vec::new();
            assert_eq!(worker.stealer().steal_into(&mut found, 5), Steal::Success(5));
            assert_eq!(worker.stealer().steal_batch(&dest), Steal::Success(()));
            found.extend(worker.stealer().steal_batch_and_pop(&dest).success());
            found.extend(worker.stealer().steal_batch_with_limit_and_pop(&dest, 9).success());
            found.extend(worker.drain().take(20));
            worker.shrink_to_fit();
            found.extend(worker.drain());
            found.extend(dest.drain());
            assert_eq!(found.len(), 100);
            for number in 0..100 {
                assert!(found.contains(&make(number)), "{:?} is missing", make(number));
            }
        }
    }
}

#[test]
fn items_of_every_size_come_back() {
    all_come_back(|number| number as u8);
    all_come_back(|number| number as u16);
    all_come_back(|number| [number as u8; 3]);
    all_come_back(|number| number as u32);
    all_come_back(|number| [number as u8; 5]);
    all_come_back(|number| [number as u16; 3]);
    all_come_back(|number| [number as u8; 7]);
    all_come_back(|number| number as f64);
    all_come_back(|number| [number as u32; 3]);
    all_come_back(|number| [number as u8; 13]);
    all_come_back(|number| number as u128);
    all_come_back(|number| [number; 3]);
    all_come_back(|number| [number as u8; 31]);
    all_come_back(|number| [number; 100]);
}

/// Bytes that differ, so that one at the wrong place is seen.
#[test]
fn every_byte_of_an_item_comes_back() {
    fn check<const BYTES: usize>() {
        all_come_back(|number| -> [u8; BYTES] {
            std::array::from_fn(|at| (number * 41 + at * 7) as u8)
        });
    }

    check::<2>();
    check::<3>();
    check::<6>();
    check::<7>();
    check::<8>();
    check::<11>();
    check::<15>();
    check::<16>();
    check::<17>();
    check::<24>();
    check::<63>();
}

#[test]
fn padding_is_no_part_of_an_item() {
    all_come_back(|number| (number as u8, number as u32));
    all_come_back(|number| (number as u64, number as u8));
    all_come_back(|number| (number as u8, number as u64, number as u16));
    all_come_back(|number| (number % 2 == 0).then_some(number as u32));
    all_come_back(|number| if number % 3 == 0 { Ok(number as u8) } else { Err(number as u128) });
}

/// An item may have bytes that were never written. No thread may read them.
#[test]
fn items_may_be_uninitialised() {
    for flavor in FLAVORS {
        let worker = Worker::with_capacity(flavor, 1);
        worker.push_batch((0..40).map(|_| MaybeUninit::<(u8, u64)>::uninit()));
        let dest = Worker::new_fifo();
        assert!(worker.stealer().steal_batch(&dest).is_success());
        assert_eq!(worker.drain().count() + dest.drain().count(), 40);
    }
}

#[test]
fn aligned_items_stay_aligned() {
    #[derive(PartialEq, Debug)]
    #[repr(align(32))]
    struct Wide(u8);

    #[derive(PartialEq, Debug)]
    #[repr(align(64))]
    struct Line([u64; 9]);

    all_come_back(|number| Wide(number as u8));
    all_come_back(|number| Line([number as u64; 9]));
}

#[test]
fn items_that_point_come_back() {
    let places = [0_u8; 100];
    let run: fn() = items_that_point_come_back;
    all_come_back(Box::new);
    all_come_back(|number| number.to_string());
    all_come_back(|number| vec![number; number]);
    all_come_back(|number| (ptr::from_ref(&places[number]).cast::<()>(), run as *const ()));
    all_come_back(|number| (number > 0).then(|| NonNull::from(&places[number])));
}

/// Items that stay on one thread may be of any type, even not `Send`.
#[test]
fn items_that_stay_on_their_thread_come_back() {
    let shared = Rc::new(Cell::new(0));
    all_come_back(|number| (Rc::clone(&shared), number));
    assert_eq!(Rc::strong_count(&shared), 1);
}

/// An item of two words, of which the second tells how to run the first: a thread pool's job.
#[test]
fn closures_run_once() {
    type Task = Box<dyn FnOnce() + Send>;

    for flavor in FLAVORS {
        let (sum, worker) = (std::sync::Arc::new(AtomicUsize::new(0)), Worker::new_lifo());
        let dest = Worker::with_capacity(flavor, 1);
        for number in 0..100 {
            let sum = sum.clone();
            worker.push(Box::new(move || _ = sum.fetch_add(number, Relaxed)) as Task);
        }
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            while let Some(task) = stealer.steal_batch_and_pop(&dest).success() {
                task();
                dest.drain().for_each(|task| task());
            }
        });
        thief.join().unwrap();
        worker.drain().for_each(|task| task());
        assert_eq!(sum.load(Relaxed), 99 * 100 / 2);
    }
}

#[test]
fn items_of_no_size_are_counted() {
    all_come_back(|_| ());
    let many = 1 << (usize::BITS / 2 + 8); // a word for each would be too much memory
    let worker = Builder::new(Flavor::Lifo).capacity(many).build::<()>();
    assert_eq!(worker.capacity(), many, "they need no memory");
    worker.push_batch(std::iter::repeat_n((), 1000));
    assert_eq!((worker.len(), worker.drain().count()), (1000, 1000));
}

#[test]
fn items_of_no_size_are_dropped() {
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });

    struct Token;

    impl Drop for Token {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }

    for (flavor, before) in FLAVORS.into_iter().zip([0, 100]) {
        let (worker, dest) = (Worker::with_capacity(flavor, 1), Worker::new_fifo());
        worker.push_batch((0..100).map(|_| Token));
        assert!(worker.stealer().steal_batch(&dest).is_success());
        assert_eq!(worker.drain().count(), 68);
        assert_eq!(DROPS.get(), before + 68);
        drop((worker, dest));
        assert_eq!(DROPS.get(), before + 100);
    }
}

/// A thread that pushes or takes an item copies it on its stack: about four times in an optimized
/// build, and twenty or more in other builds. Growing, shrinking and batches do not touch the
/// stack. So an optimized build gets a stack for five items, too small for the buffer of twenty.
#[test]
fn large_items_need_room_for_a_few_on_the_stack() {
    const LARGE: usize = 32 << 10;
    const STACK: usize = if COPIED { 40 * LARGE } else { 5 * LARGE };

    fn check(kind: (Flavor, Flavor)) {
        let (mut worker, dest) =
            (Worker::with_capacity(kind.0, 1), Worker::with_capacity(kind.1, 1));
        for number in 0..20 {
            worker.push([number; LARGE]);
        }
        let whole = |item: &[u8; LARGE]| item.iter().all(|&byte| byte == item[0]);
        assert!(worker.stealer().steal().success().is_some_and(|item| whole(&item)));
        assert!(worker.stealer().steal_batch(&dest).is_success());
        worker.shrink_to_fit();
        assert!(worker.drain().all(|item| whole(&item)));
        assert_eq!(dest.len(), 10);
        assert!(dest.drain().all(|item| whole(&item)));
    }

    for kind in FLAVORS.into_iter().flat_map(|it| FLAVORS.map(|other| (it, other))) {
        let small = thread::Builder::new().stack_size(STACK);
        small.spawn(move || check(kind)).unwrap().join().unwrap();
    }
}

/// Fails to compile if the type implements the trait: then two implementations of `Once` fit, and
/// the call of `only_once` is ambiguous.
macro_rules! assert_not_impl {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Once<A> {
                fn only_once() {}
            }
            impl<T: ?Sized> Once<()> for T {}
            struct Again;
            impl<T: ?Sized + $trait> Once<Again> for T {}
            <$type as Once<_>>::only_once();
        };
    };
}

#[test]
fn handles_go_where_their_items_may_go() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

    // Each item is used by one thread at a time, so it need not be `Sync`.
    send::<Worker<Cell<u8>>>();
    send::<Stealer<Cell<u8>>>();
    sync::<Stealer<Cell<u8>>>();
    send::<Builder>();
    send::<Steal<u8>>();
    send::<Full<u8>>();

    assert_not_impl!(Worker<u8>: Sync);
    assert_not_impl!(Worker<Rc<u8>>: Send);
    assert_not_impl!(Stealer<Rc<u8>>: Send);
    assert_not_impl!(Stealer<Rc<u8>>: Sync);
    assert_not_impl!(Drain<'static, u8>: Send);
    assert_not_impl!(Worker<u8>: Clone);

    unwind_safe::<Worker<Cell<u8>>>();
    unwind_safe::<Stealer<Cell<u8>>>();
}
