//! Metrics of queues, and reports of how fairly they were served.

use crate::executor::ExecutorId;
use crate::fair::line::Line;
use crate::fair::line::counters::read;
use crate::fair::line::waits::Waits;
use crate::fair::scheduler::queues::Queues;
use crate::sync::Text;
use alloc::vec::Vec;
use core::time::Duration;

/// The metrics of a [`Queue`](crate::fair::Queue) since it was made.
///
/// The numbers are read one after the other. Except for [`pending`](Self::pending), they are exact
/// while no thread serves the queue. A *lease* is a thread's turn at the queue. The thread
/// updates the numbers at the end of its lease, and each time that 64 tasks have ended or 10 µs
/// have passed. In a queue with a [capacity](crate::fair::QueueBuilder::capacity), the numbers
/// count a task's end before the task's handle reports it. There is one exception: `completed` or
/// `panicked` may count a panic only afterwards.
///
/// # Examples
///
/// ```
/// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
/// let queue = fair.queue("a").build()?;
/// queue.spawn(|| ()).join().unwrap();
/// let metrics = queue.metrics();
/// assert_eq!((metrics.submitted, metrics.completed, metrics.pending), (1, 1, 0));
/// # Ok::<(), filch::fair::QueueError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct QueueMetrics {
    /// The queue's name; `None` for the default queue.
    pub name: Option<Text>,
    /// The queue's slot.
    pub slot: usize,
    /// The queue's current weight.
    pub weight: u64,
    /// Tasks that the queue has accepted. The number is never too high, and never falls.
    pub submitted: u64,
    /// Tasks that the queue has refused.
    pub refused: u64,
    /// Accepted tasks that have not ended, including those that run. Some ended tasks count, too:
    ///
    /// - Without a capacity (the default): the last closures that each lease has run, at most 64.
    ///   Also each ended closure whose job is still queued, such as one cancelled during a pause.
    /// - With a capacity of 1,024 or more: the last detached closures of each lease, at most 64.
    /// - With a smaller capacity: for a moment, the last detached closure of each lease.
    ///
    /// In any queue, tasks that [keep their room](crate::fair::QueueBuilder::capacity) count, too.
    pub pending: u64,
    /// Threads that serve the queue now.
    pub running: usize,
    /// Tasks that have returned, and tasks with a handle that have panicked. Jobs that count in
    /// `tombstones` do not count here.
    pub completed: u64,
    /// Detached tasks that have panicked while they ran, or while they dropped their outputs. If a
    /// task in a group panics, the group gets the panic, and the task counts as completed. A task
    /// whose end calls a waker that panics can count here, too.
    pub panicked: u64,
    /// Tasks that the queue has dropped unrun.
    pub cancelled: u64,
    /// Jobs that a server reached too late. A waiting thread had run or dropped the task, or
    /// something other than the queue had cancelled it.
    pub tombstones: u64,
    /// Tasks that a thread ran itself while it waited for them. Waits inside a task of the same
    /// queue do not count.
    pub inlined: u64,
    /// How many times the queue has polled its futures. Each future counts as one task.
    pub poll_count: u64,
    /// How many leases the queue has had.
    pub leases: u64,
    /// The total time for which the queue's tasks have run.
    pub service: Duration,
    /// The length of the longest lease.
    pub longest_lease: Duration,
    /// How often the queue became ready after it had no work, was at its limit, or was paused.
    pub arrivals: u64,
    /// How long tasks waited until they began. `None` if no task has begun, or [waits are not
    /// measured](crate::fair::Builder::measure_waits).
    pub wait: Option<Wait>,
    /// The longest time for which the queue was ready and no thread served it. Zero if waits are
    /// not measured.
    pub longest_gap: Duration,
    /// The queue's id, by which `Report::since` tells it from other queues that had its slot.
    id: Option<ExecutorId>,
}

