//! Futures that sleep on an event count. For each such future, the list of sleepers has a *waiter*,
//! a record that holds a waker. No thread blocks.

use super::EventCount;
use super::prepared::Asleep;
use crate::sync::lock::Mutex;
use crate::sync::{Unwatched, thread};
use alloc::task::Wake;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Returns a future that becomes ready once `holds` has returned true.
///
/// The first poll calls `holds`. After that, the threads that notify `events` call `holds`. A
/// change that may make `holds` true must be followed by a notification of all sleepers. A
/// condition that holds only between two calls is missed.
pub(crate) fn until<O>(
    owner: O,
    events: fn(&O) -> &EventCount,
    holds: fn(&O) -> bool,
) -> impl Future<Output = ()> + Send
where
    O: Send + Sync + 'static,
{
    Until(Unwatched::new(AwaitedCondition {
        owner,
        events,
        holds,
        state: Mutex::new(AwaitedState::New),
    }))
}

struct Until<O>(Unwatched<AwaitedCondition<O>>);

/// The condition for which a future of [`until`] waits. The list of sleepers has a waker of the
/// condition, in place of the waker of the future's task. So the notifying thread calls `holds`
/// itself. If only the future's polls called `holds`, the future might never become ready. For
/// example, "no future is being polled" is false during every poll.
struct AwaitedCondition<O> {
    owner: O,
    events: fn(&O) -> &EventCount,
    holds: fn(&O) -> bool,
    state: Mutex<AwaitedState>,
}

enum AwaitedState {
    /// The future has not been polled yet, or will be polled again.
    New,
    /// The future's waker, and the condition's entry in the list of sleepers. While a thread calls
    /// `holds`, there is no entry, or a notifier has already taken the entry off.
    Watching(Waker, Option<Asleep>),
    /// The condition has held, or the future was dropped.
    Over,
}

impl<O: Send + Sync + 'static> AwaitedCondition<O> {
    /// Looks whether the condition holds. If not, puts the condition on the list of sleepers.
    fn look(this: &Unwatched<Self>) {
        let events = (this.events)(&this.owner);
        loop {
            let prepared = events.prepare();
            if (this.holds)(&this.owner) {
                prepared.cancel();
                let state = mem::replace(&mut *this.state.lock(), AwaitedState::Over);
                return Self::wake_task(state);
            }
            let mut state = this.state.lock();
            let AwaitedState::Watching(_, place) = &mut *state else {
                drop(state);
                return prepared.cancel();
            };
            // Committed under the lock, because right after the commit a notifier might call
            // `look`. Without the lock, that call could store its newer entry first, and this call
            // would overwrite the newer entry.
            match prepared.commit_as(Waker::from(Unwatched::clone(this))) {
                Ok(asleep) => return *place = Some(asleep),
                Err(None) => *place = None,
                // All waiters are in use, so the list has no room for this condition. Wakes the
                // task instead. The task's next poll tries again, and other tasks can run before
                // that poll.
                Err(Some(prepared)) => {
                    let before = mem::replace(&mut *state, AwaitedState::New);
                    drop(state);
                    prepared.cancel(); // outside the lock, because it can wake another task
                    return Self::wake_task(before);
                }
            }
        }
    }

    /// Wakes the task. Catches a panic of the user's waker, because the notifier still has other
    /// sleepers to wake.
    fn wake_task(state: AwaitedState) {
        if let AwaitedState::Watching(waker, _) = state {
            thread::completes(|| waker.wake());
        }
    }
}

impl<O: Send + Sync + 'static> Wake for AwaitedCondition<O> {
    fn wake(self: Unwatched<Self>) {
        AwaitedCondition::look(&self);
    }
}

impl<O: Send + Sync + 'static> Future for Until<O> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let mut state = self.0.state.lock();
        let before = match &mut *state {
            AwaitedState::New => {
                *state = AwaitedState::Watching(waker, None);
                drop(state);
                AwaitedCondition::look(&self.0);
                let is_over = matches!(*self.0.state.lock(), AwaitedState::Over);
                return if is_over { Poll::Ready(()) } else { Poll::Pending };
            }
            AwaitedState::Watching(place, _) => mem::replace(place, waker),
            AwaitedState::Over => return Poll::Ready(()),
        };
        drop(state);
        // Dropped outside the lock, because the waker's destructor is the user's code.
        drop(before);
        Poll::Pending
    }
}

impl<O> Drop for Until<O> {
    fn drop(&mut self) {
        let state = mem::replace(&mut *self.0.state.lock(), AwaitedState::Over);
        if let AwaitedState::Watching(_, Some(asleep)) = state {
            (self.0.events)(&self.0.owner).leave(asleep);
        }
    }
}
