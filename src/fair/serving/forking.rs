//! Offers the forks of a thread that serves a queue, and waits until they have ended, for
//! `Queue::join` and `Queue::scope`. A *fork* is a half of a `join` or a job of a scope. The forks'
//! owner waits at a *latch*. A latch that is made within a fork has that fork's latch as its
//! *outer* latch. A *shard* is a list of offered forks (`line/fork.rs`).

use super::frame::Serving;
use crate::fair::line::Line;
use crate::fair::line::fork::{ForkHead, Forks, Latch};
use crate::fair::scheduler::Scheduler;
use crate::fair::scheduler::hand_over::send_another;
use crate::fair::scheduler::look::put;
use crate::fair::scheduler::queues::Queues;
use crate::sync::{Arc, thread};
use crate::task::{Bed, Captured, Flow, Job};

/// Offers a fork, and returns the index of the shard with the offer. Of the latches around the
/// fork, other threads can wait only at `latch` and at its outer latches. It is null if there is no
/// such latch. Wakes the threads that sleep at these latches: they are allowed to run this fork.
///
/// # Safety
///
/// 1. I7 — the fork of `head` stays until it has run, or `take_back` has returned `true`.
#[inline]
pub(crate) unsafe fn offer(
    scheduler: &Arc<Scheduler>,
    line: &Line,
    head: *const ForkHead,
    latch: *const Latch,
) -> usize {
    let forks = line.forks.get_or_make(Forks::default);
    let shard = forks.shard_of(Serving::of(line).map(|it| &it.owner));
    // SAFETY: 1 — the caller keeps the fork until it has run or was taken back.
    put(|| unsafe { forks.offer(shard, head) });
    if scheduler.queues.is_shown(line) && scheduler.queues.tiers.reserves.has_room(line.tier()) {
        send_another(scheduler);
    }
    // SAFETY: I7 — `latch` is null, or the latch is further up this stack, or on the stack of a
    // thread that waits for this thread.
    unsafe { latch.as_ref() }.into_iter().for_each(Latch::stir);
    shard
}

/// Waits until the forks of `latch`, which the caller owns, have ended. Meanwhile runs forks that
/// descend from the latch (`line/fork.rs`), and sleeps while no such fork is offered.
#[cold]
pub(crate) fn wait_at(queues: &Queues, line: &Line, serving: &Serving, latch: &Latch) {
    let Some(forks) = line.forks.get() else { return };
    let is_over = || latch.countdown.is_over();
    while !is_over() {
        if let Some(fork) = forks.take_of(&serving.owner, latch) {
            fork.run();
            continue;
        }
        Bed::hesitate(|| is_over() || forks.has_some());
        if is_over() {
            return;
        }
        let began = queues.clock.nanos();
        serving.settle(queues, line, began);
        let fork = forks.sleep_at(latch);
        serving.add_away(queues.clock.nanos().saturating_sub(began));
        fork.into_iter().for_each(Job::run);
    }
}

/// The captured context of a closure that lies on a stack. The drop catches a panic of the
/// context's destructor, because during an unwinding panic a second one would end the process.
pub(crate) struct HalfContext(Option<Captured>);

impl HalfContext {
    #[inline]
    pub(crate) fn of(flow: Option<&Flow>) -> Self {
        HalfContext(flow.map(Flow::capture))
    }

    pub(crate) fn within<T>(&self, f: impl FnOnce() -> T) -> T {
        Captured::within(self.0.as_ref(), f)
    }
}

impl Drop for HalfContext {
    fn drop(&mut self) {
        if let Some(context) = self.0.take() {
            thread::completes(|| drop(context));
        }
    }
}