/// How long tasks waited between their acceptance and their beginning.
///
/// # Examples
///
/// ```
/// use filch::executor::Inline;
/// use filch::fair::FairScheduler;
///
/// let fair = FairScheduler::builder(Inline).measure_waits(true).build();
/// fair.spawn(|| ()).join().unwrap();
/// let wait = fair.default_queue().metrics().wait.unwrap();
/// assert!(wait.median <= wait.p99 && wait.p99 <= wait.longest);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Wait {
    /// Half of the tasks waited at most this long. The exact median may be less by up to one
    /// part in 32. Waits below 32 ns count as 32 ns.
    pub median: Duration,
    /// 99 of 100 tasks waited at most this long. The precision is that of `median`.
    pub p99: Duration,
    /// The longest wait of a task.
    pub longest: Duration,
}

impl QueueMetrics {
    pub(crate) fn of(line: &Line) -> Self {
        let look = line.life.look();
        let counters = &line.counters;
        let [completed, panicked] = [read(&counters.completed), read(&counters.panicked)];
        let [cancelled, tombstones] = [read(&counters.cancelled), read(&counters.tombstones)];
        let submitted = counters.submitted(|| line.life.look().tasks());
        let waits = line.waits.get().filter(|it| !it.are_none());
        QueueMetrics {
            name: line.name.lock().clone(),
            slot: line.slot,
            weight: line.weight(),
            submitted,
            refused: read(&counters.refused),
            pending: look.tasks(),
            running: look.leases(),
            completed,
            panicked,
            cancelled,
            tombstones,
            inlined: read(&counters.inlined),
            poll_count: read(&counters.polls),
            leases: read(&counters.leases),
            service: Duration::from_nanos(read(&counters.service)),
            longest_lease: Duration::from_nanos(read(&counters.longest)),
            arrivals: read(&counters.arrivals),
            wait: waits.map(Wait::of),
            longest_gap: Duration::from_nanos(read(&counters.gap)),
            id: line.id(),
        }
    }

    /// Returns the service per unit of weight, in seconds.
    fn normalised(&self) -> f64 {
        self.service.as_secs_f64() / self.weight as f64
    }
}

impl Wait {
    fn of(waits: &Waits) -> Self {
        let (median, p99) = (waits.quantile(0.5), waits.quantile(0.99));
        Wait { median, p99, longest: waits.longest() }
    }
}

/// The metrics of all queues of a scheduler, and figures of how fairly they were served.
///
/// A queue without work could not have taken more service. So the figures of fairness are about
/// *backlogged* queues. A backlogged queue had tasks at the beginning and at the end of the report.
/// In between, it was never without work, at its limit or paused. [`since`](Self::since) returns
/// the figures for the time between two reports.
///
/// # Examples
///
/// ```
/// use filch::fair::FairScheduler;
/// use filch::ThreadPool;
///
/// let fair = FairScheduler::over(ThreadPool::new(1)?);
/// let (gold, free) = (fair.queue("gold").weight(3).build()?, fair.queue("free").build()?);
/// let before = fair.report();
/// (0..100).for_each(|i| drop((gold.spawn(move || i), free.spawn(move || i))));
/// fair.wait_idle()?;
/// for queue in &fair.report().since(&before).queues {
///     println!("{:?} {:?}", queue.name, queue.service);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The queues that exist, by slot.
    pub queues: Vec<QueueMetrics>,
    backlogged: Vec<bool>,
}

impl Report {
    pub(crate) fn of(queues: &Queues) -> Self {
        let lines = queues.table.iter().filter(|it| it.life.look().is_taken());
        let queues: Vec<_> = lines.map(QueueMetrics::of).collect();
        let backlogged = queues.iter().map(|it| it.arrivals == 1 && it.pending > 0).collect();
        Report { queues, backlogged }
    }

