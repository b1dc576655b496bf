//! Tests for the defects B1–B6 and B12–B17 in the code of published articles about queues and
//! fairness. B7–B11 are about pools: `tests/pool/known_bugs.rs`.

use crate::common::scaled;
use filch::executor::{self, Reason, Shutdown};
use filch::fair::{FairScheduler, Priority, Queue, QueueError, RoundRobin, WorkQueue};
use filch::sim::{self, Stepper};
use filch::task::{self, Cancel, CancelToken};
use filch::{Job, ThreadPool};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Context;
use std::time::Duration;
use std::{hint, thread};

fn over_a_pool(threads: usize) -> FairScheduler {
    FairScheduler::over(ThreadPool::new(threads).unwrap())
}

/// In each round, calls `one` and `other` on two threads at the same moment, and gives both results
/// to `check`.
fn at_once<X, Y: Send, A, B: Send>(
    rounds: usize,
    prepare: impl Fn(usize) -> (X, Y),
    one: impl Fn(X) -> A,
    other: impl Fn(Y) -> B + Send,
    check: impl Fn(A, B),
) {
    let ((outbox, given), (results, inbox)) = (mpsc::channel(), mpsc::channel());
    let arrivals = AtomicUsize::new(0);
    // Each thread spins here: to wake a blocked thread would take too long.
    let meet = |round: usize| {
        arrivals.fetch_add(1, SeqCst);
        for look in 1.. {
            if arrivals.load(SeqCst) >= 2 * (round + 1) {
                break;
            }
            hint::spin_loop();
            if look % 1000 == 0 {
                thread::yield_now();
            }
        }
    };
    let meet = &meet;
    thread::scope(move |scope| {
        scope.spawn(move || {
            for (round, given) in given.into_iter().enumerate() {
                meet(round);
                let _ = results.send(other(given));
            }
        });
        for round in 0..rounds {
            let (ours, theirs) = prepare(round);
            outbox.send(theirs).unwrap();
            meet(round);
            let result = one(ours);
            check(result, inbox.recv().unwrap());
        }
    });
}

/// B1: `submit` checked outside the lock whether the queue was disposed of. A task submitted after
/// that check was lost. The model is `a_task_is_accepted_before_the_close_or_refused`.
#[test]
fn what_is_submitted_as_a_queue_closes_runs_or_is_refused() {
    let (fair, runs) = (over_a_pool(1), Arc::new(AtomicUsize::new(0)));
    let total = AtomicUsize::new(0);
    let prepare = |round| {
        // Paused, so that `pending` after the close is the number of accepted tasks.
        let queue = fair.queue("q").paused().build().unwrap();
        ((round, queue.clone()), queue)
    };
    let close = |(round, queue): (usize, Queue)| {
        (0..round % 64).for_each(|_| hint::spin_loop());
        queue.close();
        let pending = queue.metrics().pending;
        (queue, pending)
    };
    let submit = |queue: Queue| {
        let spawn = |_: &u64| {
            let runs = runs.clone();
            queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).is_ok()
        };
        (0..200).take_while(spawn).count()
    };
    at_once(scaled(10_000), prepare, close, submit, |(queue, pending), accepted| {
        assert_eq!(accepted as u64, pending, "accepted before it was closed, or refused");
        total.fetch_add(accepted, SeqCst);
        queue.resume();
    });
    fair.wait_idle().unwrap();
    assert_eq!(runs.load(SeqCst), total.load(SeqCst), "what was accepted has run");
}

/// B2: the queue was marked as closed after the lock was released. The thread that took the last
/// task missed the mark, and the queue stayed for ever. The model is
/// `the_slot_of_a_closed_queue_becomes_free_once`.
#[test]
fn a_queue_closed_as_its_last_task_ends_is_over() {
    // The executor sends its jobs, which are tickets, to the second thread of `at_once`.
    let (tickets, inbox) = mpsc::channel::<Job>();
    let execute = move |ticket| {
        tickets.send(ticket).unwrap();
        Ok(())
    };
    let fair = FairScheduler::over(executor::from_fn(NonZeroUsize::MIN, execute));
    let prepare = |round| {
        let queue = fair.queue("q").build().unwrap();
        queue.spawn_detached(|| ()).unwrap();
        ((round, queue), ())
    };
    let close = |(round, queue): (usize, Queue)| {
        // The length of the spin varies, so that the close comes before, during or after the task.
        (0..round % 256).for_each(|_| hint::spin_loop());
        drop(queue);
    };
    let serve = move |()| inbox.try_iter().for_each(Job::run);
    at_once(scaled(5_000), prepare, close, serve, |(), ()| {
        assert_eq!(fair.report().queues.len(), 1, "it is over");
    });
    assert_eq!(fair.queue("q").build().unwrap().slot(), 1, "slots are used again");
}

