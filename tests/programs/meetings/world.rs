//! A program's schedulers, queues and tasks, and what the main thread knows of each.

use super::faults::{Faults, with_faults};
use super::grounds::{Ground, Make};
use super::ledger::{Account, Gate, Ledger, Progress};
use super::{Program, Which, known, steps};
use filch::executor::Shutdown;
use filch::fair::{Builder, Queue, RoundRobin, WeightedFair};
use filch::task::{CancelToken, TaskGroup};
use filch::{FairScheduler, JoinHandle};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

pub(super) struct Scheduler {
    pub(super) fair: FairScheduler,
    /// The queue that it is over, if it is over one.
    pub(super) on: Option<usize>,
}

/// The state of a queue.
pub(super) struct Tenant {
    /// `None` once main has dropped its handle.
    pub(super) queue: Option<Queue>,
    pub(super) scheduler: usize,
    /// The queue, the queue that its scheduler is over, and so on downwards.
    pub(super) chain: Vec<usize>,
    pub(super) is_calm: bool,
    pub(super) limit: Option<usize>,
    pub(super) capacity: Option<usize>,
    /// How many tasks main has given to it without keeping a handle.
    pub(super) detached: usize,
    pub(super) is_paused: bool,
    pub(super) is_closed: bool,
    /// Whether it ends with the program's token.
    pub(super) has_token: bool,
    /// How many of its places the `Holder`s occupy.
    pub(super) held: usize,
    pub(super) lines: u64,
    pub(super) account: Arc<Account>,
}

impl Tenant {
    /// Whether its tasks always begin in the order in which they were spawned.
    pub(super) fn is_ordered(&self) -> bool {
        self.is_calm && self.limit == Some(1)
    }
}

/// A task that holds a place, and perhaps a thread.
pub(super) struct Holder {
    pub(super) handle: JoinHandle<()>,
    pub(super) release: Arc<Gate>,
    pub(super) chain: Vec<usize>,
    pub(super) has_thread: bool,
}

pub(super) struct Pending {
    pub(super) handle: JoinHandle<()>,
    /// Whether the task waits in `pool::blocking`.
    pub(super) blocks: bool,
    pub(super) tenant: usize,
}

pub(super) struct World {
    pub(super) ground: Ground,
    /// How many threads it has now.
    pub(super) threads: usize,
    pub(super) is_shut: bool,
    /// Whether tickets are missing: an executor panics and loses one until the next event, or it is
    /// closed and takes none.
    pub(super) has_lost_tickets: bool,
    pub(super) faults: Arc<Faults>,
    pub(super) ledger: Arc<Ledger>,
    by_turns: bool,
    measures_waits: bool,
    pub(super) schedulers: Vec<Scheduler>,
    pub(super) tenants: Vec<Tenant>,
    /// Another scheduler on another ground of the same kind, with one queue.
    pub(super) twin: FairScheduler,
    pub(super) twins_account: Arc<Account>,
    pub(super) holders: Vec<Holder>,
    pub(super) backlogs: Vec<Arc<AtomicBool>>,
    pub(super) pending: Vec<Pending>,
    pub(super) futures: Vec<JoinHandle<()>>,
    pub(super) outside: Vec<thread::JoinHandle<()>>,
    pub(super) token: CancelToken,
    pub(super) group: TaskGroup,
    /// How many tasks of the program wait in `pool::blocking`.
    pub(super) blocked: usize,
    _twins_ground: Ground,
}

