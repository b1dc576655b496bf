//! Operations on a queue, and a check whether a queue can have given their results.
//!
//! Operation A is known to come before operation B if A's end happens-before B's call. Either both
//! are steps of one thread, or a value was handed on in between. An order by time would be too
//! strict: it would reject the correct result of a load that reads an old value.
//!
//! The conditions are those of Henzinger, Sezgin and Vafeiadis, *Aspect-oriented linearizability
//! proofs*, CONCUR 2013.

use std::fmt::Debug;

/// An operation and its result. Items are all different.
#[derive(Debug, PartialEq, Eq)]
pub enum Did {
    /// Pushed these items in one operation, so they have no order among themselves.
    Pushed(Vec<u32>),
    /// Took these items, in this order.
    Took(Vec<u32>),
    FoundNothing,
    /// Spawned a thread, or ended. A thread that has `Heard` the same number knows of all earlier
    /// operations of this thread.
    Told(u32),
    Heard(u32),
}

/// The operations of several threads.
#[derive(Debug)]
pub struct Known<'a> {
    operations: Vec<&'a Did>,
    /// Entry `2n` is for the call of operation `n`, and entry `2n + 1` for its end. An entry has
    /// bit `m` set if the event of entry `m` comes later.
    later: Vec<u128>,
}

impl<'a> Known<'a> {
    /// Returns the known order of these threads' operations.
    pub fn of(threads: &'a [Vec<Did>]) -> Self {
        let operations: Vec<_> = threads.iter().flatten().collect();
        let mut later = vec![0_u128; 2 * operations.len()];
        assert!(later.len() <= 128, "a model is small");
        for operation in 0..operations.len() {
            later[2 * operation] |= 1 << (2 * operation + 1);
        }
        let mut at = 0;
        for thread in threads {
            for operation in at..(at + thread.len()).saturating_sub(1) {
                later[2 * operation + 1] |= 1 << (2 * operation + 2);
            }
            at += thread.len();
        }
        let mut known = Known { operations, later };
        for item in known.items() {
            if let (Some(push), Some(take)) = (known.push_of(item), known.take_of(item)) {
                // The item is handed on between the call of the push and the end of the take.
                known.later[2 * push] |= 1 << (2 * take + 1);
            }
        }
        for (told, operation) in known.operations.iter().enumerate() {
            let Did::Told(number) = **operation else { continue };
            let heard = known.operations.iter().position(|it| **it == Did::Heard(number));
            if let Some(heard) = heard {
                known.later[2 * told] |= 1 << (2 * heard + 1);
            }
        }
        for middle in 0..known.later.len() {
            let beyond = known.later[middle];
            for later in &mut known.later {
                *later |= if *later >> middle & 1 == 1 { beyond } else { 0 };
            }
        }
        known
    }

    fn items(&self) -> Vec<u32> {
        let pushed = |it: &&Did| if let Did::Pushed(items) = it { items.clone() } else { vec![] };
        self.operations.iter().flat_map(pushed).collect()
    }

    fn push_of(&self, item: u32) -> Option<usize> {
        self.operations
            .iter()
            .position(|it| matches!(it, Did::Pushed(items) if items.contains(&item)))
    }

    fn take_of(&self, item: u32) -> Option<usize> {
        self.operations
            .iter()
            .position(|it| matches!(it, Did::Took(items) if items.contains(&item)))
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        self.later[2 * one + 1] >> (2 * other) & 1 == 1
    }

    /// Returns a result that no FIFO queue can have given, if there is one. Every item was taken.
    pub fn fault(&self) -> Option<String> {
        let items: Vec<_> = self
            .items()
            .into_iter()
            .map(|it| {
                (it, self.push_of(it).unwrap(), self.take_of(it).expect("every item was taken"))
            })
            .collect();
        for &(first, push, take) in &items {
            for &(second, later_push, earlier_take) in &items {
                if self.is_before(push, later_push)
                    && self.is_taken_before(second, earlier_take, first, take)
                {
                    return Some(format!("{second} was taken before {first}"));
                }
            }
        }
        let nothing = |it: &usize| *self.operations[*it] == Did::FoundNothing;
        for nothing in (0..self.operations.len()).filter(nothing) {
            // The queue was never empty: each item of a chain was pushed before the previous item
            // was taken.
            let mut chain: Vec<_> =
                items.iter().filter(|it| self.is_before(it.1, nothing)).collect();
            let mut at = 0;
            while let Some(&&(item, _, take)) = chain.get(at) {
                if self.is_before(nothing, take) {
                    return Some(format!(
                        "nothing was found, and {item} there or one before it, at any moment"
                    ));
                }
                for link in items.iter().filter(|it| self.is_before(it.1, take)) {
                    if !chain.iter().any(|it| it.0 == link.0) {
                        chain.push(link);
                    }
                }
                at += 1;
            }
        }
        None
    }

    fn is_taken_before(&self, one: u32, take: usize, other: u32, other_take: usize) -> bool {
        if take != other_take {
            return self.is_before(take, other_take);
        }
        let Did::Took(items) = self.operations[take] else { return false };
        let place = |item| items.iter().position(|it| *it == item);
        place(one) < place(other)
    }
}