/// B3: two threads that disposed of a queue at the same time removed it twice. The model is
/// `one_of_two_closers_closes_the_queue`.
#[test]
fn one_of_two_that_close_a_queue_has_closed_it() {
    let fair = over_a_pool(1);
    let prepare = |_| {
        let queue = fair.queue("q").build().unwrap();
        (queue.clone(), queue)
    };
    let close = |queue: Queue| queue.close();
    at_once(scaled(2_000), prepare, close, close, |one, other| {
        assert_ne!(one, other, "by one of the two");
    });
    assert_eq!(fair.spawn(|| 7).join().unwrap(), 7);
}

#[derive(Clone, Debug)]
enum Step {
    Create,
    Close(usize),
    Submit(usize),
    Run,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Create),
        1 => (0_usize..8).prop_map(Step::Close),
        4 => (0_usize..8).prop_map(Step::Submit),
        2 => Just(Step::Run),
    ];
    prop::collection::vec(step, 1..80)
}

/// Returns the slot that is served next: the first at or after `cursor` with a task, or else the
/// first slot with a task.
fn next_in_turn(pending: &BTreeMap<usize, usize>, cursor: usize) -> Option<usize> {
    let mut slots = pending.range(cursor..).chain(pending);
    slots.find(|(_, tasks)| **tasks > 0).map(|(slot, _)| *slot)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// B4: the cursor was an index into a list of queues. A removal moved the others, gave a
    /// cursor of -1, or divided by zero. Here a queue keeps its slot, and the cursor is a slot.
    #[test]
    fn queues_have_their_turns_while_others_come_and_go(steps in steps()) {
        let stepper = Stepper::new(1, 1);
        let fair = stepper.scheduler().policy(RoundRobin::new).build();
        let (mut queues, mut pending, mut cursor) = (Vec::<Queue>::new(), BTreeMap::new(), 0);
        let log = Arc::new(Mutex::new(Vec::new()));
        for step in steps.into_iter().chain([Step::Run]) {
            match step {
                Step::Create => queues.push(fair.queue("q").build().unwrap()),
                Step::Close(which) if !queues.is_empty() => {
                    queues.remove(which % queues.len());
                }
                Step::Submit(which) if !queues.is_empty() => {
                    let (queue, log) = (&queues[which % queues.len()], log.clone());
                    let slot = queue.slot();
                    queue.spawn_detached(move || log.lock().unwrap().push(slot)).unwrap();
                    *pending.entry(slot).or_default() += 1;
                }
                Step::Run => {
                    stepper.run_until_idle();
                    for slot in log.lock().unwrap().drain(..) {
                        prop_assert_eq!(Some(slot), next_in_turn(&pending, cursor), "in turn");
                        *pending.get_mut(&slot).unwrap() -= 1;
                        cursor = slot + 1;
                    }
                    prop_assert_eq!(next_in_turn(&pending, cursor), None, "none is lost");
                }
                _ => {}
            }
        }
        drop(queues);
        prop_assert_eq!(fair.report().queues.len(), 1);
    }
}

/// B4: the cursor was taken modulo the number of queues left, which was zero after the last queue.
#[test]
fn a_priority_whose_last_queue_has_gone_holds_up_nobody() {
    let stepper = Stepper::new(1, 1);
    let panics = Arc::new(AtomicUsize::new(0));
    let same = panics.clone();
    let handler = move |_| _ = same.fetch_add(1, SeqCst);
    let fair = stepper.scheduler().panic_handler(handler).policy(RoundRobin::new).build();
    let last = fair.queue("last").priority(Priority::Lowest).build().unwrap();
    let handle = last.spawn(|| ());
    stepper.run_until_idle();
    handle.join().unwrap();
    drop(last);
    // A lower priority has its turn at every 64th pick, so 500 tasks reach it several times.
    let handles: Vec<_> = (0..500).map(|number| fair.spawn(move || number)).collect();
    stepper.run_until_idle();
    assert!(handles.iter().all(|it| it.is_finished()), "somebody serves the others");
    assert!(handles.into_iter().map(|it| it.join().unwrap()).eq(0..500));
    assert_eq!(panics.load(SeqCst), 0);
}

