//! The one door to atomics, `UnsafeCell`, threads, clocks and reclamation.
//!
//! Only this folder names `core::sync`, `std::sync`, `std::thread` or `UnsafeCell`
//! (`tests/house/rules.rs` checks). So it alone decides whether the crate runs on the machine or
//! inside a loom model. Where the two must differ, the difference is one small type. Each type's
//! file argues that the model permits at least the executions of the machine:
//!
//! | file | on the machine | in a model |
//! |---|---|---|
//! | [`order`] | orderings are constants; one side of a [`Dekker`](order::Dekker) is made of `SeqCst` accesses | each may be weakened by name; both sides of a `Dekker` are made of `SeqCst` fences |
//! | [`barrier`] | a pair of fences, of which one may bear the whole cost | two `SeqCst` fences |
//! | [`slot`] | a `T`, copied word by word; under a lock, where the target lacks the instructions | a pointer to a payload that loom watches |
//! | [`place`] | memory for a `T` | a cell that loom watches |
//! | [`epoch`] | crossbeam-epoch, with a collector of the crate's own | the most eager reclaimer that crossbeam-epoch's contract permits |
//! | [`snapshot`] | a value that many threads read and few replace, on `epoch` | the same |
//! | [`park`] | crossbeam-utils' parker | a lock and a condition variable; timeouts pass at once |
//! | [`lock`] | the standard library's locks, without poisoning | loom's or shuttle's, with the same contract |
//! | [`clock`] | the system's clock | time stands still, and every deadline has passed |
//! | [`spin`] | spins for some microseconds | gives up at once |
//! | [`thread`] | threads have names, panics can be caught | no names, and panics are not caught |
//! | [`unique`] | a counter | the same counter, which loom does not watch |
//!
//! There are two kinds of models. Under `--cfg loom` everything is as in the column *in a model*.
//! Under `--cfg shuttle`, programs that are too large for loom run in random schedules. Atomics,
//! locks and threads are shuttle's, and each ordering counts as `SeqCst`. There `order`, `slot`,
//! `place` and `epoch` are as on the machine, except that retired objects are never freed. The
//! other files are as in the column *in a model*.

pub(crate) mod barrier;
pub(crate) mod epoch;
#[cfg_attr(not(loom), allow(unreachable_pub))] // reachable in a model, through `for_models`
pub(crate) mod order;
pub(crate) mod place;
pub(crate) mod slot;
pub(crate) mod spin;

#[cfg(feature = "std")]
pub(crate) mod clock;
#[cfg(feature = "std")]
pub(crate) mod lock;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) mod park;
#[cfg(feature = "std")]
#[cfg_attr(not(loom), allow(unreachable_pub))] // reachable in a model, through `for_models`
pub(crate) mod snapshot;
#[cfg(feature = "std")]
pub(crate) mod thread;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) mod unique;

#[cfg(loom)]
mod audit;

/// The tool that runs the threads of a model.
#[cfg(loom)]
pub(crate) use loom as checker;
#[cfg(shuttle)]
pub(crate) use shuttle as checker;

