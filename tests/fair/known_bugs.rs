//! The defects of the articles' code about queues and fairness (B1–B6, B12–B17), each as a test by its number.
//! B7–B11 are about pools: `tests/pool/known_bugs.rs`.

use filch::ThreadPool;
use filch::fair::{FairScheduler, Queue, QueueError, RoundRobin, WorkQueue};
use filch::pool::Shutdown;
use filch::sim::{self, Stepper};
use filch::task::{self, Cancel, CancelToken};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn over_a_pool(threads: usize) -> FairScheduler {
    FairScheduler::over(ThreadPool::new(threads).unwrap())
}

/// Whether the queue was disposed of was looked at outside of the lock: what came in between was lost.
/// Here accepting and closing have one order; `submit_meets_close` is the model.
#[test]
fn b1_submitting_meets_closing() {
    let fair = over_a_pool(2);
    for _ in 0..300 {
        let (queue, runs) = (fair.queue("q").build().unwrap(), Arc::new(AtomicUsize::new(0)));
        let accepted = thread::scope(|scope| {
            let submit = || {
                let spawn = |_: &usize| {
                    let runs = runs.clone();
                    queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).is_ok()
                };
                (0..20).filter(spawn).count()
            };
            let submitters = [scope.spawn(submit), scope.spawn(submit)];
            queue.close();
            submitters.map(|it| it.join().unwrap()).iter().sum::<usize>()
        });
        queue.wait_idle().unwrap();
        assert_eq!(runs.load(SeqCst), accepted, "accepted and run, or refused");
    }
}

/// The mark was set after the lock was released: the last taker did not see it, and the queue stayed for ever.
#[test]
fn b2_closing_meets_the_last_task() {
    let fair = over_a_pool(2);
    for _ in 0..500 {
        let queue = fair.queue("q").build().unwrap();
        queue.spawn_detached(|| ()).unwrap();
        drop(queue);
    }
    fair.wait_idle().unwrap();
    // Freed by whoever was last, which may be a lease that is about to end.
    while fair.report().queues.len() > 1 {
        thread::yield_now();
    }
    assert!(fair.queue("q").build().unwrap().slot() <= 500, "slots are used again");
}

/// Two that disposed of a queue at the same time removed it twice.
#[test]
fn b3_closing_twice_at_the_same_time() {
    let fair = over_a_pool(1);
    for _ in 0..200 {
        let queue = fair.queue("q").build().unwrap();
        let closers = [(); 3].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || queue.close())
        });
        let closed = closers.into_iter().filter(|_| true).map(|it| it.join().unwrap());
        assert_eq!(closed.filter(|it| *it).count(), 1);
    }
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Removing the last queue divided by zero, removing the first gave a cursor of -1, and removing any moved
    /// the others. Here slots stay where they are, and the cursor is a slot.
    #[test]
    fn b4_queues_come_and_go_under_the_cursor(steps in steps()) {
        let stepper = Stepper::new(1, 1);
        let fair = stepper.scheduler().policy(RoundRobin::new).build();
        let (mut queues, mut accepted) = (Vec::<Queue>::new(), 0);
        let runs = Arc::new(AtomicUsize::new(0));
        for step in steps {
            match step {
                Step::Create => queues.push(fair.queue("q").build().unwrap()),
                Step::Close(which) if !queues.is_empty() => {
                    queues.remove(which % queues.len());
                }
                Step::Submit(which) if !queues.is_empty() => {
                    let runs = runs.clone();
                    let body = move || _ = runs.fetch_add(1, SeqCst);
                    queues[which % queues.len()].spawn_detached(body).unwrap();
                    accepted += 1;
                }
                Step::Run => _ = stepper.step(),
                _ => {}
            }
        }
        stepper.run_until_idle();
        prop_assert_eq!(runs.load(SeqCst), accepted);
        drop(queues);
        prop_assert_eq!(fair.report().queues.len(), 1);
    }
}

