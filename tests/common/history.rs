//! Histories of a queue or a deque, and checks of whether they are linearizable.
//!
//! A history is linearizable if each operation can be given one instant between its call and its
//! return, so that the queue gives the recorded answers when it does the operations in that order.
//! If all items are different, a check of pairs and intervals decides this. The method is from
//! Henzinger, Sezgin and Vafeiadis, *Aspect-oriented linearizability proofs*, CONCUR 2013;
//! Bouajjani, Emmi, Enea and Hamza, *On reducing linearizability to state reachability*, ICALP
//! 2015.
//! [`History::fault`] uses this method. [`History::has_an_order`] searches for the order itself, as
//! Wing and Gong do (1993). The search takes exponential time, and serves to check `fault`.
//!
//! stateright's `LinearizabilityTester` and the checker of todc-utils were considered. Both search
//! as `has_an_order` does, and neither knows a queue.

use std::collections::HashSet;
use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

/// A clock that both orders operations and never shows the same time twice.
#[derive(Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    /// Runs the operation. Returns the times of its call and its return, and its result.
    pub(crate) fn time<R>(&self, operation: impl FnOnce() -> R) -> (u64, u64, R) {
        let call = self.now();
        let result = operation();
        (call, self.now(), result)
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.fetch_add(1, SeqCst)
    }
}

/// The body of one thread for [`together`].
pub(crate) type Body<'a, R> = Box<dyn FnOnce() -> R + Send + 'a>;

/// Runs each body on a thread of its own, all at the same time. Returns their results in order.
pub(crate) fn together<R: Send>(bodies: Vec<Body<'_, R>>) -> Vec<R> {
    let barrier = &Barrier::new(bodies.len());
    thread::scope(|scope| {
        let threads: Vec<_> = bodies
            .into_iter()
            .map(|body| {
                scope.spawn(move || {
                    barrier.wait();
                    body()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

/// An operation's kind, and the item that it pushed or took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Push(u32),
    Take(u32),
    /// A pop by the owner of a LIFO deque. [`History::fault`] does not support it.
    TakeNewest(u32),
    FoundNothing,
}

/// An operation, with the times of its call and of its return. No two times are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) what: What,
    pub(crate) call: u64,
    pub(crate) end: u64,
}

/// All operations on a queue or deque that was empty at first.
#[derive(Clone, Default)]
pub(crate) struct History(pub(crate) Vec<Operation>);

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut operations = self.0.clone();
        operations.sort_by_key(|it| it.call);
        f.debug_list().entries(operations).finish()
    }
}

impl Operation {
    fn is_before(&self, other: &Operation) -> bool {
        self.end < other.call
    }
}

impl History {
    fn find(&self, what: What) -> Vec<&Operation> {
        self.0.iter().filter(|it| it.what == what).collect()
    }

    /// Returns a description of why the history of a queue is not linearizable, or `None` if it is.
    pub(crate) fn fault(&self) -> Option<String> {
        let mut items = Vec::new();
        for operation in &self.0 {
            if let What::Take(item) = operation.what {
                let pushes = self.find(What::Push(item));
                let Some(push) = pushes.first() else {
                    return Some(format!("{item} was never pushed"));
                };
                if operation.is_before(push) {
                    return Some(format!("{item} was taken before it was pushed"));
                }
                if self.find(operation.what).len() > 1 {
                    return Some(format!("{item} was taken twice"));
                }
            }
            if let What::Push(item) = operation.what {
                items.push((item, operation, self.find(What::Take(item)).first().copied()));
            }
        }
        for &(first, push, take) in &items {
            for &(second, later_push, earlier_take) in &items {
                let Some(earlier_take) = earlier_take else { continue };
                let overtaken = take.is_none_or(|take| earlier_take.is_before(take));
                if push.is_before(later_push) && overtaken {
                    return Some(format!("{second} was taken before {first}"));
                }
            }
        }
        // An operation may find the queue empty only if, at some instant of its call, no item is
        // certainly in the queue. Searches for that instant.
        for nothing in self.find(What::FoundNothing) {
            let mut instant = nothing.call;
            while let Some(until) = items
                .iter()
                .filter(|(_, push, _)| push.end <= instant)
                .map(|(_, _, take)| take.map_or(u64::MAX, |take| take.call))
                .filter(|&until| until > instant)
                .max()
            {
                instant = until;
                if instant > nothing.end {
                    return Some(format!("{nothing:?}, but something was there"));
                }
            }
        }
        None
    }

    /// Returns whether the history is linearizable. Takes exponential time.
    pub(crate) fn has_an_order(&self) -> bool {
        self.goes_on(0, &mut Vec::new(), &mut HashSet::new())
    }

    fn goes_on(
        &self,
        done: u64,
        queue: &mut Vec<u32>,
        failed: &mut HashSet<(u64, Vec<u32>)>,
    ) -> bool {
        if done == (1 << self.0.len()) - 1 {
            return true;
        }
        if !failed.insert((done, queue.clone())) {
            return false;
        }
        let open = |it: &usize| done >> it & 1 == 0;
        let first_end = (0..self.0.len()).filter(open).map(|it| self.0[it].end).min();
        for next in (0..self.0.len()).filter(open) {
            let operation = &self.0[next];
            if Some(operation.call) > first_end {
                continue;
            }
            let before = queue.clone();
            let fits = match operation.what {
                What::Push(item) => {
                    queue.push(item);
                    true
                }
                What::Take(item) => queue.first() == Some(&item) && queue.remove(0) == item,
                What::TakeNewest(item) => queue.last() == Some(&item) && queue.pop().is_some(),
                What::FoundNothing => queue.is_empty(),
            };
            if fits && self.goes_on(done | 1 << next, queue, failed) {
                return true;
            }
            *queue = before;
        }
        false
    }
}
