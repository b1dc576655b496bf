//! Tests of a group's jobs and list of tasks, and of destructors that wait for the group.

use crate::common::closures::keep_quiet;
use crate::common::waiting::{MINUTE, done};
use crate::groups_meet::{Held, is_refused};
use filch::executor::{Executor, Reason, TaskBuilder, from_fn};
use filch::fair::FairScheduler;
use filch::task::{JoinError, TaskGroup};
use filch::{Job, ThreadPool};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A job of a group is given to a queue with `execute`. The queue must have room again when the
/// group reports the job's end. Recorded defect P12.
#[test]
fn a_queue_has_room_again_when_a_groups_job_has_ended() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("q").capacity(1).build().unwrap();
    let group = TaskGroup::new();
    for _ in 0..2000 {
        queue.execute(group.job(|| ())).expect("the job before has ended");
        group.wait().unwrap();
    }
    queue.pause();
    queue.execute(group.job(|| ())).unwrap();
    let refused = queue.execute(group.job(|| ())).unwrap_err();
    assert_eq!((refused.reason, group.pending()), (Reason::Full, 2));
    drop(refused);
    assert_eq!(group.pending(), 1);
    queue.resume();
    assert!(group.wait().unwrap_err().is_cancelled());
    queue.execute(group.job(|| ())).expect("the job before has ended");
    group.wait().unwrap();
}

/// A job given to a queue with `execute` is a task of the queue. So `is_cancelled` is true in it
/// once the queue is cancelled.
#[test]
fn a_job_that_is_given_to_a_queue_is_cancelled_with_it() {
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let group = TaskGroup::new();
    for is_groups in [false, true] {
        let queue = fair.queue("q").build().unwrap();
        let (begun, begins) = mpsc::channel();
        let waits = move || {
            begun.send(()).unwrap();
            let start = Instant::now();
            while !filch::task::is_cancelled() && start.elapsed() < MINUTE {
                thread::yield_now();
            }
            assert!(filch::task::is_cancelled(), "the task is not asked to end");
        };
        let (job, handle) = Job::with_handle(waits.clone());
        queue.execute(if is_groups { group.job(waits) } else { job }).unwrap();
        begins.recv_timeout(MINUTE).unwrap();
        queue.cancel();
        match is_groups {
            true => group.wait_timeout(MINUTE * 2).expect("it hangs").unwrap(),
            false => done(handle),
        }
    }
}

thread_local!(static IS_WAITER: Cell<bool> = const { Cell::new(false) });

/// Its destructor runs on the waiting thread, or else waits until that thread has returned from
/// `wait`. It records whether one of these two is true, and then panics.
struct Waiting(Mutex<mpsc::Receiver<()>>, Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let inbox = self.0.get_mut().unwrap();
        self.1.store(IS_WAITER.get() || inbox.recv_timeout(MINUTE).is_ok(), SeqCst);
        panic!("expected: dropped");
    }
}

/// The group's list has the last reference to a scheduler, whose executor blocks and panics when it
/// is dropped. The group must wake the waiting thread before it drops that reference.
#[test]
fn a_group_tells_those_who_wait_before_it_forgets_tasks() {
    keep_quiet(&["expected"]);
    let (held, group, (says, hears)) = (Held::new(), TaskGroup::new(), mpsc::channel());
    let (jobs, is_told) = (Arc::new(Held::new()), Arc::new(AtomicBool::new(false)));
    let (same, waiting) = (Arc::clone(&jobs), Waiting(Mutex::new(hears), Arc::clone(&is_told)));
    let kept = from_fn(NonZeroUsize::MIN, move |job| {
        let _ = &waiting;
        same.execute(job)
    });
    let fair = FairScheduler::builder(kept).quantum(Duration::from_nanos(1)).build();
    fair.task().group(&group).spawn_detached(|| ()).unwrap();
    drop(fair);
    let last = TaskBuilder::on(&held).group(&group).spawn(|| 7);
    // A ticket whose quantum has ended submits another, so this runs until none is left.
    while !jobs.jobs.lock().unwrap().is_empty() {
        jobs.run_all();
    }
    assert_eq!(group.pending(), 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            IS_WAITER.set(true);
            group.wait_timeout(2 * MINUTE).expect("it hangs").unwrap();
            let _ = says.send(()); // no thread listens if this one has dropped it
        });
        thread::sleep(Duration::from_millis(20)); // for it to fall asleep
        held.run_all();
    });
    assert_eq!(done(last), 7);
    assert!(is_told.load(SeqCst), "the waiter is told after the list has been swept");
}

/// Its destructor calls `wait` of the group, and sends the result.
struct Waits(TaskGroup, mpsc::Sender<Result<(), JoinError>>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.1.send(self.0.wait()).unwrap();
    }
}

#[test]
fn a_destructor_that_waits_for_its_own_group_is_refused() {
    let (held, group, (says, hears)) = (Held::new(), TaskGroup::new(), mpsc::channel());
    let spawn = || {
        let waits = Waits(group.clone(), says.clone());
        TaskBuilder::on(&held).group(&group).spawn(move || drop(waits))
    };
    let (cancelled, runs) = (spawn(), spawn());
    thread::spawn(move || cancelled.cancel());
    assert!(hears.recv_timeout(MINUTE).expect("it hangs").unwrap_err().is_deadlock());
    held.run_all();
    assert!(hears.recv_timeout(MINUTE).expect("it hangs").unwrap_err().is_deadlock());
    done(runs);
    assert!(group.wait().unwrap_err().is_cancelled());
}

/// A destructor waits for the group: that of a job's unrun closure, or that of a panic's payload
/// that the group does not keep. The wait is refused.
#[test]
fn a_destructor_of_a_groups_job_that_waits_for_the_group_is_refused() {
    keep_quiet(&["expected"]);
    let (group, (says, hears)) = (TaskGroup::new(), mpsc::channel());
    let hears_refusal = || is_refused(hears.recv_timeout(MINUTE).expect("it hangs"));
    let waits = Waits(group.clone(), says.clone());
    let job = group.job(move || drop(waits));
    thread::spawn(move || drop(job));
    hears_refusal();
    assert!(group.wait().unwrap_err().is_cancelled());
    let waits = [(); 2].map(|()| Waits(group.clone(), says.clone()));
    let jobs = waits.map(|it| group.job(move || panic_any(it)));
    thread::spawn(move || jobs.into_iter().for_each(Job::run));
    hears_refusal();
    assert!(group.wait().unwrap_err().is_panic());
}
