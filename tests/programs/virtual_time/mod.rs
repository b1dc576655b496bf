//! Random programs of queue operations on a virtual clock, where the checks are exact. A task runs
//! if and only if it may, and the same program runs the same way twice.
//!
//! `tests/fair/virtual_time.rs` writes them with proptest, the fuzz target of the same name with
//! libFuzzer. Tasks panic, spawn themselves again, fork and wait for tasks of other queues. Futures
//! yield, sleep and are woken. Schedulers are over queues. Queues and tasks have tokens, groups and
//! permits.
//!
//! So that each wait ends, a task waits only for tasks of later queues whose scheduler is over the
//! stepper.

mod books;
mod tasks;

use crate::common::closures::PRIORITIES;
use books::{Account, Books, Log};
use filch::fair::{FairScheduler, QueueBuilder, RoundRobin};
use filch::sim::Stepper;
use filch::task::{CancelToken, TaskGroup};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;
use tasks::{Body, Maker, Spawned, Target, body};

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected"];

/// A number that chooses one of the queues or schedulers of the program.
type Which = u8;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Settings {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
    weight: u64,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))]
    limit: usize,
    /// Zero stands for no limit.
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 3, _>))]
    in_flight: usize,
    #[cfg_attr(fuzzing, arbitrary(with = from::<0, 4, _>))]
    priority: u8,
    is_paused: bool,
    has_token: bool,
}

/// The options of a task besides its closure.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct With {
    token: bool,
    group: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    /// Creates a queue of one of the schedulers.
    Create(Which, Settings),
    /// Creates a scheduler over a queue.
    Nest(Which),
    DropQueue(Which),
    Spawn(Which, With, Body, #[cfg_attr(fuzzing, arbitrary(with = from::<0, 299, _>))] u64),
    SpawnMany(
        Which,
        #[cfg_attr(fuzzing, arbitrary(with = from::<1, 29, _>))] usize,
        #[cfg_attr(fuzzing, arbitrary(with = from::<0, 299, _>))] u64,
    ),
    CancelTask(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 19, _>))] usize),
    /// Wakes a future, which may sleep or have ended.
    Wake(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 19, _>))] usize),
    CancelToken,
    Pause(Which),
    Resume(Which),
    SetWeight(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 8, _>))] u64),
    SetLimit(Which, #[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))] usize),
    Close(Which),
    CancelQueue(Which),
    OneTurn,
    /// Advances the clock by this many microseconds.
    Advance(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 399, _>))] u64),
}

/// One program, with the seed and the threads of its stepper.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    seed: u64,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
    threads: usize,
    by_turns: bool,
    steps: Vec<Step>,
}

fn settings() -> impl Strategy<Value = Settings> {
    let in_flight = prop_oneof![2 => Just(0_usize), 1 => 1_usize..4];
    let has_token = prop::bool::weighted(0.2);
    (1_u64..5, 1_usize..4, in_flight, 0_u8..5, any::<bool>(), has_token).prop_map(
        |(weight, limit, in_flight, priority, is_paused, has_token)| Settings {
            weight,
            limit,
            in_flight,
            priority,
            is_paused,
            has_token,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0_u8..8;
    let cost = || prop_oneof![Just(0_u64), 1_u64..10, 1_u64..300];
    let sometimes = || prop::bool::weighted(0.2);
    let with = (sometimes(), sometimes()).prop_map(|(token, group)| With { token, group });
    prop_oneof![
        4 => (which(), settings()).prop_map(|(on, settings)| Step::Create(on, settings)),
        1 => which().prop_map(Step::Nest),
        1 => which().prop_map(Step::DropQueue),
        9 => (which(), with, body(), cost()).prop_map(|(it, with, body, cost)| Step::Spawn(it, with, body, cost)),
        2 => (which(), 1_usize..30, cost()).prop_map(|(which, n, cost)| Step::SpawnMany(which, n, cost)),
        1 => (0_usize..20).prop_map(Step::CancelTask),
        2 => (0_usize..20).prop_map(Step::Wake),
        1 => Just(Step::CancelToken),
        2 => which().prop_map(Step::Pause),
        2 => which().prop_map(Step::Resume),
        1 => (which(), 1_u64..9).prop_map(|(which, weight)| Step::SetWeight(which, weight)),
        1 => (which(), 1_usize..4).prop_map(|(which, limit)| Step::SetLimit(which, limit)),
        1 => which().prop_map(Step::Close),
        1 => which().prop_map(Step::CancelQueue),
        2 => Just(Step::OneTurn),
        6 => (1_u64..400).prop_map(Step::Advance),
    ]
}

/// Generates programs of fewer than `end` steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let steps = prop::collection::vec(step(), 0..end);
    (any::<u64>(), 1_usize..=4, any::<bool>(), steps)
        .prop_map(|(seed, threads, by_turns, steps)| Program { seed, threads, by_turns, steps })
}

/// A scheduler, and the queue that it is over.
struct Scheduler {
    fair: FairScheduler,
    below: Option<usize>,
}

/// The state of one run of a program.
struct Run {
    stepper: Stepper,
    by_turns: bool,
    schedulers: Vec<Scheduler>,
    maker: Maker,
    tenants: Vec<Target>,
    tasks: Vec<Spawned>,
    token: CancelToken,
    group: TaskGroup,
}

/// Calls `f`, which may drop closures whose destructors panic.
fn catch(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        let text = payload.downcast_ref::<&str>().copied().unwrap_or_default();
        if !text.starts_with("expected") {
            resume_unwind(payload);
        }
    }
}

