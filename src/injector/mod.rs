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
//!      which stopped waiting for its item             put its item there yet
//! ```
//!
//! | thread | claims a slot by | then | and marks the slot |
//! |---|---|---|---|
//! | producer | adding to `tail` | puts its item there | `FULL` |
//! | consumer | advancing `head`, up to `tail` | waits for `FULL`, takes the item | `TAKEN`: *settled* |
//! | sweeper | – | resets settled slots, takes back their segments (`sweep.rs`) | `EMPTY` |
//!
//! Each claim is one atomic instruction. A claimed slot keeps its segment alive. If a producer is
//! suspended before it marks its slot, the slot's consumer waits for some microseconds, then gives
//! the slot up as an *orphan*. While `head` counts orphans, consumers look at them before they
//! claim a slot (`around.rs`). A *visitor* is a thread that uses segments or orphans without owning
//! a slot there; a counter counts the visitors. A *lasting* segment lives as long as the injector.
//!
//! # Invariants
//!
//! - **I1** `tail` only grows, apart from its closed bit. Once `tail` is closed, `end` holds the
//!   last open `tail`, for good. `head` only grows, apart from its count of orphans. `head` passes
//!   neither `tail` nor the `end` of a closed injector.
//! - **I2** A producer owns the slots that its addition to an open `tail` passed, until it marks
//!   them `FULL`. An addition to a closed `tail` claims nothing.
//! - **I3** A consumer owns the slots that its compare-exchange of `head` passed, until it marks
//!   them `TAKEN`. An orphan's slot belongs to the consumer that claims the orphan.
//! - **I4** A segment is unlinked only when all its slots are settled and `head` is in a later
//!   segment. A slot that has an owner is not settled, so the owner may use the slot's segment.
//! - **I5** A thread that uses a segment or an orphan is a visitor, unless it owns a slot in it or
//!   in an earlier segment. The visitor found the segment or orphan after its visit began.
//! - **I6** Only the sweeper reuses or frees unlinked segments and orphans. After the unlinking,
//!   and before the reuse or freeing, it finds that there is no visitor.
//! - **I7** The pointer beside `head` or `tail` points to the segment whose number is in that word.
//!   If that segment is used up, the pointer might point to the next. A consumer that reads the
//!   pointer between its read of `head` and its claim gets the claimed slot's segment. A producer
//!   that reads the pointer after its claim gets the claimed slot's segment or a later one.
//! - **I8** Lasting segments are freed with the injector, and `spares` has room for all of them.
//! - **I9** `push_batch` puts an iterator's items into a *chunk* on its stack. The items of a chunk
//!   from `next` to `len` are initialised, and are not pushed yet.
//! - **I10** A segment is one allocation: a header, then `SLOTS` slots, which `slot_at` points to.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`. `proofs/orderings.md`
//! argues each under its name.
//!
//! # Sources
//!
//! Segments with fetch-and-add are from Morrison and Afek, *Fast concurrent queues for x86
//! processors*, PPoPP 2013, and from Ramalhete and Correia, *FAAArrayQueue*, 2016. In those queues,
//! a consumer makes a late producer's slot unusable, so each push has a second locked instruction.
//! Orphans are new: a late producer's slot stays usable. The words `head` and `tail` extend the
//! index of crossbeam's injector.

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
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr;
use crossbeam_utils::CachePadded;
use segment::{Segment, Tagged};
use word::{FIRST, Head, Spot, Tail};

/// A thread that sees a slot marked also sees the item in it.
const FILLED: Pair = Pair::named("injector::FILLED");

/// A sweeper that sees a slot settled knows that the slot's consumer no longer touches it.
const SETTLED: Pair = Pair::named("injector::SETTLED");

/// A thread that sees `tail` at a position also sees that position's segment, and the earlier
/// producers' writes. So no thread takes an item and overlooks an earlier one.
const PUSHED: Pair = Pair::named("injector::PUSHED");

