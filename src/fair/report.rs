//! What queues have got, and how fair that was.

use super::counters::read;
use super::line::Line;
use super::shared::Shared;
use super::waits::Waits;
use crate::executor::ExecutorId;
use crate::sync::Text;
use alloc::vec::Vec;
use core::time::Duration;

/// What there is to know about a [`Queue`](super::Queue), since it was made.
///
/// Numbers are exact when nothing of the queue runs, and of about the same time. What a lease has done is counted at
/// its end, and after 64 tasks or 10 µs; in a queue with a [capacity](super::QueueBuilder::capacity), before each
/// handle says that its task is done.
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
    /// Its name; `None` for the default queue.
    pub name: Option<Text>,
    /// Its slot.
    pub slot: usize,
    /// Its weight, now.
    pub weight: u64,
    /// Tasks that it has accepted: never more than it has, never less than it said before.
    pub submitted: u64,
    /// Tasks that were refused.
    pub refused: u64,
    /// Tasks that it has accepted and that have not ended, those that run included. Without a capacity, it may still
    /// count what ended in the last 10 µs, or the last 64 tasks, of each lease.
    pub pending: u64,
    /// Threads that run tasks of it now.
    pub running: usize,
    /// Tasks that have returned.
    pub completed: u64,
    /// Detached tasks that have panicked. A panic of another is its handle's to tell.
    pub panicked: u64,
    /// Tasks that the queue has dropped unrun.
    pub cancelled: u64,
    /// Jobs of which somebody had run or cancelled the task, through its handle.
    pub tombstones: u64,
    /// Tasks that ran on a thread that waited for them.
    pub inlined: u64,
    /// How often it was served.
    pub leases: u64,
    /// How long its tasks have run, together.
    pub service: Duration,
    /// The longest time for which it was served at once.
    pub longest_lease: Duration,
    /// How often it became ready after it had been without work, at its limit, or paused.
    pub arrivals: u64,
    /// How long tasks have waited until they began, if [that is measured](super::Builder::measure_waits) and one has.
    pub wait: Option<Wait>,
    /// The longest time for which it was ready and no thread served it, if that is measured; else zero.
    pub longest_gap: Duration,
    /// Which queue this is: others may have been in its slot.
    id: Option<ExecutorId>,
}

/// How long tasks have waited, from when they were accepted until they began.
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
    /// Half of them no longer than this. At most one part in 32 too much, as is `p99`; 32 ns stand for all that is less.
    pub median: Duration,
    /// 99 of 100 no longer than this.
    pub p99: Duration,
    /// None longer than this.
    pub longest: Duration,
}

impl QueueMetrics {
    pub(super) fn of(line: &Line) -> Self {
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
            leases: read(&counters.leases),
            service: Duration::from_nanos(read(&counters.service)),
            longest_lease: Duration::from_nanos(read(&counters.longest)),
            arrivals: read(&counters.arrivals),
            wait: waits.map(Wait::of),
            longest_gap: Duration::from_nanos(read(&counters.gap)),
            id: line.id(),
        }
    }

    /// The service per unit of weight, in seconds.
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

/// What all queues of a scheduler have got, and how fair that was.
///
/// Fairness is about those that always had something to do: who had not could not take more. So the figures below
/// are of queues that were *backlogged*: ready at the beginning and at the end, and not once in between without
/// work, at a limit or paused. Two reports give what was in between, see [`since`](Self::since).
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
    /// The queues that there are, by slot.
    pub queues: Vec<QueueMetrics>,
    /// Which of them were backlogged.
    backlogged: Vec<bool>,
}

impl Report {
    pub(super) fn of(shared: &Shared) -> Self {
        let lines = shared.table.iter().filter(|it| it.life.look().is_taken());
        let queues: Vec<_> = lines.map(QueueMetrics::of).collect();
        let backlogged = queues.iter().map(|it| it.arrivals == 1 && it.pending > 0).collect();
        Report { queues, backlogged }
    }

    /// What has changed since an earlier report. Waits, gaps and the longest lease are of the whole time; queues that
    /// were not there then are left out: if `earlier` is of another scheduler, all of them.
    ///
    /// # Examples
    ///
    /// See [`Report`].
    #[must_use]
    pub fn since(&self, earlier: &Report) -> Report {
        let (mut queues, mut backlogged) = (Vec::new(), Vec::new());
        // Both are in the order of slots.
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
                leases: now.leases.saturating_sub(then.leases),
                service: now.service.saturating_sub(then.service),
                arrivals: now.arrivals.saturating_sub(then.arrivals),
                ..now.clone()
            });
        }
        Report { queues, backlogged }
    }

    /// The queues that were backlogged.
    ///
    /// # Examples
    ///
    /// See [`Report`].
    pub fn backlogged(&self) -> impl Iterator<Item = &QueueMetrics> {
        self.queues.iter().zip(&self.backlogged).filter(|it| *it.1).map(|it| it.0)
    }

    /// Jain's index (1984) of service by weight, of the backlogged queues: 1 if each has got its share, 1 / n if one
    /// of n has got all. `None` if there are fewer than two.
    ///
    /// # Examples
    ///
    /// ```
    /// let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// assert_eq!(fair.report().jain(), None); // nobody was backlogged
    /// ```
    #[must_use]
    pub fn jain(&self) -> Option<f64> {
        let shares: Vec<f64> = self.backlogged().map(QueueMetrics::normalised).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|it| it * it).sum();
        let count = shares.len();
        (count >= 2 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
    }

    /// The largest difference in service by weight between two backlogged queues: what the
    /// [promise](super) is about. `None` if there are fewer than two.
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

    /// What part of the backlogged queues' service a queue has got, and what part it should have got by weight.
    /// `None` if it was not backlogged.
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
