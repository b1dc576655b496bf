//! Models of the injector.
//!
//! In a model a segment has two slots, and the numbers of segments wrap after the first segment. A
//! consumer gives up a slot as soon as it finds the slot empty. So *orphans*, the slots that are
//! given up, are frequent. `loom-tests/common/injectors.rs` explains the letters of a program.

use crate::common::injectors::is_a_queue;
use crate::common::{Bound::*, model, spawn};
use filch::Injector;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::*, fence};

#[test]
fn one_producer_and_one_consumer_see_a_queue() {
    is_a_queue(
        "one_producer_and_one_consumer_see_a_queue",
        Long { preemptions: 5, seconds: 26 },
        "",
        &["ss", "pp"],
    );
}

#[test]
fn two_producers_and_one_consumer_see_a_queue() {
    is_a_queue(
        "two_producers_and_one_consumer_see_a_queue",
        Long { preemptions: 3, seconds: 19 },
        "p",
        &["p", "ss", "p"],
    );
}

#[test]
fn one_producer_and_two_consumers_see_a_queue() {
    is_a_queue(
        "one_producer_and_two_consumers_see_a_queue",
        Long { preemptions: 2, seconds: 37 },
        "p",
        &["s", "s", "p"],
    );
}

#[test]
fn two_producers_and_two_consumers_see_a_queue() {
    is_a_queue(
        "two_producers_and_two_consumers_see_a_queue",
        Long { preemptions: 1, seconds: 28 },
        "",
        &["p", "p", "s", "s"],
    );
}

/// A producer looks for its own item, while another thread may be giving up the item's slot.
#[test]
fn who_pushed_finds_it_or_it_is_taken() {
    let bound = Deep { most: Some(3), short: 2 };
    is_a_queue("who_pushed_finds_it_or_it_is_taken", bound, "", &["s", "ps"]);
}

#[test]
fn two_who_push_and_take_see_a_queue() {
    is_a_queue("two_who_push_and_take_see_a_queue", Preemptions(2), "", &["ps", "ps"]);
}

/// In a model a segment has two slots. A producer links the next one, and consumers move to it.
#[test]
fn both_ends_go_on_into_the_next_segment() {
    is_a_queue("both_ends_go_on_into_the_next_segment", Preemptions(3), "ps", &["ss", "pp"]);
}

/// Both producers find the segment used up. One producer links the next segment, and both go on.
#[test]
fn two_producers_add_one_segment() {
    is_a_queue("two_producers_add_one_segment", Preemptions(3), "pp", &["p", "p"]);
}

/// A producer that reads `tail` in one segment may claim in the next, and must find it.
#[test]
fn a_claim_behind_the_newest_segment_finds_its_own() {
    is_a_queue(
        "a_claim_behind_the_newest_segment_finds_its_own",
        Preemptions(4),
        "p",
        &["p", "pp"],
    );
}

/// A producer must find its segment even if a newer segment is there by then.
#[test]
fn a_claim_two_segments_behind_finds_its_own() {
    is_a_queue("a_claim_two_segments_behind_finds_its_own", Preemptions(2), "p", &["p", "pp", "p"]);
}

#[test]
fn a_slow_consumer_sees_a_queue_though_segments_are_reused() {
    is_a_queue(
        "a_slow_consumer_sees_a_queue_though_segments_are_reused",
        Preemptions(2),
        "pp",
        &["s", "sppss"],
    );
}

/// In a model, an injector keeps two segments until it is dropped (`MAX_LASTING`). The third one is
/// freed, here while a consumer is about to look at it.
#[test]
fn a_look_before_the_claim_finds_its_segment() {
    is_a_queue(
        "a_look_before_the_claim_finds_its_segment",
        Preemptions(2),
        "pppppsssss",
        &["s", "ppss"],
    );
}

#[test]
fn a_slow_producer_sees_a_queue_though_segments_are_reused() {
    is_a_queue(
        "a_slow_producer_sees_a_queue_though_segments_are_reused",
        Preemptions(2),
        "pp",
        &["p", "spss"],
    );
}

/// A slot that kept its mark from its first life would count as settled, and its segment as free.
#[test]
fn a_reused_slot_keeps_no_mark_of_its_first_life() {
    is_a_queue(
        "a_reused_slot_keeps_no_mark_of_its_first_life",
        Preemptions(2),
        "ppsppsppsppsssss",
        &["p", "spsps"],
    );
}

#[test]
fn an_orphan_is_not_overtaken() {
    is_a_queue("an_orphan_is_not_overtaken", Preemptions(3), "", &["pss", "p"]);
}

#[test]
fn an_orphan_is_not_overtaken_by_a_third() {
    is_a_queue(
        "an_orphan_is_not_overtaken_by_a_third",
        Long { preemptions: 1, seconds: 18 },
        "",
        &["ss", "p", "p"],
    );
}

