//! Tests the event count, its sleepers and its searchers through the public API.

#[allow(dead_code)] // the example's `main`
#[path = "../../examples/blocking_queue.rs"]
mod blocking_queue;

use crate::common::scaled;
use crate::common::waiting::in_a_minute;
use blocking_queue::BlockingQueue;
use filch::idle::{EventCount, Park, Search, Searchers, ThreadPark};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Barrier};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::from_secs(600);

/// A park that counts its parks and its unparks.
#[derive(Default)]
struct Counting {
    inner: ThreadPark,
    parked: usize,
    unparked: Arc<AtomicUsize>,
}

struct Bell(Arc<AtomicUsize>, Waker);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        self.1.wake_by_ref();
    }
}

impl Park for Counting {
    fn park(&mut self, timeout: Option<Duration>) {
        self.parked += 1;
        self.inner.park(timeout);
    }

    fn unparker(&self) -> Waker {
        Arc::new(Bell(Arc::clone(&self.unparked), self.inner.unparker())).into()
    }
}

/// Returns a waker that wakes no thread.
fn silent() -> Waker {
    struct Silent;
    impl Wake for Silent {
        fn wake(self: Arc<Self>) {}
    }
    Arc::new(Silent).into()
}

/// Starts a thread that sleeps until it is told. Returns when that thread has prepared.
fn sleeper(events: &Arc<EventCount>) -> thread::JoinHandle<()> {
    let (events, prepared) = (Arc::clone(events), Arc::new(Barrier::new(2)));
    let there = Arc::clone(&prepared);
    let thread = thread::spawn(move || {
        let token = events.prepare();
        there.wait();
        token.commit();
    });
    prepared.wait();
    thread
}

fn wait_until_it_sleeps(events: &EventCount) {
    while !format!("{events:?}").contains("sleepers: true") {
        thread::sleep(SOON);
    }
}

#[test]
fn a_notification_between_prepare_and_commit_is_not_slept_through() {
    let events = EventCount::new();
    for tell in [EventCount::notify_one, EventCount::notify_all] as [fn(&EventCount); 2] {
        let token = events.prepare();
        tell(&events);
        token.commit();
    }
    let token = events.prepare();
    events.notify_many(usize::MAX);
    assert!(token.commit_until(Instant::now() + NEVER));
}

#[test]
fn a_notification_before_prepare_is_forgotten() {
    let events = EventCount::new();
    events.notify_one();
    events.notify_all();
    assert!(!events.prepare().commit_until(Instant::now() + SOON));
    assert!(!events.prepare().commit_until(Instant::now() - SOON), "a deadline that has passed");
}

#[test]
fn as_many_are_told_as_were_asked_for() {
    let events = EventCount::new();
    let tokens = [events.prepare(), events.prepare(), events.prepare()];
    events.notify_many(2);
    events.notify_many(0);
    let told = tokens.map(|token| token.commit_until(Instant::now() + SOON));
    assert_eq!(told.iter().filter(|it| **it).count(), 2);
}

/// The thread that cancels was told in place of one that sleeps, so it passes the notification on.
#[test]
fn cancelling_passes_a_notification_on() {
    let events = Arc::new(EventCount::new());
    let thread = sleeper(&events);
    wait_until_it_sleeps(&events);
    let token = events.prepare();
    events.notify_one();
    token.cancel();
    thread.join().unwrap();
}

#[test]
fn dropping_passes_a_notification_on_even_in_a_panic() {
    let events = Arc::new(EventCount::new());
    let thread = sleeper(&events);
    wait_until_it_sleeps(&events);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _token = events.prepare();
        events.notify_one();
        panic!("the look panics");
    }));
    assert!(outcome.is_err());
    thread.join().unwrap();
}

/// `notify_one` tells the newest sleeper first.
#[test]
fn the_newest_sleeper_is_woken_first() {
    let events = Arc::new(EventCount::new());
    let order = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (there, order) = (Arc::clone(&events), Arc::clone(&order));
            let thread = thread::spawn(move || {
                there.prepare().commit();
                order.fetch_add(1, SeqCst)
            });
            // The next thread goes on top of this one in the list of sleepers.
            while format!("{events:?}").contains("sleepers: false") {
                thread::sleep(SOON);
            }
            thread::sleep(20 * SOON);
            thread
        })
        .collect();
    for told in 1..=3 {
        events.notify_one();
        while order.load(SeqCst) < told {
            thread::sleep(SOON);
        }
    }
    let order: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(order, [2, 1, 0]);
}

