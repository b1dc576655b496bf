//! The futures of a program, their shared state, and what the checks know of each.

use super::{Act, GATES, Gate, Token};
use filch::JoinHandle;
use filch::executor::Reason;
use filch::task::{CancelToken, CancelledBy, JoinError};
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

/// The facts that the checks know of one future.
#[derive(Default)]
pub(super) struct Record {
    pub(super) id: usize,
    pub(super) acts: Vec<Act>,
    /// The futures that it awaits.
    pub(super) others: Vec<Arc<Record>>,
    pub(super) token: Option<usize>,
    pub(super) is_late: bool,
    pub(super) begun: AtomicBool,
    pub(super) is_polled: AtomicBool,
    pub(super) returned: AtomicBool,
    pub(super) panicked: AtomicBool,
    pub(super) dropped: AtomicBool,
    /// Whether its handle cancels it when dropped, or has cancelled it for certain.
    pub(super) by_handle: AtomicBool,
    pub(super) dequeued: AtomicBool,
}

impl Record {
    /// Whether the future may wait for a wake that never comes.
    pub(super) fn may_stick(&self, forgotten: &[bool; GATES]) -> bool {
        let sticks = |it: &Act| match it {
            Act::Forget => true,
            Act::Await(Gate(which)) => forgotten[*which],
            _ => false,
        };
        self.acts.iter().any(sticks) || self.others.iter().any(|it| it.may_stick(forgotten))
    }
}

pub(super) fn is_set(flag: &AtomicBool) -> bool {
    flag.load(SeqCst)
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) is_open: bool,
    pub(super) is_forgotten: bool,
    pub(super) wakers: Vec<Waker>,
}

/// The state that futures and steps share.
pub(super) struct World {
    pub(super) tokens: [CancelToken; 2],
    pub(super) gates: [Mutex<Waiting>; GATES],
    pub(super) most_in_flight: usize,
    pub(super) in_flight: AtomicUsize,
    pub(super) is_bounded: bool,
    /// Whether the futures are on a stepper, where one thread runs at a time.
    pub(super) is_simulated: bool,
    pub(super) is_closed: AtomicBool,
    pub(super) queue_ends: AtomicBool,
    pub(super) executor_ends: AtomicBool,
    pub(super) threads: Mutex<Vec<thread::JoinHandle<()>>>,
    /// Faults that futures have noticed. A panic of theirs would only reach a panic handler.
    pub(super) faults: Mutex<Vec<&'static str>>,
}

impl World {
    pub(super) fn new(most_in_flight: usize, is_bounded: bool, is_simulated: bool) -> Self {
        let token = CancelToken::new();
        World {
            tokens: [token.clone(), token.child()],
            gates: Default::default(),
            most_in_flight,
            in_flight: AtomicUsize::new(0),
            is_bounded,
            is_simulated,
            is_closed: AtomicBool::new(false),
            queue_ends: AtomicBool::new(false),
            executor_ends: AtomicBool::new(false),
            threads: Mutex::default(),
            faults: Mutex::default(),
        }
    }

    /// Checks, after all futures have been dropped, that none has kept a permit or noticed a fault.
    pub(super) fn finish(&self) {
        assert_eq!(self.in_flight.load(SeqCst), 0);
        assert_eq!(*self.faults.lock().unwrap(), [""; 0]);
    }

    fn must(&self, holds: bool, fault: &'static str) {
        if !holds {
            self.faults.lock().unwrap().push(fault);
        }
    }

    pub(super) fn compare(&self, record: &Record, result: Result<usize, JoinError>) {
        let (returned, panicked) = (is_set(&record.returned), is_set(&record.panicked));
        self.must(is_set(&record.dropped), "the handle speaks before the future is dropped");
        self.must(!is_set(&record.is_polled), "the handle speaks during a poll");
        let error = match result {
            Ok(id) => return self.must(returned && id == record.id, "the result of another"),
            Err(error) if error.is_panic() => return self.must(panicked, "panicked by itself"),
            Err(error) => error,
        };
        self.must(!returned && !panicked, "it had ended, and was cancelled");
        if let Some(reason) = error.refused() {
            let may_be = match reason {
                Reason::Full => self.is_bounded,
                Reason::Closed => is_set(&self.is_closed),
                _ => false,
            };
            return self.must(may_be && !is_set(&record.begun), "refused without a reason");
        }
        if error.is_expired() {
            return self.must(record.is_late && !is_set(&record.begun), "expired too early");
        }
        let may_be = match error.cancelled_by() {
            Some(CancelledBy::Handle) => is_set(&record.by_handle),
            Some(CancelledBy::Token) => {
                record.token.is_some_and(|it| self.tokens[it].is_cancelled())
            }
            Some(CancelledBy::Queue) => is_set(&self.queue_ends),
            Some(CancelledBy::Executor) => is_set(&self.executor_ends),
            _ => false,
        };
        self.must(may_be, "cancelled by nobody");
        let by_another = error.cancelled_by() != Some(CancelledBy::Handle);
        self.must(!(is_set(&record.dequeued) && by_another), "cancelled by the handle first");
    }

