//! Models of the stealing pool: how its workers sleep, wake and leave.
//!
//! A worker that sleeps although there is work shows in one of two ways. Either `wait_idle` takes
//! the pool for idle, and returns before the job has run. Or a job waits for another job for ever,
//! which loom reports as a deadlock. Dropping the pool wakes all workers, and would hide the fault.
//! So the main thread waits before it drops the pool.
//!
//! A whole pool is large for loom. One worker and no preemption make tens of thousands of
//! executions. Two workers make too many, unless the second starts only while the pool closes. So
//! these models ask only whether the parts fit together. The parts have models of their own, with
//! higher bounds: `snapshot.rs` and the folders `idle`, `task`, `injector` and `deque`. The random
//! programs of `tests/pool/random_programs.rs` cover two workers, and pools that grow and shrink.
//! No model here judges the pool's orderings, and `unwitnessed.md` names the tests that do.

use crate::common::trace::Trace;
use crate::common::{Bound::*, model, note_spawn, spawn};
use filch::ThreadPool;
use filch::executor::Shutdown;
use filch::pool::{Start, blocking};
use loom::sync::{Arc, Condvar, Mutex};
use std::cell::RefCell;

/// Makes a pool of up to `threads` modelled threads.
fn pool(threads: usize) -> ThreadPool {
    (0..threads).for_each(|_| note_spawn());
    ThreadPool::builder().num_threads(threads).start(Start::Eager).build().unwrap()
}

#[test]
fn two_accepted_jobs_run() {
    model("two_accepted_jobs_run", Long { preemptions: 0, seconds: 33 }, || {
        let (pool, traces) = (pool(1), [Trace::new(), Trace::new()]);
        for trace in &traces {
            pool.spawn_detached(trace.job()).unwrap();
        }
        pool.wait_idle().unwrap();
        assert_eq!(traces.map(|it| it.runs()), [1, 1], "an accepted job runs once");
    });
}

