//! Jobs: the items of an executor's queues. The *words* of a job (`Capture`) hold a closure, or a
//! pointer to a boxed closure, a task or a record. The job's `kind` points to the functions for
//! this content.

use super::any::AnyTask;
use super::error::CancelledBy;
use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit, align_of, size_of};
use core::ptr::{self, NonNull};

/// The words of a job that hold the values that its closure captures.
pub(crate) type Capture = MaybeUninit<[usize; 3]>;

/// A closure that runs once: four words, of which three hold the captured values.
///
/// A closure that captures more than three words is boxed. A job that is dropped unrun drops the
/// closure. The handle of the job, if there is one ([`Job::with_handle`]), then reports a
/// cancellation.
///
/// # Examples
///
/// ```
/// use filch::Job;
/// use std::sync::mpsc;
///
/// let (results, inbox) = mpsc::channel();
/// let job = Job::new(move || results.send(6 * 7).unwrap());
/// job.run();
/// assert_eq!(inbox.recv(), Ok(42));
/// assert_eq!(std::mem::size_of::<Job>(), 4 * std::mem::size_of::<usize>());
/// ```
#[must_use = "a job that is dropped does not run"]
pub struct Job {
    /// The operations on the job's words. The low bits of the pointer hold the tag of a scope's job
    /// ([`Job::scoped`]), and are zero in other jobs.
    pub(super) kind: NonNull<Kind>,
    /// The captured values. A `&Job` gives no access to them, so closures need not be `Sync`.
    pub(super) capture: Capture,
}

// SAFETY: I6 — a kind is only read, and the captured values are `Send`.
unsafe impl Send for Job {}
// SAFETY: I6 — a kind is only read, and a reference to a job gives no access to the captured
// values.
unsafe impl Sync for Job {}

/// The operations on the words of a job (I6).
#[repr(align(64))]
pub(crate) struct Kind {
    pub(crate) run: unsafe fn(*mut Capture, *const Kind) -> bool,
    pub(crate) drop: unsafe fn(*mut Capture, *const Kind),
}

/// The low bits of a pointer to a kind: the alignment of `Kind` leaves them free for a tag.
pub(super) const TAG: usize = mem::align_of::<Kind>() - 1;

/// The kind of jobs that hold an `AnyTask`. It is a static, so its address identifies such jobs.
static TASK: Kind = Kind { run: run_task, drop: drop_task };

/// A closure in the words of its job.
struct InlineJob<F>(PhantomData<F>);

impl<F: FnOnce()> InlineJob<F> {
    const FITS: bool =
        size_of::<F>() <= size_of::<Capture>() && align_of::<F>() <= align_of::<Capture>();
    const KIND: Kind = Kind { run: Self::run, drop: Self::drop };

    /// Moves the closure out of the words, and runs it.
    ///
    /// # Safety
    ///
    /// 1. The words hold an `F` that is not used afterwards.
    unsafe fn run(capture: *mut Capture, _: *const Kind) -> bool {
        // SAFETY: 1 — the words hold an `F`, and no other call reads it.
        let f = unsafe { capture.cast::<F>().read() };
        f();
        true
    }

    /// # Safety
    ///
    /// 1. The words hold an `F` that is not used afterwards.
    unsafe fn drop(capture: *mut Capture, _: *const Kind) {
        // SAFETY: 1 — the words hold an `F`, and no other call reads or drops it.
        unsafe { capture.cast::<F>().drop_in_place() };
    }
}

