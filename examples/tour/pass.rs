//! One pass over all files: serially, or on a pool.

use crate::files::{Digest, FileAt, digest};
use filch::fair::{FairScheduler, Queue};
use filch::pool::LockedPool;
use filch::{Executor, Job, ThreadPool};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The small batch has at most this many files.
const SMALL_BATCH: usize = 100;

/// The result for a file: `None` if it could not be read.
type Outcome = Option<Digest>;

/// The files, and the indices of those in the small batch.
pub(crate) struct Workload {
    files: Vec<FileAt>,
    small: Vec<usize>,
}

impl Workload {
    pub(crate) fn new(files: Vec<FileAt>) -> Self {
        let mut small = Vec::from_iter(0..files.len());
        small.sort_by_key(|&file| files[file].bytes);
        small.truncate(SMALL_BATCH);
        Workload { files, small }
    }

    pub(crate) fn small(&self) -> &[usize] {
        &self.small
    }

    fn digest(&self, file: usize) -> Outcome {
        digest(&self.files[file].path).ok()
    }

    fn folder(&self, file: usize) -> Option<&Path> {
        self.files[file].path.parent()
    }

    /// Returns the ranges of files that share a folder.
    fn folders(&self) -> Vec<Range<usize>> {
        let files = Vec::from_iter(0..self.files.len());
        let folders = files.chunk_by(|&one, &next| self.folder(one) == self.folder(next));
        folders.map(|it| it[0]..it[0] + it.len()).collect()
    }

    /// Returns how many files are done when the small batch is submitted.
    fn a_tenth(&self) -> usize {
        self.files.len() / 10
    }
}

/// The results of a pass, and its times.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) results: Vec<Outcome>,
    /// How many results of the small batch differ from those of the large one.
    pub(crate) wrong_in_small: usize,
    /// The time from the first submission to the last result of the large batch.
    pub(crate) large: Duration,
    /// The time from the submission to the last result of the small batch.
    pub(crate) small: Duration,
    /// The part of the large batch that was done when the small batch was done.
    pub(crate) large_done_by_then: f64,
}

impl Pass {
    pub(crate) fn unreadable(&self) -> usize {
        self.results.iter().filter(|it| it.is_none()).count()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.results.iter().flatten().map(|it| it.bytes).sum()
    }

    pub(crate) fn lines(&self) -> u64 {
        self.results.iter().flatten().map(|it| it.lines).sum()
    }
}

/// The results so far. Each job fills one entry, and a job that runs twice is an error.
struct Batch {
    results: Vec<OnceLock<Outcome>>,
    done: AtomicUsize,
    finished: OnceLock<Instant>,
}

impl Batch {
    fn new(files: usize) -> Self {
        let results = (0..files).map(|_| OnceLock::new()).collect();
        Batch { results, done: AtomicUsize::new(0), finished: OnceLock::new() }
    }

    /// Stores a result, and returns whether it was the last.
    fn note(&self, place: usize, outcome: Outcome) -> bool {
        self.results[place].set(outcome).expect("a job ran twice");
        let last = self.done.fetch_add(1, Relaxed) + 1 == self.results.len();
        if last {
            self.finished.set(Instant::now()).expect("a batch finished twice");
        }
        last
    }

    fn result(&self, place: usize) -> Outcome {
        *self.results[place].get().expect("a job was lost")
    }

    fn finished(&self) -> Instant {
        *self.finished.get().expect("a job was lost")
    }
}

/// A pass under way.
struct Progress {
    work: Arc<Workload>,
    large: Batch,
    small: Batch,
    large_done_by_then: OnceLock<usize>,
    bar: ProgressBar,
}