    /// Waits for the threads that wake futures. Returns whether there were any.
    pub(super) fn join_threads(&self) -> bool {
        let threads = mem::take(&mut *self.threads.lock().unwrap());
        let were_any = !threads.is_empty();
        threads.into_iter().for_each(|it| it.join().unwrap());
        were_any
    }
}

/// A future of a program.
pub(super) struct Body {
    pub(super) acts: VecDeque<Act>,
    pub(super) others: VecDeque<Handle>,
    pub(super) record: Arc<Record>,
    pub(super) world: Arc<World>,
    pub(super) panics_in_drop: bool,
}

impl Body {
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let world = &self.world;
        loop {
            let Some(act) = self.acts.front() else {
                self.record.returned.store(true, SeqCst);
                return Poll::Ready(self.record.id);
            };
            match act {
                Act::Yield => context.waker().wake_by_ref(),
                Act::WakeFromThread => {
                    let waker = context.waker().clone();
                    world.threads.lock().unwrap().push(thread::spawn(move || waker.wake()));
                }
                Act::Await(Gate(which)) => {
                    let mut gate = world.gates[*which].lock().unwrap();
                    if !gate.is_open {
                        if !gate.is_forgotten {
                            gate.wakers.push(context.waker().clone());
                        }
                        return Poll::Pending;
                    }
                }
                Act::AwaitOther => {
                    if let Some(other) = self.others.front_mut() {
                        let Poll::Ready(result) = Pin::new(&mut other.handle).poll(context) else {
                            return Poll::Pending;
                        };
                        world.compare(&other.record, result);
                        self.others.pop_front();
                    }
                }
                Act::Forget => return Poll::Pending,
                Act::CancelToken(Token(which)) => {
                    quietly(|| world.tokens[*which].cancel());
                }
                Act::Panic => {
                    self.record.panicked.store(true, SeqCst);
                    panic!("expected");
                }
            }
            let act = self.acts.pop_front();
            if matches!(act, Some(Act::Yield | Act::WakeFromThread)) {
                return Poll::Pending;
            }
        }
    }
}

impl Future for Body {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        struct Polled(Arc<Record>);

        impl Drop for Polled {
            fn drop(&mut self) {
                self.0.is_polled.store(false, SeqCst);
            }
        }

        let (record, world) = (&self.record, &self.world);
        world.must(!record.is_polled.swap(true, SeqCst), "two polls at the same time");
        let _polled = Polled(Arc::clone(record));
        if world.is_simulated {
            let is_cancelled = record.token.is_some_and(|it| world.tokens[it].is_cancelled());
            world.must(!is_cancelled, "polled after its token was cancelled");
        }
        if !record.begun.swap(true, SeqCst) {
            world.must(!record.is_late, "begun after its deadline");
            let before = world.in_flight.fetch_add(1, SeqCst);
            world.must(before < world.most_in_flight, "too many in flight");
        }
        self.go_on(context)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let (record, world) = (&self.record, &self.world);
        world.must(!is_set(&record.is_polled), "dropped during a poll");
        if is_set(&record.begun) {
            world.in_flight.fetch_sub(1, SeqCst);
        }
        for other in self.others.drain(..) {
            quietly(|| drop(other));
        }
        world.must(!record.dropped.swap(true, SeqCst), "dropped twice");
        if self.panics_in_drop && !thread::panicking() {
            panic!("expected");
        }
    }
}

pub(super) struct Handle {
    pub(super) handle: JoinHandle<usize>,
    pub(super) record: Arc<Record>,
}

/// Calls `f`, and returns `None` if a destructor panics in it.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) if payload.downcast_ref() == Some(&"expected") => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
