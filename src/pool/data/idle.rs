//! Which workers search or sleep, and whether any of them is active.
//!
//! `activity` counts the active workers (I4), and how often a worker became active. A worker
//! becomes active before it takes a job. Suppose that two reads of `activity` are equal and show no
//! active worker, and that all queues were empty in between. Then the pool was idle between the
//! reads.
//!
//! A worker that finds no job sleeps in `searchers`. If enough other workers run, it is *spare*: it
//! sleeps in `spares`, where no job wakes it, and may leave after `keep_alive`. A worker that
//! becomes spare first counts as not running, and then asks again whether enough others run. A
//! worker that gives its place away does the same, and then starts a thread or notifies a spare
//! worker. Both write the one word `running`. So at least one of two such workers sees the other,
//! and no place stays empty.

use crate::idle::{EventCount, Park, Resting, Search, Searchers};
use crate::pool::{DOZED, RESTED};
use crate::sync::barrier::Barrier;
use crate::sync::order::both;
use crate::sync::thread::Finally;
use crate::sync::{AtomicU64, AtomicUsize, Relaxed};
use core::time::Duration;
use crossbeam_utils::CachePadded;

/// One active worker.
const ACTIVE: u64 = 1;
/// One change to active.
const AGAIN: u64 = 1 << 32;

/// Which workers search or sleep, and how many are active.
#[derive(Debug)]
pub struct Idle {
    /// Notified of jobs. A worker dozes while it is about to prepare here, is prepared, or sleeps.
    pub(crate) searchers: Searchers,
    /// A worker sleeps here while enough others run. Notified if one worker less runs, but not of
    /// jobs.
    pub spares: Searchers,
    pub(crate) dozers: CachePadded<Dozers>,
    counts: CachePadded<Counts>,
    /// How many workers sleep for `keep_alive`, and then go if there are too many.
    pub(crate) may_go: AtomicUsize,
    /// How many workers sleep without a timeout for lack of jobs.
    pub(crate) stay: AtomicUsize,
    /// Notified when the last active worker rests, when a thread has gone, and when `MISSED` is
    /// set.
    pub(crate) quiet: EventCount,
}

/// The counts of workers, in one cache line since a worker that sleeps or wakes changes both.
#[derive(Debug)]
struct Counts {
    activity: AtomicU64,
    /// The active workers that run a job, or look for one. The others block, sleep in a wait, or
    /// run their start or stop hook.
    running: AtomicUsize,
}

/// How a sleep in a wait has ended.
#[derive(Debug)]
pub enum Waited<J> {
    /// The wait is over.
    Over,
    /// There is a job that the worker can run meanwhile.
    Helps(J),
    /// The thread must give its place away, or there is work that `take` does not return. The
    /// caller starts or notifies another thread.
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
    /// Notifies a worker of a change, if one dozes and none searches. Called after the change.
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

    /// Called when one worker less runs. Notifies a spare worker of that, and a dozing worker of
    /// jobs that are perhaps left.
    pub fn notify_of_place(&self) {
        // Not `spares.notify_one`, which would rely on a spare worker that searches. That worker
        // might have counted the running workers before the place became free.
        self.spares.notify_many(1);
        self.notify_one();
    }

    /// Notifies all workers.
    pub(crate) fn notify_all(&self) {
        self.searchers.notify_all();
        self.spares.notify_all();
    }

    /// Counts one more active worker (I4), which runs nothing yet.
    pub fn activate(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        self.counts.activity.fetch_add(ACTIVE + AGAIN, order);
    }

    /// Counts one active worker less (I4). That worker no longer counts as running.
    pub(crate) fn rest(&self) {
        let order = both(RESTED.acquire(), RESTED.release());
        if (self.counts.activity.fetch_sub(ACTIVE, order) as u32) == 1 {
            self.quiet.notify_all();
        }
    }

