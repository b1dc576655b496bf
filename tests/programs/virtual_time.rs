//! Random programs of queue operations on a virtual clock, where everything can be said exactly: what runs, what
//! may run, and that the same program runs the same way twice.
//!
//! `tests/fair/virtual_time.rs` writes them with proptest, the fuzz target of the same name with libFuzzer.

use crate::common::closures::{Counted, Counts};
use filch::JoinHandle;
use filch::fair::{Clock as _, FairScheduler, Priority, Queue, RoundRobin};
use filch::sim::{self, Handle, Stepper};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A number that chooses one of the queues that there are.
type Which = u8;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Create {
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
        weight: u64,
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))]
        limit: usize,
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 4, _>))]
        priority: u8,
        is_paused: bool,
    },
    DropQueue(Which),
    Spawn(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<0, 299, _>))] u64),
    SpawnMany(
        Which,
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 29, _>))] usize,
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 299, _>))] u64,
    ),
    CancelTask(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 19, _>))] usize),
    Pause(Which),
    Resume(Which),
    SetWeight(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 8, _>))] u64),
    SetLimit(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))] usize),
    Close(Which),
    CancelQueue(Which),
    /// In microseconds.
    Advance(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 399, _>))] u64),
}

/// One program, and what it runs on.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    seed: u64,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
    threads: usize,
    by_turns: bool,
    steps: Vec<Step>,
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0_u8..8;
    let cost = || prop_oneof![Just(0_u64), 1_u64..10, 1_u64..300];
    let create = (1_u64..5, 1_usize..4, 0_u8..5, any::<bool>()).prop_map(
        |(weight, limit, priority, is_paused)| Step::Create { weight, limit, priority, is_paused },
    );
    prop_oneof![
        4 => create,
        1 => which().prop_map(Step::DropQueue),
        8 => (which(), cost()).prop_map(|(which, cost)| Step::Spawn(which, cost)),
        3 => (which(), 1_usize..30, cost()).prop_map(|(which, n, cost)| Step::SpawnMany(which, n, cost)),
        1 => (0_usize..20).prop_map(Step::CancelTask),
        2 => which().prop_map(Step::Pause),
        2 => which().prop_map(Step::Resume),
        1 => (which(), 1_u64..9).prop_map(|(which, weight)| Step::SetWeight(which, weight)),
        1 => (which(), 1_usize..4).prop_map(|(which, limit)| Step::SetLimit(which, limit)),
        1 => which().prop_map(Step::Close),
        1 => which().prop_map(Step::CancelQueue),
        6 => (1_u64..400).prop_map(Step::Advance),
    ]
}

/// Programs of fewer steps than this.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let steps = prop::collection::vec(step(), 0..end);
    (any::<u64>(), 1_usize..=4, any::<bool>(), steps)
        .prop_map(|(seed, threads, by_turns, steps)| Program { seed, threads, by_turns, steps })
}

/// What ran when: the time in nanoseconds, and the task.
type Log = Mutex<Vec<(u128, usize)>>;

/// What is known of a queue from outside.
#[derive(Default)]
struct Account {
    accepted: AtomicUsize,
    begun: AtomicUsize,
    /// Dropped without having run.
    dropped: AtomicUsize,
    running: AtomicUsize,
    /// The most that may run at once since the queue was last at rest.
    limit: AtomicUsize,
}

/// Counts a task that is dropped unrun.
struct Fate(Arc<Account>, bool);

impl Drop for Fate {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, SeqCst);
        }
    }
}

struct Tenant {
    queue: Queue,
    account: Arc<Account>,
    limit: usize,
    is_paused: bool,
}

impl Tenant {
    /// Whether a task of its could begin now.
    fn could_run(&self) -> bool {
        let account = &self.account;
        let gone = account.begun.load(SeqCst) + account.dropped.load(SeqCst);
        let is_waiting = gone < account.accepted.load(SeqCst);
        is_waiting && !self.is_paused && account.running.load(SeqCst) < self.limit
    }
}

/// What one run of a program has at hand.
struct Run {
    stepper: Stepper,
    clock: Handle,
    counts: Arc<Counts>,
    log: Arc<Log>,
    tenants: Vec<Tenant>,
    /// Those whose last handle is gone: they run what they have.
    gone: Vec<Tenant>,
    tasks: Vec<JoinHandle<()>>,
    made: usize,
}

impl Run {
    fn task(&mut self, which: usize, cost: u64) -> impl FnOnce() + Send + use<> {
        let id = self.made;
        self.made += 1;
        let counted = Counted::new(&self.counts);
        let account = Arc::clone(&self.tenants[which].account);
        let fate = Fate(Arc::clone(&account), false);
        let (log, clock) = (Arc::clone(&self.log), self.clock.clone());
        move || {
            let (mut fate, counted) = (fate, counted);
            fate.1 = true;
            counted.runs();
            account.begun.fetch_add(1, SeqCst);
            let running = account.running.fetch_add(1, SeqCst) + 1;
            assert!(running <= account.limit.load(SeqCst), "more run at once than may");
            log.lock().unwrap().push((clock.now().as_nanos(), id));
            sim::work(Duration::from_micros(cost));
            account.running.fetch_sub(1, SeqCst);
        }
    }