/// Runs a program, and records its current step in `progress`.
pub(super) fn run(program: Program, make: Make, progress: &Arc<Progress>) {
    static GROUNDS: AtomicU64 = AtomicU64::new(1);

    let say = |text: String| *progress.step.lock().unwrap() = text;
    let Program { ground: kind, threads, by_turns, measures_waits, steps } = program;
    let faults = Arc::new(Faults::default());
    let number = GROUNDS.fetch_add(2, SeqCst);
    let ground = make(kind, threads, number, &faults);
    let twins_ground = make(kind, 1, number + 1, &Arc::default());
    let twin = (twins_ground.builder)().build();
    let twins_account = Account::new(0, None, number + 1, None);
    let mut world = World {
        threads: ground.threads,
        ground,
        is_shut: false,
        has_lost_tickets: false,
        faults,
        ledger: Arc::new(Ledger::new(Arc::clone(progress))),
        by_turns,
        measures_waits,
        schedulers: Vec::new(),
        tenants: Vec::new(),
        twin,
        twins_account: Arc::new(twins_account),
        holders: Vec::new(),
        backlogs: Vec::new(),
        pending: Vec::new(),
        futures: Vec::new(),
        outside: Vec::new(),
        token: CancelToken::new(),
        group: TaskGroup::new(),
        blocked: 0,
        _twins_ground: twins_ground,
    };
    let builder = (world.ground.builder)();
    world.add_scheduler(builder, None, number);
    for (index, step) in steps.into_iter().enumerate() {
        say(format!("step {index}, {step:?}"));
        let result = catch_unwind(AssertUnwindSafe(|| steps::run(&mut world, step)));
        result.unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<&str>().map(|it| (*it).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            if !text.is_some_and(|it| it.starts_with("expected")) {
                resume_unwind(payload);
            }
        });
        world.ledger.assert_clean();
    }
    world.end(say);
}

impl World {
    pub(super) fn add_scheduler(&mut self, builder: Builder, on: Option<usize>, ground: u64) {
        let builder = builder.quantum(Duration::from_micros(20)).measure_waits(self.measures_waits);
        let builder = builder.panic_handler(|_| panic!("expected: a panic handler"));
        let builder = if self.by_turns {
            with_faults(builder, &self.faults, RoundRobin::new)
        } else {
            with_faults(builder, &self.faults, WeightedFair::new)
        };
        let fair = builder.build();
        let queue = fair.default_queue().clone();
        self.schedulers.push(Scheduler { fair, on });
        let is_calm = on.is_none_or(|it| self.is_free(it));
        let account = Account::new(self.tenants.len(), None, ground, None);
        self.add_tenant(queue, self.schedulers.len() - 1, is_calm, account);
    }

    pub(super) fn add_tenant(
        &mut self,
        queue: Queue,
        scheduler: usize,
        is_calm: bool,
        account: Account,
    ) {
        let mut chain = vec![self.tenants.len()];
        if let Some(below) = self.schedulers[scheduler].on {
            chain.extend(&self.tenants[below].chain);
        }
        let queues = &self.ledger.progress.queues;
        let limit = account.limit.load(SeqCst);
        let number = account.number;
        queues.lock().unwrap().push(format!("{number}: {chain:?} calm {is_calm} limit {limit}"));
        self.tenants.push(Tenant {
            queue: Some(queue),
            scheduler,
            chain,
            is_calm,
            limit: None,
            capacity: None,
            detached: 0,
            is_paused: false,
            is_closed: false,
            has_token: false,
            held: 0,
            lines: 0,
            account: Arc::new(account),
        });
    }

    /// Chooses one of the queues of which main has a handle.
    pub(super) fn pick(&self, which: Which) -> usize {
        self.pick_one(which, |_| true).expect("the first default queue stays")
    }

    /// Chooses one of these queues for which `is_it` returns `true`.
    pub(super) fn pick_one(&self, which: Which, is_it: impl Fn(&Tenant) -> bool) -> Option<usize> {
        let tenants = self.tenants.iter().enumerate();
        let those: Vec<usize> =
            tenants.filter(|it| it.1.queue.is_some() && is_it(it.1)).map(|it| it.0).collect();
        those.get(usize::from(which) % those.len().max(1)).copied()
    }

