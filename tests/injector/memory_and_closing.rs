//! Tests the injector's promises other than order: memory, drops, closing, large items, stopped
//! producers.

use crate::common::alone::alone;
use crate::common::tally::{Counted, Tally};
use crate::common::{COPIED, scaled};
use crate::heap;
use filch::deque::{Builder, Flavor};
use filch::{Injector, Steal, Worker};
use std::cell::Cell;
use std::iter;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

#[test]
fn an_injector_allocates_nothing_until_it_is_used() {
    let before = heap::bytes();
    let injector = Injector::<u64>::new();
    assert!(injector.steal().is_empty() && injector.is_empty());
    assert_eq!(heap::bytes(), before);
}

#[test]
fn steady_traffic_allocates_nothing() {
    let injector = Injector::new();
    let round = |depth: u64| {
        (0..depth).for_each(|it| injector.push(it));
        (0..depth).for_each(|it| assert_eq!(injector.steal(), Steal::Success(it)));
    };
    for depth in [1, 100, 1000] {
        // These rounds allocate as many segments as this depth needs.
        (0..4 + 2000 / depth).for_each(|_| round(depth));
        let before = heap::blocks();
        (0..100_000 / depth).for_each(|_| round(depth));
        assert_eq!(heap::blocks(), before, "at depth {depth}");
    }
}

#[test]
fn a_million_items_leave_64_kib_behind() {
    fn check<T>(make: fn(u64) -> T, items: usize) {
        let before = heap::bytes();
        let injector = Injector::new();
        (0..items as u64).for_each(|it| injector.push(make(it)));
        while injector.steal().is_success() {}
        let kept = heap::bytes() - before;
        assert!(0 < kept && kept <= 64 << 10, "{kept} bytes are kept");
        drop(injector);
        assert_eq!(heap::bytes(), before);
    }

    check(|it| it, 1_000_000);
    check(|it| [it; 4], 200_000);
    check(|it| [it; 100], 20_000);
    check(|_| (), 100_000);
}

/// Any producer or consumer may free surplus segments. At the end, only 64 KiB are left.
///
/// The test runs in a process of its own: other tests have segments of that size.
#[test]
fn threads_that_come_and_go_leave_64_kib_behind() {
    alone(|| {
        let injector = &Injector::new();
        let taken = &AtomicUsize::new(0);
        let items = scaled(200_000);
        let before = heap::segments();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || (0..items).for_each(|it| injector.push([it as u64; 5])));
                scope.spawn(move || {
                    let own = Worker::new_fifo();
                    while taken.load(SeqCst) < 2 * items {
                        let first = usize::from(injector.steal_batch_and_pop(&own).is_success());
                        taken.fetch_add(first + own.drain().count(), SeqCst);
                    }
                });
            }
        });
        assert!(injector.steal().is_empty());
        let kept = (heap::segments() - before) * heap::SEGMENT as isize;
        assert!(0 < kept && kept <= 64 << 10, "{kept} bytes are kept");
    });
}

/// Row 28 of the list of known bugs: a batch steal that finds no item makes no room for a batch.
#[test]
fn a_batch_that_is_not_there_needs_no_room() {
    let (injector, own) = (Injector::new(), Worker::with_capacity(Flavor::Fifo, 4));
    own.push_batch(0..4);
    assert_eq!(injector.steal_batch(&own), Steal::Empty);
    assert_eq!(injector.steal_batch_and_pop(&own), Steal::Empty);
    assert_eq!(own.capacity(), 4);
    let full = Builder::new(Flavor::Fifo).max_capacity(1).build();
    full.push(0);
    injector.push(1);
    assert_eq!((injector.steal_batch(&full), injector.len()), (Steal::Success(()), 1));
    assert_eq!(injector.steal_batch_and_pop(&full), Steal::Success(1));
}

#[test]
fn what_is_left_is_dropped_once() {
    for left in [0, 1, 255, 256, 257, 1000] {
        for taken in [0, 1, 300] {
            let tally = Tally::of(left + taken);
            let injector: Injector<Counted> = tally.items(0..left + taken).collect();
            assert_eq!(injector.drain().take(taken).count(), taken);
            assert_eq!((injector.len(), tally.all_drops()), (left, taken));
            drop(injector);
            tally.assert_each_dropped_once(0..left + taken);
        }
    }
}

/// Panics when it is dropped, if its flag is set.
struct Bomb(#[allow(dead_code)] Counted, bool); // the first is dropped

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.1 && !thread::panicking() {
            resume_unwind(Box::new("planted"));
        }
    }
}

#[test]
fn a_destructor_that_panics_costs_no_other_item() {
    let (tally, before) = (Tally::of(600), heap::bytes());
    let injector = Injector::new();
    (0..600).for_each(|it| injector.push(Bomb(tally.item(it), it == 300)));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(injector))).is_err());
    tally.assert_each_dropped_once(0..600);
    drop(tally);
    assert!(heap::bytes() <= before, "the segments are freed");
}

#[test]
fn an_iterator_that_panics_has_pushed_what_it_gave() {
    let injector = Injector::new();
    let items = (0..100).inspect(|&it| {
        if it == 70 {
            resume_unwind(Box::new("planted"));
        }
    });
    assert!(catch_unwind(AssertUnwindSafe(|| injector.push_batch(items))).is_err());
    injector.push(1000);
    assert!(injector.into_iter().eq((0..70).chain([1000])));
}

