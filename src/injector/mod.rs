//! An injector: a FIFO queue into which any thread pushes and out of which any thread takes.
//!
//! ```text
//!       oldest              head                                    tail
//!         │                  │                                       │
//!         ▼                  ▼                                       ▼
//!   ┌─────────────┐   ┌─────────────┐   ┌─────────────┐   ┌─────────────┐
//!   │ ┈ ┈ ◌ ┈ ┈ ┈ │──▶│ ┈ ┈ ┈ d e f │──▶│ g h i j k l │──▶│ m n ◌ o ┈ ┈ │──▶ nothing yet
//!   └─────────────┘   └─────────────┘   └─────────────┘   └─────────────┘
//!         ▲                                                       ▲
//!      an orphan: claimed by a consumer,              claimed by a producer that has not
//!      which did not wait for its producer            put its item there yet
//! ```
//!
//! A producer claims a slot by adding to `tail`, puts its item there, and marks the slot. A
//! consumer claims a slot by advancing `head`, at most as far as `tail`, waits for the mark, and
//! takes the item. Each claim is one atomic instruction and touches no segment. A claimed slot
//! keeps its segment alive, so threads need no pin.
//!
//! If the mark does not come within some microseconds, the producer has been stopped between its
//! two steps. The consumer gives the slot up as an *orphan*. While `head` counts orphans, every
//! consumer looks at them before it claims a slot (`around.rs`).
//!
//! A slot is *settled* once it has been `TAKEN`. A *visitor* uses segments and orphans in which it
//! owns no slot, and counts itself meanwhile. The *sweeper* holds the flag `sweeping`, resets
//! settled slots, and takes segments of such slots back (`sweep.rs`). A *lasting* segment lives as
//! long as the injector.
//!
//! # Invariants
//!
//! - **I1** `tail` only grows, apart from its closed bit. `head` only grows, apart from its count
//!   of orphans, and never passes `tail`.
//! - **I2** A slot that an addition to `tail` passed belongs to the producer that added, until it
//!   marks it `FULL` or `VOID`.
//! - **I3** A slot that a compare-exchange of `head` passed belongs to the consumer that exchanged,
//!   until it marks it `TAKEN`. An orphan's slot belongs to the consumer that claims the orphan.
//! - **I4** A segment is unlinked only when `head` is in a later one and every slot of it is
//!   settled. So the owner of a slot may use its segment.
//! - **I5** A thread that uses a segment or an orphan without owning a slot in it is a visitor. It
//!   found the segment or orphan after its visit began.
//! - **I6** Only the sweeper reuses or frees what was unlinked, once it has found, after the
//!   unlinking, that there is no visitor.
//! - **I7** The segment pointer beside each word points to the segment of the word's number, or to
//!   the next if that segment is used up. So the pointer that a consumer reads between `head` and
//!   its claim points to the claimed slot's segment. The one that a producer reads after its claim
//!   points to that segment, or to a later one.
//! - **I8** A lasting segment is freed with the injector, and has an entry of its own in `spares`.
//! - **I9** The items of a chunk from `next` to `len` are initialised, and are not pushed yet.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`. `proofs/orderings.md`
//! argues each under its name.
//!
//! # Sources
//!
//! Segments with fetch-and-add are from Morrison and Afek, *Fast concurrent queues for x86
//! processors*, PPoPP 2013, and from Ramalhete and Correia, *FAAArrayQueue*, 2016. There, a
//! consumer makes the slot of a late producer unusable, and every push pays another locked
//! instruction for that. Two points are ours: orphans, and claiming a slot before looking into it.
//! The words are crossbeam's index, widened.

mod around;
mod batch;
mod closed;
mod collect;
mod push;
mod segment;
mod sweep;
mod take;
mod word;

pub use closed::Closed;
pub use collect::{Drain, IntoIter};

use crate::sync::order::{FencePair, Pair, both};
use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, MAX_LASTING, MAX_OTHERS, Relaxed,
};
use crate::sync::{array_on_the_machine, const_on_the_machine};
use around::Orphan;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr;
use crossbeam_utils::CachePadded;
use segment::{Segment, Tagged};
use word::{FIRST, Head, Position, Tail, end_of};

/// A thread that sees a slot marked also sees the item in it.
const FILLED: Pair = Pair::named("injector::FILLED");

/// A sweeper sees a slot settled only when its consumer no longer touches it.
const SETTLED: Pair = Pair::named("injector::SETTLED");

/// A thread that sees `tail` at a position also sees its segment, and the writes of the producers
/// before that position. So no item is taken while one that was pushed before it is overlooked.
const PUSHED: Pair = Pair::named("injector::PUSHED");

/// A thread that sees `head` at a position also sees its segment, the orphans that it counts, and
/// the `tail` that the consumers before that position saw.
///
/// Conversely, a consumer that registers an orphan sees all that was seen by each consumer whose
/// read-modify-write of `head` came before. So it finds an item that was in the slot by then.
const CLAIMED: Pair = Pair::named("injector::CLAIMED");

