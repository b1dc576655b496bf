//! Tests the layer's promises with tower's own test tools.

use filch::executor::Reason;
use filch::fair::Queue;
use filch::task::CancelToken;
use filch::{FairScheduler, ThreadPool};
use filch_tower::{Admission, Error, QueueLayer, ResponseFuture};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_test::{assert_request_eq, mock};

/// A wait that takes longer hangs.
const MINUTE: Duration = Duration::from_secs(60);

fn scheduler() -> FairScheduler {
    FairScheduler::over(ThreadPool::new(2).unwrap())
}

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(MINUTE, future).await.expect("it hangs") })
}

/// A layer with one queue for all requests.
fn to<R>(queue: &Queue) -> QueueLayer<impl Fn(&R) -> Option<Queue> + use<R>> {
    let queue = queue.clone();
    QueueLayer::new(move |_: &R| Some(queue.clone()))
}

/// The error of a response that is there at once.
fn error_of<T: std::fmt::Debug, E: std::fmt::Debug>(response: ResponseFuture<T, E>) -> Error<E> {
    assert_ready_err!(task::spawn(response).poll())
}

#[test]
fn a_request_runs_in_its_queue_and_its_response_comes_back() {
    let fair = scheduler();
    let [left, right] = ["left", "right"].map(|it| fair.queue(it).build().unwrap());
    let queues = [left.clone(), right.clone()];
    let choose = move |request: &usize| queues.get(*request).cloned();
    run(async {
        let (mut service, mut inner) = mock::spawn_layer::<usize, &str, _>(QueueLayer::new(choose));
        assert_ready_ok!(service.poll_ready());
        let response = service.call(1);
        inner.allow(1);
        assert_request_eq!(inner, 1).send_response("there");
        assert_eq!(response.await.unwrap(), "there");
    });
    fair.wait_idle().unwrap();
    assert_eq!((left.metrics().submitted, right.metrics().submitted), (0, 1));
}

#[test]
fn the_errors_of_the_inner_service_come_back() {
    let fair = scheduler();
    let queue = fair.queue("a").build().unwrap();
    run(async {
        let (mut service, mut inner) = mock::spawn_layer::<u32, u32, _>(to(&queue));
        assert_ready_ok!(service.poll_ready());
        let response = service.call(7);
        assert_request_eq!(inner, 7).send_error("no sevens");
        let error = response.await.unwrap_err();
        assert!(matches!(&error, Error::Inner(it) if it.to_string() == "no sevens"), "{error:?}");
        assert_eq!(error.status(), 500);

        inner.send_error("dead"); // `poll_ready` of the clone fails
        let error = service.call(8).await.unwrap_err();
        assert!(matches!(&error, Error::Inner(it) if it.to_string() == "dead"), "{error:?}");
    });
}

#[test]
fn a_full_queue_says_so_with_a_hint_and_is_ready_again() {
    let fair = scheduler();
    let queue = fair.queue("small").capacity(1).paused().build().unwrap();
    let (mut service, _inner) = mock::spawn_layer::<u32, u32, _>(to(&queue));
    assert_ready_ok!(service.poll_ready());
    let mut first = task::spawn(service.call(1));
    assert_pending!(first.poll());

    assert_ready_ok!(service.poll_ready(), "a full queue does not end the service");
    let error = error_of(service.call(2));
    let hint = error.retry_after().unwrap();
    assert!((1..=60).contains(&hint.as_secs()) && hint.subsec_nanos() == 0, "{hint:?}");
    assert_eq!(error.status(), 503);
    assert!(error.to_string().starts_with("the queue is full"), "{error}");
    assert_eq!(queue.metrics().refused, 1);

    drop(first);
    assert_pending!(task::spawn(service.call(3)).poll(), "there is room again");
}

#[test]
fn a_limit_around_the_layer_waits_for_room_instead() {
    let fair = scheduler();
    let queue = fair.queue("small").capacity(1).build().unwrap();
    queue.pause();
    let inner = service_fn(|request: u32| async move { Ok::<u32, Infallible>(request) });
    let mut service = mock::Spawn::new(ConcurrencyLimit::new(to::<u32>(&queue).layer(inner), 1));
    assert_ready_ok!(service.poll_ready::<u32>());
    let first = service.call(1);
    assert_pending!(service.poll_ready::<u32>(), "there is no room");
    queue.resume();
    assert_eq!(run(first).unwrap(), 1);
    assert!(service.is_woken());
    assert_ready_ok!(service.poll_ready::<u32>(), "there is room again");
    assert_eq!(run(service.call(2)).unwrap(), 2);
    assert_eq!(queue.metrics().refused, 0);
}

#[test]
fn a_dropped_response_cancels_a_request_that_waits() {
    let fair = scheduler();
    let queue = fair.queue("a").paused().build().unwrap();
    let (mut service, _inner) = mock::spawn_layer::<Arc<()>, (), _>(to(&queue));
    let request = Arc::new(());
    let response = service.call(request.clone());
    assert_eq!(Arc::strong_count(&request), 2);
    drop(response);
    assert_eq!(Arc::strong_count(&request), 1, "the request is dropped at once");
    assert_eq!(queue.metrics().pending, 0);
}