#[cfg(not(loom))]
mod machine {
    pub(crate) use alloc::sync::Arc;
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) use alloc::sync::Weak;

    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn weak<T>(arc: &Arc<T>) -> Weak<T> {
        Arc::downgrade(arc)
    }

    /// Returns the value if `arc` is the last handle. If all owners call this at the same time, one
    /// of them gets the value.
    #[cfg(feature = "std")]
    pub(crate) fn into_inner<T>(arc: Arc<T>) -> Option<T> {
        Arc::into_inner(arc)
    }
    #[cfg(not(shuttle))]
    use core::sync::atomic;
    #[cfg(shuttle)]
    use shuttle::sync::atomic;

    #[cfg(target_has_atomic = "64")]
    pub(crate) use atomic::AtomicI64 as AtomicIndex;
    #[cfg(not(target_has_atomic = "64"))]
    pub(crate) use atomic::AtomicIsize as AtomicIndex;
    #[cfg(target_has_atomic = "64")]
    pub(crate) use atomic::{AtomicBool, AtomicU8, AtomicU64};
    pub(crate) use atomic::{AtomicPtr, AtomicUsize, fence};

    /// The number of indices from a new deque's first index to the wrap. Small, so that tests cross
    /// the wrap.
    pub(crate) const STEPS_TO_THE_WRAP: super::Index = 128;
    /// The most items that a thief takes from a LIFO deque by one claim. The thief first
    /// *announces* such a batch by a mark in `top`, the end at which thieves take. An owner that
    /// pops an item nearer to `top` than this number first *withdraws* the mark, or claims the item
    /// if it is the last.
    pub(crate) const MAX_ANNOUNCED: usize = 32;
    /// The most slots in an injector's segment. Producers link the next segment when a push finds
    /// all slots of the segment claimed.
    #[cfg(target_has_atomic = "64")]
    pub(crate) const MAX_SLOTS: usize = 256;
    /// The most segments of an injector that *last*, that is, are kept until the injector is
    /// dropped.
    #[cfg(target_has_atomic = "64")]
    pub(crate) const MAX_LASTING: usize = 4;
    /// The most spare segments that an injector keeps besides those that last until it is dropped.
    #[cfg(target_has_atomic = "64")]
    pub(crate) const MAX_OTHERS: usize = 4;
    /// A sleeper that gives up, for example after its timeout, can leave its entry in the event
    /// count's list. It may then clear the list, but only if the owners of at least this many
    /// entries have given up. Clearing should be rare, because it wakes all other sleepers.
    #[cfg(target_has_atomic = "64")]
    pub(crate) const MANY_GONE: usize = 32;
    /// The number of queues that share a word of a fair scheduler's ready set.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) const GROUP: usize = 64;
    /// The most groups of `GROUP` queues in a fair scheduler: 65,536 queues.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) const GROUPS: usize = 1024;
    /// The number of groups that share a word in the ready set's summary.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) const SUMMARY: usize = 64;
    /// The most nested *services* of one worker that other workers can see: a job's tag has room
    /// for no more. A service is a worker's run of a half of a `join`, or of a scope's job, for
    /// which another thread waits (`pool/data/helping.rs`). A worker that waits for a deeper
    /// service does not help it. Few services are deeper: a recursion that halves its range has
    /// fewer than 64 levels.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) const KNOWN_SERVICES: usize = 61;
    /// The number of children of a node in the tree of the queues' virtual times.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) const FAN: usize = 8;

    /// Declares a function that is `const` on the machine, but not in a model, because loom's types
    /// have no `const` constructors.
    #[cfg(target_has_atomic = "64")]
    macro_rules! const_on_the_machine {
        ($(#[$meta:meta])* $visibility:vis fn $($rest:tt)*) => {
            $(#[$meta])* $visibility const fn $($rest)*
        };
    }
    #[cfg(target_has_atomic = "64")]
    pub(crate) use const_on_the_machine;

    #[cfg(target_has_atomic = "64")]
    macro_rules! array_on_the_machine {
        [$item:expr; $len:expr] => {
            [const { $item }; $len]
        };
    }
    #[cfg(target_has_atomic = "64")]
    pub(crate) use array_on_the_machine;
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::Arc;

    /// Never upgrades, because loom's `Arc` has no weak references: the value always seems to be
    /// gone.
    pub(crate) struct Weak<T>(core::marker::PhantomData<fn() -> T>);

    impl<T> Weak<T> {
        pub(crate) fn upgrade(&self) -> Option<Arc<T>> {
            None
        }
    }

    pub(crate) fn weak<T>(_arc: &Arc<T>) -> Weak<T> {
        Weak(core::marker::PhantomData)
    }

    /// Returns the value if `arc` is the last handle. If several owners call this at the same time,
    /// perhaps none of them gets the value.
    pub(crate) fn into_inner<T>(arc: Arc<T>) -> Option<T> {
        Arc::try_unwrap(arc).ok()
    }
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
    pub(crate) use loom::sync::atomic::{AtomicI64 as AtomicIndex, AtomicPtr, AtomicUsize, fence};

    /// The indices wrap after so few items that even a small model crosses the wrap.
    pub(crate) const STEPS_TO_THE_WRAP: super::Index = 2;
    /// Batches are so small that a model can have items beyond the reach of a batch.
    pub(crate) const MAX_ANNOUNCED: usize = 2;
    /// Segments are so small that models use several.
    pub(crate) const MAX_SLOTS: usize = 2;
    /// So few segments last that models also have segments that do not.
    pub(crate) const MAX_LASTING: usize = 2;
    /// Zero, so that a model frees each segment that does not last, and notices a later use of it.
    pub(crate) const MAX_OTHERS: usize = 0;
    pub(crate) const MANY_GONE: usize = 2;
    /// Groups are so small that models have several.
    pub(crate) const GROUP: usize = 2;
    pub(crate) const GROUPS: usize = 4;
    pub(crate) const SUMMARY: usize = 2;
    pub(crate) const FAN: usize = 2;
    /// Small, because each service adds three atomics to a model.
    pub(crate) const KNOWN_SERVICES: usize = 4;

    macro_rules! const_on_the_machine {
        ($(#[$meta:meta])* $visibility:vis fn $($rest:tt)*) => {
            $(#[$meta])* $visibility fn $($rest)*
        };
    }
    pub(crate) use const_on_the_machine;

    macro_rules! array_on_the_machine {
        [$item:expr; $len:expr] => {
            core::array::from_fn::<_, { $len }, _>(|_| $item)
        };
    }
    pub(crate) use array_on_the_machine;
}

/// A position in a deque: a counter that wraps, compared by signed difference.
#[cfg(any(loom, target_has_atomic = "64"))]
pub(crate) type Index = i64;
#[cfg(not(any(loom, target_has_atomic = "64")))]
pub(crate) type Index = isize;

/// The standard library's `Arc`, in models too. loom does not watch the count of this `Arc`,
/// because that would only make models larger.
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use alloc::sync::Arc as Unwatched;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) type Text = Unwatched<str>;

#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) fn waker_of(wake: impl Fn() + Send + Sync + 'static) -> core::task::Waker {
    struct Calls<F>(F);

    impl<F: Fn() + Send + Sync> alloc::task::Wake for Calls<F> {
        fn wake(self: Unwatched<Self>) {
            (self.0)();
        }
    }

    Unwatched::new(Calls(wake)).into()
}

/// Calls the closure when it is dropped, even if a panic is under way.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The only ordering that other modules write bare. The others have names: see [`order`].
pub(crate) use core::sync::atomic::Ordering::Relaxed;

#[cfg(not(loom))]
pub(crate) use machine::*;
#[cfg(loom)]
pub(crate) use model::*;

/// The parts of this folder that models test by themselves. Not part of the public API.
#[cfg(loom)]
#[doc(hidden)]
pub mod for_models {
    pub use super::epoch::{Domain, Guard, Protected};
    pub use super::order::{Dekker, FencePair, Pair, both};
    pub use super::slot::{Copied, Slot};
    pub use super::snapshot::Snapshot;
}