#[test]
fn a_closed_pool_runs_what_it_accepted() {
    model("a_closed_pool_runs_what_it_accepted", Deep { most: Some(1), short: 0 }, || {
        let (pool, trace) = (pool(1), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        let submitter = spawn(move || same_pool.spawn_detached(job).is_ok());
        pool.shutdown(Shutdown::Drain).unwrap();
        let accepted = submitter.join().unwrap();
        assert_eq!(trace.runs(), usize::from(accepted), "accepted and run, or refused");
    });
}

/// The first submitter starts the threads. A thread that closes the pool keeps them from starting.
#[test]
fn a_pool_that_starts_while_it_closes_runs_what_it_accepted() {
    model("a_pool_that_starts_while_it_closes_runs_what_it_accepted", Slow(1), || {
        note_spawn();
        let lazy = ThreadPool::builder().num_threads(1).start(Start::Lazy);
        let (pool, trace) = (lazy.build().unwrap(), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        let submitter = spawn(move || same_pool.spawn_detached(job).is_ok());
        pool.shutdown(Shutdown::Drain).unwrap();
        let accepted = submitter.join().unwrap();
        assert_eq!(trace.runs(), usize::from(accepted), "run if it was accepted, and else not");
    });
}

#[test]
fn a_job_that_spawns_is_accepted_and_runs_or_is_refused() {
    model("a_job_that_spawns_is_accepted_and_runs_or_is_refused", Preemptions(0), || {
        let (pool, outer, inner) = (pool(1), Trace::new(), Trace::new());
        let (same_pool, ran, job) = (pool.clone(), outer.clone(), inner.job());
        let spawned = pool.spawn_detached(move || {
            // Leaves a second trace if the inner job was accepted.
            ran.leave();
            if same_pool.spawn_detached(job).is_ok() {
                ran.leave();
            }
        });
        spawned.unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        assert_eq!(outer.runs(), 1 + inner.runs(), "accepted and run, or refused");
    });
}

#[test]
fn waiting_includes_what_a_job_spawned() {
    model("waiting_includes_what_a_job_spawned", Preemptions(0), || {
        let (pool, trace) = (pool(1), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        pool.spawn_detached(move || same_pool.spawn_detached(job).unwrap()).unwrap();
        pool.wait_idle().unwrap();
        assert_eq!(trace.runs(), 1, "an accepted job runs once");
    });
}

/// A future yields twice. After the second time, the worker takes it back without a call of
/// `execute`.
#[test]
fn waiting_includes_a_future_that_yields() {
    model("waiting_includes_a_future_that_yields", Slow(0), || {
        let (pool, trace) = (pool(1), Trace::new());
        drop(pool.spawn_future(trace.yields(2)));
        pool.wait_idle().unwrap();
        assert_eq!(trace.runs(), 1, "it was polled to its end");
    });
}

#[test]
fn a_future_that_yields_ends_or_is_dropped_with_its_pool() {
    model("a_future_that_yields_ends_or_is_dropped_with_its_pool", Slow(0), || {
        let (pool, trace) = (pool(1), Trace::new());
        let task = pool.spawn_future(trace.yields(1));
        pool.shutdown(Shutdown::Cancel).unwrap();
        assert_eq!(task.join().is_ok(), trace.runs() == 1);
    });
}

#[test]
fn both_halves_of_a_join_run() {
    model("both_halves_of_a_join_run", Preemptions(0), || {
        let (pool, traces) = (pool(1), [Trace::new(), Trace::new()]);
        let [a, b] = traces.each_ref().map(Trace::job);
        pool.join(a, b);
        assert_eq!(traces.map(|it| it.runs()), [1, 1]);
    });
}

/// The only worker waits, and runs the task itself.
#[test]
fn a_worker_waits_for_what_it_spawned() {
    model("a_worker_waits_for_what_it_spawned", Preemptions(0), || {
        let (pool, trace) = (pool(1), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        pool.spawn(move || same_pool.spawn(job).join().unwrap()).join().unwrap();
        assert_eq!(trace.runs(), 1);
    });
}

/// The task is dropped unrun, or runs: the handle reports which.
#[test]
fn a_handle_of_a_cancelled_pool_says_whether_its_task_ran() {
    let bound = Deep { most: Some(1), short: 0 }; // eleven minutes with one preemption
    model("a_handle_of_a_cancelled_pool_says_whether_its_task_ran", bound, || {
        let (pool, trace) = (pool(1), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        let submitter = spawn(move || same_pool.spawn(job).join().is_ok());
        pool.shutdown(Shutdown::Cancel).unwrap();
        assert_eq!(submitter.join().unwrap(), trace.runs() == 1);
    });
}

#[test]
fn a_guest_and_a_worker_run_both_halves_of_a_join() {
    model("a_guest_and_a_worker_run_both_halves_of_a_join", Preemptions(0), || {
        let (pool, traces) = (pool(1), [Trace::new(), Trace::new()]);
        let [first, second] = traces.each_ref().map(Trace::job);
        pool.take_part(|| pool.join(first, second));
        assert_eq!(traces.map(|it| it.runs()), [1, 1], "both have run, once each");
    });
}

#[test]
fn a_guest_that_leaves_while_the_pool_closes_loses_no_job() {
    let bound = Deep { most: Some(1), short: 0 };
    model("a_guest_that_leaves_while_the_pool_closes_loses_no_job", bound, || {
        let (pool, trace) = (pool(1), Trace::new());
        let (same_pool, job) = (pool.clone(), trace.job());
        let guest = spawn(move || same_pool.take_part(|| same_pool.spawn_detached(job).is_ok()));
        pool.shutdown(Shutdown::Drain).unwrap();
        let accepted = guest.join().unwrap();
        pool.wait_idle().unwrap();
        assert_eq!(trace.runs(), usize::from(accepted), "accepted and run, or refused");
    });
}

/// A value that a job captures. Its destructor signals the event.
struct Told(Arc<Event>);

#[derive(Default)]
struct Event(Mutex<bool>, Condvar);

impl Event {
    fn tell(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    fn wait(&self) {
        let mut is_told = self.0.lock().unwrap();
        while !*is_told {
            is_told = self.1.wait(is_told).unwrap();
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// The only worker blocks until the second job has run. Both jobs are queued before the worker
/// begins to block, so the crew must start a thread that takes its place.
#[test]
fn a_job_that_blocks_in_a_closing_pool_gives_its_place_to_another_thread() {
    let name = "a_job_that_blocks_in_a_closing_pool_gives_its_place_to_another_thread";
    model(name, Long { preemptions: 0, seconds: 53 }, || {
        let (pool, trace) = (pool(1), Trace::new());
        let told = Arc::new(Event::default());
        let (waits, job) = (told.clone(), trace.job());
        pool.spawn_detached(move || blocking(|| waits.wait())).unwrap();
        let second = move || {
            job();
            told.tell();
        };
        pool.spawn_detached(second).unwrap();
        pool.shutdown(Shutdown::Drain).unwrap();
        assert_eq!(trace.runs(), 1);
    });
}

/// Runs `f` on another thread. Once `f` signals its event, this thread cancels the pool, whose only
/// seat has no thread. The cancellation waits until `f` has returned.
fn cancelled_meanwhile(f: impl FnOnce(&ThreadPool, &Event) + Send + 'static) {
    let seats = RefCell::new(Vec::new());
    let builder = ThreadPool::builder().num_threads(1);
    let keep = |seat| {
        seats.borrow_mut().push(seat);
        Ok(())
    };
    let pool = builder.build_with(keep).unwrap();
    let (same_pool, seats) = (pool.clone(), seats.into_inner());
    let begun = Arc::new(Event::default());
    let begins = begun.clone();
    let other = spawn(move || {
        f(&same_pool, &begins);
        drop(seats); // the pool waits for its thread, which never comes
    });
    begun.wait();
    pool.shutdown(Shutdown::Cancel).unwrap();
    other.join().unwrap();
}

/// A worker that cancels a task moves the job above the task's job. During the move no thread can
/// see the moved job, so the thread that cancels the pool may miss it. The worker must tell that
/// thread of the job, because the worker then waits in user code until the job is gone.
#[test]
fn a_job_that_is_moved_while_its_pool_is_cancelled_is_dropped() {
    model("a_job_that_is_moved_while_its_pool_is_cancelled_is_dropped", Needs(2), || {
        cancelled_meanwhile(|pool, begun| {
            pool.take_part(|| {
                let gone = Arc::new(Event::default());
                let told = Told(gone.clone());
                let older = pool.spawn(|| ());
                pool.spawn_detached(move || drop(told)).unwrap();
                begun.tell();
                older.cancel();
                gone.wait();
            });
        });
    });
}

/// Spawns a job while another thread cancels the pool, and waits until that job is dropped.
fn spawned_meanwhile(pool: &ThreadPool, begun: &Event) {
    let gone = Arc::new(Event::default());
    let told = Told(gone.clone());
    begun.tell();
    drop(pool.spawn_detached(move || drop(told)));
    gone.wait();
}

#[test]
fn a_job_that_a_worker_spawns_while_its_pool_is_cancelled_is_dropped() {
    model("a_job_that_a_worker_spawns_while_its_pool_is_cancelled_is_dropped", Slow(2), || {
        cancelled_meanwhile(|pool, begun| pool.take_part(|| spawned_meanwhile(pool, begun)));
    });
}

#[test]
fn a_job_that_comes_while_its_pool_is_cancelled_is_dropped() {
    model("a_job_that_comes_while_its_pool_is_cancelled_is_dropped", Slow(2), || {
        cancelled_meanwhile(spawned_meanwhile);
    });
}