    /// No thread is idle while a task could run.
    fn check(&self, threads: usize) {
        let all = || self.tenants.iter().chain(&self.gone);
        let busy: usize = all().map(|it| it.account.running.load(SeqCst)).sum();
        let could_run = all().any(Tenant::could_run);
        assert!(!could_run || busy == threads, "a thread is idle, a task could run");
    }

    fn pick(&self, which: Which) -> usize {
        usize::from(which) % self.tenants.len()
    }

    fn tenant(&mut self, which: Which) -> &mut Tenant {
        let which = self.pick(which);
        &mut self.tenants[which]
    }

    fn step(&mut self, fair: &FairScheduler, threads: usize, step: &Step) {
        if let Step::Create { weight, limit, priority, is_paused } = *step {
            let priorities = [
                Priority::Lowest,
                Priority::BelowNormal,
                Priority::Normal,
                Priority::AboveNormal,
                Priority::Highest,
            ];
            let builder = fair.queue("q").weight(weight).max_parallel(limit);
            let builder = builder.priority(priorities[usize::from(priority)]);
            let queue = if is_paused { builder.paused() } else { builder }.build().unwrap();
            let account = Arc::new(Account::default());
            account.limit.store(limit, SeqCst);
            self.tenants.push(Tenant { queue, account, limit, is_paused });
            return;
        }
        if let Step::Advance(micros) = *step {
            self.stepper.advance(Duration::from_micros(micros));
            self.check(threads);
            return;
        }
        if self.tenants.is_empty() {
            return;
        }
        match *step {
            Step::DropQueue(which) => {
                // A queue that nobody can resume would keep its tasks.
                let mut tenant = self.tenants.swap_remove(self.pick(which));
                tenant.queue.resume();
                tenant.is_paused = false;
                let queue = std::mem::replace(&mut tenant.queue, fair.default_queue().clone());
                drop(queue);
                self.gone.push(tenant);
            }
            Step::Spawn(which, cost) => {
                let which = self.pick(which);
                let task = self.task(which, cost);
                self.tenants[which].account.accepted.fetch_add(1, SeqCst);
                self.tasks.push(self.tenants[which].queue.spawn(task));
            }
            Step::SpawnMany(which, count, cost) => {
                let which = self.pick(which);
                let tasks: Vec<_> = (0..count).map(|_| self.task(which, cost)).collect();
                self.tenants[which].account.accepted.fetch_add(count, SeqCst);
                let _ = self.tenants[which].queue.spawn_batch(tasks);
            }
            Step::CancelTask(which) => {
                if which < self.tasks.len() {
                    self.tasks[which].cancel();
                }
            }
            Step::Pause(which) => {
                let tenant = self.tenant(which);
                tenant.queue.pause();
                tenant.is_paused = true;
            }
            Step::Resume(which) => {
                let tenant = self.tenant(which);
                tenant.queue.resume();
                tenant.is_paused = false;
            }
            Step::SetWeight(which, weight) => {
                self.tenant(which).queue.set_weight(weight).unwrap();
            }
            Step::SetLimit(which, limit) => {
                let tenant = self.tenant(which);
                tenant.queue.set_max_parallel(limit).unwrap();
                tenant.limit = limit;
                // What runs goes on, and what is at it may take another.
                tenant.account.limit.fetch_max(limit, SeqCst);
            }
            Step::Close(which) => _ = self.tenant(which).queue.close(),
            Step::CancelQueue(which) => _ = self.tenant(which).queue.cancel(),
            Step::Create { .. } | Step::Advance(_) => unreachable!("done above"),
        }
    }
}

/// Runs a program; returns what ran when.
fn run(program: &Program) -> Vec<(u128, usize)> {
    let stepper = Stepper::new(program.seed, program.threads);
    let builder = stepper.scheduler().quantum(Duration::from_micros(50));
    let fair = if program.by_turns { builder.policy(RoundRobin::new) } else { builder }.build();
    let mut run = Run {
        clock: stepper.handle(),
        stepper,
        counts: Arc::default(),
        log: Arc::default(),
        tenants: Vec::new(),
        gone: Vec::new(),
        tasks: Vec::new(),
        made: 0,
    };
    for step in &program.steps {
        run.step(&fair, program.threads, step);
    }
    run.tenants.iter().for_each(|it| _ = it.queue.resume());
    run.stepper.run_until_idle();
    assert_eq!(run.stepper.panicked(), 0, "a task has seen what may not be");
    assert!(run.tasks.iter().all(JoinHandle::is_finished), "a handle dangles");
    for tenant in run.tenants.iter().chain(&run.gone) {
        let account = &tenant.account;
        let [accepted, begun, dropped] =
            [&account.accepted, &account.begun, &account.dropped].map(|it| it.load(SeqCst));
        assert_eq!(accepted, begun + dropped, "a task was lost, or ran twice");
    }
    run.counts.finish();
    std::mem::take(&mut *run.log.lock().unwrap())
}

/// Checks a program, and that it runs the same way twice.
pub(crate) fn check(program: Program) {
    let log = run(&program);
    assert!(log == run(&program), "the same seed gave another run");
}
