//! Waiting without sleeping.
//!
//! *On the machine* a thread that found nothing may look again for a while before it sleeps.
//!
//! *In a model* it sleeps at once. Looking again changes nothing that others see, so a run with
//! spinning is a run without, in which the thread arrived later.

#[cfg(all(not(any(loom, shuttle)), not(feature = "std")))]
pub(crate) use counted::{Patience, relax};
#[cfg(all(not(any(loom, shuttle)), feature = "std"))]
pub(crate) use machine::{Patience, Vigil, relax};
#[cfg(any(loom, shuttle))]
pub(crate) use model::{Patience, Vigil, relax};

/// How often one looks again for what another thread is about to write, before it counts as waiting.
///
/// A line that the other core has takes some hundred nanoseconds to come.
pub(crate) const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 256 };

/// Looks again whether there is a reason not to give up yet. In a model there never is: giving up is
/// as good an answer.
#[inline(always)]
pub(crate) fn again(look: impl FnOnce() -> bool) -> bool {
    cfg!(not(any(loom, shuttle))) && look()
}

/// Lets another thread run that must do something first: a producer that has been stopped between claiming a slot
/// and filling it, say.
#[cfg(feature = "std")]
pub(crate) fn give_way() {
    #[cfg(not(any(loom, shuttle)))]
    std::thread::yield_now();
    #[cfg(any(loom, shuttle))]
    super::checker::thread::yield_now();
}

/// Keeps away from a word that others are changing.
///
/// Long enough for a competitor to do a few dozen operations on a line that is its own meanwhile:
/// two that take turns pay a transfer of the line for each.
pub(crate) struct Contention(u32);

impl Contention {
    pub(crate) const fn none() -> Self {
        Contention(0)
    }

    /// Waits: for 128 relaxations at first, for 512 in the end: one to five microseconds where they are short. In a model, not at all.
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

    /// How many times one relaxes where there is no clock: some microseconds.
    const RELAXATIONS: usize = 512;

    /// How much longer a thread may look again.
    pub(crate) struct Patience(usize);

    impl Patience {
        /// All of it.
        pub(crate) const fn full() -> Self {
            Patience(RELAXATIONS)
        }

        /// Relaxes a little, or says that it is time for something else.
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

    /// How long one may spin: about what it costs to sleep and to be woken.
    const AT_MOST: Duration = Duration::from_micros(15);
    /// How many times one relaxes between two looks at the clock.
    const RELAXATIONS: usize = 16;

    /// How long one may look for work: as long as it takes others to find out that there is more to do.
    const VIGIL: Duration = Duration::from_micros(22);
    /// If it takes longer to let other threads run, there was one.
    const TO_YIELD: Duration = Duration::from_nanos(1500);

    /// How much longer a thread may look for work instead of sleeping, without keeping others from theirs.
    pub(crate) struct Vigil {
        end: Option<Instant>,
    }

    impl Vigil {
        pub(crate) const fn new() -> Self {
            Vigil { end: None }
        }

        /// Lets other threads run, or says that it is time to sleep: also if it turns out that the processor is
        /// wanted, once one has looked again.
        pub(crate) fn goes_on(&mut self) -> bool {
            let now = Instant::now();
            if now >= *self.end.get_or_insert(now + VIGIL) {
                return false;
            }
            std::thread::yield_now();
            if now.elapsed() > TO_YIELD {
                self.end = Some(now);
            }
            true
        }
    }

    /// How much longer a thread may wait for another that is about to be done.
    pub(crate) struct Patience(Option<Instant>);

    impl Patience {
        /// All of it.
        pub(crate) const fn full() -> Self {
            Patience(None)
        }

        /// Relaxes a little, or says that it is time to sleep.
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

    /// None at all.
    pub(crate) struct Vigil;

    impl Vigil {
        pub(crate) const fn new() -> Self {
            Vigil
        }

        pub(crate) fn goes_on(&mut self) -> bool {
            false
        }
    }

    /// None at all.
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
