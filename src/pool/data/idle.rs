//! Which workers search or sleep, and whether any of them is active.
//!
//! A worker is *active* unless it has gone, or sleeps for lack of jobs, or is about to (I4). A
//! worker becomes active before it takes a job. `activity` counts the active workers, and how often
//! a worker became active. Suppose that two reads of `activity` are equal and show no active
//! worker, and that all queues were empty in between. Then no worker became active between the
//! reads, so the pool was idle between them.
//!
//! A worker that finds no job is *spare* if the wanted number of other workers runs. Then it sleeps
//! in `spares`, where no job wakes it, and may leave after `keep_alive`. Otherwise it *dozes*: it
//! sleeps in `searchers`, or is about to.
//!
//! `running` counts the workers that run a job or look for one. A worker that becomes spare first
//! leaves `running`, and then asks again whether enough others run. A worker that blocks or waits
//! can give its *place* away, so that another thread runs in its stead. It leaves `running`, and
//! then starts a thread or notifies a spare worker.
//!
//! So the pool does not run too few workers, even if two leave `running` at once. Let B be
//! the one that leaves second. If B is about to become spare, it asks again and sees that the first
//! has left, and stays awake if it is needed. If B gives its place away, it starts a thread or
//! notifies a spare worker, which can be the first.

use crate::idle::{EventCount, Park, Resting, Search, Searchers};
use crate::pool::{DOZED, RESTED};
use crate::sync::barrier::Barrier;
use crate::sync::order::both;
use crate::sync::thread::Finally;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// One active worker, in `Counts::activity`. The low 32 bits count the active workers.
const ACTIVE: u64 = 1;
/// One change of a worker to active, in the high 32 bits of `Counts::activity`. So two reads of the
/// word differ if a worker became active in between.
const AGAIN: u64 = 1 << 32;

/// Which workers search or sleep, and how many are active.
#[derive(Debug)]
pub struct Idle {
    /// The workers that look for jobs, or sleep until there are some. Notified of jobs that are
    /// queued or moved. A worker *dozes* from before it prepares to sleep here until it has woken
    /// up.
    pub(crate) searchers: Searchers,
    /// Spare workers sleep here. One is notified when one worker less runs. Jobs wake none of them.
    pub spares: Searchers,
    pub(crate) dozers: CachePadded<Dozers>,
    counts: CachePadded<Counts>,
    /// How many workers sleep for `keep_alive`, and then go if there are too many. A hint.
    pub(crate) may_go: AtomicUsize,
    /// How many workers sleep without a timeout for lack of jobs. A hint.
    pub(crate) stay: AtomicUsize,
    /// Threads sleep here until the pool is idle, until its threads have gone, or until the bit
    /// `MISSED` of `attention` is set. The future of `drained` also waits here. Notified when the
    /// last active worker rests, when a thread has gone, and when `MISSED` is set.
    pub(crate) quiet: EventCount,
}

/// The counts of workers, in one cache line because a worker that sleeps or wakes changes both.
#[derive(Debug)]
struct Counts {
    activity: AtomicU64,
    /// The number of active workers that run a job, or look for one. The other active workers
    /// block, sleep in a wait, or run their start or stop hook.
    running: AtomicUsize,
}

/// How a sleep in a wait has ended.
#[derive(Debug)]
pub enum Waited<J> {
    /// The wait is over.
    Over,
    /// There is a job that the worker can run meanwhile.
    Helps(J),
    /// Another thread must run in this worker's stead, or there might be a job that `take` does not
    /// return. The caller of `Idle::wait` starts or notifies another thread.
    Aside,
}

impl Default for Idle {
    fn default() -> Self {
        Idle {
            searchers: Searchers::new(),
            spares: Searchers::new(),
            dozers: CachePadded::new(Dozers::new()),
            counts: CachePadded::new(Counts {
                activity: AtomicU64::new(0),
                running: AtomicUsize::new(0),
            }),
            may_go: AtomicUsize::new(0),
            stay: AtomicUsize::new(0),
            quiet: EventCount::new(),
        }
    }
}

impl Idle {
    /// Notifies a worker of a change that the caller has made, if a worker dozes and none searches.
    #[inline]
    pub fn notify_one(&self) {
        if self.dozers.is_any() {
            self.notify_dozer();
        }
    }

    #[cold]
    fn notify_dozer(&self) {
        self.searchers.notify_one();
    }

    /// Notifies a spare worker, because one worker less runs. Also notifies a dozing worker,
    /// because jobs are perhaps left.
    pub fn notify_of_place(&self) {
        self.notify_spare();
        self.notify_one();
    }

