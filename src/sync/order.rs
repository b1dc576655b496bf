//! Memory orderings that carry a name.
//!
//! A `Release` means nothing without the `Acquire` it meets somewhere else. A [`Pair`] is that
//! meeting as a value: both ends name the same constant, the constant's documentation says what it
//! guarantees, and "find references" lists every line that takes part. A [`FencePair`] and a
//! [`Dekker`] name the meeting of two threads of which each writes one variable and reads the
//! other's.
//!
//! On the machine the methods below are constants. In a loom model they ask `audit` first, which
//! may weaken one of them to see whether a model notices.

use super::barrier::Barrier;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// What is written before [`release`](Pair::release) is seen after [`acquire`](Pair::acquire).
#[derive(Debug)]
pub struct Pair(&'static str);

impl Pair {
    /// A pair; the name is the constant's, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Pair(name)
    }

    /// The ordering of the end that publishes.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn release(&self) -> Ordering {
        at(self.0, "release", Release)
    }

    /// The ordering of the end that looks.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn acquire(&self) -> Ordering {
        at(self.0, "acquire", Acquire)
    }
}

/// Two threads each write one variable, fence, and read the other's: not both can miss.
#[derive(Debug)]
pub struct FencePair(&'static str);

impl FencePair {
    /// A pair of fences; the name is the constant's, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        FencePair(name)
    }

    /// The fence between the write and the read.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn fence(&self) {
        super::fence(at(self.0, "fence", SeqCst));
    }

    /// The fence on the side that comes often, if the other may bear the whole cost.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub(crate) fn light_fence(&self, barrier: Barrier) {
        barrier.light(at(self.0, "light_fence", SeqCst));
    }

    /// The fence on that other side.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub(crate) fn heavy_fence(&self, barrier: Barrier) {
        barrier.heavy(at(self.0, "heavy_fence", SeqCst));
    }
}

/// A [`FencePair`] of which one side is made of `SeqCst` accesses where that is cheaper.
///
/// One side writes, calls [`fence`](Dekker::fence) and reads. The other side gives every access that
/// takes part the ordering [`strong`](Dekker::strong) and calls [`light_fence`](Dekker::light_fence)
/// between its write and its read. In a model those accesses are as written and the light fence is
/// a fence; on the machine they are `SeqCst` and the light fence is nothing. loom cannot judge the
/// second form, because it takes `SeqCst` accesses for weaker than they are; that the two forms
/// forbid the same outcome is argued in DESIGN.md under *Dekker*.
#[derive(Debug)]
pub struct Dekker(&'static str);

impl Dekker {
    /// A pair; the name is the constant's, with its module in front.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Dekker(name)
    }

    /// The fence between the write and the read, on the side that fences.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn fence(&self) {
        super::fence(at(self.0, "fence", SeqCst));
    }

    /// The line between the write and the read, on the side whose accesses are strong.
    #[inline(always)]
    #[cfg_attr(loom, track_caller)]
    pub fn light_fence(&self) {
        if cfg!(loom) {
            super::fence(at(self.0, "light_fence", SeqCst));
        }
    }

    /// The ordering of an access on that side, where it asks for `written` by itself.
    #[inline(always)]
    pub fn strong(&self, written: Ordering) -> Ordering {
        if cfg!(loom) { written } else { SeqCst }
    }
}

/// One read-modify-write at the acquire end of one pair and the release end of another.
#[inline(always)]
#[must_use]
pub fn both(acquire: Ordering, release: Ordering) -> Ordering {
    match (acquire, release) {
        (Acquire, Release) => AcqRel,
        (Acquire, Relaxed) => Acquire, // `release` is being audited
        (Relaxed, release) => release, // `acquire` is
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