/// The sleeper parks once and is unparked once, however long it sleeps: there is no timer and no
/// spinning.
#[test]
fn an_idle_sleeper_uses_no_cpu() {
    let (events, over) = (Arc::new(EventCount::new()), Arc::new(AtomicBool::new(false)));
    let thread = {
        let (events, over) = (Arc::clone(&events), Arc::clone(&over));
        thread::spawn(move || {
            let mut park = Counting::default();
            let is_told = events.prepare().commit_in(&mut park, None);
            assert!(over.load(SeqCst), "woken for nothing");
            (is_told, park.parked, park.unparked.load(SeqCst))
        })
    };
    wait_until_it_sleeps(&events);
    thread::sleep(50 * SOON);
    over.store(true, SeqCst);
    events.notify_one();
    let (is_told, parked, unparked) = thread.join().unwrap();
    assert!(is_told && parked <= 1 && unparked <= 1, "{parked} {unparked}");
}

#[test]
fn a_park_of_ones_own_returns_for_its_own_reasons() {
    let (events, mut park) = (EventCount::new(), Counting::default());
    park.inner.unparker().wake();
    assert!(!events.prepare().commit_in(&mut park, None));
    assert_eq!(park.parked, 1);
    // The sleeper has left the list, so this wakes no thread.
    events.notify_one();
    assert_eq!(park.unparked.load(SeqCst), 0);
}

/// A park that returns as soon as the other thread sleeps above it. Then the entry of this sleeper
/// stays in the middle of the list.
struct Overtaken<'a> {
    sleeps: &'a AtomicUsize,
    number: usize,
}

const SLEEPS: usize = 2_000;

impl Park for Overtaken<'_> {
    fn park(&mut self, _: Option<Duration>) {
        self.sleeps.store(self.number, SeqCst);
        while self.number < SLEEPS && self.sleeps.load(SeqCst) == self.number {
            thread::yield_now();
        }
    }

    fn unparker(&self) -> Waker {
        silent()
    }
}

/// Sleepers that leave without having been woken leave entries behind. These must be used again.
#[test]
fn places_left_behind_are_used_again() {
    let (events, sleeps) = (EventCount::new(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for first in [1, 2] {
            let (events, sleeps) = (&events, &sleeps);
            scope.spawn(move || {
                for number in (first..=SLEEPS).step_by(2) {
                    while sleeps.load(SeqCst) + 1 < number {
                        thread::yield_now();
                    }
                    let mut park = Overtaken { sleeps, number };
                    // The sleeper is told only when another thread clears the list, perhaps before
                    // it parks.
                    let _ = events.prepare().commit_in(&mut park, None);
                    sleeps.fetch_max(number, SeqCst);
                }
            });
        }
    });
    let shown = format!("{events:?}");
    let places = shown.split("places: ").nth(1).and_then(|it| it.split(',').next());
    let places: usize = places.unwrap().parse().unwrap();
    assert!((3..=127).contains(&places), "{places} places after {SLEEPS} sleeps of two threads");
}

#[test]
fn a_park_that_panics_leaves_the_list() {
    struct Panicking;
    impl Park for Panicking {
        fn park(&mut self, _: Option<Duration>) {
            panic!("the driver fails");
        }
        fn unparker(&self) -> Waker {
            silent()
        }
    }
    let events = Arc::new(EventCount::new());
    let sleep = || events.prepare().commit_in(&mut Panicking, None);
    assert!(catch_unwind(AssertUnwindSafe(sleep)).is_err());
    assert!(format!("{events:?}").contains("sleepers: false"));
    let thread = sleeper(&events);
    events.notify_one();
    thread.join().unwrap();
}

/// Notifies in its park, which then panics. If the last field is set, its waker panics too, and so
/// does the notification.
struct Failing<'a>(&'a EventCount, fn(&EventCount), bool);

impl Park for Failing<'_> {
    fn park(&mut self, _: Option<Duration>) {
        let told = catch_unwind(AssertUnwindSafe(|| (self.1)(self.0)));
        assert_eq!(told.is_err(), self.2);
        resume_unwind(Box::new("planted"));
    }

    fn unparker(&self) -> Waker {
        struct Loud;
        impl Wake for Loud {
            fn wake(self: Arc<Self>) {
                resume_unwind(Box::new("planted"));
            }
        }
        if self.2 { Arc::new(Loud).into() } else { silent() }
    }
}