    /// Notifies a spare worker.
    pub(crate) fn notify_spare(&self) {
        // `spares.notify_one` would wake no spare worker while another spare worker searches. That
        // worker might have counted the running workers before this change, and would sleep again.
        // `notify_many` wakes a worker even while others search.
        self.spares.notify_many(1);
    }

    pub(crate) fn notify_all(&self) {
        self.searchers.notify_all();
        self.spares.notify_all();
    }

    /// Counts one more active worker (I4), which is not in the count `running` yet.
    pub fn activate(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        self.counts.activity.fetch_add(ACTIVE + AGAIN, order);
    }

    /// Counts one active worker less (I4), which is not in the count `running`.
    pub(crate) fn rest(&self) {
        if self.rest_untold() {
            self.quiet.notify_all();
        }
    }

    /// Counts one active worker less as `rest` does, but leaves it to the caller to notify `quiet`.
    /// Returns whether no worker is active any more.
    pub(crate) fn rest_untold(&self) -> bool {
        let order = both(RESTED.acquire(), RESTED.release());
        self.counts.activity.fetch_sub(ACTIVE, order) as u32 == 1
    }

    /// Sleeps in `park` until the worker is notified, or for at most `timeout`. Does not sleep if
    /// `is_needed` returns `true`. The returned `bool` is `true` if the worker was notified or is
    /// needed. The worker is not active during this call (I4), but is active afterwards, even if
    /// the park panics.
    pub fn sleep<'a>(
        &self,
        resting: Resting<'a>,
        park: &mut dyn Park,
        timeout: Option<Duration>,
        is_needed: impl FnOnce() -> bool,
    ) -> (Search<'a>, bool) {
        let sleepers = if timeout.is_some() { &self.may_go } else { &self.stay };
        sleepers.fetch_add(1, Relaxed);
        self.step_aside();
        self.rest();
        let _again = Finally(|| {
            sleepers.fetch_sub(1, Relaxed);
            self.activate();
            self.step_back();
        });
        // Asked after `step_aside`. Otherwise two workers could each count the other as running,
        // and both sleep, although one of them is needed.
        if is_needed() {
            return (resting.cancel(), true);
        }
        resting.commit_in(park, timeout)
    }

    /// Returns how many active workers run a job, or look for one.
    pub fn running(&self) -> usize {
        // Relaxed, also in the next two functions. Worker A steps aside or leaves: it counts itself
        // off, then notifies a spare worker. (It notifies none if it has started a thread, or is a
        // guest, whose place ends with it.) Worker S becomes spare: it prepares, then reads the
        // count. By the fences of the two (LOOK_AGAIN), S sees the new count or is notified. Two
        // workers that become spare see each other's changes by the crew's lock.
        self.counts.running.load(Relaxed)
    }

    /// Counts one running worker less. The worker stays active, or is about to rest.
    pub fn step_aside(&self) {
        self.counts.running.fetch_sub(1, Relaxed);
    }

    /// Counts one more running worker, which is active.
    pub fn step_back(&self) {
        self.counts.running.fetch_add(1, Relaxed);
    }

    /// Sleeps until `is_over` returns `true`, `take` returns a job, or `work` returns `true` in
    /// either `bool`. The first `bool` means that there are jobs, perhaps none that `take` returns.
    /// The second means that another thread must run in this worker's stead.
    ///
    /// Each sleep lasts at most `timeout`. The argument of `is_over` is `true` once the worker has
    /// slept. With `counts`, the worker is in the count `running`, and leaves it during this call.
    pub fn wait<J>(
        &self,
        park: &mut dyn Park,
        counts: bool,
        timeout: Option<Duration>,
        is_over: impl Fn(bool) -> bool,
        work: impl Fn() -> (bool, bool),
        take: impl Fn() -> Option<J>,
    ) -> Waited<J> {
        let look = |has_slept| {
            if is_over(has_slept) {
                return Some(Waited::Over);
            }
            // `work` comes before `take`, so that `take` finds a job that arrives between the two.
            // In the other order, such a job would count as work for other threads only.
            let (is_some, goes_aside) = work();
            let job = take().map(Waited::Helps);
            job.or_else(|| (is_some || goes_aside).then_some(Waited::Aside))
        };
        let (mut search, mut has_slept) = (self.searchers.search(), false);
        let back = counts.then(|| {
            self.step_aside();
            Finally(|| self.step_back()) // the barrier below may panic
        });
        let (waited, search) = loop {
            // The first look comes before `enter`, which can cost a system call. Often this look
            // already ends the wait.
            if let Some(waited) = look(has_slept) {
                drop(back);
                break (waited, search);
            }
            let _doze = self.dozers.enter();
            let resting = search.prepare();
            if let Some(waited) = look(has_slept) {
                drop(back); // `cancel` and `found` can call the panic handler, which can wait, too
                break (waited, resting.cancel());
            }
            (search, _) = resting.commit_in(park, timeout);
            has_slept = true;
        };
        // A thread that queued a job might have relied on this search, and woken no worker. So
        // `found` wakes another worker if there are more jobs. After `Aside`, `found` need not do
        // so: the caller of `wait` starts or notifies another thread.
        search.found(|| !matches!(waited, Waited::Aside) && work().0);
        waited
    }

    pub(crate) fn wait_until_quiet(&self, is_nothing_queued: impl Fn() -> bool) {
        self.quiet.wait_until(None, || self.is_quiet(&is_nothing_queued));
    }

    /// Returns whether there was a moment at which no worker was active and the queues were empty.
    pub(crate) fn is_quiet(&self, is_nothing_queued: impl Fn() -> bool) -> bool {
        let activity = &self.counts.activity;
        let before = activity.load(RESTED.acquire());
        before as u32 == 0 && is_nothing_queued() && activity.load(RESTED.acquire()) == before
    }
}