/// A holder that finds its orphan spoken for sees the mark of the slot. Any other consumer that
/// finds an orphan spoken for sees the items that were pushed before its taker was called.
const SPOKEN: Pair = Pair::named("injector::SPOKEN");

/// A thread that follows a pointer to a segment or an orphan sees it as it was linked.
const LINKED: Pair = Pair::named("injector::LINKED");

/// A producer that takes a spare segment sees it as it was reset.
const SPARED: Pair = Pair::named("injector::SPARED");

/// A thread that reads `settled` sees what the takers of all items before it saw, `tail` included.
const QUIET: Pair = Pair::named("injector::QUIET");

/// A sweeper sees what the previous one wrote.
const SWEPT: Pair = Pair::named("injector::SWEPT");

/// A producer that is refused without adding to `tail` sees `tail` closed.
const CLOSED: Pair = Pair::named("injector::CLOSED");

/// A visitor counts itself, then follows a pointer; the sweeper unlinks, then reads the count. At
/// least one of the two sees the other's write (I5, I6).
const VISIT: FencePair = FencePair::named("injector::VISIT");

/// All that visitors did happens before a sweeper that counts none takes anything back.
const LEFT: Pair = Pair::named("injector::LEFT");

/// A producer adds to `tail`, then looks whether `head` has come that far. A consumer that is about
/// to sleep has advanced `head`, fences, and reads `tail`. They cannot both miss.
const WAS_EMPTY: FencePair = FencePair::named("injector::WAS_EMPTY");

/// The most bytes of segments that an injector keeps, unless one segment is larger.
const KEPT: usize = 64 << 10;

/// A FIFO queue of tasks that any thread pushes to and takes from.
///
/// Allocates nothing until the first push, reuses its segments, and keeps at most 64 KiB, or one
/// segment if that is larger.
///
/// # Progress
///
/// Pushing is lock-free: one fetch-add, and once per segment (256 small items) a few steps that any
/// producer can complete. Taking is lock-free except for one bounded wait. If a producer is stopped
/// between claiming a slot and filling it, the slot's consumer waits for 15 µs, and then goes
/// around it. No thread waits for a consumer.
///
/// A thread that is stopped in a call only delays the reuse of its segment and later ones.
///
/// # Ordering
///
/// The queue is linearizable, Empty answers included. A producer's writes before its push happen
/// before the taker's use of the item.
///
/// # Panics
///
/// `push` and `push_batch` panic after [`close`](Self::close); `try_push` gives the item back.
///
/// # Examples
///
/// ```
/// use filch::{Injector, Steal};
///
/// static TASKS: Injector<&str> = Injector::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| TASKS.push("first"));
/// });
/// TASKS.push("second");
/// assert_eq!(TASKS.steal(), Steal::Success("first"));
/// assert_eq!(TASKS.steal(), Steal::Success("second"));
/// assert_eq!(TASKS.steal(), Steal::Empty);
/// ```
pub struct Injector<T> {
    head: CachePadded<HeadLine<T>>,
    tail: CachePadded<TailLine<T>>,
    shelf: CachePadded<InjectorShelf<T>>,
}

/// The cache line that consumers write.
struct HeadLine<T> {
    word: AtomicU64,
    segment: AtomicPtr<Segment<T>>,
    /// A [`Spot`] at which `tail` once was. It saves consumers most looks at the producers' line.
    tail_seen: AtomicU64,
    /// Every slot before this [`Spot`] is settled, and reset.
    settled: AtomicU64,
}

/// The cache line that producers write.
struct TailLine<T> {
    word: AtomicU64,
    segment: AtomicPtr<Segment<T>>,
    /// A copy of the word's closed bit, set a little later. A producer that it refuses has added
    /// nothing. Reading it does not wait for the producer's own last addition, as reading the word
    /// would.
    is_closed: AtomicBool,
}

/// Fields that are written once per segment, or after a thread was stopped.
struct InjectorShelf<T> {
    /// The very first segment.
    first: AtomicPtr<Segment<T>>,
    /// The oldest linked segment: the one in which `settled` lies. Only the sweeper writes it.
    oldest: AtomicPtr<Segment<T>>,
    /// The oldest unlinked segment that has not been taken back. Only the sweeper uses it.
    unlinked: AtomicPtr<Segment<T>>,
    /// First the entries of lasting segments, one for each; then those of the others.
    spares: [AtomicPtr<Segment<T>>; MAX_LASTING + MAX_OTHERS],
    /// The number of lasting segments. Producers that race for the last one may count more.
    lasting: AtomicUsize,
    orphans: AtomicPtr<Orphan<T>>,
    /// Orphans that are out of the list. Only the sweeper uses it.
    resolved: AtomicPtr<Orphan<T>>,
    visitors: AtomicUsize,
    sweeping: AtomicBool,
}

// SAFETY: I2 and I3 — one thread puts an item and one thread takes it, so `T` must be `Send` and
// need not be `Sync`.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: I2 and I3 — as for `Send`: each slot has one owner, however many threads have `&self`.
unsafe impl<T: Send> Sync for Injector<T> {}
// No method runs code of the user's while it owns a slot.
impl<T> UnwindSafe for Injector<T> {}
impl<T> RefUnwindSafe for Injector<T> {}

