//! Models of a future: which thread polls it, drops it and frees it?
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `POLLED` | release in `wake` and `rest`; acquire in `claim_to_poll` | `what_was_done_before_a_wake_is_seen_by_a_poll` |
//! | `POLLED` | acquire in `begin_end` | `a_future_is_dropped_by_its_canceller_or_with_its_poll` |

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, spawn};
use filch::executor::{Executor, Futures, Inline, Rejected, TaskBuilder, spawn_future};
use filch::task::CancelToken;
use filch::{Job, JoinHandle};
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A future's data. loom reports a leak of the `Arc`, and the trace reports a second drop.
struct Precious(#[allow(dead_code)] loom::sync::Arc<()>, Trace);

impl Drop for Precious {
    fn drop(&mut self) {
        self.1.leave_once();
    }
}

/// The place into which a future puts its waker. It is a lock of `std`, which orders nothing in a
/// model.
type Place = Arc<Mutex<Option<Waker>>>;

/// Returns a future that is ready when all flags are set, and a trace that its drop leaves.
fn waits_for(
    flags: &[Arc<AtomicBool>],
    place: &Place,
) -> (impl Future<Output = ()> + Send + use<>, Trace) {
    let trace = Trace::new();
    let precious = Precious(loom::sync::Arc::new(()), trace.clone());
    let (flags, place) = (flags.to_vec(), place.clone());
    let future = poll_fn(move |context| {
        let _ = &precious;
        *place.lock().unwrap() = Some(context.waker().clone());
        match flags.iter().all(|it| it.load(Relaxed)) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    (future, trace)
}

fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn waker_in(place: &Place) -> Waker {
    place.lock().unwrap().clone().expect("it was polled")
}

#[test]
fn what_was_done_before_a_wake_is_seen_by_a_poll() {
    model("what_was_done_before_a_wake_is_seen_by_a_poll", Preemptions(3), || {
        let (flags, place) = ([flag(), flag()], Place::default());
        let (future, trace) = waits_for(&flags, &place);
        let task = spawn_future(Inline, future);
        let [first, second] = flags.map(|flag| {
            let waker = waker_in(&place);
            move || {
                flag.store(true, Relaxed);
                waker.wake();
            }
        });
        let other = spawn(first);
        second();
        other.join().unwrap();
        // Both wakers have been called, so the future must have been polled to its end.
        assert!(task.is_finished(), "a wake was lost");
        task.join().unwrap();
        assert!(trace.is_there());
        place.lock().unwrap().take();
    });
}

/// Returns a future that wakes itself in its second poll, and is ready in the third if the flag is
/// set.
fn wakes_itself(flag: &Arc<AtomicBool>, place: &Place) -> impl Future<Output = ()> + Send + use<> {
    let (inner, _) = waits_for(std::slice::from_ref(flag), place);
    let (mut inner, mut polls) = (Box::pin(inner), 0);
    poll_fn(move |context| {
        polls += 1;
        let polled = inner.as_mut().poll(context);
        if polls == 2 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        polled
    })
}

#[test]
fn no_wake_is_lost_on_a_future_that_wakes_itself() {
    model("no_wake_is_lost_on_a_future_that_wakes_itself", Preemptions(3), || {
        let (flag, place) = (flag(), Place::default());
        let task = spawn_future(Inline, wakes_itself(&flag, &place));
        let [first, second] = [(); 2].map(|()| waker_in(&place));
        let other = spawn(move || first.wake());
        flag.store(true, Relaxed);
        second.wake();
        other.join().unwrap();
        assert!(task.is_finished(), "a wake was lost");
        task.join().unwrap();
        place.lock().unwrap().take();
    });
}

#[test]
fn a_future_that_wakes_itself_ends_when_it_is_cancelled() {
    model("a_future_that_wakes_itself_ends_when_it_is_cancelled", Preemptions(3), || {
        let (flag, place) = (flag(), Place::default());
        let task = spawn_future(Inline, wakes_itself(&flag, &place));
        let waker = waker_in(&place);
        flag.store(true, Relaxed);
        let poller = spawn(move || waker.wake());
        task.cancel();
        let _ = task.join();
        poller.join().unwrap();
        place.lock().unwrap().take();
    });
}

#[test]
fn a_future_is_dropped_by_its_canceller_or_with_its_poll() {
    model("a_future_is_dropped_by_its_canceller_or_with_its_poll", Preemptions(3), || {
        let (flags, place) = ([flag(), flag()], Place::default());
        let (future, trace) = waits_for(&flags, &place);
        let task = spawn_future(Inline, future);
        let waker = waker_in(&place);
        flags[0].store(true, Relaxed);
        let poller = spawn(move || waker.wake());
        task.cancel();
        let result = task.join();
        assert!(result.is_err_and(|error| error.is_cancelled()));
        assert!(trace.is_there(), "the handle says so before the future is dropped");
        poller.join().unwrap();
        place.lock().unwrap().take();
    });
}

/// An executor that runs each job in `execute`, and whose end is the cancellation of the token.
#[derive(Clone)]
struct Ends(CancelToken);

impl Executor for Ends {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        job.run();
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn end(&self) -> Option<CancelToken> {
        Some(self.0.clone())
    }

    fn futures(&self) -> Option<Futures> {
        Some(Futures::over(self.clone()))
    }
}

fn spawn_on(
    end: &CancelToken,
    future: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    TaskBuilder::on(&Ends(end.clone())).spawn_future(future)
}

#[test]
fn a_future_woken_as_its_executor_ends_is_dropped_once() {
    model("a_future_woken_as_its_executor_ends_is_dropped_once", Preemptions(3), || {
        let (flags, place, end) = ([flag()], Place::default(), CancelToken::new());
        let (future, trace) = waits_for(&flags, &place);
        let task = spawn_on(&end, future);
        let waker = waker_in(&place);
        let ender = spawn(move || end.cancel());
        flags[0].store(true, Relaxed);
        waker.wake();
        let _ = task.join();
        assert!(trace.is_there());
        ender.join().unwrap();
        place.lock().unwrap().take();
    });
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The last waker of a future is dropped while another thread cancels the token that `spawn_with`
/// ties the future to.
fn forgotten_is_dropped_once(spawn_with: fn(&CancelToken, Boxed) -> JoinHandle<()>) {
    let (flags, place, token) = ([flag()], Place::default(), CancelToken::new());
    let (future, trace) = waits_for(&flags, &place);
    let task = spawn_with(&token, Box::pin(future));
    let canceller = spawn(move || token.cancel());
    let waker = place.lock().unwrap().take();
    drop(task);
    drop(waker);
    canceller.join().unwrap();
    assert!(trace.is_there(), "it was dropped by one of the two");
}

#[test]
fn a_forgotten_future_is_dropped_once_as_its_executor_ends() {
    let name = "a_forgotten_future_is_dropped_once_as_its_executor_ends";
    model(name, Preemptions(3), || forgotten_is_dropped_once(spawn_on));
}

#[test]
fn a_forgotten_future_is_dropped_once_as_its_token_is_cancelled() {
    let name = "a_forgotten_future_is_dropped_once_as_its_token_is_cancelled";
    model(name, Preemptions(3), || {
        forgotten_is_dropped_once(|token, future| {
            TaskBuilder::on(&Inline).token(token).spawn_future(future)
        });
    });
}

#[test]
fn a_future_spawned_as_its_executor_ends_is_cancelled() {
    model("a_future_spawned_as_its_executor_ends_is_cancelled", Preemptions(3), || {
        let (flags, place, end) = ([flag()], Place::default(), CancelToken::new());
        let (future, trace) = waits_for(&flags, &place);
        let same = end.clone();
        let ender = spawn(move || same.cancel());
        let task = spawn_on(&end, future);
        ender.join().unwrap();
        assert!(task.join().unwrap_err().is_cancelled());
        assert!(trace.is_there());
        place.lock().unwrap().take();
    });
}