/// A thread that sees `head` at a position also sees that position's segment and the orphans that
/// `head` counts. The thread also sees the `tail` that consumers of earlier positions saw.
///
/// A consumer registers an orphan by a change of `head`, and then sees all that happened before
/// earlier changes of `head`. If a push into the orphan's slot happened before one of these
/// changes, the consumer finds the item.
const CLAIMED: Pair = Pair::named("injector::CLAIMED");

/// If a consumer fails to open its orphan, another consumer has seen the item and set `SPOKEN_FOR`.
/// Then the first consumer sees the item, too (table in `around.rs`). Any consumer that finds
/// `SPOKEN_FOR` sees all items pushed before the call that takes the orphan's item.
const SPOKEN: Pair = Pair::named("injector::SPOKEN");

/// A thread that follows a pointer to a segment or an orphan sees all that its linker wrote there.
const LINKED: Pair = Pair::named("injector::LINKED");

/// A producer that takes a spare segment sees it empty.
const SPARED: Pair = Pair::named("injector::SPARED");

/// A thread that reads `settled` sees what the takers of the settled items saw, `tail` included.
const QUIET: Pair = Pair::named("injector::QUIET");

/// A sweeper sees what the previous sweeper wrote.
const SWEPT: Pair = Pair::named("injector::SWEPT");

/// A closer that reads a proposed `end`, and then `tail`, finds `tail` at that end or beyond.
const CLOSED: Pair = Pair::named("injector::CLOSED");

/// A visitor counts itself, then follows a pointer to a segment or an orphan. The sweeper unlinks
/// the object, then reads the count. At least one of the two sees the other's write (I5, I6).
const VISIT: FencePair = FencePair::named("injector::VISIT");

/// If a sweeper finds no visitor, accesses of earlier visitors happen before it takes memory back.
const LEFT: Pair = Pair::named("injector::LEFT");

/// A producer adds to `tail`, fences, then reads `head`. A consumer advances `head`, fences, and
/// reads `tail` before it sleeps. At least one of the two sees the other's write.
const WAS_EMPTY: FencePair = FencePair::named("injector::WAS_EMPTY");

/// The most bytes of segments that an empty injector keeps, unless one segment is larger.
const KEPT: usize = 64 << 10;

/// A FIFO queue of tasks that any thread pushes to and takes from.
///
/// Allocates nothing until the first push, and reuses its segments. An empty injector keeps at most
/// 64 KiB of segments, or one segment if a segment is larger.
///
/// # Progress
///
/// Pushing is lock-free: one fetch-add. Once per segment (256 small items), producers link the next
/// segment, in steps that any of them can complete. Taking is lock-free except for one
/// wait. If a producer is stopped between claiming a slot and filling it, the slot's consumer waits
/// for 15 µs, and then gives the slot up. Only if 8,191 slots are given up already does the
/// consumer wait until the producer goes on.
///
/// No thread waits for a consumer. Apart from the wait for a stopped producer, a stopped thread
/// delays only the reuse of segments and the freeing of memory.
///
/// # Ordering
///
/// The queue is linearizable, Empty answers included. A producer's writes before its push happen
/// before the consumer's use of the item.
///
/// # Panics
///
/// After [`close`](Self::close), every push panics, except `try_push` and `try_push_batch`, which
/// give the items back.
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
    /// A [`Spot`] (segment and offset) at which `tail` once was. It spares consumers most reads of
    /// `tail`.
    tail_seen: AtomicU64,
    /// Every slot before this [`Spot`] is settled, and reset.
    settled: AtomicU64,
}

/// The cache line that producers write.
struct TailLine<T> {
    word: AtomicU64,
    segment: AtomicPtr<Segment<T>>,
    /// Set before `tail` is closed. Producers read this flag, because a read of `tail` would wait
    /// for their own last addition.
    is_closing: AtomicBool,
    /// The last open `tail` of a closed injector, where its items end (I1). In an open injector,
    /// the initial `tail`, or a closer's proposal (`closed.rs`).
    end: AtomicU64,
}