/// B5: the job of a task that had run inline stayed queued, and used up a turn of its queue. A
/// quantum of zero, where each task is a turn, brought this defect back.
#[test]
fn a_tombstone_takes_no_turn() {
    for quantum in [Duration::from_micros(100), Duration::ZERO] {
        let stepper = Stepper::new(1, 1);
        let fair = stepper.scheduler().policy(RoundRobin::new).quantum(quantum).build();
        let queues = [fair.queue("a").build().unwrap(), fair.queue("b").build().unwrap()];
        let log = Arc::new(Mutex::new(String::new()));
        let mut handles = Vec::new();
        for _ in 0..6 {
            for (queue, name) in queues.iter().zip(['a', 'b']) {
                let log = log.clone();
                handles.push(queue.spawn(move || log.lock().unwrap().push(name)));
            }
        }
        // Cancels the first three tasks of queue `a`.
        for handle in handles.iter().step_by(2).take(3) {
            assert_eq!(handle.cancel(), Cancel::Dequeued);
        }
        stepper.run_until_idle();
        assert_eq!(*log.lock().unwrap(), "abababbbb", "in turn from the beginning");
        assert_eq!(queues[0].metrics().tombstones, 3);
    }
}

/// B6: closures shared the variable of the loop, and all saw its last value.
#[test]
fn each_closure_has_its_own_item() {
    // Paused: none has run when the last is made.
    let queue = over_a_pool(2).queue("q").paused().build().unwrap();
    let handles: Vec<_> = (0..100).map(|item| queue.spawn(move || item)).collect();
    queue.resume();
    assert!(handles.into_iter().map(|it| it.join().unwrap()).eq(0..100));
}

/// Returns a work queue that runs one input at a time, and is occupied until the sender is dropped.
fn occupied() -> (WorkQueue<u32, u32>, mpsc::Sender<()>) {
    let (end, ended) = mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let (started, inbox) = mpsc::channel();
    let work = WorkQueue::over(ThreadPool::new(1).unwrap(), 1, move |input, _: &CancelToken| {
        if input == 0 {
            started.send(()).unwrap();
            let _ = ended.lock().unwrap().recv();
        }
        input
    })
    .unwrap();
    drop(work.push(0));
    inbox.recv().unwrap();
    (work, end)
}

/// B12: the caller's token was checked before the item was queued, and never again.
#[test]
fn an_item_is_cancelled_by_its_own_token() {
    // Its token cancels an item that is queued.
    let (work, end) = occupied();
    let token = CancelToken::new();
    let (cancelled, other) = (work.push_with(1, &token), work.push(2));
    token.cancel();
    assert!(cancelled.join().unwrap_err().is_cancelled());
    drop(end);
    assert_eq!(other.join().unwrap(), 2);
    // An item that runs is cancelled by its own token, and by its queue.
    for by_queue in [false, true] {
        let (started, inbox) = mpsc::channel();
        let pool = ThreadPool::new(1).unwrap();
        let work = WorkQueue::over(pool, 1, move |(): (), token: &CancelToken| {
            started.send(()).unwrap();
            while !token.is_cancelled() {
                thread::yield_now();
            }
            "stopped"
        })
        .unwrap();
        let token = CancelToken::new();
        let handle = work.push_with((), &token);
        inbox.recv().unwrap();
        if by_queue {
            work.queue().cancel();
        } else {
            token.cancel();
        }
        assert_eq!(handle.join().unwrap(), "stopped");
    }
}

/// B13: the handle of an item cancelled in the queue reported this only when a worker took the
/// item.
#[test]
fn a_cancelled_item_is_told_at_once() {
    let (work, end) = occupied();
    let token = CancelToken::new();
    let (by_token, by_handle) = (work.push_with(1, &token), work.push(2));
    token.cancel();
    assert_eq!(by_handle.cancel(), Cancel::Dequeued);
    // The first item still runs, so no worker has taken the cancelled ones.
    assert!(by_token.join().unwrap_err().is_cancelled());
    assert!(by_handle.join().unwrap_err().is_cancelled());
    drop(end);
}

/// B14: after a shutdown, the result of `push` depended on timing, and a second shutdown failed.
#[test]
fn after_the_end_there_is_one_answer() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let (work, end) = occupied();
        let is_closed = || {
            assert_eq!(work.try_push(1).unwrap_err().reason, Reason::Closed);
            assert!(work.push(1).join().unwrap_err().is_cancelled());
        };
        work.queue().close();
        // Checked while an item runs, and after each of two shutdowns.
        is_closed();
        drop(end);
        for _ in 0..2 {
            work.shutdown(how).unwrap();
            is_closed();
        }
    }
}

