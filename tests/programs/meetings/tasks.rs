//! The work of tasks.

use super::forks::Fork;
use super::ledger::{Account, Gate, Ledger, Opens};
use crate::common::bomb::Bomb;
use crate::common::closures::Counted;
use filch::fair::Queue;
use filch::pool;
use filch::task::{JoinError, TaskGroup};
use filch::{FairScheduler, JoinHandle};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

thread_local! {
    /// The handles that tasks leave on their thread.
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// The work of a task, with all values that it needs.
pub(super) enum Plan {
    Return,
    Panic,
    Yield,
    /// Drops a value whose destructor panics.
    Explode,
    /// Compares the queue's metrics with the records of the program.
    Look,
    /// Leaves a handle in a thread-local.
    Keep(Box<dyn Any + Send>),
    /// Spawns a task and waits until it has ended.
    Wait(Target, How, Box<Task>),
    Detach(Target, Box<Task>),
    /// Waits for a task that another step has spawned.
    Join(JoinHandle<()>, How),
    /// Opens `begun`, and goes on when `release` is open.
    Hold {
        begun: Arc<Gate>,
        release: Arc<Gate>,
        is_blocking: bool,
    },
    /// Spawns itself again until the flag is `false`.
    Respawn(Target, Arc<AtomicBool>),
    Fork(Fork),
    /// Waits until a scheduler over another executor is idle.
    WaitIdle(FairScheduler),
}

/// The queue into which a task spawns.
#[derive(Clone)]
pub(super) enum Target {
    Queue(Queue),
    /// The task's own queue, by a handle of the scheduler.
    Own(FairScheduler),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Join,
    /// In `pool::blocking`, until the awaited task has run.
    Block,
    /// By a group, which has another task too.
    Gather,
}

/// A task, before it is spawned and while it runs.
pub(super) struct Task {
    pub(super) counted: Counted,
    pub(super) account: Arc<Account>,
    pub(super) ledger: Arc<Ledger>,
    /// Its number in an ordered queue.
    pub(super) line: Option<u64>,
    pub(super) plan: Plan,
    pub(super) end: End,
}

/// The work of a task's destructor.
pub(super) struct End {
    /// The scheduler whose metrics the destructor compares with the records.
    pub(super) fair: Option<FairScheduler>,
    pub(super) account: Arc<Account>,
    pub(super) ledger: Arc<Ledger>,
    /// Whether the destructor panics if the task has not run.
    pub(super) explodes: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(fair) = self.fair.take() {
            self.account.check(&fair, &self.ledger);
        }
        if self.explodes && !thread::panicking() {
            panic!("expected: dropped unrun");
        }
    }
}

impl Plan {
    /// Whether the task, or one that it waits for, waits in `pool::blocking`.
    pub(super) fn blocks(&self) -> bool {
        match self {
            Plan::Wait(_, how, task) => *how == How::Block || task.plan.blocks(),
            Plan::Join(_, how) => *how == How::Block,
            Plan::Hold { is_blocking, .. } => *is_blocking,
            _ => false,
        }
    }
}

impl Target {
    fn spawn(&self, f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        match self {
            Target::Queue(queue) => queue.spawn(f),
            Target::Own(fair) => fair.spawn(f),
        }
    }
}