impl Run {
    fn new(program: &Program) -> Self {
        let stepper = Stepper::new(program.seed, program.threads);
        let books = Arc::new(Books::new(stepper.handle()));
        let mut run = Run {
            stepper,
            by_turns: program.by_turns,
            schedulers: Vec::new(),
            maker: Maker { books, counts: Arc::default() },
            tenants: Vec::new(),
            tasks: Vec::new(),
            token: CancelToken::new(),
            group: TaskGroup::new(),
        };
        run.add_scheduler(run.stepper.scheduler(), None);
        run
    }

    fn add_scheduler(&mut self, builder: filch::fair::Builder, below: Option<usize>) {
        let builder = builder.quantum(Duration::from_micros(50));
        let builder = if self.by_turns { builder.policy(RoundRobin::new) } else { builder };
        self.schedulers.push(Scheduler { fair: builder.build(), below });
    }

    fn create(&mut self, on: Which, settings: &Settings) {
        let Scheduler { fair, below } = &self.schedulers[usize::from(on) % self.schedulers.len()];
        let (limit, in_flight) = (settings.limit, Some(settings.in_flight).filter(|it| *it > 0));
        let mut builder: QueueBuilder<'_> =
            fair.queue("q").weight(settings.weight).max_parallel(limit);
        builder = builder.priority(PRIORITIES[usize::from(settings.priority)]);
        builder =
            if let Some(futures) = in_flight { builder.max_in_flight(futures) } else { builder };
        builder = if settings.is_paused { builder.paused() } else { builder };
        builder = if settings.has_token { builder.token(&self.token) } else { builder };
        // A scheduler over a closed queue creates no queue.
        let Ok(queue) = builder.build() else { return };
        let accounts = &mut self.maker.books.entries().accounts;
        let mut account = Account::new(*below, limit, in_flight, settings.is_paused);
        account.has_token = settings.has_token;
        accounts.push(account);
        self.tenants.push(Target { queue, account: accounts.len() - 1 });
    }

    /// Returns a queue and its records.
    fn tenant(&self, which: Which) -> &Target {
        &self.tenants[usize::from(which) % self.tenants.len()]
    }

    fn is_needed(&self, which: Which) -> bool {
        self.maker.books.entries().accounts[self.tenant(which).account].is_needed
    }

    fn update(&self, which: Which, change: impl FnOnce(&mut Account)) {
        change(&mut self.maker.books.entries().accounts[self.tenant(which).account]);
    }

    fn spawn(&mut self, which: Which, with: With, body: &Body, micros: u64) {
        let Target { queue, account } = self.tenant(which).clone();
        let (make, mut task) = (&self.maker, queue.task());
        task = if with.token { task.token(&self.token) } else { task };
        task = if with.group { task.group(&self.group) } else { task };
        make.books.entries().with_token = with.token;
        let waits = matches!(body, Body::Wait { .. } | Body::Fork { .. });
        let body = match waits && !make.books.entries().may_wait(account) {
            true => &Body::Work,
            false => body,
        };
        let handle = match *body {
            Body::Work => task.spawn(make.work(account, micros)),
            Body::Panic => task.spawn(make.panics(account, micros)),
            Body::Explode => task.spawn(make.explodes(account, micros)),
            Body::Respawn(times) => {
                let target = Target { queue: queue.clone(), account };
                task.spawn(make.respawns(target, times, micros))
            }
            Body::Wait { on, by_group } => {
                let is_later = |it: &&Target| it.account > account;
                let is_root = |it: &&Target| make.books.entries().accounts[it.account].is_root();
                let later: Vec<_> = self.tenants.iter().filter(is_later).filter(is_root).collect();
                match later.get(usize::from(on) % later.len().max(1)) {
                    Some(on) => task.spawn(make.waits(account, (*on).clone(), by_group, micros)),
                    None => task.spawn(make.work(account, micros)),
                }
            }
            Body::Fork { depth, by_scope, panics } => {
                let target = Target { queue: queue.clone(), account };
                task.spawn(make.forks(target, (depth, by_scope, panics), micros))
            }
            Body::Poll { times, ends, explodes } => {
                let (sleeper, future) = make.polls(account, (times, ends, explodes), micros);
                self.tasks.push(Spawned(task.spawn_future(future), Some(sleeper)));
                return;
            }
        };
        self.tasks.push(Spawned(handle, None));
    }

