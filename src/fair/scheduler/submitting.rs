//! Records which tickets a thread is submitting. A *ticket* is a scheduler's job at its executor,
//! and serves queues. An executor may run or drop a ticket within the call that submits the ticket.
//! From the records, the scheduler's code learns whether it runs within such a call.

use crate::executor::{Reason, Rejected};
use crate::fair::below::executor::Below;
use crate::sync::thread::per_thread;
use core::cell::Cell;
use core::ptr;

/// The state of the ticket that this thread submits within [`keep_off`].
#[derive(Clone, Copy)]
enum Handing {
    Nothing,
    Submits(*const Below),
    /// The executor has run the ticket at once, on this thread.
    RunsHere,
}

/// A frame in which this thread submits a ticket to `below`. `outer` is the next such frame up the
/// stack.
struct Submitting {
    below: *const Below,
    outer: *const Submitting,
}

per_thread! {
    /// The innermost frame in which this thread submits a ticket; null if there is none.
    static SUBMITTING: Cell<*const Submitting> = Cell::new(ptr::null());
}

per_thread! {
    static HANDING: Cell<Handing> = Cell::new(Handing::Nothing);
}

/// Submits a ticket. If the executor refuses the ticket, drops the ticket and returns the reason.
/// Returns `None` if the executor panics; the ticket might still run later.
pub(crate) fn submit_ticket(
    below: &Below,
    submit: impl FnOnce() -> Result<(), Rejected>,
) -> Option<Result<(), Reason>> {
    let refused = |Rejected { item: job, reason }| {
        drop(job);
        reason
    };
    let outer = SUBMITTING.try_with(Cell::get).unwrap_or(ptr::null());
    let this = Submitting { below, outer };
    let _ = SUBMITTING.try_with(|it| it.set(&raw const this));
    let submitted = below.panics.take(|| submit().map_err(refused));
    let _ = SUBMITTING.try_with(|it| it.set(outer));
    submitted
}

/// Returns whether this thread is submitting a ticket of any scheduler.
pub(crate) fn is_submitting_any() -> bool {
    SUBMITTING.try_with(|it| !it.get().is_null()).unwrap_or(false)
}

#[cold]
pub(crate) fn is_submitting(below: &Below) -> bool {
    let mut submitting = SUBMITTING.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: I6 — the frame is further up this thread's stack until its submission returns.
    while let Some(frame) = unsafe { submitting.as_ref() } {
        if ptr::eq(frame.below, below) {
            return true;
        }
        submitting = frame.outer;
    }
    false
}

/// Runs `f` while the records of submissions further up the stack are hidden. Otherwise tasks that
/// `f` spawns could be refused (`WouldDeadlock`).
pub(crate) fn beside_submissions(f: impl FnOnce()) {
    let outer = SUBMITTING.try_with(|it| it.replace(ptr::null()));
    f();
    let _ = outer.map(|outer| SUBMITTING.try_with(|it| it.set(outer)));
}

/// Calls `submit`, which submits a ticket. The executor may run the ticket within this call, on
/// this thread. The ticket then serves no queue, but [leaves its work](leave_to_submitter) to the
/// caller. Returns the result of `submit`, and whether the ticket has left its work to the caller.
pub(crate) fn keep_off<R>(below: &Below, submit: impl FnOnce() -> R) -> (R, bool) {
    let outer = HANDING.try_with(|it| it.replace(Handing::Submits(below)));
    let submitted = submit();
    let outer = outer.unwrap_or(Handing::Nothing);
    let handing = HANDING.try_with(|it| it.replace(outer));
    (submitted, matches!(handing, Ok(Handing::RunsHere)))
}

/// Returns whether the ticket that begins to run now leaves its work to a call of [`keep_off`]
/// further up the stack. If the ticket served queues here, the stack would grow with each quantum.
pub(crate) fn leave_to_submitter(below: &Below) -> bool {
    let is_here = |it: &Cell<Handing>| match it.get() {
        Handing::Submits(to) if ptr::eq(to, below) => {
            it.set(Handing::RunsHere);
            true
        }
        _ => false,
    };
    HANDING.try_with(is_here).unwrap_or(false)
}
