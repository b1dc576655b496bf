//! Records which of a program's tasks run where, in which order, and how many at once.

use crate::common::closures::Counts;
use filch::FairScheduler;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

thread_local! {
    /// The number of the ground to which this thread belongs; zero if it is unknown.
    static GROUND: Cell<u64> = const { Cell::new(0) };
    /// The queues whose tasks run on this thread, one inside the other.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn on_ground(number: u64) {
    GROUND.set(number);
}

/// The current step of a program, which is printed if the program does not end.
#[derive(Default, Debug)]
pub(super) struct Progress {
    pub(super) step: Mutex<String>,
    pub(super) queues: Mutex<Vec<String>>,
    /// A text for each wait, which is empty once that wait has ended.
    waits: Mutex<Vec<String>>,
}

/// The records of the whole program.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) counts: Arc<Counts>,
    pub(super) progress: Arc<Progress>,
    /// Whether a step may have cancelled tasks, so that a cancelled task is no fault.
    pub(super) may_cancel: AtomicBool,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    pub(super) fn new(progress: Arc<Progress>) -> Self {
        Ledger { progress, ..Ledger::default() }
    }

    /// Records that a task of `who` waits, for as long as `f` runs.
    pub(super) fn waiting<R>(&self, who: &Account, what: &str, f: impl FnOnce() -> R) -> R {
        let index = {
            let mut waits = self.progress.waits.lock().unwrap();
            waits.push(format!("a task of queue {} waits {what}", who.number));
            waits.len() - 1
        };
        let result = f();
        self.progress.waits.lock().unwrap()[index].clear();
        result
    }

    /// Records a broken promise: a panic on this thread would go unheard.
    pub(super) fn complain(&self, fault: String) {
        let mut faults = self.faults.lock().unwrap();
        if faults.len() < 3 {
            faults.push(fault);
        }
    }

    pub(super) fn assert_clean(&self) {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

/// The records of one queue.
#[derive(Default)]
pub(super) struct Account {
    pub(super) number: usize,
    /// The queue's name; `None` for a default queue.
    pub(super) name: Option<String>,
    /// The number of the ground under the queue; zero if the ground's threads are not marked.
    pub(super) ground: u64,
    /// How many tasks the program has given to the queue, refused ones included.
    pub(super) given: AtomicU64,
    /// The largest `submitted` that any thread has seen.
    submitted: AtomicU64,
    running: AtomicUsize,
    /// The most tasks that may run at once.
    pub(super) limit: AtomicUsize,
    /// The number of the task that began last, in an ordered queue.
    line: AtomicU64,
}

impl Account {
    pub(super) fn new(
        number: usize,
        name: Option<String>,
        ground: u64,
        limit: Option<usize>,
    ) -> Self {
        let limit = AtomicUsize::new(limit.unwrap_or(usize::MAX));
        Account { number, name, ground, limit, ..Account::default() }
    }

    /// Records that a task begins. The caller keeps the result while the task runs.
    pub(super) fn begin(self: &Arc<Self>, ledger: &Ledger, line: Option<u64>) -> Running {
        let name = self.name.as_deref().unwrap_or("the default queue");
        let ground = GROUND.get();
        if ground != 0 && self.ground != 0 && ground != self.ground {
            ledger.complain(format!("a task of {name} runs on a thread of another executor"));
        }
        if let Some(line) = line {
            let before = self.line.fetch_max(line, SeqCst);
            if before > line {
                ledger.complain(format!("{name}: line {line} has begun after line {before}"));
            }
        }
        let is_inside = INSIDE.with_borrow(|it| it.contains(&self.number));
        INSIDE.with_borrow_mut(|it| it.push(self.number));
        if !is_inside {
            let running = self.running.fetch_add(1, SeqCst) + 1;
            let limit = self.limit.load(SeqCst);
            if running > limit {
                ledger.complain(format!("{name}: {running} run at once, {limit} may"));
            }
        }
        Running { account: Arc::clone(self), is_inside }
    }

    /// Checks how many tasks the queue reports as accepted: at most as many as it was given, and
    /// not fewer than it reported before.
    pub(super) fn check(&self, fair: &FairScheduler, ledger: &Ledger) {
        let before = self.submitted.load(SeqCst);
        let queues = fair.report().queues;
        let Some(metrics) = queues.iter().find(|it| it.name.as_deref() == self.name.as_deref())
        else {
            return;
        };
        let (submitted, given) = (metrics.submitted, self.given.load(SeqCst));
        let name = self.name.as_deref().unwrap_or("the default queue");
        if submitted > given {
            ledger.complain(format!("{name}: submitted is {submitted}, given were {given}"));
        }
        if submitted < before {
            ledger.complain(format!("{name}: submitted was {before}, and is {submitted}"));
        }
        self.submitted.fetch_max(submitted, SeqCst);
    }
}

/// A task that runs.
pub(super) struct Running {
    account: Arc<Account>,
    is_inside: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|it| it.pop());
        if !self.is_inside {
            self.account.running.fetch_sub(1, SeqCst);
        }
    }
}

/// A gate that opens once, for all threads that wait at it.
#[derive(Default)]
pub(super) struct Gate(Mutex<bool>, Condvar);

impl Gate {
    pub(super) fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    pub(super) fn wait(&self) {
        let is_open = self.0.lock().unwrap();
        drop(self.1.wait_while(is_open, |it| !*it).unwrap());
    }
}

/// Opens a gate when it is dropped: when a task has run, or will never run.
pub(super) struct Opens(pub(super) Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}
