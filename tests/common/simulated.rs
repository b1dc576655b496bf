//! Durations, and tasks that take virtual time, for queues on a virtual clock.

use filch::fair::Queue;
use filch::sim;
use std::time::Duration;

pub(crate) fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Spawns `tasks` tasks that each take the virtual time `cost`.
pub(crate) fn fill(queue: &Queue, tasks: usize, cost: Duration) {
    (0..tasks).for_each(|_| queue.spawn_detached(move || sim::work(cost)).unwrap());
}