/// One dozing worker, in the word of `Dozers`.
const ONE: usize = 2;
/// Set when all threads have executed a barrier since the last moment at which no worker dozed.
/// Until this bit is cleared, workers that begin to doze need no barrier.
const BARRED: usize = 1;

/// How many workers *doze*: each is about to prepare in `searchers`, is prepared, or sleeps.
///
/// A notifier reads `word`. If the word is zero, no worker dozes, and the notifier is done.
/// Otherwise it notifies by `searchers`, which fences.
///
/// If the system offers `membarrier`, the read costs no fence. Instead, a worker that begins to
/// doze makes all threads execute a barrier, and then sets the bit `BARRED` of `word`. While
/// `BARRED` is set, further workers need no barrier: all notifiers see a word other than zero, and
/// so they fence. The last worker to stop dozing clears `BARRED`.
///
/// ```text
///  dozer                                       notifier
///  ─────                                       ────────
///  1  word += ONE                              a  change something
///  2  ── DOZED heavy fence ──                  b  ── DOZED light fence ──
///     or, if `BARRED` or without `membarrier`: ── LOOK_AGAIN fence ──
///  3  look at everything                       c  read the word; zero: done
///  4  nothing: sleep                              otherwise: notify by `searchers`
///
///  Never: c reads zero and 3 misses the change of a, so that the dozer sleeps on work.
/// ```
#[derive(Debug)]
pub(crate) struct Dozers {
    /// The count of workers that doze, in steps of `ONE`, and `BARRED`. Zero if none dozes.
    word: AtomicUsize,
    barrier: Barrier,
}

impl Dozers {
    fn new() -> Self {
        Dozers { word: AtomicUsize::new(0), barrier: Barrier::asymmetric() }
    }

    /// Returns whether a worker dozes. If none does, a worker that dozes later sees the changes
    /// that the caller made before this call.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        DOZED.light_fence(self.barrier);
        self.word.load(Relaxed) != 0
    }

    /// If notifiers do not fence on this system, makes all threads execute a barrier, and returns
    /// `true`. Afterwards each notifier sees what the caller has written before, or the caller sees
    /// what the notifier has changed. If notifiers do fence, returns `false`, and the caller's own
    /// next fence has this effect.
    pub(crate) fn bar(&self) -> bool {
        let is_asymmetric = self.barrier.is_asymmetric();
        if is_asymmetric {
            DOZED.heavy_fence(self.barrier);
        }
        is_asymmetric
    }

    /// Counts this thread as dozing until the result is dropped. The thread prepares after this
    /// call.
    pub(crate) fn enter(&self) -> Doze<'_> {
        // Relaxed: the barrier orders the count, or else the fence of LOOK_AGAIN does.
        let before = self.word.fetch_add(ONE, Relaxed);
        // `doze` is made before the barrier. If the barrier panics, dropping `doze` takes this
        // thread off the count.
        let doze = Doze(self);
        if before & BARRED == 0 && self.bar() {
            self.word.fetch_or(BARRED, Relaxed); // Relaxed: ordered by the barrier and LOOK_AGAIN
        }
        doze
    }
}

#[must_use]
pub(crate) struct Doze<'a>(&'a Dozers);

impl Drop for Doze<'_> {
    fn drop(&mut self) {
        let mut word = self.0.word.load(Relaxed);
        loop {
            let less = word - ONE;
            // When no worker dozes any more, `BARRED` is cleared: the next worker to doze needs a
            // new barrier.
            let next = if less == BARRED { 0 } else { less };
            // Relaxed, both: the worker looks again before it next sleeps.
            match self.0.word.compare_exchange(word, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}