#[test]
fn a_dropped_response_asks_a_request_that_runs_to_stop() {
    let fair = scheduler();
    let queue = fair.queue("a").build().unwrap();
    let (started, is_running) = mpsc::channel();
    let (stopped, has_stopped) = mpsc::channel();
    let mut service = to(&queue).layer(service_fn(move |()| {
        let (started, stopped) = (started.clone(), stopped.clone());
        async move {
            started.send(()).unwrap();
            while !filch::task::is_cancelled() {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
            Ok::<(), Infallible>(())
        }
    }));
    let response = service.call(());
    is_running.recv_timeout(MINUTE).unwrap();
    drop(response);
    has_stopped.recv_timeout(MINUTE).unwrap();
}

#[test]
fn a_dropped_response_drops_an_inner_future_that_sleeps() {
    let fair = scheduler();
    let queue = fair.queue("a").build().unwrap();
    let (started, is_running) = mpsc::channel();
    let mut service = to(&queue).layer(service_fn(move |request: Arc<()>| {
        let started = started.clone();
        async move {
            // The waker lives on, so the future could be woken: only the response cancels it.
            poll_fn(|context| {
                started.send(context.waker().clone()).unwrap();
                Poll::<()>::Pending
            })
            .await;
            drop(request);
            Ok::<(), Infallible>(())
        }
    }));
    let request = Arc::new(());
    let response = service.call(request.clone());
    let _waker = is_running.recv_timeout(MINUTE).unwrap();
    drop(response);
    let start = Instant::now();
    while Arc::strong_count(&request) > 1 {
        assert!(start.elapsed() < MINUTE, "the inner future lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_request_expires_at_its_deadline() {
    let fair = scheduler();
    let queue = fair.queue("a").paused().build().unwrap();
    let same = queue.clone();
    let choose = move |deadline: &Instant| Some(Admission::to(same.clone()).deadline(*deadline));
    run(async {
        let (mut service, _inner) = mock::spawn_layer::<Instant, (), _>(QueueLayer::new(choose));
        let late = service.call(Instant::now());
        queue.resume();
        let error = late.await.unwrap_err();
        assert!(matches!(error, Error::Expired), "{error:?}");
        assert_eq!(error.status(), 504);
    });
}

#[test]
fn a_panic_is_an_error_and_the_next_request_runs() {
    let fair = scheduler();
    let queue = fair.queue("a").build().unwrap();
    let service = to(&queue).layer(service_fn(|number: u32| async move {
        assert_ne!(number, 7, "an unlucky number");
        Ok::<u32, Infallible>(number)
    }));
    run(async {
        let error = service.clone().oneshot(7).await.unwrap_err();
        assert_eq!(error.status(), 500);
        let Error::Panicked(error) = error else { panic!("{error:?}") };
        assert!(error.to_string().contains("an unlucky number"), "{error}");
        assert_eq!(service.oneshot(8).await.unwrap(), 8);
    });
}

#[test]
fn a_token_and_the_queue_cancel_a_request() {
    let fair = scheduler();
    let queue = fair.queue("a").paused().build().unwrap();
    let (same, token) = (queue.clone(), CancelToken::new());
    let theirs = token.clone();
    let choose = move |has_token: &bool| {
        let admission = Admission::to(same.clone());
        Some(if *has_token { admission.token(&theirs) } else { admission })
    };
    run(async {
        let (mut service, _inner) = mock::spawn_layer::<bool, (), _>(QueueLayer::new(choose));
        let [with, without] = [true, false].map(|it| service.call(it));
        token.cancel_with("the server stops");
        let error = with.await.unwrap_err();
        assert!(error.to_string().ends_with("the server stops"), "{error}");
        queue.cancel();
        let error = without.await.unwrap_err();
        assert!(matches!(error, Error::Cancelled(_)), "{error:?}");
        assert_eq!(error.status(), 503);
    });
}

#[test]
fn a_closed_queue_and_no_queue_are_errors() {
    let fair = scheduler();
    let queue = fair.queue("a").build().unwrap();
    queue.close();
    let same = queue.clone();
    let choose = move |is_known: &bool| is_known.then(|| same.clone());
    let (mut service, _inner) = mock::spawn_layer::<bool, (), _>(QueueLayer::new(choose));
    let closed = error_of(service.call(true));
    assert!(matches!(closed, Error::Refused(Reason::Closed)), "{closed:?}");
    assert_eq!((closed.status().as_u16(), closed.retry_after()), (503, None));
    let unknown = error_of(service.call(false));
    assert!(matches!(unknown, Error::NoQueue), "{unknown:?}");
    assert_eq!(unknown.status(), 403);
}

#[test]
fn a_response_prints_its_state() {
    let fair = scheduler();
    let queue = fair.queue("a").capacity(1).paused().build().unwrap();
    let (mut service, _inner) = mock::spawn_layer::<u32, u32, _>(to(&queue));
    let [first, second] = [1, 2].map(|it| service.call(it));
    assert_eq!(format!("{first:?}"), "ResponseFuture(\"accepted\")");
    assert_eq!(format!("{second:?}"), "ResponseFuture(\"refused\")");
}
