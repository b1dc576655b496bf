//! Waiting without sleeping.
//!
//! *On the machine* a thread that found nothing may look again for a while before it sleeps.
//!
//! *In a model* it sleeps at once. Looking again changes nothing that others see, so a run with
//! spinning is a run without, in which the thread arrived later.

#[cfg(not(loom))]
pub(crate) use machine::{relax, Patience};
#[cfg(loom)]
pub(crate) use model::{relax, Patience};

#[cfg(not(loom))]
mod machine {
    pub(crate) use core::hint::spin_loop as relax;
    use std::time::{Duration, Instant};

    /// How long one may spin: about what it costs to sleep and to be woken.
    const AT_MOST: Duration = Duration::from_micros(15);
    /// How many times one relaxes between two looks at the clock.
    const RELAXATIONS: usize = 16;

    /// How much longer a thread may look for work instead of sleeping.
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

#[cfg(loom)]
mod model {
    pub(crate) use loom::hint::spin_loop as relax;

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