    fn step(&mut self, threads: usize, step: &Step) {
        // The step before may have left this set, if a refused closure panicked when it was
        // dropped.
        self.maker.books.entries().with_token = false;
        match *step {
            Step::Create(on, ref settings) => return self.create(on, settings),
            Step::CancelToken => {
                catch(|| _ = self.token.cancel());
                let left = self.maker.books.entries().under_token;
                assert_eq!(left, 0, "tasks of a cancelled token wait");
                self.token = CancelToken::new();
            }
            Step::CancelTask(which) => {
                if let Some(it) = self.tasks.get(which) {
                    it.0.cancel();
                }
            }
            Step::Wake(which) => {
                let sleeper = self.tasks.get(which).and_then(|it| it.1.as_ref());
                sleeper.iter().for_each(|it| it.wake());
            }
            Step::OneTurn => _ = self.stepper.step(),
            Step::Advance(micros) => {
                self.stepper.advance(Duration::from_micros(micros));
                self.maker.books.check(threads);
            }
            _ if self.tenants.is_empty() => return,
            Step::Close(which) | Step::CancelQueue(which) if self.is_needed(which) => return,
            _ => {}
        }
        match *step {
            Step::Nest(which) => {
                let Target { queue, account } = self.tenant(which).clone();
                let builder = FairScheduler::builder(queue).clock(self.stepper.handle());
                self.add_scheduler(builder, Some(account));
            }
            Step::DropQueue(which) => {
                // A paused queue without a handle could not be resumed, and would keep its tasks.
                self.step(threads, &Step::Resume(which));
                let which = usize::from(which) % self.tenants.len();
                drop(self.tenants.swap_remove(which));
            }
            Step::Spawn(which, with, ref body, micros) => self.spawn(which, with, body, micros),
            Step::SpawnMany(which, count, micros) => {
                let Target { queue, account } = self.tenant(which);
                let tasks: Vec<_> = (0..count).map(|_| self.maker.work(*account, micros)).collect();
                // A closed queue refuses these tasks.
                let _ = queue.spawn_batch(tasks);
            }
            Step::Pause(which) => {
                self.tenant(which).queue.pause();
                self.update(which, |it| it.is_paused = true);
            }
            Step::Resume(which) => {
                self.tenant(which).queue.resume();
                self.update(which, |it| it.is_paused = false);
            }
            Step::SetWeight(which, weight) => self.tenant(which).queue.set_weight(weight).unwrap(),
            Step::SetLimit(which, limit) => {
                self.tenant(which).queue.set_max_parallel(limit).unwrap();
                self.update(which, |it| {
                    it.limit = limit;
                    it.highest = it.highest.max(limit);
                    it.is_ordered = false;
                });
            }
            Step::Close(which) => {
                self.tenant(which).queue.close();
                self.update(which, |it| it.is_closed = true);
            }
            Step::CancelQueue(which) => {
                catch(|| _ = self.tenant(which).queue.cancel());
                self.update(which, |it| it.is_closed = true);
            }
            _ => {}
        }
    }

    /// Lets all tasks end, and returns when each ran.
    fn end(mut self) -> Log {
        self.maker.books.entries().with_token = false;
        for it in &self.tenants {
            it.queue.resume();
        }
        self.stepper.run_until_idle();
        for it in self.tasks.iter().filter(|it| it.1.is_some()) {
            catch(|| _ = it.0.cancel());
        }
        self.stepper.run_until_idle();
        assert_eq!(self.stepper.panicked(), 0, "a job has panicked");
        assert!(self.tasks.iter().all(|it| it.0.is_finished()), "a handle dangles");
        let is_over = self.group.wait_timeout(Duration::ZERO).is_some();
        assert!(is_over, "a group waits for what has ended");
        self.tenants.clear();
        self.schedulers.clear();
        self.tasks.drain(..).for_each(|it| drop(it.0.join()));
        self.maker.counts.finish();
        self.maker.books.finish()
    }
}

fn run(program: &Program) -> Log {
    let mut run = Run::new(program);
    for step in &program.steps {
        // A refused closure is dropped within this call, and may panic.
        catch(|| run.step(program.threads, step));
    }
    run.end()
}

/// Runs a program twice, in the same way. Returns the panic of a check that fails.
fn holds(program: &Program) -> Result<(), Box<dyn Any + Send>> {
    catch_unwind(|| {
        let log = run(program);
        assert!(log == run(program), "the same seed gave another run");
    })
}

/// Checks a program, and that it runs the same way twice. If a check fails, prints the program
/// without the steps that make no difference.
pub(crate) fn check(mut program: Program) {
    let Err(payload) = holds(&program) else { return };
    for index in (0..program.steps.len()).rev() {
        let step = program.steps.remove(index);
        if holds(&program).is_ok() {
            program.steps.insert(index, step);
        }
    }
    eprintln!("{program:#?}");
    resume_unwind(payload);
}