impl Progress {
    fn new(name: &'static str, work: &Arc<Workload>) -> Arc<Self> {
        // The bar is drawn only if stderr is a terminal.
        let bar = ProgressBar::new(work.files.len() as u64).with_message(name);
        let style = "{msg:<13} {wide_bar} {pos}/{len} files, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is well-formed"));
        Arc::new(Progress {
            work: Arc::clone(work),
            large: Batch::new(work.files.len()),
            small: Batch::new(work.small.len()),
            large_done_by_then: OnceLock::new(),
            bar,
        })
    }

    fn do_large(&self, file: usize) {
        self.large.note(file, self.work.digest(file));
        self.bar.inc(1);
    }

    fn do_small(&self, place: usize) {
        if self.small.note(place, self.work.digest(self.work.small[place])) {
            let _ = self.large_done_by_then.set(self.large.done.load(Relaxed));
        }
    }

    fn finish(&self, name: &'static str, started: Instant, submitted_small: Instant) -> Pass {
        self.bar.finish_and_clear();
        let places = self.work.small.iter().enumerate();
        let files = self.work.files.len();
        Pass {
            name,
            results: (0..files).map(|file| self.large.result(file)).collect(),
            wrong_in_small: places
                .filter(|&(place, &file)| self.small.result(place) != self.large.result(file))
                .count(),
            large: self.large.finished() - started,
            small: self.small.finished() - submitted_small,
            large_done_by_then: *self.large_done_by_then.get().expect("a job was lost") as f64
                / files as f64,
        }
    }
}

/// Processes one file after the other. The small batch waits for the large one.
pub(crate) fn serial(name: &'static str, work: &Arc<Workload>) -> Pass {
    let progress = Progress::new(name, work);
    let started = Instant::now();
    let mut submitted_small = started;
    for file in 0..work.files.len() {
        if file == work.a_tenth() {
            submitted_small = Instant::now();
        }
        progress.do_large(file);
    }
    (0..work.small.len()).for_each(|place| progress.do_small(place));
    progress.finish(name, started, submitted_small)
}

/// The executors of the two batches.
pub(crate) trait Pool: Send + Sync {
    /// Returns the executor of the large batch.
    fn large(&self) -> &dyn Executor;

    /// Returns the executor of the small batch.
    fn small(&self) -> &dyn Executor;

    /// Waits until every accepted job has run.
    fn wait(&self);
}

/// Submits both batches to the pool itself.
macro_rules! as_they_come {
    ($($Pool:ty)*) => {
        $(impl Pool for $Pool {
            fn large(&self) -> &dyn Executor {
                self
            }

            fn small(&self) -> &dyn Executor {
                self
            }

            fn wait(&self) {
                self.wait_idle().expect("this is not a thread of the pool");
            }
        })*
    };
}
as_they_come!(LockedPool ThreadPool);

/// Two queues, one for each batch, that share a pool under some policy.
pub(crate) struct Shared {
    scheduler: FairScheduler,
    large: Queue,
    small: Queue,
}

impl Shared {
    pub(crate) fn new(scheduler: FairScheduler) -> Self {
        let queue = |name| scheduler.queue(name).build().expect("there is room for a queue");
        let (large, small) = (queue("large"), queue("small"));
        Shared { scheduler, large, small }
    }
}

impl Pool for Shared {
    fn large(&self) -> &dyn Executor {
        &self.large
    }

    fn small(&self) -> &dyn Executor {
        &self.small
    }

    fn wait(&self) {
        self.scheduler.wait_idle().expect("this is not a thread of the pool");
    }
}

/// Submits one job. That job spawns a job for each folder, and each of those a job for each of its
/// files.
pub(crate) fn pooled(name: &'static str, pool: Arc<dyn Pool>, work: &Arc<Workload>) -> Pass {
    let progress = Progress::new(name, work);
    let started = Instant::now();
    let (same_pool, large) = (Arc::clone(&pool), Arc::clone(&progress));
    submit(pool.large(), move || spawn_folders(&same_pool, &large));

    while progress.large.done.load(Relaxed) < work.a_tenth() {
        thread::sleep(Duration::from_micros(100));
    }
    let submitted_small = Instant::now();
    for place in 0..work.small.len() {
        let progress = Arc::clone(&progress);
        submit(pool.small(), move || progress.do_small(place));
    }
    pool.wait();
    progress.finish(name, started, submitted_small)
}

fn spawn_folders(pool: &Arc<dyn Pool>, progress: &Arc<Progress>) {
    for folder in progress.work.folders() {
        let (same_pool, progress) = (Arc::clone(pool), Arc::clone(progress));
        submit(pool.large(), move || {
            for file in folder {
                let progress = Arc::clone(&progress);
                submit(same_pool.large(), move || progress.do_large(file));
            }
        });
    }
}

fn submit(pool: &dyn Executor, f: impl FnOnce() + Send + 'static) {
    pool.execute(Job::new(f)).expect("the pool is open");
}
