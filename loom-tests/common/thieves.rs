//! Thieves that sleep when there is nothing to steal.

use super::{Bound::Preemptions, each_once, model, spawn};
use filch::idle::EventCount;
use filch::{Steal, Worker};
use loom::sync::Arc;

/// Two thieves steal from a deque with two items. The thief that loses the race for the first item
/// gets `Retry`. If it took that for `Empty`, it would sleep although the second item is there.
pub fn retry(name: &str, is_retry_work: bool) {
    model(name, Preemptions(2), move || {
        let (owner, pushes) = (Worker::new_fifo(), Arc::new(EventCount::new()));
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let (stealer, pushes) = (owner.stealer(), pushes.clone());
                spawn(move || {
                    loop {
                        let prepared = pushes.prepare();
                        match stealer.steal() {
                            Steal::Success(item) => {
                                prepared.cancel();
                                return item;
                            }
                            Steal::Retry if is_retry_work => prepared.cancel(),
                            _ => prepared.commit(),
                        }
                    }
                })
            })
            .collect();
        owner.push_batch([1, 2]);
        pushes.notify_many(2);
        let stolen = thieves.into_iter().map(|it| it.join().unwrap()).collect();
        each_once(1..=2, stolen);
    });
}