/// An iterator may use the injector that it feeds.
#[test]
fn an_iterator_may_steal_what_it_gave() {
    let injector = Injector::new();
    injector.push(0);
    let mut stolen = Vec::new();
    injector.push_batch((1..100).inspect(|_| stolen.extend(injector.steal().success())));
    assert!(stolen.into_iter().chain(injector.drain()).eq(0..100));
}

/// An iterator may go on after it has returned `None`, as a channel's does.
#[test]
fn an_iterator_that_has_returned_none_is_not_called_again() {
    fn up_to_a_gap<'a>(words: &mut impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
        iter::from_fn(|| words.next().filter(|it| !it.is_empty()))
    }

    let mut injector = Injector::new();
    let mut words = ["a", "b", "", "c", "", "d", "", "e"].into_iter();
    injector.push_batch(up_to_a_gap(&mut words));
    assert_eq!((injector.len(), words.next()), (2, Some("c")));
    assert_eq!(words.next(), Some(""));
    injector.extend(up_to_a_gap(&mut words));
    assert_eq!((injector.len(), words.next()), (3, Some("e")));

    let mut words = ["a", "b", "", "c"].into_iter();
    injector.close();
    let refused = injector.try_push_batch(up_to_a_gap(&mut words)).unwrap_err();
    assert_eq!((refused.0, words.next()), (vec!["a", "b"], Some("c")));
}

#[test]
fn a_closed_injector_gives_back_what_comes() {
    let tally = Tally::of(3);
    let injector = Injector::new();
    injector.push(tally.item(0));
    assert!(injector.close() && !injector.close());
    let refused = injector.try_push(tally.item(1)).unwrap_err();
    assert_eq!((refused.0.number, tally.all_drops()), (1, 0));
    assert!(catch_unwind(AssertUnwindSafe(|| injector.push(refused.0))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| injector.push_batch([tally.item(2)]))).is_err());
    assert_eq!(injector.steal().success().map(|it| it.number), Some(0));
    assert!(injector.steal().is_empty());
    tally.assert_each_dropped_once(0..3);
}

/// While threads push, another one closes the injector. Each item must be refused or be in the
/// injector.
#[test]
fn an_item_pushed_during_a_close_is_refused_or_there() {
    for _ in 0..scaled(200) {
        let injector = &Injector::new();
        let refused: usize = thread::scope(|scope| {
            let pushers = [0, 1].map(|_| {
                scope.spawn(move || (0..50).filter(|&it| injector.try_push(it).is_err()).count())
            });
            scope.spawn(move || injector.close());
            pushers.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(injector.drain().count() + refused, 100);
        assert!(injector.is_empty());
    }
}

/// Row 13 of the list of known bugs. The item to be pushed passes the stack of its producer about
/// three times, optimized as tests are. A segment must not be on that stack too.
#[test]
fn a_large_item_is_pushed_from_a_small_stack() {
    const STACK: usize = if COPIED { 40 * LARGE } else { 8 * LARGE };

    let injector = &Injector::new();
    thread::scope(|scope| {
        let push = || (0..20_u8).for_each(|number| injector.push([number; LARGE]));
        thread::Builder::new().stack_size(STACK).spawn_scoped(scope, push).unwrap();
    });
    assert!((0..20).zip(injector.drain()).all(|(number, item)| item == [number; LARGE]));
}

/// A taken item passes through the stack a few more times than a pushed one.
#[test]
fn large_items_need_room_for_a_few_on_the_stack() {
    const STACK: usize = if COPIED { 80 * LARGE } else { 16 * LARGE };

    fn check() {
        let injector = Injector::new();
        for number in 0..20 {
            injector.push([number; LARGE]);
        }
        let own = Worker::with_capacity(Flavor::Fifo, 1);
        let whole = |item: &[u8; LARGE]| item.iter().all(|&byte| byte == item[0]);
        assert!(injector.steal().success().is_some_and(|item| whole(&item)));
        assert!(injector.steal_batch(&own).is_success());
        assert!(own.drain().chain(injector.drain()).all(|item| whole(&item)));
    }

    thread::Builder::new().stack_size(STACK).spawn(check).unwrap().join().unwrap();
}

const LARGE: usize = 32 << 10;

#[test]
fn items_need_to_be_send_and_nothing_else() {
    fn good<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    good::<Injector<Cell<u8>>>();
}

/// Consumers meet a producer in the middle of its push, over and over. With eight threads on two
/// cores, the system itself stops producers there.
#[test]
fn stopped_producers_lose_nothing() {
    let injector = &Injector::new();
    let (items, taken) = (scaled(50_000), &AtomicUsize::new(0));
    let sum: u64 = thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (0..items).for_each(|it| injector.push(4 * it + thread)));
        }
        let consumers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let (mut sum, mut last) = (0, [None; 4]);
                    while taken.load(SeqCst) < 4 * items {
                        let Steal::Success(item) = injector.steal() else { continue };
                        taken.fetch_add(1, SeqCst);
                        sum += item as u64;
                        let last = &mut last[item % 4];
                        assert!(*last < Some(item), "{item} after {last:?}");
                        *last = Some(item);
                    }
                    sum
                })
            })
            .collect();
        consumers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(sum, (0..4 * items as u64).sum());
    assert!(injector.is_empty());
}
