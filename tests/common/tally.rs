//! Items that count how often each of them is dropped.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts how often each item is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Arc<Drops>);

#[derive(Debug)]
struct Drops {
    of_each: Box<[AtomicUsize]>,
    of_all: AtomicUsize,
}

impl Tally {
    /// Counts items numbered below `items`.
    pub(crate) fn of(items: usize) -> Self {
        let of_each = (0..items).map(|_| AtomicUsize::new(0)).collect();
        Tally(Arc::new(Drops { of_each, of_all: AtomicUsize::new(0) }))
    }

    /// Returns the number of items that are counted.
    pub(crate) fn len(&self) -> usize {
        self.0.of_each.len()
    }

    /// Makes the item with this number. Call it once for each number.
    pub(crate) fn item(&self, number: usize) -> Counted {
        assert!(number < self.0.of_each.len(), "the tally is too small for item {number}");
        Counted { number, tally: self.clone() }
    }

    /// Makes the items with these numbers.
    pub(crate) fn items(
        &self,
        numbers: Range<usize>,
    ) -> impl ExactSizeIterator<Item = Counted> + '_ {
        numbers.map(|number| self.item(number))
    }

    /// Returns how often the item with this number has been dropped.
    pub(crate) fn drops(&self, number: usize) -> usize {
        self.0.of_each[number].load(SeqCst)
    }

    /// Returns the total number of drops.
    pub(crate) fn all_drops(&self) -> usize {
        self.0.of_all.load(SeqCst)
    }

    /// Asserts that each of these items has been dropped exactly once.
    #[track_caller]
    pub(crate) fn assert_each_dropped_once(&self, items: Range<usize>) {
        for number in items {
            assert_eq!(self.drops(number), 1, "how often item {number} was dropped");
        }
    }
}

/// An item that knows its number and reports its drop.
pub(crate) struct Counted {
    pub(crate) number: usize,
    tally: Tally,
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}", self.number)
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.tally.0.of_each[self.number].fetch_add(1, SeqCst);
        self.tally.0.of_all.fetch_add(1, SeqCst);
    }
}