/// The park of the newer of two sleepers panics, and the other sleeper must wake up.
#[track_caller]
fn fails_beside_a_sleeper(notify: fn(&EventCount), is_loud: bool) {
    let events = Arc::new(EventCount::new());
    let other = sleeper(&events);
    wait_until_it_sleeps(&events);
    let mut failing = Failing(&events, notify, is_loud);
    let sleep = || events.prepare().commit_in(&mut failing, None);
    assert!(catch_unwind(AssertUnwindSafe(sleep)).is_err());
    in_a_minute(|| other.join().unwrap());
}

#[test]
fn a_park_that_panics_passes_its_notification_on() {
    fails_beside_a_sleeper(EventCount::notify_one, false);
}

#[test]
fn a_waker_that_panics_leaves_no_other_sleeper_asleep() {
    fails_beside_a_sleeper(EventCount::notify_all, true);
    fails_beside_a_sleeper(|it| it.notify_many(2), true);
}

/// A notifier has relied on a search, which ends in a panic. So the sleeper must wake up.
#[track_caller]
fn search_fails_beside_a_sleeper(ends: fn(Search<'_>)) {
    let searchers = Arc::new(Searchers::new());
    let sleeping = Arc::clone(&searchers);
    let other = thread::spawn(move || sleeping.search().prepare().commit().found(|| false));
    while !format!("{searchers:?}").contains("sleepers: true") {
        thread::sleep(SOON);
    }
    let search = searchers.search();
    searchers.notify_one();
    assert!(catch_unwind(AssertUnwindSafe(|| ends(search))).is_err());
    in_a_minute(|| other.join().unwrap());
}

#[test]
fn a_look_that_panics_wakes_another() {
    search_fails_beside_a_sleeper(|it| {
        let _resting = it.prepare();
        resume_unwind(Box::new("planted"));
    });
}

#[test]
fn a_park_of_a_searcher_that_panics_wakes_another() {
    search_fails_beside_a_sleeper(|it| {
        let events = EventCount::new();
        let _ = it.prepare().commit_in(&mut Failing(&events, |_| (), false), None);
    });
}

#[test]
fn a_search_that_ends_in_a_panic_wakes_another() {
    search_fails_beside_a_sleeper(|it| it.found(|| resume_unwind(Box::new("planted"))));
}

#[test]
fn a_searcher_that_cannot_prepare_wakes_another() {
    let searchers = Arc::new(Searchers::new());
    let sleeping = Arc::clone(&searchers);
    let other = thread::spawn(move || sleeping.search().prepare().commit().found(|| false));
    while !format!("{searchers:?}").contains("sleepers: true") {
        thread::sleep(SOON);
    }
    let prepared: Vec<_> = (0..4095).map(|_| searchers.search().prepare()).collect();
    let search = searchers.search();
    searchers.notify_one();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(search.prepare()))).is_err());
    prepared.into_iter().for_each(|it| it.cancel().found(|| false));
    in_a_minute(|| other.join().unwrap());
}

#[test]
fn no_more_prepare_than_can_be_counted() {
    let events = EventCount::new();
    let mut tokens: Vec<_> = (0..4095).map(|_| events.prepare()).collect();
    let message = catch_unwind(AssertUnwindSafe(|| drop(events.prepare()))).unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("4095 threads have prepared"), "{message}");
    // The refused call has changed no state, and one thread fewer makes room.
    tokens.pop();
    tokens.push(events.prepare());
    events.notify_all();
    tokens.into_iter().for_each(filch::idle::Prepared::commit);
}

/// A park that sleeps in a park of the same kind, until the event count has no entry left for it.
/// The second field then counts the levels from this one to the innermost.
struct Deep<'a>(&'a EventCount, usize);

impl Park for Deep<'_> {
    fn park(&mut self, _: Option<Duration>) {
        let mut below = Deep(self.0, 0);
        let is_told = self.0.prepare().commit_in(&mut below, None);
        // Without an entry, `commit_in` returns at once, so that its caller looks again.
        self.1 = if is_told { 1 } else { below.1 + 1 };
    }

    fn unparker(&self) -> Waker {
        silent()
    }
}