impl Task {
    pub(super) fn run(self) {
        let Task { counted, account, ledger, line, plan, mut end } = self;
        end.explodes = false;
        counted.runs();
        let running = account.begin(&ledger, line);
        match plan {
            Plan::Return => {}
            Plan::Panic => panic!("expected: a task"),
            Plan::Yield => thread::yield_now(),
            Plan::Explode => drop(Bomb),
            Plan::Look => {
                if let Some(fair) = &end.fair {
                    (0..20).for_each(|_| account.check(fair, &ledger));
                }
            }
            Plan::Keep(handle) => KEPT.with_borrow_mut(|it| it.push(handle)),
            Plan::Wait(target, how, task) => {
                let what = format!("for one of {} ({how:?})", task.account.number);
                ledger.waiting(&account, &what, || wait(&ledger, &target, how, *task));
            }
            Plan::Detach(target, task) => {
                task.account.given.fetch_add(1, SeqCst);
                drop(target.spawn(|| task.run()));
            }
            Plan::Join(handle, how) => {
                ledger.waiting(&account, "for one of main's", || match how {
                    How::Join | How::Gather => ledger.settle(handle),
                    How::Block => pool::blocking(|| ledger.settle(handle)),
                });
            }
            Plan::Hold { begun, release, is_blocking } => {
                begun.open();
                ledger.waiting(&account, "to be released", || {
                    if is_blocking {
                        pool::blocking(|| release.wait());
                    } else {
                        release.wait();
                    }
                });
            }
            Plan::Respawn(target, goes_on) => {
                thread::yield_now();
                if goes_on.load(SeqCst) {
                    let task = Task {
                        counted: Counted::new(&ledger.counts),
                        account: Arc::clone(&account),
                        ledger: Arc::clone(&ledger),
                        line: None,
                        plan: Plan::Respawn(target.clone(), goes_on),
                        end,
                    };
                    drop(running);
                    account.given.fetch_add(1, SeqCst);
                    drop(target.spawn(|| task.run()));
                    return;
                }
            }
            Plan::Fork(fork) => fork.run(&account, &ledger),
            Plan::WaitIdle(fair) => {
                if ledger.waiting(&account, "until the twin is idle", || fair.wait_idle()).is_err()
                {
                    ledger.complain("another executor's scheduler would deadlock".to_owned());
                }
            }
        }
        drop(running);
    }
}

/// Spawns a task and waits for it.
fn wait(ledger: &Arc<Ledger>, target: &Target, how: How, task: Task) {
    if how == How::Gather {
        return gather(ledger, target, task);
    }
    let gate = Arc::new(Gate::default());
    let opens = Opens(Arc::clone(&gate));
    task.account.given.fetch_add(1, SeqCst);
    let handle = target.spawn(move || {
        let _opens = opens;
        task.run();
    });
    if how == How::Block {
        pool::blocking(|| gate.wait());
    }
    ledger.settle(handle);
}

/// Spawns a task and a second one in a group, and waits for both.
fn gather(ledger: &Arc<Ledger>, target: &Target, task: Task) {
    let (group, same) = (TaskGroup::new(), Arc::clone(ledger));
    let own = group.clone();
    let counted = Counted::new(&ledger.counts);
    task.account.given.fetch_add(2, SeqCst);
    let first = move || {
        if !own.wait().is_err_and(|it| it.is_deadlock()) {
            same.complain("a task waits for its own group".to_owned());
        }
        task.run();
    };
    let second = move || counted.runs();
    let (first, second) = match target {
        Target::Queue(queue) => {
            (queue.task().group(&group).spawn(first), queue.task().group(&group).spawn(second))
        }
        Target::Own(fair) => {
            (fair.task().group(&group).spawn(first), fair.task().group(&group).spawn(second))
        }
    };
    if let Err(error) = group.wait() {
        ledger.look_at(error);
    }
    if group.pending() != 0 {
        ledger.complain("a group has not ended".to_owned());
    }
    // The handles may become ready later than the group.
    [first, second].into_iter().for_each(|it| ledger.settle(it));
}

impl Ledger {
    /// Waits for a task, and complains if it must not have ended in this way.
    pub(super) fn settle(&self, handle: JoinHandle<()>) {
        if let Err(error) = handle.join() {
            self.look_at(error);
        }
    }

    pub(super) fn look_at(&self, error: JoinError) {
        if error.is_panic() {
            let payload = error.into_panic();
            let text = payload.downcast_ref::<&str>().map(|it| (*it).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            // The panic of a member of a group goes to the group, and the handle gets a text
            // instead.
            let is_known = |it: &str| it.starts_with("expected") || it.ends_with("with the group");
            if !text.as_deref().is_some_and(is_known) {
                self.complain(format!("a task has panicked: {text:?}"));
            }
        } else if !error.is_cancelled() {
            self.complain(format!("a task was not waited for: {error}"));
        } else if !self.may_cancel.load(SeqCst) {
            self.complain("a task was cancelled by nobody".to_owned());
        }
    }
}
