//! Programs of the event count, searchers and injector, with more threads than loom can explore.

use crate::common::{explore, fails};
use filch::idle::{EventCount, Searchers};
use filch::{Injector, Stealer, Worker};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// Takes an item. Sleeps until there is an item.
fn take(queue: &Injector<usize>, pushes: &EventCount) -> usize {
    loop {
        if let Some(item) = queue.steal().success() {
            return item;
        }
        let prepared = pushes.prepare();
        if let Some(item) = queue.steal().success() {
            prepared.cancel();
            return item;
        }
        prepared.commit();
    }
}

#[test]
fn three_takers_get_what_two_push() {
    explore("three_takers_get_what_two_push", || {
        let (queue, pushes) = (Arc::new(Injector::new()), Arc::new(EventCount::new()));
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let (queue, pushes) = (Arc::clone(&queue), Arc::clone(&pushes));
                thread::spawn(move || take(&queue, &pushes) + take(&queue, &pushes))
            })
            .collect();
        let pushers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, pushes) = (Arc::clone(&queue), Arc::clone(&pushes));
                thread::spawn(move || {
                    for item in 1..=3 {
                        queue.push(item);
                        pushes.notify_one();
                    }
                })
            })
            .collect();
        pushers.into_iter().for_each(|it| it.join().unwrap());
        let sum: usize = takers.into_iter().map(|it| it.join().unwrap()).sum();
        assert_eq!(sum, 12);
    });
}

/// Two threads stop waiting at a deadline, which may pass at any moment. They must not use up a
/// notification that a taker needs.
#[test]
fn who_leaves_takes_no_notification_along() {
    explore("who_leaves_takes_no_notification_along", || {
        let (queue, pushes) = (Arc::new(Injector::new()), Arc::new(EventCount::new()));
        let impatient: Vec<_> = (0..2)
            .map(|_| {
                let pushes = Arc::clone(&pushes);
                thread::spawn(move || {
                    let prepared = pushes.prepare();
                    thread::yield_now();
                    if prepared.commit_until(Instant::now()) {
                        // This thread takes no item, so it passes the notification on.
                        pushes.notify_one();
                    }
                    pushes.prepare().cancel();
                })
            })
            .collect();
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, pushes) = (Arc::clone(&queue), Arc::clone(&pushes));
                thread::spawn(move || take(&queue, &pushes))
            })
            .collect();
        for item in [1, 2] {
            queue.push(item);
            pushes.notify_one();
        }
        let sum: usize = takers.into_iter().map(|it| it.join().unwrap()).sum();
        assert_eq!(sum, 3);
        impatient.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// The planted bug: a taker commits to sleep without a second look, and misses an item.
#[test]
fn canary_no_second_look() {
    fails("canary_no_second_look", "deadlock", || {
        let (queue, pushes) = (Arc::new(Injector::new()), Arc::new(EventCount::new()));
        let (same_queue, same_pushes) = (Arc::clone(&queue), Arc::clone(&pushes));
        let taker = thread::spawn(move || {
            loop {
                if let Some(item) = same_queue.steal().success() {
                    return item;
                }
                same_pushes.prepare().commit();
            }
        });
        queue.push(7);
        pushes.notify_one();
        assert_eq!(taker.join().unwrap(), 7);
    });
}

/// The planted bug: the notification comes before the push, so the taker may sleep for ever.
#[test]
fn canary_notified_before() {
    fails("canary_notified_before", "deadlock", || {
        let (queue, pushes) = (Arc::new(Injector::new()), Arc::new(EventCount::new()));
        let (same_queue, same_pushes) = (Arc::clone(&queue), Arc::clone(&pushes));
        let taker = thread::spawn(move || take(&same_queue, &same_pushes));
        pushes.notify_one();
        queue.push(7);
        assert_eq!(taker.join().unwrap(), 7);
    });
}

#[test]
fn searchers_wake_each_other() {
    explore("searchers_wake_each_other", || {
        let (jobs, searchers) = (Arc::new(Injector::new()), Arc::new(Searchers::new()));
        let ran = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let (jobs, searchers, ran) =
                    (Arc::clone(&jobs), Arc::clone(&searchers), Arc::clone(&ran));
                thread::spawn(move || {
                    let mut search = searchers.search();
                    loop {
                        if let Some(job) = jobs.steal().success() {
                            search.found(|| !jobs.is_empty());
                            if job == 0 {
                                return;
                            }
                            ran.fetch_add(1, SeqCst);
                            search = searchers.search();
                            continue;
                        }
                        let resting = search.prepare();
                        search = if jobs.is_empty() { resting.commit() } else { resting.cancel() };
                        // A producer may have claimed a slot, but not filled it. Lets it run.
                        thread::yield_now();
                    }
                })
            })
            .collect();
        for job in [1, 1, 1, 1, 0, 0, 0] {
            jobs.push(job);
            searchers.notify_one();
        }
        workers.into_iter().for_each(|it| it.join().unwrap());
        assert_eq!(ran.load(SeqCst), 4);
    });
}

/// A consumer does not wait for a producer that is suspended in a push, but passes over its slot.
#[test]
fn an_injector_loses_nothing_around_stopped_producers() {
    explore("an_injector_loses_nothing_around_stopped_producers", || {
        let queue = Arc::new(Injector::new());
        let pushers: Vec<_> = (0..3)
            .map(|pusher| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || (0..3).for_each(|item| queue.push(10 * pusher + item)))
            })
            .collect();
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    (0..4).filter_map(|_| queue.steal().success()).collect::<Vec<usize>>()
                })
            })
            .collect();
        pushers.into_iter().for_each(|it| it.join().unwrap());
        let mut taken: Vec<Vec<usize>> = takers.into_iter().map(|it| it.join().unwrap()).collect();
        taken.push(std::iter::from_fn(|| queue.steal().success()).collect());
        for items in &taken {
            for pusher in 0..3 {
                let own: Vec<_> = items.iter().filter(|it| **it / 10 == pusher).collect();
                assert!(own.is_sorted(), "one consumer sees one producer's items in order");
            }
        }
        let mut all = taken.concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    });
}

fn steal_all(stealer: &Stealer<usize>, rounds: usize) -> Vec<usize> {
    (0..rounds).filter_map(|_| stealer.steal().success()).collect()
}

#[test]
fn three_thieves_and_an_owner_take_each_item_once() {
    explore("three_thieves_and_an_owner_take_each_item_once", || {
        let worker = Worker::new_lifo();
        let thieves: Vec<_> = (0..3)
            .map(|_| {
                let stealer = worker.stealer();
                thread::spawn(move || steal_all(&stealer, 3))
            })
            .collect();
        let mut all = Vec::new();
        for item in 0..6 {
            worker.push(item);
            if item % 2 == 1 {
                all.extend(worker.pop());
            }
        }
        all.extend(std::iter::from_fn(|| worker.pop()));
        thieves.into_iter().for_each(|it| all.extend(it.join().unwrap()));
        all.extend(std::iter::from_fn(|| worker.pop()));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
    });
}
