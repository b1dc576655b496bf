//! The life of a worker: find a job and run it, or sleep.

use super::inbox::Glance;
use super::Shared;
use crate::deque::Worker;
use crate::executor::Job;
use crate::steal::Steal;
use crate::sync::spin::{relax, Patience};
use crate::sync::{thread, Arc, Relaxed};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::ptr;

/// One turn in this many begins at the inbox, so that jobs which keep spawning others do not starve
/// it. A prime, so that it does not fall in step with them; the number is Go's.
const INBOX_FIRST_EVERY: u32 = 61;

thread::per_thread! {
    /// The worker that this thread is, if it is one.
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static CURRENT: RefCell<Option<Rc<Local>>> = RefCell::new(None);
}

/// What a worker has for itself.
pub(super) struct Local {
    shared: Arc<Shared>,
    deque: Worker<Job>,
    turn: Cell<u32>,
    random: Cell<u32>,
}

impl Local {
    /// The worker that this thread is, if it is one of this pool.
    pub(super) fn of(shared: &Shared) -> Option<Rc<Local>> {
        // An error means that the thread is past running jobs.
        let current = CURRENT.try_with(|it| it.borrow().clone()).ok()??;
        ptr::eq(&*current.shared, shared).then_some(current)
    }

    /// Puts a job where this worker looks first.
    pub(super) fn push(&self, job: Job) {
        self.deque.push(job);
    }

    /// The life of a worker's thread.
    pub(super) fn live(shared: Arc<Shared>, index: usize, deque: Worker<Job>) {
        // Any seed but zero; a different one for each, so that they start at different victims.
        let random = Cell::new(index as u32 + 1);
        let local = Rc::new(Local { shared, deque, turn: Cell::new(0), random });
        CURRENT.with(|it| it.replace(Some(Rc::clone(&local))));
        while let Some(job) = local.next() {
            if !thread::completes(|| job.run()) {
                local.shared.panicked.fetch_add(1, Relaxed); // Relaxed: a statistic
            }
        }
        // Here, and not when the thread is torn down: then nothing orders it before `join`.
        CURRENT.with(|it| it.take());
        local.shared.idle.leave();
    }

    /// The next job; sleeps until there is one. `None` if there will be none.
    fn next(&self) -> Option<Job> {
        let Shared { inbox, idle, .. } = &*self.shared;
        let mut patience = Patience::full();
        loop {
            if let Some(job) = self.find() {
                return Some(job);
            }
            if patience.lasts() {
                continue;
            }
            idle.announce();
            match inbox.glance() {
                Glance::Empty if self.all_are_empty() => {
                    idle.sleep();
                    patience = Patience::full();
                }
                // What others still have in their deques is theirs to run.
                Glance::Drained if self.all_are_empty() => return None,
                _ => {
                    idle.cancel();
                    relax();
                }
            }
        }
    }

    /// Looks everywhere: here, at the inbox, at the others.
    fn find(&self) -> Option<Job> {
        let inbox = &self.shared.inbox;
        self.turn.set(self.turn.get().wrapping_add(1));
        let early = if self.turn.get() % INBOX_FIRST_EVERY == 0 { inbox.pop() } else { None };
        early.or_else(|| self.deque.pop()).or_else(|| inbox.pop()).or_else(|| self.steal())
    }

    /// Takes a batch from another worker.
    fn steal(&self) -> Option<Job> {
        let shared = &*self.shared;
        let (before, after) = shared.stealers.split_at(self.random() % shared.stealers.len());
        loop {
            let victims = after.iter().chain(before);
            let attempts = victims
                .filter(|it| !it.is_stealer_of(&self.deque))
                .map(|it| it.steal_batch_and_pop(&self.deque));
            match attempts.collect() {
                Steal::Success(job) => {
                    // The rest of the batch was for a moment where nobody could see it, so a worker
                    // that looked then may sleep on it.
                    if !self.deque.is_empty() {
                        shared.idle.notify_one();
                    }
                    return Some(job);
                }
                Steal::Empty => return None,
                Steal::Retry => relax(),
            }
        }
    }

    /// Whether a steal from any worker would return `Empty`: neither a job nor `Retry`.
    fn all_are_empty(&self) -> bool {
        self.shared.stealers.iter().all(|it| it.is_empty())
    }

    /// Marsaglia's xorshift: where to start looking does not matter much.
    fn random(&self) -> usize {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        self.random.set(random);
        random as usize
    }
}