#[test]
fn one_sleeper_too_many_goes_on_looking() {
    let thread = thread::Builder::new().stack_size(256 << 20).spawn(|| {
        let events = EventCount::new();
        let mut deepest = Deep(&events, 0);
        deepest.park(None);
        assert_eq!(deepest.1, 16_384, "one more than there are places");
        assert!(format!("{events:?}").contains("sleepers: false"));
    });
    thread.unwrap().join().unwrap();
}

/// Each item wakes the other thread, and its return wakes this one. `FILCH_STRESS=50` makes that a
/// million items.
#[test]
fn items_go_to_a_thread_that_sleeps_and_back() {
    let (there, back) = (Arc::new(BlockingQueue::new()), Arc::new(BlockingQueue::new()));
    let other = {
        let (there, back) = (Arc::clone(&there), Arc::clone(&back));
        thread::spawn(move || {
            while let Some(item) = there.receive() {
                assert!(back.send(item).is_ok());
            }
        })
    };
    for round in 0..scaled(20_000) {
        assert!(there.send(Box::new(round)).is_ok());
        assert_eq!(back.receive().as_deref(), Some(&round));
    }
    there.close();
    other.join().unwrap();
}

/// `ThreadPark` keeps one token, as the `Parker` of crossbeam-utils does.
#[test]
fn a_token_is_kept_for_the_next_park() {
    let mut park = ThreadPark::new();
    let unparker = park.unparker();
    unparker.wake_by_ref();
    unparker.wake();
    park.park(None);
    park.park(Some(SOON)); // two tokens were one
    let unparker = park.unparker();
    let thread = thread::spawn(move || unparker.wake());
    park.park(None);
    thread.join().unwrap();
}

#[test]
fn it_shows_who_is_there() {
    let events = EventCount::new();
    let _token = events.prepare();
    assert_eq!(
        format!("{events:?}"),
        "EventCount { preparing: 1, sleepers: false, places: 0, .. }"
    );
    assert_eq!(format!("{_token:?}"), "Prepared { .. }");
}

/// Tests the machine's own store buffers, which no model has. With half of the barrier gone, this
/// test fails once in some ten thousand rounds.
#[test]
fn a_notifier_that_pays_nothing_does_not_miss_a_sleeper() {
    let events = EventCount::asymmetric();
    let [round, item, done] = [const { AtomicUsize::new(0) }; 3];
    let rounds = 50_000;
    let missed = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=rounds {
                wait_until(|| round.load(SeqCst) >= number);
                item.store(number, Relaxed);
                events.notify_one();
                done.store(number, SeqCst);
            }
        });
        let is_missed = |number| {
            round.store(number, SeqCst);
            (0..number % 8).for_each(|_| std::hint::spin_loop());
            let sleep = events.prepare();
            if item.load(Relaxed) == number {
                sleep.cancel();
            } else if !sleep.commit_until(Instant::now() + Duration::from_secs(10)) {
                return true;
            }
            wait_until(|| done.load(SeqCst) == number);
            false
        };
        let missed = (1..=rounds).find(|number| is_missed(*number));
        round.store(rounds, SeqCst);
        missed
    });
    assert_eq!(missed, None, "the round in which it went to sleep and nobody told it");
}

fn wait_until(reached: impl Fn() -> bool) {
    let mut looks = 0;
    while !reached() {
        std::hint::spin_loop();
        looks += 1;
        if looks % 1000 == 0 {
            thread::yield_now(); // the other one may want this core
        }
    }
}

#[test]
fn places_are_used_again_however_sleep_ends() {
    /// A park that first notifies all threads, so that it is told at once.
    struct Told<'a>(&'a EventCount, ThreadPark);

    impl Park for Told<'_> {
        fn park(&mut self, timeout: Option<Duration>) {
            self.0.notify_all();
            self.1.park(timeout);
        }

        fn unparker(&self) -> Waker {
            self.1.unparker()
        }
    }

    let events = EventCount::new();
    for _ in 0..20 {
        assert!(events.prepare().commit_in(&mut Told(&events, ThreadPark::new()), None));
        assert!(!events.prepare().commit_until(Instant::now()));
        events.notify_all();
    }
    let shown = format!("{events:?}");
    assert!(shown.contains("places: 1,") || shown.contains("places: 2,"), "{shown}");
}

#[test]
fn who_searches_knows_whether_others_do() {
    let searchers = Searchers::new();
    let (first, second) = (searchers.search(), searchers.search());
    assert!(first.is_alone() && !second.is_alone());
}
