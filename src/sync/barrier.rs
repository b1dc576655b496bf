//! A pair of fences, of which the rarely used side can bear the whole cost.
//!
//! Two threads each write one variable and then read the other's. The *light* side does so millions
//! of times, the *heavy* side only before it sleeps. On Linux the heavy side can make all running
//! threads of the process execute a full barrier (`membarrier(2)`). The light side then needs only
//! a compiler fence. Both sides are `SeqCst` fences if the system lacks that call, if the structure
//! does not ask for it, and in every model. `proofs/orderings.md`, *Asymmetric fences*, shows that
//! both forms forbid the same outcome.

use super::fence;
use core::sync::atomic::Ordering;

/// The form of one structure's fences. The light and the heavy side must use the same value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    is_asymmetric: bool,
}

impl Barrier {
    /// Returns the form with a `SeqCst` fence on each side.
    pub(crate) const fn symmetric() -> Self {
        Barrier { is_asymmetric: false }
    }

    /// Returns the form with the whole cost on the heavy side, if the system offers
    /// `membarrier(2)`. Otherwise returns the form with a fence on each side.
    pub(crate) fn asymmetric() -> Self {
        Barrier { is_asymmetric: system::can_interrupt() }
    }

    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn is_asymmetric(self) -> bool {
        self.is_asymmetric
    }

    #[inline(always)]
    pub(crate) fn light(self, ordering: Ordering) {
        if self.is_asymmetric {
            core::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(ordering);
        }
    }

    /// Keeps the compiler from moving accesses across this call. That suffices on the light side of
    /// an asymmetric barrier.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    #[inline(always)]
    pub(crate) fn keep_order() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn heavy(self, ordering: Ordering) {
        fence(ordering);
        if self.is_asymmetric {
            system::interrupt();
        }
    }

    /// Fences if the barrier is asymmetric. In that case `light` has not fenced, and the caller's
    /// next reads need a fence.
    #[inline(always)]
    pub(crate) fn make_up(self) {
        if self.is_asymmetric {
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(all(not(any(loom, shuttle, miri)), feature = "std", target_os = "linux"))]
mod system {
    const REGISTER: libc::c_int = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    const INTERRUPT: libc::c_int = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call passes no memory, whatever the command, so it cannot corrupt any.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Returns whether this thread can make the running threads of the process execute a barrier.
    pub(super) fn can_interrupt() -> bool {
        membarrier(REGISTER) && membarrier(INTERRUPT)
    }

    #[cold]
    pub(super) fn interrupt() {
        // Only a new system call filter can make this call fail. The light sides have no fence of
        // their own, so the process must not go on without the call.
        assert!(
            membarrier(INTERRUPT),
            "a new system call filter blocks membarrier(2), which sleeping threads need: allow it"
        );
    }
}

#[cfg(not(all(not(any(loom, shuttle, miri)), feature = "std", target_os = "linux")))]
mod system {
    pub(super) fn can_interrupt() -> bool {
        false
    }

    pub(super) fn interrupt() {}
}
