//! Tests of priorities: of threads that `reserve` keeps for high ones, and of the turns of lower
//! ones.

use crate::common::simulated::{fill, ms, us};
use crate::common::waiting::{done, in_a_minute};
use filch::executor::{Inline, from_fn};
use filch::fair::{Builder, Clock as _, FairScheduler, Priority, Queue};
use filch::sim::{self, Stepper};
use filch::{Executor, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Returns the time at which an urgent task begins. It is spawned after 10 ms, while four threads
/// are offered tasks of 50 ms.
fn urgent_begins(settings: impl Fn(Builder) -> Builder, urgent: Priority) -> Duration {
    let stepper = Stepper::new(1, 4);
    let fair = settings(stepper.scheduler()).build();
    let long = fair.queue("long").build().unwrap();
    let queue = fair.queue("urgent").priority(urgent).build().unwrap();
    fill(&long, 100, ms(50));
    stepper.advance(ms(10));
    let clock = stepper.handle();
    let task = queue.spawn(move || clock.now());
    stepper.run_until_idle();
    task.join().unwrap()
}

#[test]
fn an_urgent_task_begins_at_once_beside_long_ones() {
    let reserved = |it: Builder| it.reserve(Priority::Highest, 1);
    assert_eq!(urgent_begins(reserved, Priority::Highest), ms(10));
    assert_eq!(urgent_begins(|it| it, Priority::Highest), ms(50), "nothing is kept");
    assert_eq!(urgent_begins(reserved, Priority::AboveNormal), ms(50), "not for this one");
    let below = |it: Builder| it.reserve(Priority::BelowNormal, 1);
    assert_eq!(urgent_begins(below, Priority::Highest), ms(50), "the long ones are not below that");
    let both = |it: Builder| it.reserve(Priority::Highest, 1).reserve(Priority::AboveNormal, 2);
    assert_eq!(urgent_begins(both, Priority::AboveNormal), ms(10));
}

#[test]
fn the_other_threads_are_shared_by_weight_and_all_of_them() {
    for (kept, limit) in [(1, 3), (2, 2), (3, 1)] {
        let stepper = Stepper::new(1, 4);
        let fair = stepper.scheduler().reserve(Priority::AboveNormal, kept).build();
        let queues = [3, 1].map(|it| fair.queue("q").weight(it).build().unwrap());
        let running = Arc::new([const { AtomicUsize::new(0) }; 2]);
        for queue in queues.iter().cycle().take(4000) {
            let running = running.clone();
            let task = move || {
                let now = running[0].fetch_add(1, SeqCst) + 1;
                running[1].fetch_max(now, SeqCst);
                sim::work(ms(1));
                running[0].fetch_sub(1, SeqCst);
            };
            queue.spawn_detached(task).unwrap();
        }
        for _ in 0..100 {
            stepper.advance(Duration::from_micros(3700));
            assert_eq!(running[0].load(SeqCst), limit, "no thread is idle but those that are kept");
        }
        assert_eq!(running[1].load(SeqCst), limit);
        let (share, _) = fair.report().share(queues[0].slot()).unwrap();
        assert!((share - 0.75).abs() <= 0.02, "{share}");
        queues.iter().for_each(|it| _ = it.cancel());
        stepper.run_until_idle();
    }
}

/// Urgent tasks also use the threads that are not kept for them. The long tasks run afterwards.
#[test]
fn what_is_kept_is_no_limit() {
    let stepper = Stepper::new(1, 4);
    let fair = stepper.scheduler().reserve(Priority::Highest, 2).build();
    let long = fair.queue("long").build().unwrap();
    let urgent = fair.queue("urgent").priority(Priority::Highest).build().unwrap();
    fill(&urgent, 8, ms(5));
    fill(&long, 4, ms(10));
    stepper.run_until_idle();
    // Eight urgent tasks take four threads 10 ms; four long ones take two threads 20 ms.
    assert_eq!(stepper.now(), ms(30));
}

#[test]
fn a_pool_keeps_a_thread_while_others_block() {
    in_a_minute(|| {
        let pool = ThreadPool::new(2).unwrap();
        let fair = FairScheduler::builder(pool).reserve(Priority::AboveNormal, 1).build();
        let urgent = fair.queue("urgent").priority(Priority::Highest).build().unwrap();
        let (began, inbox) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let blocks = fair.spawn(move || {
            began.send(()).unwrap();
            gate.recv().unwrap();
        });
        inbox.recv().unwrap();
        let waits: Vec<_> = (0..100).map(|i| fair.spawn(move || i)).collect();
        for i in 0..100 {
            assert_eq!(done(urgent.spawn(move || i)), i);
        }
        assert!(waits.iter().all(|it| !it.is_finished()), "the kept thread runs nothing else");
        release.send(()).unwrap();
        done(blocks);
        assert_eq!(waits.into_iter().map(done).sum::<i32>(), 4950);
    });
}

#[test]
fn nonsense_is_refused() {
    fn refused(f: impl FnOnce()) -> String {
        let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
        *payload
            .downcast::<String>()
            .unwrap_or_else(|it| Box::new(it.downcast_ref::<&str>().unwrap().to_string()))
    }
    let four = || FairScheduler::builder(from_fn(4, |job| Inline.execute(job)));
    drop(four().reserve(Priority::Normal, 3));
    let text = refused(|| drop(four().reserve(Priority::Normal, 4)));
    assert_eq!(text, "of 4 threads, 4 cannot be kept: none would be left");
    let text = refused(|| drop(four().reserve(Priority::Lowest, 1)));
    assert_eq!(text, "no priority is below the lowest");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(four().reserve(Priority::Normal, 0)))).is_err());
}