    pub(super) fn queue(&self, tenant: usize) -> &Queue {
        self.tenants[tenant].queue.as_ref().unwrap()
    }

    /// Prepares for the end of the queues for which `is_one` returns `true`. A scheduler over one
    /// of them gets no further ticket, so none may be needed.
    pub(super) fn may_close(&mut self, is_one: impl Fn(usize) -> bool) -> bool {
        if self.schedulers.iter().any(|it| it.on.is_some_and(&is_one)) {
            self.release();
            self.has_lost_tickets = true;
        }
        self.cancels();
        true
    }

    /// Records that something cancels tasks from now on.
    pub(super) fn cancels(&self) {
        self.ledger.may_cancel.store(true, SeqCst);
    }

    /// Returns the index in `pending` of one of main's tasks; `which` counts from the newest.
    pub(super) fn pick_task(&self, which: Which) -> Option<usize> {
        self.pending.len().checked_sub(usize::from(which) + 1)
    }

    /// Ends all holders and all backlogs.
    pub(super) fn release(&mut self) {
        for Holder { handle, release, chain, .. } in self.holders.drain(..) {
            release.open();
            chain.iter().for_each(|it| self.tenants[*it].held -= 1);
            self.pending.push(Pending { handle, blocks: true, tenant: chain[0] });
        }
        self.backlogs.drain(..).for_each(|it| it.store(false, SeqCst));
    }

    /// How many threads the holders occupy.
    pub(super) fn held_threads(&self) -> usize {
        self.holders.iter().filter(|it| it.has_thread).count()
    }

    /// Makes sure that a thread is free, and a place of each queue.
    pub(super) fn make_room(&mut self) {
        let is_full = |it: &Tenant| it.limit.is_some_and(|limit| it.held >= limit);
        if self.held_threads() >= self.threads || self.tenants.iter().any(is_full) {
            self.release();
        }
    }

    /// Resumes these queues, if main still has their handles.
    pub(super) fn resume(&mut self, tenants: impl IntoIterator<Item = usize>) {
        for it in tenants {
            if let Some(queue) = &self.tenants[it].queue {
                queue.resume();
            }
            self.tenants[it].is_paused = false;
        }
    }

    /// Cancels all futures, and waits for them.
    pub(super) fn end_futures(&mut self) {
        if !self.futures.is_empty() {
            self.resume(0..self.tenants.len());
        }
        for future in self.futures.drain(..) {
            future.cancel();
            // Some futures were ready before the cancel.
            let _ = future.join();
        }
    }

    /// Drops all handles, and checks that all tasks and threads end.
    fn end(mut self, say: impl Fn(String)) {
        self.faults.disarm();
        self.release();
        say("the end: futures".to_owned());
        self.end_futures();
        if known::TICKETS_KEEP_QUEUES_PAUSED {
            self.resume(self.schedulers.iter().filter_map(|it| it.on).collect::<Vec<_>>());
        }
        say("the end: handles go".to_owned());
        // The outermost queue goes first, since a scheduler keeps the queue that it is over.
        while let Some(tenant) = self.tenants.pop() {
            drop(tenant);
        }
        self.schedulers.clear();
        for (index, it) in self.pending.into_iter().enumerate() {
            say(format!("the end: handle {index}, of queue {}", it.tenant));
            self.ledger.settle(it.handle);
        }
        say("the end: the group".to_owned());
        if let Err(error) = self.group.wait() {
            self.ledger.look_at(error);
        }
        say("the end: threads outside".to_owned());
        self.outside.into_iter().for_each(|it| it.join().unwrap());
        say("the end: closures are dropped".to_owned());
        while !self.ledger.counts.are_dropped() {
            thread::sleep(Duration::from_micros(100));
        }
        self.ledger.counts.finish();
        say("the end: threads".to_owned());
        if let Some(shut) = &self.ground.shut {
            shut(Shutdown::Drain);
        }
        self.ledger.assert_clean();
    }
}
