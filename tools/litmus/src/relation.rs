//! Relations between at most 64 events, as rows of bits.

/// Which events come after which.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Relation(Vec<u64>);

impl Relation {
    pub(crate) fn none(events: usize) -> Self {
        Relation(vec![0; events])
    }

    pub(crate) fn add(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    pub(crate) fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] & (1 << to) != 0
    }

    pub(crate) fn or(&self, other: &Relation) -> Relation {
        Relation(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    /// First a step of this, then one of the other.
    pub(crate) fn then(&self, other: &Relation) -> Relation {
        let row = |row: &u64| bits(*row).fold(0, |to, via| to | other.0[via]);
        Relation(self.0.iter().map(row).collect())
    }

    /// Only steps that begin and end in these events.
    pub(crate) fn between(&self, from: u64, to: u64) -> Relation {
        let row = |(at, row): (usize, &u64)| if from & (1 << at) != 0 { row & to } else { 0 };
        Relation(self.0.iter().enumerate().map(row).collect())
    }

    /// One step or more.
    pub(crate) fn closed(&self) -> Relation {
        let mut closed = self.clone();
        for via in 0..self.0.len() {
            let row = closed.0[via];
            closed.0.iter_mut().filter(|it| **it & (1 << via) != 0).for_each(|it| *it |= row);
        }
        closed
    }

    /// One step or none.
    pub(crate) fn or_none(&self) -> Relation {
        Relation(self.0.iter().enumerate().map(|(at, row)| row | 1 << at).collect())
    }

    pub(crate) fn is_irreflexive(&self) -> bool {
        self.0.iter().enumerate().all(|(at, row)| row & (1 << at) == 0)
    }

    pub(crate) fn is_acyclic(&self) -> bool {
        self.closed().is_irreflexive()
    }

    /// Steps that meet this condition.
    pub(crate) fn filter(&self, keep: impl Fn(usize, usize) -> bool) -> Relation {
        let row = |(from, row): (usize, &u64)| {
            bits(*row).filter(|&to| keep(from, to)).fold(0, |row, to| row | 1 << to)
        };
        Relation(self.0.iter().enumerate().map(row).collect())
    }
}

/// The places of the ones.
pub(crate) fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |at| word & (1 << at) != 0)
}
