//! Memory orderings that carry a name.
//!
//! A `Release` means nothing without the `Acquire` that synchronizes with it somewhere else. A
//! [`Pair`] makes the two one value. Both ends name the same constant, whose documentation says
//! what the pair guarantees. A [`FencePair`] and a [`Dekker`] do the same for two threads that each
//! write one variable and read the other's.
//!
//! On the machine the orderings below are constants. In a loom model `audit` may weaken one of
//! them, to see whether the model notices.

use super::barrier::Barrier;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// A release and the acquire that synchronizes with it. Writes before [`release`](Pair::release)
/// are seen after [`acquire`](Pair::acquire).
#[derive(Debug)]
pub struct Pair(&'static str);

impl Pair {
    /// Makes a pair. `name` is the constant's name, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Pair(name)
    }

    /// Returns the ordering of the end that publishes.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn release(&self) -> Ordering {
        at(self.0, "release", Release)
    }

    /// Returns the ordering of the end that reads.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn acquire(&self) -> Ordering {
        at(self.0, "acquire", Acquire)
    }
}

/// Two threads each write one variable, fence, and read the other's. At least one of them sees the
/// other's write.
#[derive(Debug)]
pub struct FencePair(&'static str);

impl FencePair {
    /// Makes a pair. `name` is the constant's name, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        FencePair(name)
    }

    /// Fences between the write and the read.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn fence(&self) {
        super::fence(at(self.0, "fence", SeqCst));
    }

    /// Fences on the side that runs often. If `barrier` is asymmetric, the other side bears the
    /// cost.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub(crate) fn light_fence(&self, barrier: Barrier) {
        barrier.light(at(self.0, "light_fence", SeqCst));
    }

    /// Fences on the side that runs rarely. If `barrier` is asymmetric, this side bears the whole
    /// cost.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub(crate) fn heavy_fence(&self, barrier: Barrier) {
        barrier.heavy(at(self.0, "heavy_fence", SeqCst));
    }
}

/// A [`FencePair`] of which one side is made of `SeqCst` accesses on the machine, where they are
/// cheaper than a fence.
///
/// One side writes, calls [`fence`](Dekker::fence) and reads. The other side gives its write and
/// its read the ordering [`strong`](Dekker::strong), and calls [`light_fence`](Dekker::light_fence)
/// between them. On the machine `strong` is `SeqCst`, and the light fence is nothing. In a model
/// `strong` is the written ordering, and the light fence is a fence, because loom treats `SeqCst`
/// accesses as weaker than they are. `proofs/orderings.md`, *Dekker*, shows that both forms forbid
/// the same outcome.
#[derive(Debug)]
pub struct Dekker(&'static str);

impl Dekker {
    /// Makes a pair. `name` is the constant's name, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Dekker(name)
    }

    /// Fences between the write and the read, on the side whose accesses are not `strong`.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn fence(&self) {
        super::fence(at(self.0, "fence", SeqCst));
    }

    /// Fences in a model, between the write and the read whose orderings are `strong`. On the
    /// machine does nothing, because these accesses are `SeqCst`.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn light_fence(&self) {
        if cfg!(loom) {
            super::fence(at(self.0, "light_fence", SeqCst));
        }
    }

    /// Returns the ordering of an access on the side that calls `light_fence`: `SeqCst` on the
    /// machine, `written` in a model. `written` is the ordering that the access needs for other
    /// pairs, or `Relaxed` if it needs none.
    #[inline(always)]
    pub fn strong(&self, written: Ordering) -> Ordering {
        if cfg!(loom) { written } else { SeqCst }
    }
}

/// Returns the ordering of a read-modify-write that is the acquire end of one pair and the release
/// end of another.
#[inline(always)]
#[must_use]
pub fn both(acquire: Ordering, release: Ordering) -> Ordering {
    match (acquire, release) {
        (Acquire, Release) => AcqRel,
        (Acquire, Relaxed) => Acquire, // `release` is being audited
        (Relaxed, release) => release, // `acquire` is being audited
        _ => unreachable!("both(acquire, release)"),
    }
}

#[cfg(not(loom))]
#[inline(always)]
fn at(_name: &str, _half: &str, written: Ordering) -> Ordering {
    written
}

#[cfg(loom)]
use super::audit::at;
