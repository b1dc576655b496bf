//! Shared parts of random programs: counted closures, expected panics, and `soak`, which runs
//! programs for a given time.

use filch::fair::Priority;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::env;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Once, RwLock};
use std::time::{Duration, Instant};

/// Counts of closures that were made, run and dropped. Each closure is dropped once, and runs at
/// most once.
#[derive(Default)]
pub(crate) struct Counts {
    made: AtomicUsize,
    ran: AtomicUsize,
    dropped: AtomicUsize,
}

/// The priorities of queues, from the lowest.
pub(crate) const PRIORITIES: [Priority; 5] = [
    Priority::Lowest,
    Priority::BelowNormal,
    Priority::Normal,
    Priority::AboveNormal,
    Priority::Highest,
];

/// A capture of one closure, which counts that closure in [`Counts`].
pub(crate) struct Counted(Arc<Counts>);

impl Counted {
    pub(crate) fn new(counts: &Arc<Counts>) -> Self {
        counts.made.fetch_add(1, SeqCst);
        Counted(Arc::clone(counts))
    }

    /// Counts a run of the closure.
    pub(crate) fn runs(&self) {
        self.0.ran.fetch_add(1, SeqCst);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

impl Counts {
    /// Whether all closures that were made have been dropped.
    pub(crate) fn are_dropped(&self) -> bool {
        self.dropped.load(SeqCst) >= self.made.load(SeqCst)
    }

    /// Waits until all closures have been dropped, and returns how many of them have not run.
    pub(crate) fn finish(&self) -> usize {
        while !self.are_dropped() {
            std::thread::yield_now();
        }
        let (made, ran) = (self.made.load(SeqCst), self.ran.load(SeqCst));
        assert_eq!(self.dropped.load(SeqCst), made, "a closure was dropped twice");
        assert!(ran <= made, "a closure ran twice");
        made - ran
    }
}

/// Suppresses the output of panics whose messages begin with one of `about`. Random programs panic
/// thousands of times on purpose.
///
/// The panic hook is global, so the suppressed messages of all tests in a process add up.
pub(crate) fn keep_quiet(about: &'static [&'static str]) {
    static EXPECTED: RwLock<Vec<&str>> = RwLock::new(Vec::new());
    static HOOK: Once = Once::new();

    let is_new = |it: &&str| !EXPECTED.read().unwrap().contains(it);
    let new: Vec<&str> = about.iter().copied().filter(is_new).collect();
    if !new.is_empty() {
        EXPECTED.write().unwrap().extend(new);
    }
    HOOK.call_once(|| {
        // libFuzzer's hook would end the process, even for a panic that the program catches.
        let usual = if cfg!(fuzzing) { Box::new(print) } else { panic::take_hook() };
        panic::set_hook(Box::new(move |info| {
            let text = info.to_string();
            let (_, message) = text.split_once('\n').unwrap_or_default();
            if !EXPECTED.read().unwrap().iter().any(|it| message.starts_with(it)) {
                usual(info);
            }
        }));
    });
}

fn print(info: &PanicHookInfo<'_>) {
    eprintln!("{info}");
}

/// Checks random programs for the number of seconds in `FILCH_SOAK_SECONDS`, or for two seconds.
pub(crate) fn soak<P: Strategy>(programs: P, check: impl Fn(P::Value)) {
    let seconds = env::var("FILCH_SOAK_SECONDS").map_or(2, |it| it.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runner = TestRunner::default();
    let mut count = 0_u64;
    while Instant::now() < end {
        check(programs.new_tree(&mut runner).unwrap().current());
        count += 1;
    }
    println!("{count} programs in {seconds} s");
}