impl Job {
    /// Makes a job of a closure. Allocates if the closure captures more than three words.
    ///
    /// # Examples
    ///
    /// ```
    /// filch::Job::new(|| assert_eq!(1 + 1, 2)).run();
    /// ```
    #[inline]
    pub fn new<F: FnOnce() + Send + 'static>(f: F) -> Self {
        if InlineJob::<F>::FITS {
            Job::of_kind(NonNull::from(&InlineJob::<F>::KIND), f)
        } else {
            const { assert!(InlineJob::<Box<F>>::FITS) };
            Job::of_kind(NonNull::from(&InlineJob::<Box<F>>::KIND), Box::new(f))
        }
    }

    #[inline(always)]
    pub(super) fn of_kind<F>(kind: NonNull<Kind>, f: F) -> Self {
        let mut capture = Capture::uninit();
        // SAFETY: I6 — every caller has made sure that an `F` fits into the words.
        unsafe { capture.as_mut_ptr().cast::<F>().write(f) };
        Job { kind, capture }
    }

    /// Runs the closure, on this thread.
    ///
    /// # Panics
    ///
    /// Panics if the closure panics and has no handle. A handle gets the panic instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let handed_back = Job::new(|| println!("run by the next thread"));
    /// handed_back.run();
    /// ```
    #[inline]
    pub fn run(self) {
        self.try_run();
    }

    /// Runs the closure, and returns whether there was something to run.
    ///
    /// There is nothing to run if the task has expired, or if the job is a *tombstone*. The task of
    /// a tombstone was cancelled, or a thread that waited for the task has run it. So a scheduler
    /// that counts the jobs it has run can leave tombstones out.
    ///
    /// # Panics
    ///
    /// Panics where [`run`](Self::run) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::{Cancel, Job};
    ///
    /// let (job, handle) = Job::with_handle(|| println!("never printed"));
    /// assert_eq!(handle.cancel(), Cancel::Dequeued);
    /// assert!(!job.try_run());
    /// ```
    #[inline]
    pub fn try_run(self) -> bool {
        let mut this = ManuallyDrop::new(self);
        let kind = this.kind();
        // SAFETY: I6 — the kind exists until the job has run, and the job has not run yet.
        let run = unsafe { (*kind).run };
        // SAFETY: I6 — the job is forgotten, so its words are used once.
        unsafe { run(&mut this.capture, kind) }
    }
}

/// Runs the task whose job this is, unless another thread has claimed it.
///
/// # Safety
///
/// 1. The words hold an `AnyTask` that is not used afterwards.
unsafe fn run_task(capture: *mut Capture, _: *const Kind) -> bool {
    // SAFETY: 1 — the words hold an `AnyTask`, and no other call reads it.
    let task = unsafe { capture.cast::<AnyTask>().read() };
    task.run()
}

/// Cancels the task whose job this is, unless another thread has claimed it.
///
/// # Safety
///
/// 1. The words hold an `AnyTask` that is not used afterwards.
unsafe fn drop_task(capture: *mut Capture, _: *const Kind) {
    // SAFETY: 1 — the words hold an `AnyTask`, and no other call reads it.
    let task = unsafe { capture.cast::<AnyTask>().read() };
    task.drop_counted(CancelledBy::Executor.into(), None);
}

impl Job {
    #[inline]
    pub(crate) fn of_task(task: AnyTask) -> Self {
        const { assert!(size_of::<AnyTask>() <= size_of::<Capture>()) };
        Job::of_kind(NonNull::from(&TASK), task)
    }

    #[inline]
    pub(crate) fn into_task(self) -> Result<AnyTask, Job> {
        if self.task().is_none() {
            return Err(self);
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: I6 — the kind is `TASK`, and the words are not used afterwards.
        Ok(unsafe { this.capture.as_mut_ptr().cast::<AnyTask>().read() })
    }

    #[inline]
    pub(crate) fn task(&self) -> Option<&AnyTask> {
        // SAFETY: I6 — `task` is called only if the kind is `TASK`, so the words hold an `AnyTask`.
        let task = || unsafe { &*self.capture.as_ptr().cast::<AnyTask>() };
        ptr::eq(self.kind.as_ptr(), &TASK).then(task)
    }
}

impl Job {
    #[inline(always)]
    pub(super) fn kind(&self) -> *const Kind {
        self.kind.as_ptr().map_addr(|it| it & !TAG)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let kind = self.kind();
        // SAFETY: I6 — the kind exists until the job has run or was dropped, and this is the
        // drop.
        let drop = unsafe { (*kind).drop };
        // SAFETY: I6 — the job has not run, or it would not be dropped.
        unsafe { drop(&mut self.capture, kind) };
    }
}

opaque!(Job);
