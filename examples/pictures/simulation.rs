//! Toub's question on a virtual clock: a small batch arrives while a large one runs.

use filch::fair::{Clock as _, Queue, QueueError, RoundRobin};
use filch::sim::{self, Stepper};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const THREADS: usize = 4;
/// The virtual time at which the small batch arrives.
pub(crate) const ARRIVAL: Duration = Duration::from_millis(500);

/// A batch of tasks that all take the same time.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) tasks: usize,
    pub(crate) cost: Duration,
}

pub(crate) const LARGE: Batch = Batch { tasks: 800, cost: Duration::from_millis(10) };
pub(crate) const SMALL: Batch = Batch { tasks: 2000, cost: Duration::from_millis(1) };

/// How the batches share the threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    OneQueue,
    InTurn,
    ByTime,
}

/// The virtual times at which a task began and ended.
type Span = (Duration, Duration);

/// The span of each task, first for the small batch and then for the large batch.
pub(crate) struct Run([Vec<Span>; 2]);

pub(crate) fn run(sharing: Sharing) -> Result<Run, QueueError> {
    let stepper = Stepper::new(1, THREADS);
    let builder = stepper.scheduler();
    let builder =
        if sharing == Sharing::InTurn { builder.policy(RoundRobin::new) } else { builder };
    let fair = builder.build();
    let large = fair.queue("large").build()?;
    let small = match sharing {
        Sharing::OneQueue => large.clone(),
        _ => fair.queue("small").build()?,
    };
    let spans = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    submit(&stepper, &large, LARGE, &spans[1]);
    stepper.advance(ARRIVAL);
    submit(&stepper, &small, SMALL, &spans[0]);
    stepper.run_until_idle();
    let lock = "no task panics";
    Ok(Run(spans.map(|it| std::mem::take(&mut *it.lock().expect(lock)))))
}

fn submit(stepper: &Stepper, queue: &Queue, batch: Batch, spans: &Arc<Mutex<Vec<Span>>>) {
    for _ in 0..batch.tasks {
        let (clock, spans) = (stepper.handle(), spans.clone());
        let task = move || {
            let begin = clock.now();
            sim::work(batch.cost);
            spans.lock().expect("no task panics").push((begin, clock.now()));
        };
        queue.spawn_detached(task).expect("the queue is open");
    }
}

impl Run {
    /// Returns the service of the small and of the large batch until a time, in seconds.
    pub(crate) fn services(&self, until: Duration) -> [f64; 2] {
        self.0.each_ref().map(|spans| {
            let ran = |(begin, end): &Span| (*end).min(until).saturating_sub(*begin);
            spans.iter().map(ran).sum::<Duration>().as_secs_f64()
        })
    }

    /// Returns when the last task of each batch ended.
    pub(crate) fn ends(&self) -> [Duration; 2] {
        self.0.each_ref().map(|it| it.iter().map(|it| it.1).max().unwrap_or_default())
    }

    /// Returns the small batch's part of the service while both had work.
    pub(crate) fn share(&self) -> f64 {
        let [one, other] = self.ends();
        let (before, after) = (self.services(ARRIVAL), self.services(one.min(other)));
        let [small, large] = [0, 1].map(|it| after[it] - before[it]);
        small / (small + large)
    }
}
