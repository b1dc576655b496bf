//! What `{:?}` shows of what people have in their own structures: how much is in it, and whether it still takes more.
#![cfg(not(any(loom, shuttle)))]

use filch::executor::Inline;
use filch::fair::FairScheduler;
use filch::idle::{EventCount, Searchers};
use filch::task::{CancelToken, TaskGroup};
use filch::trace::Timeline;
use filch::{Injector, LockedPool, ThreadPool};
use std::fmt::Debug;

fn shows(value: impl Debug, expected: &str) {
    assert_eq!(format!("{value:?}"), expected);
}

#[test]
fn an_injector_shows_how_much_it_holds() {
    let injector = Injector::from_iter(["a", "b"]);
    shows(&injector, "Injector { len: 2, is_closed: false, .. }");
    injector.close();
    shows(&injector, "Injector { len: 2, is_closed: true, .. }");
}

#[test]
fn what_threads_sleep_on_shows_who_is_there() {
    let events = EventCount::new();
    let prepared = events.prepare();
    shows(&events, "EventCount { preparing: 1, sleepers: false, places: 0, .. }");
    drop(prepared);
    let shown = format!("{:?}", Searchers::new());
    assert!(shown.starts_with("Searchers { searching: 0, events: EventCount { "), "{shown}");
}

#[test]
fn a_pool_shows_its_threads_and_what_waits_outside() {
    let pool = ThreadPool::builder().num_threads(3).build().unwrap();
    shows(&pool, "ThreadPool { num_threads: 3, injected: 0, .. }");
    shows(LockedPool::new(2).unwrap(), "LockedPool { num_threads: 2, .. }");
}

#[test]
fn a_queue_shows_its_name_and_what_is_pending() {
    let fair = FairScheduler::over(Inline);
    let queue = fair.queue("reports").paused().build().unwrap();
    let task = queue.spawn(|| ());
    shows(
        &queue,
        r#"Queue { name: Some("reports"), pending: 1, running: 0, is_closed: false, .. }"#,
    );
    shows(&fair, "FairScheduler { pending: 1, tickets: 0, .. }");
    shows(&task, "JoinHandle { is_finished: false, .. }");
    queue.cancel();
    shows(&task, "JoinHandle { is_finished: true, .. }");
}

#[test]
fn tokens_groups_and_timelines_show_their_state() {
    let token = CancelToken::new();
    let child = token.child();
    shows(&token, "CancelToken { is_cancelled: false, listeners: 1 }");
    token.cancel();
    shows(&child, "CancelToken { is_cancelled: true, listeners: 0 }");
    shows(TaskGroup::new(), "TaskGroup { pending: 0, .. }");
    shows(Timeline::new(), "Timeline { threads: 0, lost: 0, .. }");
}
