//! A fence of which one side bears the whole cost.
//!
//! Of two threads that each write one variable and then read the other's, one often does so millions of times
//! and the other is about to sleep. On Linux the second can make *every* running thread of the process do a full
//! barrier (`membarrier(2)`, `MEMBARRIER_CMD_PRIVATE_EXPEDITED`), and the first then needs to keep only its compiler from
//! reordering. Where the system cannot do that, in a model, and where nobody has asked for it, both sides are
//! `SeqCst` fences; DESIGN.md, *Asymmetric fences*, says why the first form forbids what the second does.

use super::fence;
use core::sync::atomic::Ordering;

/// Which of the two forms the fences of one structure have. Both sides must ask the same value.
#[derive(Clone, Copy)]
pub(crate) struct Barrier {
    is_asymmetric: bool,
}

impl Barrier {
    /// Fences on both sides.
    pub(crate) const fn symmetric() -> Self {
        Barrier { is_asymmetric: false }
    }

    /// The whole cost on one side, if the system can do that.
    pub(crate) fn asymmetric() -> Self {
        Barrier { is_asymmetric: system::can_interrupt() }
    }

    /// The side that comes often.
    #[inline(always)]
    pub(crate) fn light(self, ordering: Ordering) {
        if self.is_asymmetric {
            core::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(ordering);
        }
    }

    /// The side that comes rarely.
    #[inline]
    pub(crate) fn heavy(self, ordering: Ordering) {
        fence(ordering);
        if self.is_asymmetric {
            system::interrupt();
        }
    }

    /// Makes a light side as good as a fence, after the fact: for what is read from here on.
    #[inline(always)]
    pub(crate) fn make_up(self) {
        if self.is_asymmetric {
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(all(not(any(loom, shuttle)), feature = "std", target_os = "linux"))]
mod system {
    const REGISTER: libc::c_int = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    const INTERRUPT: libc::c_int = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the caller's promise is not needed: whatever the command, no memory is passed.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Whether the running threads of the process can be made to do a barrier.
    pub(super) fn can_interrupt() -> bool {
        membarrier(REGISTER) && membarrier(INTERRUPT)
    }

    /// Makes them.
    #[cold]
    pub(super) fn interrupt() {
        // It cannot fail once the process is registered, but for a filter that was put up since; then others go
        // without a fence, and there is no way to go on.
        assert!(membarrier(INTERRUPT), "membarrier(2) was taken away from this thread");
    }
}

#[cfg(not(all(not(any(loom, shuttle)), feature = "std", target_os = "linux")))]
mod system {
    pub(super) fn can_interrupt() -> bool {
        false
    }

    pub(super) fn interrupt() {}
}