struct InjectorShelf<T> {
    first: AtomicPtr<Segment<T>>,
    /// The oldest linked segment, in which `settled` lies. Only the sweeper writes the pointer.
    oldest: AtomicPtr<Segment<T>>,
    /// The oldest unlinked segment that the sweeper has not taken back. Only the sweeper uses it.
    unlinked: AtomicPtr<Segment<T>>,
    /// Spare segments: one entry for each lasting segment, then the entries for other segments.
    spares: [AtomicPtr<Segment<T>>; MAX_LASTING + MAX_OTHERS],
    /// The number of lasting segments. Producers that race to make the last one may count too many.
    lasting: AtomicUsize,
    orphans: AtomicPtr<Orphan<T>>,
    /// Claimed orphans that were unlinked from `orphans`. Only the sweeper uses this field.
    resolved: AtomicPtr<Orphan<T>>,
    visitors: AtomicUsize,
    sweeping: AtomicBool,
}

// SAFETY: I2 and I3 — one thread puts an item and one thread takes it, so `T` must be `Send` and
// need not be `Sync`.
unsafe impl<T: Send> Send for Injector<T> {}
// SAFETY: I2 and I3 — each slot has one owner at a time, however many threads have `&self`.
unsafe impl<T: Send> Sync for Injector<T> {}
// Unwind-safe: no method runs the user's code while the thread owns a slot.
impl<T> UnwindSafe for Injector<T> {}
impl<T> RefUnwindSafe for Injector<T> {}

/// A visit of this thread (I5), which ends when the `Visit` is dropped.
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
            // The end of a segment: a `head` that counts no orphans, and an open `tail`.
            let start = Spot::of(FIRST, Self::SLOTS).0;
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
                    is_closing: AtomicBool::new(false),
                    end: AtomicU64::new(start),
                }),
                shelf: CachePadded::new(InjectorShelf::new()),
            }
        }
    }

    /// Begins a visit. Until the visit ends, segments and orphans that this thread finds stay (I5).
    fn visit(&self) -> Visit<'_> {
        self.shelf.visitors.fetch_add(1, Relaxed); // Relaxed: VISIT orders it
        VISIT.fence();
        Visit(&self.shelf.visitors)
    }

    /// Returns the number of a segment, and its link to the next. For a null pointer, returns
    /// `FIRST` and the link to the first segment.
    ///
    /// # Safety
    ///
    /// 1. The segment stays as long as the link is used (I4, I5).
    unsafe fn link(&self, segment: *mut Segment<T>) -> (u64, &AtomicPtr<Segment<T>>) {
        if segment.is_null() {
            return (FIRST, &self.shelf.first);
        }
        // SAFETY: by 1 the segment stays as long as its link is used.
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

    /// Returns the pointer beside `head`, which a consumer reads before its claim (I7). The pointer
    /// might be newer than the caller's `head`; then only LINKED makes the segment visible.
    #[inline(always)]
    fn head_segment(&self) -> Tagged<T> {
        Tagged(self.head.segment.load(LINKED.acquire()))
    }

    /// Returns the number of items at some moment during this call.
    ///
    /// The count includes items that are just being pushed, and orphans. Lock-free: repeats while
    /// other threads push. Each round is a locked instruction on the consumers' cache line.
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
            let tail = self.end();
            // Adds zero, to be ordered with consumers that give up a slot: see `is_surely_empty`.
            let order = both(CLAIMED.acquire(), CLAIMED.release());
            let head = Head(self.head.word.fetch_add(0, order));
            if tail == self.end() {
                let waiting = head.position(Self::SLOTS);
                let waiting = waiting.distance(tail.position(Self::SLOTS), Self::SLOTS);
                return waiting + head.orphans() as usize;
            }
        }
    }

    /// Returns whether the injector was empty at some moment during this call.
    ///
    /// Returns `false` while another thread is pushing. Lock-free; three loads if it stays empty.
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
            let there = head.position(Self::SLOTS).distance(self.end_position(), Self::SLOTS);
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
    fn default() -> Self {
        Injector::new()
    }
}

opaque!([T] Injector<T>, |it| len: it.len(), is_closed: it.is_closed());