/// One task of the lower queue runs, and `reserve` holds a second one back. The second one begins
/// after the pool has grown and a third is spawned.
#[test]
fn the_scheduler_learns_with_the_next_task_that_its_pool_has_grown() {
    in_a_minute(|| {
        let pool = ThreadPool::new(2).unwrap();
        let fair = FairScheduler::builder(pool.clone()).reserve(Priority::Highest, 1).build();
        let batch = fair.queue("batch").build().unwrap();
        let urgent = fair.queue("urgent").priority(Priority::Highest).build().unwrap();
        let ((begins, has_begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
        let running = batch.spawn(move || {
            begins.send(()).unwrap();
            let _ = ends.recv();
        });
        has_begun.recv().unwrap();
        let held_back = batch.spawn(|| 7);
        done(urgent.spawn(|| ()));
        assert!(!held_back.is_finished(), "the other thread is kept");
        pool.resize(3).unwrap();
        let next = batch.spawn(|| 8);
        assert_eq!((done(held_back), done(next)), (7, 8));
        end.send(()).unwrap();
        done(running);
    });
}

/// Two queues of lower priorities hand work to and fro. At each 64th pick, one of the two is ready.
/// The priority between theirs must have its turns all the same.
#[test]
fn a_priority_between_two_that_take_turns_does_not_starve() {
    fn hand_over(from: &Queue, to: &Queue) {
        let [one, other] = [to, from].map(Queue::clone);
        let _ = from.spawn_detached(move || {
            sim::work(us(1));
            hand_over(&one, &other);
        });
    }
    let stepper = Stepper::new(1, 1);
    // A task of `high` or `between` takes a quantum, so it needs a pick of its own. The other two
    // queues run dry in each lease.
    let fair = stepper.scheduler().quantum(us(100)).build();
    let queue = |priority| fair.queue("q").priority(priority).build().unwrap();
    let high = queue(Priority::Highest);
    let [above, between, below] =
        [Priority::AboveNormal, Priority::Normal, Priority::BelowNormal].map(queue);
    fill(&high, 7000, us(100));
    fill(&between, 100, us(100));
    hand_over(&above, &below);
    stepper.advance(ms(640));
    let served = between.metrics().completed;
    assert!((30..=36).contains(&served), "of 100 turns, {served}");
    [high, above, below].iter().for_each(|it| _ = it.cancel());
    stepper.run_until_idle();
}
