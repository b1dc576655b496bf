//! Tasks that fork inside their queue: neither its limit, nor its end, nor a panic loses a half.

use super::ledger::{Account, Ledger};
use crate::common::closures::Counted;
use filch::fair::Queue;
use filch::pool;
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

/// A tree of joins, or a scope with as many leaves as such a tree has.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))]
    depth: usize,
    in_scope: bool,
    /// Whether the last leaf panics.
    panics: bool,
    /// Whether leaves are sections marked by `pool::blocking`.
    blocks: bool,
}

pub(super) fn forks() -> impl Strategy<Value = Fork> {
    let fields = (1_usize..5, any::<bool>(), prop::bool::weighted(0.2), any::<bool>());
    fields.prop_map(|(depth, in_scope, panics, blocks)| Fork { depth, in_scope, panics, blocks })
}

/// A fork that runs in a queue.
struct Tree<'a> {
    fork: Fork,
    queue: &'a Queue,
    account: &'a Arc<Account>,
    ledger: &'a Arc<Ledger>,
    ran: AtomicUsize,
}

impl Fork {
    /// Forks in the queue whose task this is, if that queue still has a handle.
    pub(super) fn run(self, account: &Arc<Account>, ledger: &Arc<Ledger>) {
        Queue::with_current(|queue| {
            let Some(queue) = queue else { return };
            if queue.metrics().name.as_deref() != account.name.as_deref() {
                ledger.complain("the current queue is another".to_owned());
            }
            let tree = Tree { fork: self, queue, account, ledger, ran: AtomicUsize::new(0) };
            let result = ledger.waiting(account, "for its forks", || {
                catch_unwind(AssertUnwindSafe(|| match self.in_scope {
                    true => tree.scope(),
                    false => tree.join(self.depth, self.panics),
                }))
            });
            let (ran, leaves) = (tree.ran.into_inner(), 1 << self.depth);
            // A cancelled queue drops no fork. A half is dropped if the other one panics.
            if result.is_err() != self.panics || (!self.panics && ran != leaves) || ran > leaves {
                let result = if result.is_ok() { "returns" } else { "panics" };
                ledger.complain(format!("{self:?} {result}, and {ran} leaves have run"));
            }
        });
    }
}

impl Tree<'_> {
    fn leaf(&self, counted: &Counted, panics: bool) {
        counted.runs();
        let _running = self.account.begin(self.ledger, None);
        match self.fork.blocks {
            true => pool::blocking(thread::yield_now),
            false => thread::yield_now(),
        }
        self.ran.fetch_add(1, SeqCst);
        assert!(!panics, "expected: a leaf");
    }

    fn join(&self, depth: usize, panics: bool) {
        let counts = &self.ledger.counts;
        if depth == 0 {
            return self.leaf(&Counted::new(counts), panics);
        }
        let [first, second] = [(); 2].map(|()| Counted::new(counts));
        let half = |counted: Counted, panics| {
            counted.runs();
            self.join(depth - 1, panics);
        };
        self.queue.join(move || half(first, false), move || half(second, panics));
    }

    fn scope(&self) {
        self.queue.scope(|scope| {
            for left in (0..1_usize << self.fork.depth).rev() {
                let counted = Counted::new(&self.ledger.counts);
                scope.spawn(move || self.leaf(&counted, self.fork.panics && left == 0));
            }
        });
    }
}