/// A visit of this thread (I5), which ends when this is dropped.
struct Visit<'a>(&'a AtomicUsize);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, LEFT.release());
    }
}

impl<T> Injector<T> {
    const SLOTS: usize = Segment::<T>::SLOTS;

    const_on_the_machine! {
        /// Returns an empty injector. Allocates nothing.
        ///
        /// # Examples
        ///
        /// ```
        /// static TASKS: filch::Injector<u32> = filch::Injector::new();
        /// assert!(TASKS.is_empty());
        /// ```
        #[must_use]
        pub fn new() -> Self {
            let start = end_of(FIRST, Self::SLOTS);
            Injector {
                head: CachePadded::new(HeadLine {
                    word: AtomicU64::new(start),
                    segment: AtomicPtr::new(ptr::null_mut()),
                    tail_seen: AtomicU64::new(start),
                    settled: AtomicU64::new(start),
                }),
                tail: CachePadded::new(TailLine {
                    word: AtomicU64::new(start),
                    segment: AtomicPtr::new(ptr::null_mut()),
                    is_closed: AtomicBool::new(false),
                }),
                shelf: CachePadded::new(InjectorShelf::new()),
            }
        }
    }

    /// Begins a visit: a segment or orphan whose pointer is read from now on stays (I5).
    fn visit(&self) -> Visit<'_> {
        self.shelf.visitors.fetch_add(1, Relaxed); // Relaxed: VISIT orders it
        VISIT.fence();
        Visit(&self.shelf.visitors)
    }

    /// Returns the number of a segment, and its link to the next. Null stands for the segment
    /// before the first.
    ///
    /// # Safety
    ///
    /// The segment stays as long as the link is used (I4, I5).
    unsafe fn link(&self, segment: *mut Segment<T>) -> (u64, &AtomicPtr<Segment<T>>) {
        if segment.is_null() {
            return (FIRST, &self.shelf.first);
        }
        // SAFETY: the caller keeps the segment (I4, I5).
        let segment = unsafe { &*segment };
        (segment.number(), &segment.next)
    }

    #[inline(always)]
    fn head(&self) -> Head {
        Head(self.head.word.load(CLAIMED.acquire()))
    }

    #[inline(always)]
    fn tail(&self) -> Tail {
        Tail(self.tail.word.load(PUSHED.acquire()))
    }

    /// Returns the pointer beside `head`, to be read before a claim (I7). It may be newer than
    /// `head` was, so a look into the segment without a claim needs LINKED.
    #[inline(always)]
    fn head_segment(&self) -> Tagged<T> {
        Tagged(self.head.segment.load(LINKED.acquire()))
    }

    #[inline(always)]
    fn tail_position(&self) -> Position {
        self.tail().position(Self::SLOTS)
    }

    /// Returns the number of items at some moment during this call.
    ///
    /// Counts items that are being pushed at that moment, and those whose consumer has given up
    /// waiting for them. Lock-free: repeats while other threads push. Each round is a locked
    /// instruction on the consumers' line.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// injector.push_batch(0..1000);
    /// assert_eq!(injector.len(), 1000);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        loop {
            let tail = self.tail();
            // The addition orders us with consumers that give up a slot: `is_surely_empty`.
            let order = both(CLAIMED.acquire(), CLAIMED.release());
            let head = Head(self.head.word.fetch_add(0, order));
            if tail == self.tail() {
                let waiting = head.position(Self::SLOTS);
                let waiting = waiting.distance(tail.position(Self::SLOTS), Self::SLOTS);
                return waiting + head.orphans() as usize;
            }
        }
    }

    /// Returns whether there was nothing to take at some moment during this call.
    ///
    /// Returns `false` while an item is being pushed. Lock-free; three loads if it stays empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let injector = filch::Injector::new();
    /// assert!(injector.is_empty());
    /// injector.push(1);
    /// assert!(!injector.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let head = self.head();
        self.is_quiet(head) || {
            let there = head.position(Self::SLOTS).distance(self.tail_position(), Self::SLOTS);
            there == 0 && head.orphans() == 0 && self.is_surely_empty()
        }
    }
}

impl<T> InjectorShelf<T> {
    const_on_the_machine! {
        fn new() -> Self {
            InjectorShelf {
                first: AtomicPtr::new(ptr::null_mut()),
                oldest: AtomicPtr::new(ptr::null_mut()),
                unlinked: AtomicPtr::new(ptr::null_mut()),
                spares: array_on_the_machine![AtomicPtr::new(ptr::null_mut()); MAX_LASTING + MAX_OTHERS],
                lasting: AtomicUsize::new(0),
                orphans: AtomicPtr::new(ptr::null_mut()),
                resolved: AtomicPtr::new(ptr::null_mut()),
                visitors: AtomicUsize::new(0),
                sweeping: AtomicBool::new(false),
            }
        }
    }
}

impl<T> Default for Injector<T> {
    /// Returns an empty injector: [`new`](Injector::new).
    fn default() -> Self {
        Injector::new()
    }
}

impl<T> fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
