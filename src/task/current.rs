//! The frames of this thread. A *frame* describes a task that the thread runs, or the executor or
//! queue whose jobs it serves. The frames are a list from the innermost one outwards, whose head is
//! a thread-local. Executors push frames. Waits and cancellation read them. A frame's *ticket* is
//! the thread's right to run jobs. While the thread blocks, another thread may take this right. A
//! frame's *waiter* is the thread that waits for the frame's job, if there is one.

pub(crate) use super::frame::Ticket;
use super::frame::{Frame, NOTHING};
use super::id::ExecutorId;
use super::state::State;
use crate::sync::thread::{Finally, per_thread};
use crate::sync::{AtomicBool, Relaxed};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr;

per_thread! {
    /// The innermost frame of this thread, or null (I5).
    static CURRENT: Cell<*const Frame> = Cell::new(ptr::null());
}

fn innermost() -> *const Frame {
    CURRENT.try_with(Cell::get).unwrap_or(ptr::null())
}

/// Returns a copy of the innermost frame of this thread.
fn now() -> Frame {
    // SAFETY: I5 — `CURRENT` points to a frame only while that frame exists.
    unsafe { innermost().as_ref() }.copied().unwrap_or(NOTHING)
}

/// Runs `f` as this task, which is a member of this group, or of none if `group` is null.
#[inline]
pub(super) fn during<R>(
    home: Option<ExecutorId>,
    state: &State,
    group: *const (),
    f: impl FnOnce() -> R,
) -> R {
    let outer = innermost();
    // SAFETY: I5 — the outer frame is removed after this call, which is nested in it.
    let around = unsafe { outer.as_ref() }.unwrap_or(&NOTHING);
    // A task of the innermost frame's executor, or of none, inherits the frame's stop flag, which
    // asks all tasks of a queue to stop. But if the frame is a *guest*'s, a task of its executor
    // does not inherit the flag. A guest is a worker for one call only, perhaps inside an unrelated
    // task.
    let is_part = home.is_none() || home == around.home && !around.is_guest;
    let stop = if is_part { around.stop } else { ptr::null() };
    enter(Frame { home, state, stop, group, outer, ..Frame::on(around.base) }, f)
}

per_thread! {
    static MEMBER_OF: Cell<Option<ExecutorId>> = Cell::new(None);
}

/// Returns whether this thread is a worker of this executor, or drops the executor's jobs. A thread
/// that became a worker counts as one until it calls `leave`, even while its thread-locals are
/// destroyed. A thread in `as_thread_of` counts until that call returns.
pub(crate) fn is_thread_of(executor: ExecutorId) -> bool {
    // A frame with neither a task nor a queue belongs to a worker, or to a thread that drops jobs.
    let is_its = |it: Frame| it.home == Some(executor) && it.state.is_null() && it.stop.is_null();
    MEMBER_OF.try_with(Cell::get).unwrap_or(None) == Some(executor) || any(is_its)
}

per_thread! {
    /// How many *strangers* run on this thread, nested. A stranger is a job for which no frame
    /// further up the stack waits.
    static STRANGERS: Cell<usize> = Cell::new(0);
}

pub(crate) fn strangers() -> usize {
    STRANGERS.try_with(Cell::get).unwrap_or(0)
}

/// Runs `f` as a worker of this executor would, and not as a part of the task that this thread
/// already runs. `f` drops jobs, or runs a *stranger*: a job for which no outer frame waits.
pub(crate) fn as_stranger<R>(executor: ExecutorId, f: impl FnOnce() -> R) -> R {
    let (base, outer, strangers) = (now().base, innermost(), strangers());
    let _back = Finally(|| _ = STRANGERS.try_with(|it| it.set(strangers)));
    let _ = STRANGERS.try_with(|it| it.set(strangers + 1));
    enter(Frame { home: Some(executor), base, is_stranger: true, outer, ..NOTHING }, f)
}

/// Runs `f`, which drops tasks of this executor. Sets `drops` in a copy of the innermost frame.
pub(crate) fn as_dropper<R>(scheduler: ExecutorId, f: impl FnOnce() -> R) -> R {
    let outer = now();
    let (drops, ticket, waiter) = (Some(scheduler), None, ptr::null());
    enter(Frame { drops, ticket, waiter, outer: &raw const outer, ..outer }, f)
}

