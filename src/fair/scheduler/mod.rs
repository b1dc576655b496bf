//! The scheduler itself, on which the handles of its queues build. A *ticket* is a job that it
//! submits to the executor, and that serves queues. A *lease* is a thread's right to run tasks of
//! one queue.
//!
//! Each of these files calls only files above it in the table. The one exception is the trait
//! `HandOver` in `hand_over.rs`.
//!
//! | | |
//! |---|---|
//! | `queues.rs` | where queues are, and how they get into the ready set and out of it |
//! | `submitting.rs` | a thread records which tickets it is submitting |
//! | `hand_over.rs` | tickets go to the executor; if it refuses them, another thread serves |
//! | `look.rs` | a queue that may have become ready is served |
//! | `submit.rs` | a queue accepts a task |
//! | `drops.rs` | a queued task is dropped |
//! | `ends.rs` | a lease or a queue ends |
//! | `executor_end.rs` | the executor ends |
//! | `quiet.rs` | a thread waits until nothing is pending |

pub(crate) mod drops;
pub(crate) mod ends;
pub(crate) mod executor_end;
pub(crate) mod hand_over;
pub(crate) mod look;
pub(crate) mod queues;
pub(crate) mod quiet;
pub(crate) mod submit;
pub(crate) mod submitting;

use crate::fair::below::executor::Below;
use crate::fair::below::tickets::Tickets;
use crate::sync::lock::Mutex;
use crate::task::Flow;
use queues::Queues;

pub(crate) struct Scheduler {
    pub(crate) below: Below,
    pub(crate) queues: Queues,
    pub(crate) tickets: Tickets,
    /// The time after which a lease begins no further task, in nanoseconds.
    pub(crate) quantum: u64,
    pub(crate) tasks_per_lease: usize,
    pub(crate) context: Option<Flow>,
    /// Whether `serve_elsewhere` (`hand_over.rs`) has started a thread that has not begun to run
    /// yet.
    pub(crate) is_one_coming: Mutex<bool>,
}

impl Scheduler {
    #[inline]
    pub(crate) fn wants_ticket(&self) -> bool {
        self.tickets.is_one_wanted(self.below.most_tickets())
    }

    pub(crate) fn refresh_most_tickets(&self) -> usize {
        self.below.refresh_most_tickets(&self.queues.tiers.reserves)
    }
}