    /// Lets the worker sleep, unless it is needed. The worker is not active meanwhile (I4), and is
    /// active afterwards, even if this panics. A worker that sleeps with a timeout counts in
    /// `may_go`, any other in `stay`. Also returns whether the worker was notified or is needed.
    pub fn sleep<'a>(
        &self,
        resting: Resting<'a>,
        park: &mut dyn Park,
        timeout: Option<Duration>,
        is_needed: impl FnOnce() -> bool,
    ) -> (Search<'a>, bool) {
        let sleepers = if timeout.is_some() { &self.may_go } else { &self.stay };
        sleepers.fetch_add(1, Relaxed); // Relaxed: a hint
        self.step_aside();
        self.rest();
        let _again = Finally(|| {
            sleepers.fetch_sub(1, Relaxed); // Relaxed: a hint
            self.activate();
            self.step_back();
        });
        // Asked only now, after `step_aside`: other workers might have decided at the same moment
        // that they are not needed.
        if is_needed() {
            return (resting.cancel(), true);
        }
        resting.commit_in(park, timeout)
    }

    /// Returns how many active workers run a job, or look for one.
    pub fn running(&self) -> usize {
        // Relaxed: LOOK_AGAIN orders it against a thread that steps aside and then notifies.
        self.counts.running.load(Relaxed)
    }

    /// Counts one running worker less. That worker stays active, or is about to rest.
    pub fn step_aside(&self) {
        self.counts.running.fetch_sub(1, Relaxed); // Relaxed: as in `running`
    }

    /// Counts one more running worker. That worker is active.
    pub fn step_back(&self) {
        self.counts.running.fetch_add(1, Relaxed); // Relaxed: as in `running`
    }

    /// Sleeps until `is_over` returns true, `take` returns a job, or `work` returns a `true` in its
    /// pair. The first element says that there is other work. The second says that the thread must
    /// give its place away even without other work. Each sleep lasts at most `timeout`. The
    /// argument of `is_over` tells whether the thread has slept. `counts` says whether the worker
    /// counts as running. If so, it does not while it waits.
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
            // `work` before `take`: otherwise a job that comes in between would be reported as
            // other work, although `take` could return it.
            let (is_some, goes_aside) = work();
            let job = take().map(Waited::Helps);
            job.or_else(|| (is_some || goes_aside).then_some(Waited::Aside))
        };
        let (mut search, mut has_slept) = (self.searchers.search(), false);
        let _back = counts.then(|| {
            self.step_aside();
            Finally(|| self.step_back()) // the barrier below may panic
        });
        let (waited, search) = loop {
            // A first look before `enter`, which can cost a system call. Often this look already
            // finds something.
            if let Some(waited) = look(has_slept) {
                break (waited, search);
            }
            let _doze = self.dozers.enter();
            let resting = search.prepare();
            if let Some(waited) = look(has_slept) {
                break (waited, resting.cancel());
            }
            (search, _) = resting.commit_in(park, timeout);
            has_slept = true;
        };
        // A submitter might have relied on this search, so `found` wakes another worker if there is
        // more work. After `Aside` the caller does that.
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

/// One worker that dozes.
const ONE: usize = 2;
/// All threads have executed a barrier since the last moment at which no worker dozed.
const BARRED: usize = 1;

/// How many workers *doze*: they are about to prepare in `searchers`, are prepared, or sleep.
///
/// While none dozes, a notifier needs a load and no fence. For that, the first worker to doze makes
/// all threads execute a barrier. The next ones need not: the notifiers see the first, and fence.
///
/// ```text
///  dozer                                       notifier
///  ─────                                       ────────
///  1  word += ONE                              a  change something
///  2  ── DOZED heavy fence ──                  b  ── DOZED light fence ──
///     if `BARRED`: ── LOOK_AGAIN fence ──
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
        self.word.load(Relaxed) != 0 // Relaxed: DOZED orders it
    }

    /// If notifiers do not fence, makes all threads execute a barrier, and returns `true`.
    /// Afterwards each notifier sees the caller's earlier writes, or the caller sees the notifier's
    /// change. If notifiers fence, the caller's own next fence has that effect.
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
        // Relaxed: the barrier, or else the fence of LOOK_AGAIN, orders it.
        let before = self.word.fetch_add(ONE, Relaxed);
        // Made before the barrier: if that panics, the drop takes this thread off the count.
        let doze = Doze(self);
        if before & BARRED == 0 && self.bar() {
            self.word.fetch_or(BARRED, Relaxed); // Relaxed: the barrier and LOOK_AGAIN order it
        }
        doze
    }
}

/// A worker that dozes: [`Dozers::enter`].
#[must_use]
pub(crate) struct Doze<'a>(&'a Dozers);

impl Drop for Doze<'_> {
    fn drop(&mut self) {
        let mut word = self.0.word.load(Relaxed); // Relaxed: only compared
        loop {
            let less = word - ONE;
            // If no worker dozes any more, `BARRED` goes too: the next worker to doze needs a new
            // barrier.
            let next = if less == BARRED { 0 } else { less };
            // Relaxed, both: the worker looks again before it next sleeps.
            match self.0.word.compare_exchange(word, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}
