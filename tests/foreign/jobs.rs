//! Jobs of other code beside a backlog in a scheduler's queue, on executors of other crates.

use crate::foreign_jobs_beside_queues::begins_soon;
use crate::pools::{async_executor, rayon_pool, tokio_blocking, tokio_tasks};
use filch::{FairScheduler, Job};
use std::sync::mpsc;
use std::time::Duration;

begins_soon! {
    over_rayon: rayon_pool(1);
    over_blocking_threads_of_tokio: tokio_blocking(1);
    over_tasks_of_tokio: tokio_tasks(1);
    over_async_executor: async_executor();
}

/// rayon's `yield_now` in a ticket runs a foreign job, so that job is above the ticket on the
/// stack. It waits for a task, which the other thread must run.
#[test]
fn a_foreign_job_may_wait_for_a_task() {
    let (executor, submit, ()) = rayon_pool(2);
    let fair = FairScheduler::builder(executor).quantum(Duration::ZERO).build();
    let (begins, begun) = mpsc::channel();
    let (free_other, other_is_free) = mpsc::channel::<()>();
    let (end_first, first_ends) = mpsc::channel::<()>();
    let (done, inbox) = mpsc::channel();
    // The other thread is occupied until the foreign job runs on this executor's first thread.
    let same_begins = begins.clone();
    let occupy = submit.clone();
    occupy(Job::new(move || {
        same_begins.send(()).unwrap();
        other_is_free.recv().unwrap();
    }));
    begun.recv().unwrap();
    let first = move || {
        begins.send(()).unwrap();
        first_ends.recv().unwrap();
    };
    fair.spawn_detached(first).unwrap();
    begun.recv().unwrap();
    let queue = fair.default_queue().clone();
    submit(Job::new(move || {
        free_other.send(()).unwrap();
        done.send(queue.spawn(|| 7).join().unwrap()).unwrap();
    }));
    end_first.send(()).unwrap();
    assert_eq!(inbox.recv_timeout(Duration::from_secs(20)), Ok(7));
}
