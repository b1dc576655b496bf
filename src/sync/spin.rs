//! Waiting without sleeping.
//!
//! *On the machine* a thread that found nothing keeps looking for some microseconds before it
//! sleeps.
//!
//! *In a model* a thread that found nothing sleeps at once. Looking again changes nothing that
//! other threads see. So an execution with spinning equals an execution without spinning in which
//! the thread arrived later.

#[cfg(all(not(any(loom, shuttle)), not(feature = "std")))]
pub(crate) use counted::{Patience, relax};
#[cfg(all(not(any(loom, shuttle)), feature = "std"))]
pub(crate) use machine::{Patience, Vigil, relax};
#[cfg(any(loom, shuttle))]
pub(crate) use model::{Patience, Vigil, relax};

/// The number of times that an injector's consumer looks at its claimed slot before its `Patience`,
/// a longer but bounded spin, begins. Usually the slot's producer is just about to fill the slot.
///
/// 256 looks last some hundred nanoseconds: the time in which a cache line comes from another core.
pub(crate) const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 256 };

/// Returns whether the caller should try once more, as `look` decides. In a model, returns `false`
/// without calling `look`, because giving up is always correct.
#[inline(always)]
pub(crate) fn again(look: impl FnOnce() -> bool) -> bool {
    cfg!(not(any(loom, shuttle))) && look()
}

/// Yields the processor to other threads, because the caller waits for one of them.
#[cfg(feature = "std")]
pub(crate) fn give_way() {
    #[cfg(not(any(loom, shuttle)))]
    std::thread::yield_now();
    #[cfg(any(loom, shuttle))]
    super::checker::thread::yield_now();
}

/// A back-off from a word that other threads are changing.
///
/// While this thread waits, a competitor can do a few dozen operations on the cache line. If this
/// thread tried again at once, the line would move to another core with each operation.
pub(crate) struct Contention(u32);

impl Contention {
    pub(crate) const fn none() -> Self {
        Contention(0)
    }

    /// Calls `relax` 128 times in the first wait, and up to 512 times in later waits. Where `relax`
    /// is short, a wait takes one to five microseconds. In a model, returns at once.
    #[cold]
    pub(crate) fn wait(&mut self) {
        if cfg!(not(any(loom, shuttle))) {
            (0..128 << self.0).for_each(|_| relax());
            self.0 = (self.0 + 1).min(2);
        }
    }
}

#[cfg(all(not(any(loom, shuttle)), not(feature = "std")))]
mod counted {
    pub(crate) use core::hint::spin_loop as relax;

    /// The most calls of `relax` in a wait without a clock. They take some microseconds.
    const RELAXATIONS: usize = 512;

    /// The number of calls of `relax` that are left to a thread before it should stop waiting.
    pub(crate) struct Patience(usize);

    impl Patience {
        pub(crate) const fn full() -> Self {
            Patience(RELAXATIONS)
        }

        /// Calls `relax` once. Returns `false` if the thread should stop waiting.
        pub(crate) fn lasts(&mut self) -> bool {
            relax();
            self.0 = self.0.saturating_sub(1);
            self.0 > 0
        }
    }
}

#[cfg(all(not(any(loom, shuttle)), feature = "std"))]
mod machine {
    pub(crate) use core::hint::spin_loop as relax;
    use std::time::{Duration, Instant};

    /// The longest spin: about the cost of a sleep and a wake-up.
    const AT_MOST: Duration = Duration::from_micros(15);
    /// The number of calls of `relax` between two looks at the clock.
    const RELAXATIONS: usize = 16;

    /// The time for which a full `Vigil` lets a worker search before it sleeps. Other threads need
    /// about that time to find that there is more work. If work comes while a worker still
    /// searches, no thread has to be woken for that work.
    const VIGIL: Duration = Duration::from_micros(22);
    const SHORT_VIGIL: Duration = Duration::from_micros(3);

    /// The time until which a thread searches for work before it sleeps.
    pub(crate) struct Vigil {
        time: Duration,
        end: Option<Instant>,
    }

    impl Vigil {
        pub(crate) const fn new() -> Self {
            Vigil { time: VIGIL, end: None }
        }

        /// Makes a short vigil, for a thread that is unlikely to find work soon.
        pub(crate) const fn short() -> Self {
            Vigil { time: SHORT_VIGIL, end: None }
        }

        /// Yields to other threads, and returns whether the search goes on. If it is time to sleep,
        /// returns `false` without a yield.
        pub(crate) fn goes_on(&mut self) -> bool {
            let now = Instant::now();
            if now >= *self.end.get_or_insert(now + self.time) {
                return false;
            }
            std::thread::yield_now();
            true
        }
    }

    /// The time until which a thread spins, because another thread should soon have done its next
    /// write.
    pub(crate) struct Patience(Option<Instant>);

    impl Patience {
        /// Allows a spin of `AT_MOST`, from the first call of `lasts` on.
        pub(crate) const fn full() -> Self {
            Patience(None)
        }

        /// Calls `relax` a few times and returns `true`. Once `AT_MOST` has passed, returns `false`
        /// at once.
        pub(crate) fn lasts(&mut self) -> bool {
            let now = Instant::now();
            if now >= *self.0.get_or_insert(now + AT_MOST) {
                return false;
            }
            (0..RELAXATIONS).for_each(|_| relax());
            true
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    pub(crate) use crate::sync::checker::hint::spin_loop as relax;

    /// No search: in a model a thread sleeps at once.
    pub(crate) struct Vigil;

    impl Vigil {
        pub(crate) const fn new() -> Self {
            Vigil
        }

        pub(crate) const fn short() -> Self {
            Vigil
        }

        pub(crate) fn goes_on(&mut self) -> bool {
            false
        }
    }

    /// No spinning: in a model a thread sleeps at once.
    pub(crate) struct Patience;

    impl Patience {
        pub(crate) const fn full() -> Self {
            Patience
        }

        pub(crate) fn lasts(&mut self) -> bool {
            false
        }
    }
}