/// B15: the code after an `await` of an item ran inside the worker, and so occupied it.
#[test]
fn who_awaits_an_item_goes_on_outside_its_place() {
    let fair = over_a_pool(2);
    let limited = fair.queue("limited").max_parallel(1).build().unwrap();
    let (go, goes_on) = mpsc::channel();
    let mut item = limited.spawn(move || goes_on.recv().map(|()| 7).unwrap());
    let (same, (end, ended)) = (limited.clone(), mpsc::channel::<u32>());
    // The item ends only after the future below has been polled once.
    let mut poll = move |context: &mut Context<'_>| {
        let polled = Pin::new(&mut item).poll(context);
        if polled.is_pending() {
            let _ = go.send(());
        }
        polled
    };
    // This future continues in the default queue, and blocks there until another item of `limited`
    // has run.
    let waiting = fair.spawn_future(async move {
        let seven = poll_fn(&mut poll).await.unwrap();
        drop(same.spawn(move || end.send(1).unwrap()));
        seven + ended.recv().unwrap()
    });
    assert_eq!(waiting.join().unwrap(), 8);
}

/// B16: an item pushed another into its own queue and waited for it, but itself occupied the
/// queue's only worker.
#[test]
fn an_item_may_wait_for_one_of_its_own_queue() {
    let fair = over_a_pool(1);
    let limited = fair.queue("limited").max_parallel(1).build().unwrap();
    fn nested(queue: &Queue, depth: u32) -> u32 {
        let same = queue.clone();
        match depth {
            0 => 0,
            _ => queue.spawn(move || nested(&same, depth - 1)).join().unwrap() + 1,
        }
    }
    let same = limited.clone();
    assert_eq!(limited.spawn(move || nested(&same, 10)).join().unwrap(), 10);
}

/// B17: a queue with zero workers was accepted, and its shutdown never returned.
#[test]
fn no_place_at_all_is_an_error() {
    let none = WorkQueue::over(ThreadPool::new(1).unwrap(), 0, |(): (), _: &CancelToken| ());
    assert_eq!(none.unwrap_err(), QueueError::Parallel);
    let fair = over_a_pool(1);
    assert_eq!(fair.queue("q").max_parallel(0).build().unwrap_err(), QueueError::Parallel);
    let queue = fair.queue("q").build().unwrap();
    assert_eq!(queue.set_max_parallel(0).unwrap_err(), QueueError::Parallel);
    assert_eq!(queue.set_weight(0).unwrap_err(), QueueError::Weight);
    assert_eq!(fair.queue("q").weight((1 << 32) + 1).build().unwrap_err(), QueueError::Weight);
    assert_eq!(fair.queue("q").capacity(0).build().unwrap_err(), QueueError::Capacity);
}

/// A task that waits for its own queue or scheduler would wait for itself.
#[test]
fn waiting_from_inside_is_an_error() {
    let fair = over_a_pool(1);
    let queue = fair.queue("q").build().unwrap();
    let (same, same_queue) = (fair.clone(), queue.clone());
    let errors = queue.spawn(move || {
        let errors = [same.wait_idle(), same_queue.wait_idle(), same.shutdown(Shutdown::Drain)];
        errors.map(|it| it.is_err())
    });
    assert_eq!(errors.join().unwrap(), [true; 3]);
    assert!(!task::is_cancelled());
}

/// Once the executor has ended, a new task is refused and handed back, and a queued task is
/// cancelled.
#[test]
fn an_executor_that_has_ended_strands_nothing() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let paused = fair.queue("q").paused().build().unwrap();
    let handle = paused.spawn(|| 7);
    pool.shutdown(Shutdown::Drain).unwrap();
    let refused = fair.default_queue().try_spawn(|| 8).unwrap_err();
    assert_eq!((refused.reason, (refused.item)()), (Reason::Closed, 8));
    paused.resume();
    assert!(handle.join().unwrap_err().is_cancelled());
    assert_eq!(paused.metrics().pending, 0);
}

/// A ticket is queued or runs when the executor is shut down. With `Drain` all accepted tasks run;
/// with `Cancel` the queued ones are cancelled.
#[test]
fn an_executor_that_drains_runs_what_was_accepted() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let pool = ThreadPool::new(1).unwrap();
        let fair = FairScheduler::over(pool.clone());
        let queue = fair.queue("q").build().unwrap();
        let handles: Vec<_> =
            (0..100).map(|_| queue.spawn(|| thread::sleep(Duration::from_micros(50)))).collect();
        pool.shutdown(how).unwrap();
        assert!(handles.iter().all(|it| it.is_finished()), "no handle dangles: {how:?}");
        let ran = handles.into_iter().filter_map(|it| it.join().ok()).count();
        assert!(if how == Shutdown::Drain { ran == 100 } else { ran < 100 }, "{how:?}: {ran}");
    }
}

#[test]
fn stepping_is_for_tasks_of_steppers() {
    assert!(std::panic::catch_unwind(|| sim::work(Duration::ZERO)).is_err());
}
