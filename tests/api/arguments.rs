//! Tests which types of numbers and names a method takes as they are.

use filch::executor::{Executor, Inline, from_fn};
use filch::fair::FairScheduler;
use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::sync::Arc;

#[test]
fn a_count_of_at_least_one_is_a_literal_or_a_nonzero() {
    let two = NonZeroUsize::new(2).unwrap();
    assert_eq!(from_fn(2, |job| Inline.execute(job)).parallelism(), two);
    assert_eq!(from_fn(two, |job| Inline.execute(job)).parallelism(), two);
    let fair = FairScheduler::builder(Inline).tasks_per_lease(2).tasks_per_lease(two).build();
    assert_eq!(fair.spawn(|| 7).join().unwrap(), 7);
    assert!(catch_unwind(|| from_fn(0, |job| Inline.execute(job))).is_err());
    assert!(catch_unwind(|| FairScheduler::builder(Inline).tasks_per_lease(0)).is_err());
}

#[test]
fn a_queue_takes_literals_and_any_text() {
    let fair = FairScheduler::over(Inline);
    let (name, shared): (String, Arc<str>) = ("a".into(), "a".into());
    let limited = fair.queue(&name).weight(3).max_parallel(2).max_parallel(Some(2));
    let queues =
        [limited, fair.queue("a").max_parallel(None), fair.queue(&shared), fair.queue(name)];
    for queue in queues {
        let queue = queue.weight(u64::from(3_u32)).build().unwrap();
        assert_eq!(queue.metrics().name.as_deref(), Some("a"));
    }
}
