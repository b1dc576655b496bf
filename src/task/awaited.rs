//! Jobs for which a function on a thread's stack waits: halves of a `join`, and jobs of a scope.
//! The job of a half points to a *record* on that stack. The job of a scope has a *tag*, a small
//! number in the low bits of its `kind`.

use super::job::{Capture, Job, Kind, TAG};
use crate::sync::KNOWN_SERVICES;
use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr::{self, NonNull};

/// The tag of a job that was not spawned by the worker that opened its scope.
const FOREIGN: usize = 1;

// Unless a scope's job is `FOREIGN`, its tag holds the scope's `depth` (see `scoped`). All depths
// that are too great for a tag share the greatest tag, `TAG`. `are_within` compares a tag with a
// `depth` less than `KNOWN_SERVICES`, and the assertion says that `TAG` stands for greater depths.
// So `are_within` rightly takes a job with the tag `TAG` for a job of an inner scope.
const _: () = assert!(FOREIGN + KNOWN_SERVICES < TAG);

/// The first field of a record on the stack of the thread that waits for a job. The job holds a
/// pointer to this field, which is also a pointer to the record.
pub(crate) struct OnStack(pub(crate) &'static StackKind);

pub(crate) struct StackKind {
    pub(crate) run: unsafe fn(*const OnStack),
    /// Called instead of `run` if the job is dropped unrun.
    pub(crate) give_back: unsafe fn(*const OnStack),
}

/// The kind of jobs that hold a pointer to an `OnStack`. A static, so that its address identifies
/// such jobs.
static ON_STACK: Kind = Kind { run: run_on_stack, drop: give_back };

/// Runs the record.
///
/// # Safety
///
/// 1. `Job::on_stack` has filled `capture`, and the record is still on its owner's stack
///    (conditions 1 and 2 of `on_stack`).
unsafe fn run_on_stack(capture: *mut Capture, _: *const Kind) -> bool {
    // SAFETY: 1 — `Job::on_stack` has put the pointer into `capture`.
    let head = unsafe { capture.cast::<*const OnStack>().read() };
    // SAFETY: 1 — the record stays until the job has run or was dropped.
    let kind = unsafe { &*head }.0;
    // SAFETY: 1 — the record was made for this kind, and the job runs only here.
    unsafe { (kind.run)(head) };
    true
}

/// Called if the job is dropped unrun. Calls the `give_back` of the record's kind.
///
/// # Safety
///
/// 1. As in `run_on_stack`.
unsafe fn give_back(capture: *mut Capture, _: *const Kind) {
    // SAFETY: 1 — `Job::on_stack` has put the pointer into `capture`.
    let head = unsafe { capture.cast::<*const OnStack>().read() };
    // SAFETY: 1 — the record stays until the job has run or was dropped.
    let kind = unsafe { &*head }.0;
    // SAFETY: 1 — the record was made for this kind, and the job is dropped only here, unrun.
    unsafe { (kind.give_back)(head) };
}

impl Job {
    /// Makes a job that runs the record that begins with `head`. The thread that waits for the job
    /// has the record on its stack.
    ///
    /// # Safety
    ///
    /// 1. The record that begins with `head` stays until the job has run or was dropped.
    /// 2. The kind in `head` has the functions for this record, and any thread may call them.
    #[inline]
    pub(crate) unsafe fn on_stack(head: *const OnStack) -> Self {
        let mut capture = Capture::uninit();
        // SAFETY: I6 — a pointer fits into the words.
        unsafe { capture.as_mut_ptr().cast::<*const OnStack>().write(head) };
        Job { kind: NonNull::from(&ON_STACK), capture }
    }

    /// Returns whether `on_stack` has made this job from this `head`.
    #[inline]
    pub(crate) fn is_on_stack(&self, head: *const OnStack) -> bool {
        // SAFETY: I6 — `ours` is called only for a half, whose words hold the pointer.
        let ours = || unsafe { self.capture.as_ptr().cast::<*const OnStack>().read() };
        self.is_half() && ptr::eq(ours(), head)
    }

    /// Makes a job of a scope. A *service* is a job that a worker took from another worker, and for
    /// which the other worker waits. `depth` is the number of services inside which this worker
    /// opened the scope. `None` means that this thread is not the worker that opened the scope.
    ///
    /// # Safety
    ///
    /// 1. `kind` stays until the job has run or was dropped.
    /// 2. The functions of `kind` were made for `F`, which is `Send`.
    #[inline]
    pub(crate) unsafe fn scoped<F>(kind: *const Kind, depth: Option<usize>, f: F) -> Self {
        const { assert!(size_of::<F>() <= size_of::<Capture>()) };
        const { assert!(align_of::<F>() <= align_of::<Capture>()) };
        let tag = depth.map_or(FOREIGN, |depth| (FOREIGN + 1 + depth).min(TAG));
        let tagged = kind.wrapping_byte_add(tag).cast_mut();
        // SAFETY: 1 — the kind exists, so its address plus a small tag is not null.
        Job::of_kind(unsafe { NonNull::new_unchecked(tagged) }, f)
    }

    #[inline]
    pub(crate) fn is_of(&self, scope: usize) -> bool {
        is_scoped(self.kind.as_ptr()) && self.kind().addr() == scope
    }

    #[inline]
    pub(crate) fn scope(&self) -> Option<*const Kind> {
        is_scoped(self.kind.as_ptr()).then(|| self.kind())
    }

    #[inline]
    pub(crate) fn is_half(&self) -> bool {
        ptr::eq(self.kind.as_ptr(), &ON_STACK)
    }

    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_half() || is_scoped(self.kind.as_ptr())
    }

    #[inline]
    pub(crate) fn are_awaited(words: &MaybeUninit<Job>) -> bool {
        let kind = kind_of(words);
        ptr::eq(kind, &ON_STACK) || is_scoped(kind)
    }

    /// Returns whether copied words are those of a half of a `join`, or of a job of this scope or
    /// an inner one. An inner scope was opened inside more than `depth` *services* (see `scoped`).
    pub(crate) fn are_within(words: &MaybeUninit<Job>, scope: usize, depth: usize) -> bool {
        let kind = kind_of(words);
        let (address, tag) = (kind.addr() & !TAG, kind.addr() & TAG);
        ptr::eq(kind, &ON_STACK) || tag > 0 && (address == scope || tag > FOREIGN + 1 + depth)
    }

    pub(crate) fn are_of(words: &MaybeUninit<Job>, scope: usize) -> bool {
        let kind = kind_of(words);
        is_scoped(kind) && kind.addr() & !TAG == scope
    }

    pub(crate) fn are_foreign(words: &MaybeUninit<Job>) -> bool {
        kind_of(words).addr() & TAG == FOREIGN
    }

    pub(crate) fn are_half(words: &MaybeUninit<Job>) -> bool {
        ptr::eq(kind_of(words), &ON_STACK)
    }
}

/// Returns the kind in copied words of a job. The copy may be torn: it may mix the words of several
/// jobs. So a caller may compare the kind, but must not follow the pointer.
#[inline]
fn kind_of(words: &MaybeUninit<Job>) -> *const Kind {
    // SAFETY: I6 — the copy is as large as a job, so the field `kind` is within the copy. Only its
    // address is taken.
    let kind = unsafe { &raw const (*words.as_ptr()).kind };
    // SAFETY: I6 — the copied slot has held a job, and every job has written this word.
    unsafe { kind.cast::<*const Kind>().read() }
}

#[inline]
fn is_scoped(kind: *const Kind) -> bool {
    kind.addr() & TAG != 0
}