/// Returns whether this thread, or a thread that waits for it, drops tasks of an executor or queue
/// for whose id `is_it` holds.
pub(crate) fn is_dropper(is_it: impl Fn(ExecutorId) -> bool) -> bool {
    any_or_waiter(|frame| frame.drops.is_some_and(&is_it))
}

/// Runs `f` as a member of this group. The new frame has neither a ticket nor a waiter; its other
/// settings are those of the innermost frame.
pub(super) fn as_member<R>(group: *const (), f: impl FnOnce() -> R) -> R {
    as_part(now().state, group, f)
}

/// Runs `f` as [`as_member`] does, and as a part of the task with this state. So if `f` waits for
/// that task, the wait returns an error.
pub(super) fn as_part<R>(state: *const State, group: *const (), f: impl FnOnce() -> R) -> R {
    let outer = now();
    let (ticket, waiter) = (None, ptr::null());
    enter(Frame { state, ticket, waiter, group, outer: &raw const outer, ..outer }, f)
}

/// Runs `f` as a worker of this executor. `place` is the worker's place in its pool, or `None` if
/// no other thread can take that place.
pub(crate) fn as_worker<R>(
    home: Option<ExecutorId>,
    place: Option<&(dyn Ticket + 'static)>,
    f: impl FnOnce() -> R,
) -> R {
    let _ = MEMBER_OF.try_with(|it| it.set(home));
    let ticket = place.map(ptr::from_ref);
    enter(Frame { home, ticket, outer: innermost(), ..Frame::on(home) }, f)
}

/// Runs `f`. Meanwhile this thread counts as a thread of the executor `home` (`is_thread_of`). The
/// thread still counts as a thread of another executor if a worker's frame of that executor is on
/// its stack.
pub(crate) fn as_thread_of<R>(home: Option<ExecutorId>, f: impl FnOnce() -> R) -> R {
    let outer = MEMBER_OF.try_with(|it| it.replace(home)).unwrap_or(None);
    let _back = Finally(|| _ = MEMBER_OF.try_with(|it| it.set(outer)));
    f()
}

/// Runs `f` as a worker of this executor, on a thread that is a worker only during this call.
pub(crate) fn as_guest<R>(
    home: Option<ExecutorId>,
    place: &(dyn Ticket + 'static),
    f: impl FnOnce() -> R,
) -> R {
    let here = now();
    let (ticket, outer) = (Some(ptr::from_ref(place)), &raw const here);
    let (is_guest, base, waiter, group) = (true, home, ptr::null(), ptr::null());
    let frame = Frame { home, is_guest, base, ticket, waiter, group, outer, ..here };
    as_thread_of(home, || enter(frame, f))
}

/// Returns whether this thread runs no task and is no worker.
pub(crate) fn is_outside() -> bool {
    innermost().is_null()
}

per_thread! {
    static OUTERMOST: Cell<Frame> = Cell::new(NOTHING);
}

/// Makes this thread a worker of this executor until the thread calls [`leave`]. Before this call,
/// the thread is no worker, and runs no task.
pub(crate) fn become_worker(home: Option<ExecutorId>, place: &(dyn Ticket + 'static)) {
    let frame = Frame { home, ticket: Some(ptr::from_ref(place)), ..Frame::on(home) };
    let _ = MEMBER_OF.try_with(|it| it.set(home));
    OUTERMOST.with(|it| {
        it.set(frame);
        let _ = CURRENT.try_with(|current| current.set(it.as_ptr()));
    });
}

/// Makes this thread no worker any more, after [`become_worker`].
pub(crate) fn leave() {
    let _ = MEMBER_OF.try_with(|it| it.set(None));
    let _ = CURRENT.try_with(|it| it.set(ptr::null()));
}

/// Runs `f`, which runs tasks of the queue `home` on a thread of the executor `base`.
pub(crate) fn as_server<R>(
    home: Option<ExecutorId>,
    base: Option<ExecutorId>,
    stop: &AtomicBool,
    ticket: Option<&(dyn Ticket + 'static)>,
    f: impl FnOnce() -> R,
) -> R {
    let outer = now();
    let ticket = ticket.map(ptr::from_ref);
    let frame = Frame { home, stop, ticket, outer: &raw const outer, ..Frame::on(base) };
    enter(frame, f)
}

/// A pointer to the innermost frame of a thread that is about to wait. The jobs for which the
/// thread waits run with this pointer in their frames.
pub(crate) struct Waiter(*const Frame);

// SAFETY: I5 — the frame stays unchanged until the wait is over, and other threads forget the
// pointer before that.
unsafe impl Send for Waiter {}
// SAFETY: I5 — other threads only read the frame, which does not change during the wait.
unsafe impl Sync for Waiter {}

impl Waiter {
    #[inline]
    pub(crate) fn this_thread() -> Self {
        let innermost = innermost();
        Waiter(if innermost.is_null() { &NOTHING } else { innermost })
    }

    /// Runs `f` on the calling thread. The thread that made this `Waiter` waits for `f`.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let outer = now();
        let (ticket, waiter, group) = (None, self.0, ptr::null());
        enter(Frame { ticket, waiter, group, outer: &raw const outer, ..outer }, f)
    }

    /// Runs `f`, a part of the task that waits. A request to end that task reaches `f` too.
    pub(crate) fn run_part<R>(&self, f: impl FnOnce() -> R) -> R {
        let outer = now();
        let (ticket, waiter, group) = (None, self.0, ptr::null());
        // SAFETY: I5 — the wait is not over, so the frame exists.
        let state = unsafe { (*waiter).state };
        enter(Frame { state, ticket, waiter, group, outer: &raw const outer, ..outer }, f)
    }
}

/// Returns how many places of a queue are held by this thread and by the threads that wait for it.
/// A *place* is room for one thread within the queue's limit.
pub(super) fn places_of_waiters(home: Option<ExecutorId>) -> usize {
    let mut places = Vec::new();
    any_or_waiter(|frame| {
        // A frame with a stop flag and without a task is that of a queue's server, or a copy of it.
        // One with a waiter, a group or `drops` (`as_dropper`) is a copy, and does not count.
        let serves = frame.state.is_null() && !frame.stop.is_null();
        let is_whole = frame.waiter.is_null() && frame.group.is_null() && frame.drops.is_none();
        // This loop can meet a server's frame and copies of it, all with the same outer frame. So
        // each outer frame counts once.
        if serves && is_whole && frame.home == home && !places.contains(&frame.outer) {
            places.push(frame.outer);
        }
        false
    });
    places.len()
}

/// Returns whether this thread, or a thread that waits for it, runs a member of this group.
pub(super) fn is_member(group: *const ()) -> bool {
    any_or_waiter(|frame| ptr::eq(frame.group, group))
}

/// Returns whether `is_it` holds for a frame of this thread, or of a thread that waits for this
/// thread, directly or through further threads.
fn any_or_waiter(mut is_it: impl FnMut(Frame) -> bool) -> bool {
    // A list instead of recursion, since scopes can nest deeply. Each frame is visited once, since
    // a thread can wait for itself.
    let mut next: Vec<Frame> = frames().take(1).collect();
    let mut seen = BTreeSet::new();
    while let Some(innermost) = next.pop() {
        for frame in innermost.and_outer() {
            if is_it(frame) {
                return true;
            }
            // SAFETY: I5 — the thread of `waiter` waits for this frame's job, so its frame stays.
            if let Some(waiter) = unsafe { frame.waiter.as_ref() } {
                if seen.insert(frame.waiter) {
                    next.push(*waiter);
                }
            }
            if !frame.outer.is_null() && !seen.insert(frame.outer) {
                break;
            }
        }
    }
    false
}

/// Runs `f`, which blocks. Meanwhile another thread may take this thread's place in its pool, and
/// in every scheduler of which this thread has a ticket. A nested call gives away only the tickets
/// and places that the thread has got since the outer call began.
pub(crate) fn aside<R>(f: impl FnOnce() -> R) -> R {
    let here = now();
    let tickets = || here.and_outer().filter_map(|frame| Some((frame.outer, frame.ticket?)));
    let newest = tickets().next().map(|(outer, _)| outer);
    let Ok(given) = ASIDE.try_with(|it| it.replace(newest)) else { return f() };
    let each = |act: fn(&dyn Ticket)| {
        for (_, ticket) in tickets().take_while(|&(outer, _)| Some(outer) != given) {
            // SAFETY: I5 — this frame is not removed yet, and is removed before its ticket.
            act(unsafe { &*ticket });
        }
    };
    each(|ticket| ticket.step_aside());
    let _back = Finally(|| {
        each(|ticket| ticket.step_back());
        let _ = ASIDE.try_with(|it| it.set(given));
    });
    f()
}

/// Returns whether this thread has a scheduler's ticket, which another thread can take over.
pub(crate) fn has_ticket() -> bool {
    any(|frame| frame.ticket.is_some() && !frame.stop.is_null())
}

per_thread! {
    /// Identifies the newest ticket that `aside` has given away, or `None`. The identity is the
    /// `outer` of the ticket's frame, because copies of that frame have the same `outer`.
    static ASIDE: Cell<Option<*const Frame>> = Cell::new(None);
}

pub(crate) fn is_aside() -> bool {
    ASIDE.try_with(Cell::get).unwrap_or(None).is_some()
}

#[inline]
fn enter<R>(frame: Frame, f: impl FnOnce() -> R) -> R {
    let outer = replace(&raw const frame);
    let _back = Finally(|| _ = replace(outer));
    f()
}

#[inline]
fn replace(frame: *const Frame) -> *const Frame {
    CURRENT.try_with(|it| it.replace(frame)).unwrap_or(ptr::null())
}

/// Returns whether this thread may run a task of this executor while it waits for the task. Such a
/// thread belongs to the executor, or runs a job of the executor further up its stack.
pub(crate) fn may_run(home: Option<ExecutorId>) -> bool {
    home.is_some() && any(|frame| frame.home == home || frame.base == home)
}

/// Returns whether this thread runs a job of this executor, perhaps further up its stack.
pub(crate) fn is_within(home: Option<ExecutorId>) -> bool {
    home.is_some() && any(|frame| frame.home == home)
}

/// Returns whether this thread's innermost frame is that of the task, or of a part of it.
pub(super) fn is_in(state: &State) -> bool {
    ptr::eq(now().state, state)
}

/// Returns whether this thread runs a task of this queue, or a job for which such a task waits.
/// Returns `false` if it runs a stranger inside the task.
pub(crate) fn is_part_of(queue: Option<ExecutorId>) -> bool {
    // A stop flag comes from a server's frame. A refused task that is run by hand has no server.
    let is_servers = |it: Frame| it.home == queue && !it.stop.is_null();
    let is_its = frames().take_while(|it| !it.is_stranger).any(|it| it.home == queue);
    queue.is_some() && is_its && any(is_servers)
}

pub(super) fn runs(state: &State) -> bool {
    any(|frame| ptr::eq(frame.state, state))
}

fn any(is_it: impl FnMut(Frame) -> bool) -> bool {
    frames().any(is_it)
}

/// Returns the frames of this thread, the innermost first.
fn frames() -> impl Iterator<Item = Frame> {
    now().and_outer()
}

/// Returns whether the task that this thread runs was cancelled: by its handle, by a token, or with
/// its [queue](crate::fair::Queue).
///
/// Returns `false` outside tasks. A cancellation interrupts no task, so a task that should end
/// early must ask.
///
/// # Examples
///
/// ```
/// use filch::task::{self, Cancel};
/// use filch::ThreadPool;
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::new(1)?;
/// let (started, inbox) = mpsc::channel();
/// let task = pool.spawn(move || {
///     started.send(()).unwrap();
///     while !task::is_cancelled() {
///         std::thread::yield_now();
///     }
///     "ended early"
/// });
/// inbox.recv().unwrap();
/// assert_eq!(task.cancel(), Cancel::Requested);
/// assert_eq!(task.join().unwrap(), "ended early");
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    let frame = now();
    // SAFETY: I5 — if there is a task, this thread runs it, or runs a fork for which the task
    // waits. So the task's state exists.
    let state = unsafe { frame.state.as_ref() };
    // SAFETY: I5 — if there is a queue, this thread serves it, so the queue's flag exists.
    let stop = unsafe { frame.stop.as_ref() };
    // Relaxed: the answer orders no other access of the task.
    state.is_some_and(State::is_asked) || stop.is_some_and(|it| it.load(Relaxed))
}