/// What had run inline stayed queued, and its turn went by with nothing done.
#[test]
fn b5_a_tombstone_takes_no_turn() {
    let stepper = Stepper::new(1, 1);
    let fair = stepper.scheduler().policy(RoundRobin::new).build();
    let queues = [fair.queue("a").build().unwrap(), fair.queue("b").build().unwrap()];
    let log = Arc::new(Mutex::new(String::new()));
    let mut handles = Vec::new();
    for _ in 0..6 {
        for (queue, name) in queues.iter().zip(['a', 'b']) {
            let log = log.clone();
            handles.push(queue.spawn(move || log.lock().unwrap().push(name)));
        }
    }
    // The first three of one queue.
    for handle in handles.iter().step_by(2).take(3) {
        assert_eq!(handle.cancel(), Cancel::Dequeued);
    }
    stepper.run_until_idle();
    assert_eq!(*log.lock().unwrap(), "abababbbb", "in turn from the beginning");
    assert_eq!(queues[0].metrics().tombstones, 3);
}

/// Closures shared the variable of the loop, and all saw its last value.
#[test]
fn b6_each_closure_has_its_own_item() {
    let fair = over_a_pool(2);
    let handles: Vec<_> = (0..100).map(|item| fair.spawn(move || item)).collect();
    assert!(handles.into_iter().map(|it| it.join().unwrap()).eq(0..100));
}

/// A queue of work with one place, which is taken until the sender goes.
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

/// The caller's token was looked at before the item was queued, and then no more.
#[test]
fn b12_an_item_is_cancelled_by_its_own_token() {
    // While it waits.
    let (work, end) = occupied();
    let token = CancelToken::new();
    let (cancelled, other) = (work.push_with(1, &token), work.push(2));
    token.cancel();
    assert!(cancelled.join().unwrap_err().is_cancelled());
    drop(end);
    assert_eq!(other.join().unwrap(), 2);
    // While it runs: by its own token, and by the queue's.
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

/// An item that was cancelled while it waited was told so when a worker came to it.
#[test]
fn b13_a_cancelled_item_is_told_at_once() {
    let (work, end) = occupied();
    let token = CancelToken::new();
    let (by_token, by_handle) = (work.push_with(1, &token), work.push(2));
    token.cancel();
    assert_eq!(by_handle.cancel(), Cancel::Dequeued);
    // The place is still taken.
    assert!(by_token.join().unwrap_err().is_cancelled());
    assert!(by_handle.join().unwrap_err().is_cancelled());
    drop(end);
}

/// What one got after the end depended on the moment, and ending twice was an error.
#[test]
fn b14_after_the_end_there_is_one_answer() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let (work, end) = occupied();
        drop(end);
        work.shutdown(how).unwrap();
        work.shutdown(how).unwrap();
        for _ in 0..3 {
            assert_eq!(work.try_push(1).unwrap_err().reason, filch::executor::Reason::Closed);
            assert!(work.push(1).join().unwrap_err().is_cancelled());
        }
    }
}

/// Whoever awaited an item went on inside the worker, and held its place.
#[test]
fn b15_who_waits_goes_on_somewhere_else() {
    let fair = over_a_pool(2);
    let limited = fair.queue("limited").max_parallel(1).build().unwrap();
    let item = limited.spawn(|| 7);
    let (same, (end, ended)) = (limited.clone(), mpsc::channel::<u32>());
    // Goes on as a task of its own queue, and blocks there until another item of the limited queue has run.
    let waiting = fair.spawn_future(async move {
        let seven = item.await.unwrap();
        drop(same.spawn(move || end.send(1).unwrap()));
        seven + ended.recv().unwrap()
    });
    assert_eq!(waiting.join().unwrap(), 8);
}

/// An item that pushed into its own queue and waited for it, waited for its own place.
#[test]
fn b16_an_item_waits_for_one_of_its_own_queue() {
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

/// With no workers at all, the end never came.
#[test]
fn b17_no_place_at_all_is_an_error() {
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

/// A wait from inside would be for itself.
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

/// An executor that has ended takes no tickets: what it is given is handed back, what waits is cancelled.
#[test]
fn an_executor_that_has_ended_strands_nothing() {
    let pool = ThreadPool::new(1).unwrap();
    let fair = FairScheduler::over(pool.clone());
    let paused = fair.queue("q").paused().build().unwrap();
    let handle = paused.spawn(|| 7);
    pool.shutdown(Shutdown::Drain).unwrap();
    let refused = fair.default_queue().try_spawn(|| 8).unwrap_err();
    assert_eq!((refused.reason, (refused.f)()), (filch::executor::Reason::Closed, 8));
    paused.resume();
    assert!(handle.join().unwrap_err().is_cancelled());
    assert_eq!(paused.metrics().pending, 0);
}

/// There is a ticket under way when the executor ends: what was accepted runs.
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