/// A consumer that gives a slot up counts the orphan first, and then looks at the slot again. Until
/// that look no other consumer may take the orphan.
#[test]
fn an_orphan_is_not_taken_after_its_successor() {
    is_a_queue(
        "an_orphan_is_not_taken_after_its_successor",
        Long { preemptions: 3, seconds: 67 },
        "",
        &["pps", "s", "js"],
    );
}

#[test]
fn a_batch_does_not_overtake_an_orphan() {
    is_a_queue("a_batch_does_not_overtake_an_orphan", Preemptions(2), "", &["s", "ppa"]);
}

/// A producer asks `is_empty` after its push. Meanwhile a consumer may give up the slot of that
/// item, which makes the slot an orphan.
#[test]
fn it_is_not_empty_while_an_orphan_is_there() {
    is_a_queue("it_is_not_empty_while_an_orphan_is_there", Preemptions(3), "", &["s", "pe"]);
}

#[test]
fn a_batch_and_a_single_steal_take_no_item_twice() {
    is_a_queue("a_batch_and_a_single_steal_take_no_item_twice", Preemptions(2), "pp", &["b", "sp"]);
}

#[test]
fn two_batches_take_no_item_twice() {
    is_a_queue("two_batches_take_no_item_twice", Preemptions(2), "pp", &["b", "a"]);
}

/// Two batch steals compete for three items. Each takes up to two neighboring slots in one run.
#[test]
fn a_run_of_two_takes_no_item_of_another_batch() {
    is_a_queue("a_run_of_two_takes_no_item_of_another_batch", Preemptions(2), "ppp", &["b", "a"]);
}

/// The first slot of the batch may have no item yet; the second has one.
#[test]
fn a_run_ends_before_a_slot_without_an_item() {
    is_a_queue("a_run_ends_before_a_slot_without_an_item", Preemptions(2), "", &["p", "ppb"]);
}

#[test]
fn a_batch_stolen_during_a_batch_push_is_taken_once() {
    is_a_queue("a_batch_stolen_during_a_batch_push_is_taken_once", Preemptions(3), "", &["b", "2"]);
}

#[test]
fn a_batch_pushed_over_a_border_is_taken_once() {
    is_a_queue("a_batch_pushed_over_a_border_is_taken_once", Preemptions(2), "", &["as", "3"]);
}

#[test]
fn a_push_that_close_refuses_leaves_no_item() {
    is_a_queue("a_push_that_close_refuses_leaves_no_item", Preemptions(3), "p", &["t", "c", "t"]);
}

#[test]
fn a_steal_during_a_close_takes_what_was_accepted() {
    is_a_queue(
        "a_steal_during_a_close_takes_what_was_accepted",
        Long { preemptions: 2, seconds: 18 },
        "",
        &["c", "s", "ts"],
    );
}

/// A thread that goes to sleep fences before its last look. A push that asks whether the queue was
/// empty fences before it asks.
#[test]
fn a_push_that_says_not_empty_has_somebody_awake() {
    model("a_push_that_says_not_empty_has_somebody_awake", Preemptions(3), || {
        let injector = Arc::new(Injector::new());
        injector.push(1);
        let sleeper = {
            let injector = injector.clone();
            spawn(move || {
                let first = injector.steal();
                fence(SeqCst);
                let second = injector.steal();
                (first.success(), second.success())
            })
        };
        let was_empty = injector.push_was_empty(2);
        let (first, second) = sleeper.join().unwrap();
        assert_eq!(first, Some(1));
        assert!(second.is_some() || was_empty, "nobody comes for the item");
    });
}

/// The injector drops each remaining item once.
#[test]
fn what_is_left_is_dropped_once() {
    model("what_is_left_is_dropped_once", Preemptions(3), || {
        let (item, injector) = (std::sync::Arc::new(()), Arc::new(Injector::new()));
        injector.push(item.clone());
        let other = {
            let (item, injector) = (item.clone(), injector.clone());
            spawn(move || {
                injector.push(item.clone());
                injector.push(item);
            })
        };
        drop(injector.steal());
        drop(injector);
        other.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&item), 1);
    });
}

/// The consumer of an item sees the producer's writes before the push.
#[test]
fn what_came_before_a_push_comes_before_its_steal() {
    model("what_came_before_a_push_comes_before_its_steal", Preemptions(3), || {
        let (injector, flag) = (Arc::new(Injector::new()), Arc::new(AtomicBool::new(false)));
        let consumer = {
            let (injector, flag) = (injector.clone(), flag.clone());
            spawn(move || {
                if injector.steal().is_success() {
                    assert!(flag.load(Relaxed));
                }
            })
        };
        flag.store(true, Relaxed);
        injector.push(1);
        consumer.join().unwrap();
    });
}
