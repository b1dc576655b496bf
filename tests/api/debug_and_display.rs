//! Tests the texts that users print: the messages of errors, and the `{:?}` of each structure. The
//! latter shows how much the structure holds, and whether it still accepts items.

use filch::executor::{Inline, Reason, Rejected, ShutdownError, WouldDeadlock};
use filch::fair::{FairScheduler, QueueError, WeightedFair, WorkQueue};
use filch::idle::{EventCount, Searchers, ThreadPark};
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::task::{CancelToken, TaskGroup};
use filch::trace::Timeline;
use filch::{Injector, Job, Steal, ThreadPool, Worker};
use std::fmt::{Debug, Display};

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

fn mentions<T: Debug>(value: &T, parts: &[&str]) {
    let text = format!("{value:?}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in `{text}`");
    }
}

/// A user who prints one of these values sees its name and its subject.
#[test]
fn what_is_printed_says_what_it_is() {
    let worker: Worker<u32> = Worker::new_lifo();
    worker.push(1);
    mentions(&worker, &["Worker", "Lifo", "len: 1"]);
    mentions(&worker.stealer(), &["Stealer", "len: 1"]);
    mentions(&filch::deque::Builder::new(filch::deque::Flavor::Fifo), &["Builder", "Fifo"]);
    mentions(&Steal::Success(3), &["Success"]);
    let injector = Injector::from_iter([1, 2]);
    mentions(&injector, &["Injector", "len: 2", "is_closed: false"]);
    mentions(&injector.into_iter(), &["IntoIter", "Injector"]);
    let events = EventCount::new();
    let prepared = events.prepare();
    mentions(&events, &["EventCount", "preparing: 1"]);
    mentions(&prepared, &["Prepared"]);
    mentions(&Searchers::new(), &["Searchers"]);
    mentions(&ThreadPark::new(), &["ThreadPark"]);
    let (job, handle) = Job::with_handle(|| 1);
    mentions(&job, &["Job"]);
    mentions(&handle, &["JoinHandle"]);
    let token = CancelToken::new();
    token.cancel_with("too late");
    mentions(&token, &["CancelToken", "is_cancelled: true"]);
    mentions(&TaskGroup::new(), &["TaskGroup", "pending: 0"]);
    let pool = ThreadPool::new(1).unwrap();
    mentions(&pool, &["ThreadPool"]);
    mentions(&pool.task(), &["TaskBuilder"]);
    mentions(&ThreadPool::builder(), &["Builder"]);
    mentions(&LockedPool::new(1).unwrap(), &["LockedPool", "num_threads: 1"]);
    let fair = FairScheduler::over(Inline);
    mentions(&fair, &["FairScheduler"]);
    mentions(&FairScheduler::builder(Inline), &["Builder"]);
    let queue = fair.queue("nightly").weight(3).build().unwrap();
    mentions(&queue, &["Queue", "nightly", "is_closed: false"]);
    queue.close();
    mentions(&queue, &["is_closed: true"]);
    mentions(&fair.queue("x"), &["QueueBuilder"]);
    mentions(&fair.report(), &["Report"]);
    mentions(&WeightedFair::new(), &["WeightedFair"]);
    mentions(&WorkQueue::over(Inline, 1, |it: u32, _: &_| it).unwrap(), &["WorkQueue"]);
    mentions(&Stepper::new(1, 1), &["Stepper"]);
}

#[test]
fn errors_say_what_is_wrong() {
    fn says(error: impl Display, expected: &str) {
        assert!(error.to_string().contains(expected), "{error}");
    }
    let injector = Injector::new();
    injector.close();
    says(injector.try_push(1).unwrap_err(), "the injector is closed");
    let reason = Reason::Full;
    says(Rejected { item: (), reason }, "the executor is full");
    says(Reason::Closed, "no further jobs");
    says(WouldDeadlock, "cannot wait for the pool");
    says(ShutdownError::WouldDeadlock, "cannot wait for the pool");
    says(ShutdownError::StillRunning, "still running");
    says(QueueError::Weight, "from 1 to 4294967296");
    says(QueueError::Parallel, "at least one task at once");
    says(QueueError::InFlight, "at least one future");
    says(QueueError::Capacity, "room for at least one task");
    says(QueueError::TooMany, "65536 queues");
    says(QueueError::Closed, "shut down");
}
