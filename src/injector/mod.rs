//! An injector: a FIFO queue into which anybody pushes and out of which anybody takes.
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
//! A producer claims a slot by adding to `tail`, puts its item there, and marks the slot. A consumer
//! claims a slot by moving `head` on, as far as `tail`, waits for the mark, and takes the item. Both
//! claims are one atomic instruction, and neither touches a segment before it: a claimed slot keeps
//! its segment, so nobody needs to be pinned.
//!
//! If the mark does not come within some microseconds, the producer has been stopped between its
//! two steps. The consumer gives the slot up as an *orphan* and goes on to the next; while `head`
//! counts orphans, every consumer looks at them first (`around.rs`).
//!
//! # Invariants
//!
//! - **I1** `tail` only grows, apart from its bit, and `head` follows it, apart from its count.
//! - **I2** A slot that an addition to `tail` passed belongs to the producer that added, until it
//!   marks it `FULL` or `VOID`.
//! - **I3** A slot that a compare-exchange of `head` passed belongs to the consumer that exchanged,
//!   until it marks it `TAKEN`; or gives it up as an orphan, and then to whoever claims the orphan.
//! - **I4** A segment is unlinked only when `head` is in a later one and every slot of it is
//!   `TAKEN`. So whoever owns a slot may use its segment.
//! - **I5** Whoever uses a segment or an orphan without owning a slot in it is a visitor, and has
//!   found it after it came.
//! - **I6** What was unlinked is used again, or freed, by the one thread that sweeps, when at some
//!   moment afterwards there was no visitor.
//! - **I7** The segment pointer beside each word is the one of the word's number, or the next if the
//!   word's segment is used up. So a pointer beside `head` that is read after a word, before a claim
//!   that finds the same number, is the claimed slot's; and one beside `tail` that is read after a
//!   claim is the claimed slot's or a later one.
//! - **I8** A segment that lasts is freed with the injector. There are at most as many as have a
//!   place of their own among the spares.
//!
//! # Orderings
//!
//! The constants below are the only orderings in this module stronger than `Relaxed`. Each is argued
//! in DESIGN.md under its own name.
//!
//! # Sources
//!
//! Segments with fetch-and-add: Morrison and Afek, *Fast concurrent queues for x86 processors*, PPoPP
//! 2013; Ramalhete and Correia, *FAAArrayQueue*, 2016. The word that carries the segment's number is
//! crossbeam's index, widened. Orphans, and slots claimed before they are looked at, are ours: there a
//! consumer spoils a slot whose producer is late, which costs every producer one more locked
//! instruction.

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
use crate::sync::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Relaxed, const_on_the_machine};
use around::Orphan;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr;
use crossbeam_utils::CachePadded;
use segment::{Segment, Tagged};
use word::{FIRST, Head, Position, Tail, end_of};

/// Whoever sees a slot marked sees the item in it.
const FILLED: Pair = Pair::named("injector::FILLED");

/// Whoever sweeps sees a slot as settled only when its consumer is done with it.
const SETTLED: Pair = Pair::named("injector::SETTLED");

/// Whoever sees `tail` at a place sees the segment that it is in, and what the producers before that
/// place had done: an item pushed later than another is not taken while the other is overlooked.
const PUSHED: Pair = Pair::named("injector::PUSHED");

/// Whoever sees `head` at a place sees the segment that it is in, the orphans that it counts, and the
/// `tail` that the consumers before that place saw.
///
/// The other way about, who registers an orphan sees what every consumer saw that did not see it
/// registered: if an item was there by then, the registering consumer finds it.
const CLAIMED: Pair = Pair::named("injector::CLAIMED");

/// Whoever finds an orphan spoken for sees what the one that spoke saw: its holder, what is in its slot; others,
/// what was pushed before its taker came.
const SPOKEN: Pair = Pair::named("injector::SPOKEN");

/// Whoever follows a pointer to a segment or an orphan sees it as it was linked.
const LINKED: Pair = Pair::named("injector::LINKED");

/// Whoever takes a spare segment sees it as it was reset.
const SPARED: Pair = Pair::named("injector::SPARED");

/// Whoever sees that all up to a place is settled has the takers behind it, and sees their `tail`.
const QUIET: Pair = Pair::named("injector::QUIET");

/// Who sweeps sees what the last one left.
const SWEPT: Pair = Pair::named("injector::SWEPT");

/// Whoever is refused without adding to `tail` sees `tail` closed.
const CLOSED: Pair = Pair::named("injector::CLOSED");

/// A visitor counts itself, then follows a pointer; the sweeper unlinks, then reads the count. Of
/// the two, at least one sees the other (I5, I6).
const VISIT: FencePair = FencePair::named("injector::VISIT");

/// A sweeper that finds no visitor has behind it all that visitors did.
const LEFT: Pair = Pair::named("injector::LEFT");

/// A producer adds to `tail`, then looks whether `head` has come so far; a consumer that is about to
/// sleep has moved `head`, fences, and looks at `tail`. Not both can miss.
const WAS_EMPTY: FencePair = FencePair::named("injector::WAS_EMPTY");

/// How many used segments are kept for use again, at most.
const SPARES: usize = 8;
/// How many bytes are kept, at most, unless one segment is larger.
const KEPT: usize = 64 << 10;