    /// Returns the changes since an earlier report. Numbers that describe a moment, such as
    /// `pending` and `running`, are those of `self`. Waits, gaps and the longest lease still cover
    /// the queue's whole life. Queues that are not in `earlier` are left out. If `earlier` is from
    /// another scheduler, all queues are left out.
    ///
    /// # Examples
    ///
    /// The example at [`Report`] prints the service of each queue between two reports.
    #[must_use]
    pub fn since(&self, earlier: &Report) -> Report {
        let (mut queues, mut backlogged) = (Vec::new(), Vec::new());
        let mut those = earlier.queues.iter().peekable();
        for now in &self.queues {
            while those.next_if(|it| it.slot < now.slot).is_some() {}
            let is_same = |it: &&QueueMetrics| it.id == now.id;
            let Some(then) = those.next_if(is_same) else { continue };
            let was_ready = then.pending > 0 && now.pending > 0;
            backlogged.push(was_ready && then.arrivals == now.arrivals);
            queues.push(QueueMetrics {
                submitted: now.submitted.saturating_sub(then.submitted),
                refused: now.refused.saturating_sub(then.refused),
                completed: now.completed.saturating_sub(then.completed),
                panicked: now.panicked.saturating_sub(then.panicked),
                cancelled: now.cancelled.saturating_sub(then.cancelled),
                tombstones: now.tombstones.saturating_sub(then.tombstones),
                inlined: now.inlined.saturating_sub(then.inlined),
                poll_count: now.poll_count.saturating_sub(then.poll_count),
                leases: now.leases.saturating_sub(then.leases),
                service: now.service.saturating_sub(then.service),
                arrivals: now.arrivals.saturating_sub(then.arrivals),
                ..now.clone()
            });
        }
        Report { queues, backlogged }
    }

    /// Returns the metrics of the queues that were *backlogged* (see [`Report`]).
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// fair.spawn(|| ()).join().unwrap();
    /// assert_eq!(fair.report().backlogged().count(), 0, "the queue is empty again");
    /// ```
    pub fn backlogged(&self) -> impl Iterator<Item = &QueueMetrics> {
        self.queues.iter().zip(&self.backlogged).filter(|it| *it.1).map(|it| it.0)
    }

    /// Divides the service of each backlogged queue by its weight, and returns Jain's index (1984)
    /// of the results. The index is 1 if each queue got its share, and 1 / n if one of n queues got
    /// all the service. Returns `None` if fewer than two queues were backlogged, or none of them
    /// was served.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.report().jain(), None); // no queue was backlogged
    /// ```
    #[must_use]
    pub fn jain(&self) -> Option<f64> {
        let shares: Vec<f64> = self.backlogged().map(QueueMetrics::normalised).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|it| it * it).sum();
        let count = shares.len();
        (count >= 2 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
    }

    /// Divides the service of each backlogged queue by the queue's weight, and returns the largest
    /// difference between two of the results. The [promise](crate::fair) bounds this difference.
    /// Returns `None` if there are fewer than two backlogged queues.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.report().largest_lag(), None);
    /// ```
    #[must_use]
    pub fn largest_lag(&self) -> Option<Duration> {
        let services = || self.backlogged().map(QueueMetrics::normalised);
        if services().count() < 2 {
            return None;
        }
        let most = services().fold(f64::MIN, f64::max);
        let least = services().fold(f64::MAX, f64::min);
        Some(Duration::from_secs_f64(most - least))
    }

    /// Returns two fractions: a queue's share of the service of all backlogged queues, and the
    /// share that is due to its weight. Returns `None` if the queue was not backlogged, or no
    /// backlogged queue was served.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.report().share(fair.default_queue().slot()), None);
    /// ```
    #[must_use]
    pub fn share(&self, slot: usize) -> Option<(f64, f64)> {
        let queue = self.backlogged().find(|it| it.slot == slot)?;
        let service: f64 = self.backlogged().map(|it| it.service.as_secs_f64()).sum();
        let weight: f64 = self.backlogged().map(|it| it.weight as f64).sum();
        (service > 0.0)
            .then(|| (queue.service.as_secs_f64() / service, queue.weight as f64 / weight))
    }
}