/// A queue of tasks that anybody pushes to and takes from: first in, first out.
///
/// Threads share it by reference. It allocates nothing until the first push, uses its segments over
/// and over, and keeps at most 64 KiB, or one segment if that is larger.
///
/// # Progress
///
/// Pushing is lock-free: one fetch-add, and once in a segment (256 small items) a few steps that
/// every producer helps with. Taking is lock-free but for one bounded wait: a consumer that meets a
/// slot whose producer has been stopped between claiming and filling it waits 15 µs, and goes
/// around it from then on. Nobody waits for a consumer.
///
/// A thread that stands still in the middle of a call keeps the memory of the segments behind it from
/// being used again, and does nothing else to others.
///
/// # Ordering
///
/// The queue is linearizable, Empty answers included. What a producer did before it pushed an item
/// happens before what its taker does with it.
///
/// # Panics
///
/// `push` and `push_batch` panic after [`close`](Self::close); use `try_push` where that can be.
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
    shelf: CachePadded<Shelf<T>>,
}

/// What consumers write.
struct HeadLine<T> {
    word: AtomicU64,
    segment: AtomicPtr<Segment<T>>,
    /// A [`Spot`] of some earlier `tail`, so that a consumer need not look at the producers' line
    /// each time.
    tail_seen: AtomicU64,
    /// Every slot before this [`Spot`] is `TAKEN`.
    settled: AtomicU64,
}

/// What producers write.
struct TailLine<T> {
    word: AtomicU64,
    segment: AtomicPtr<Segment<T>>,
    /// What the bit in the word says, a little later. Whoever is refused by this has added nothing,
    /// and reading it does not wait for an addition of one's own.
    is_closed: AtomicBool,
}

/// What is written once in a segment, or when somebody was stopped.
struct Shelf<T> {
    /// The very first segment.
    first: AtomicPtr<Segment<T>>,
    /// The oldest segment that is linked: the one in which `settled` lies. Only who sweeps writes it.
    oldest: AtomicPtr<Segment<T>>,
    /// The oldest segment that is not yet used again. The sweeper's own.
    unlinked: AtomicPtr<Segment<T>>,
    /// First places for those that last, one for each, and then for others.
    spares: [AtomicPtr<Segment<T>>; SPARES],
    /// How many segments last, or more.
    lasting: AtomicUsize,
    orphans: AtomicPtr<Orphan<T>>,
    /// Orphans that are in no list any more. The sweeper's own.
    resolved: AtomicPtr<Orphan<T>>,
    visitors: AtomicUsize,
    sweeping: AtomicBool,
}

// SAFETY: I2 and I3 — an item is put by one thread and taken by one thread, so it needs to be `Send`
// and not `Sync`; everything else is atomic.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: I2 and I3, as above.
unsafe impl<T: Send> Sync for Injector<T> {}
// No method runs code of the user's while it holds a slot.
impl<T> UnwindSafe for Injector<T> {}
impl<T> RefUnwindSafe for Injector<T> {}

/// A thread that may use what it owns no slot of.
struct Visit<'a>(&'a AtomicUsize);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, LEFT.release());
    }
}

impl<T> Injector<T> {
    const SLOTS: usize = Segment::<T>::SLOTS;

    const_on_the_machine! {
        /// An empty injector. Allocates nothing.
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
                shelf: CachePadded::new(Shelf::new()),
            }
        }
    }

    /// Comes for a visit: what is found through a pointer that is read from now on stays (I5).
    fn visit(&self) -> Visit<'_> {
        self.shelf.visitors.fetch_add(1, Relaxed); // Relaxed: VISIT orders it
        VISIT.fence();
        Visit(&self.shelf.visitors)
    }

    /// The number of a segment, and the link to the one after it.
    ///
    /// # Safety
    ///
    /// The segment stays as long as the link is used (I4, I5). Null stands for the one before the
    /// first.
    unsafe fn link(&self, segment: *mut Segment<T>) -> (u64, &AtomicPtr<Segment<T>>) {
        if segment.is_null() {
            return (FIRST, &self.shelf.first);
        }
        // SAFETY: the caller's promise.
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

    /// To be read before a claim (I7). It may be newer than `head` was: whoever looks into it without
    /// a claim needs LINKED.
    #[inline(always)]
    fn head_segment(&self) -> Tagged<T> {
        Tagged(self.head.segment.load(LINKED.acquire()))
    }

    #[inline(always)]
    fn tail_position(&self) -> Position {
        self.tail().position(Self::SLOTS)
    }

    /// The number of items, at some moment during this call.
    ///
    /// Items that are being pushed at that moment are counted, as are those that nobody has waited
    /// for. Lock-free: repeats while items are pushed meanwhile. A locked instruction on the consumers' line.
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
            // In line with whoever gives up a slot, as in `is_surely_empty`.
            let order = both(CLAIMED.acquire(), CLAIMED.release());
            let head = Head(self.head.word.fetch_add(0, order));
            if tail == self.tail() {
                let waiting = head.position(Self::SLOTS);
                let waiting = waiting.distance(tail.position(Self::SLOTS), Self::SLOTS);
                return waiting + head.orphans() as usize;
            }
        }
    }

    /// Whether there was nothing to take, at some moment during this call.
    ///
    /// `false` while an item is being pushed. Lock-free, and three loads in the end if nothing comes.
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

impl<T> Shelf<T> {
    const_on_the_machine! {
        fn new() -> Self {
            Shelf {
                first: AtomicPtr::new(ptr::null_mut()),
                oldest: AtomicPtr::new(ptr::null_mut()),
                unlinked: AtomicPtr::new(ptr::null_mut()),
                spares: [
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                    AtomicPtr::new(ptr::null_mut()),
                ],
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
    /// An empty injector: [`new`](Injector::new).
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
