//! What goes through queues.

use super::any::{AnyTask, Entry};
use super::cell;
use super::handle::JoinHandle;
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit, align_of, size_of};
use core::ptr::{self, NonNull};

/// The words of a job that hold what its closure captures.
pub(crate) type Capture = MaybeUninit<[usize; 3]>;

/// A closure that runs once: four words, of which three hold what it captures.
///
/// A closure that captures more is boxed. A job that is dropped unrun drops the closure; if somebody waits
/// for it ([`Job::with_handle`]), the handle says that it was cancelled.
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
    /// Its table; in the bits that the alignment leaves, for a job of a scope, the scope's depth and one.
    kind: NonNull<Kind>,
    /// Whoever has no more than a reference to the job cannot get at what is in here, so closures need not be `Sync`.
    capture: Capture,
}

// SAFETY: I6 — a kind is only read, and what a job captures is `Send`.
unsafe impl Send for Job {}
// SAFETY: I6 — as above; and a reference to a job does not get at what it captures.
unsafe impl Sync for Job {}

/// What can be done with the words of a job (I6).
#[repr(align(32))]
pub(crate) struct Kind {
    pub(crate) run: unsafe fn(*mut Capture, *const Kind) -> bool,
    pub(crate) drop: unsafe fn(*mut Capture, *const Kind),
}

/// The bits of the pointer to a kind that are not of its address.
const TAG: usize = mem::align_of::<Kind>() - 1;

/// The kind of jobs that hold an `Entry`. A static, so that it is told from all others by its address.
static TASK: Kind = Kind { run: run_task, drop: drop_task };

/// A closure that lies in the words themselves.
struct Inline<F>(PhantomData<F>);

impl<F: FnOnce() -> bool> Inline<F> {
    const FITS: bool =
        size_of::<F>() <= size_of::<Capture>() && align_of::<F>() <= align_of::<Capture>();
    const KIND: Kind = Kind { run: Self::run, drop: Self::drop };

    /// # Safety
    ///
    /// 1. The words hold an `F` that nobody uses afterwards.
    unsafe fn run(capture: *mut Capture, _: *const Kind) -> bool {
        // SAFETY: 1.
        let f = unsafe { capture.cast::<F>().read() };
        f()
    }

    /// # Safety
    ///
    /// 1. As for `run`.
    unsafe fn drop(capture: *mut Capture, _: *const Kind) {
        // SAFETY: 1.
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
        Job::from_attempt(move || {
            f();
            true
        })
    }

    /// Makes a task of a closure: a job, and the handle to wait for what the closure returns.
    ///
    /// The job can be given to any executor, or be run by hand. One allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let (job, handle) = Job::with_handle(|| 6 * 7);
    /// job.run();
    /// assert_eq!(handle.join().unwrap(), 42);
    ///
    /// let (job, handle) = Job::with_handle(|| 6 * 7);
    /// drop(job);
    /// assert!(handle.join().unwrap_err().is_cancelled());
    /// ```
    pub fn with_handle<T, F>(f: F) -> (Self, JoinHandle<T>)
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        cell::task(f, None, None)
    }

    /// A job of a closure that tells whether there was something to run.
    #[inline]
    pub(super) fn from_attempt<F: FnOnce() -> bool + Send + 'static>(f: F) -> Self {
        if Inline::<F>::FITS {
            Job::holding(&Inline::<F>::KIND, f)
        } else {
            let f = Box::new(f);
            Job::boxed(f)
        }
    }

    #[inline]
    fn boxed<F: FnOnce() -> bool + Send + 'static>(f: F) -> Self {
        const { assert!(Inline::<F>::FITS) };
        Job::holding(&Inline::<F>::KIND, f)
    }

    /// `kind` is that of `F`, which fits.
    #[inline]
    fn holding<F>(kind: &'static Kind, f: F) -> Self {
        Job::of_kind(NonNull::from(kind), f)
    }

    #[inline(always)]
    fn of_kind<F>(kind: NonNull<Kind>, f: F) -> Self {
        let mut capture = Capture::uninit();
        // SAFETY: I6 — an `F` fits; every call is behind a check of that.
        unsafe { capture.as_mut_ptr().cast::<F>().write(f) };
        Job { kind, capture }
    }

    /// Runs the closure, on this thread.
    ///
    /// # Panics
    ///
    /// Panics if the closure does and nobody waits for it; a handle would get the panic instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::Job;
    ///
    /// let handed_back = Job::new(|| println!("run by whoever gets it"));
    /// handed_back.run();
    /// ```
    #[inline]
    pub fn run(self) {
        self.try_run();
    }

    /// Runs the closure, and returns whether there was something to run.
    ///
    /// There is not if the job is a tombstone: its handle has cancelled it meanwhile, or has run it itself.
    /// Schedulers that count turns do not count those.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
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
        // SAFETY: I6 — it is there as long as the job has not run.
        let run = unsafe { (*kind).run };
        // SAFETY: I6 — nobody uses the words afterwards.
        unsafe { run(&mut this.capture, kind) }
    }
}

/// # Safety
///
/// 1. The words hold an `Entry` that nobody uses afterwards.
unsafe fn run_task(capture: *mut Capture, _: *const Kind) -> bool {
    // SAFETY: 1.
    let entry = unsafe { capture.cast::<Entry>().read() };
    entry.into_task().run()
}

/// # Safety
///
/// 1. As for `run_task`.
unsafe fn drop_task(capture: *mut Capture, _: *const Kind) {
    // SAFETY: 1.
    unsafe { capture.cast::<Entry>().drop_in_place() };
}

impl Job {
    /// The job of a task.
    #[inline]
    pub(super) fn of_task(entry: Entry) -> Self {
        const { assert!(size_of::<Entry>() <= size_of::<Capture>()) };
        Job::holding(&TASK, entry)
    }

    /// Whether it is of a task that has not begun, and it is too late for it to.
    #[cold]
    pub(crate) fn is_expired(&self) -> bool {
        self.task().is_some_and(AnyTask::is_expired)
    }

    /// Takes the task out, whose job it is, if it is one's.
    #[inline]
    pub(crate) fn into_task(self) -> Result<AnyTask, Job> {
        if self.task().is_none() {
            return Err(self);
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: I6 — of that kind, and nobody uses the words afterwards.
        Ok(unsafe { this.capture.as_mut_ptr().cast::<Entry>().read() }.into_task())
    }

    /// The task whose job it is, if it is one's.
    #[inline]
    pub(crate) fn task(&self) -> Option<&AnyTask> {
        // SAFETY: I6 — of that kind.
        let entry = || unsafe { &*self.capture.as_ptr().cast::<Entry>() };
        ptr::eq(self.kind.as_ptr(), &TASK).then(entry).map(Entry::task)
    }
}

/// A job's end of something that lies on the stack of whoever waits for it.
pub(crate) struct OnStack(pub(crate) &'static StackKind);

/// What can be done with it.
pub(crate) struct StackKind {
    pub(crate) run: unsafe fn(*const OnStack),
    /// Called if the job is dropped unrun.
    pub(crate) give_back: unsafe fn(*const OnStack),
}

/// The kind of jobs that hold a pointer to such an end. A static, so that it is told from all others by its address.
static ON_STACK: Kind = Kind { run: run_on_stack, drop: give_back };

/// # Safety
///
/// 1. The words hold what `Job::on_stack` has put there.
unsafe fn run_on_stack(capture: *mut Capture, _: *const Kind) -> bool {
    // SAFETY: 1.
    let head = unsafe { capture.cast::<*const OnStack>().read() };
    // SAFETY: the promise of the caller of `on_stack`.
    let kind = unsafe { &*head }.0;
    // SAFETY: the promise of that caller.
    unsafe { (kind.run)(head) };
    true
}

/// # Safety
///
/// 1. As for `run_on_stack`.
unsafe fn give_back(capture: *mut Capture, _: *const Kind) {
    // SAFETY: 1.
    let head = unsafe { capture.cast::<*const OnStack>().read() };
    // SAFETY: the caller's promise, of `on_stack`.
    let kind = unsafe { &*head }.0;
    // SAFETY: the promise of that caller.
    unsafe { (kind.give_back)(head) };
}

impl Job {
    /// # Safety
    ///
    /// 1. What `head` belongs to stays until the job has run or was dropped.
    #[inline]
    pub(crate) unsafe fn on_stack(head: &OnStack) -> Self {
        let mut capture = Capture::uninit();
        // SAFETY: I6 — a pointer fits.
        unsafe { capture.as_mut_ptr().cast::<*const OnStack>().write(head) };
        Job { kind: NonNull::from(&ON_STACK), capture }
    }

    /// Whether this is the job of that end.
    #[inline]
    pub(crate) fn is_on_stack(&self, head: &OnStack) -> bool {
        // SAFETY: I6 — of that kind.
        let ours = || unsafe { self.capture.as_ptr().cast::<*const OnStack>().read() };
        self.is_half() && ptr::eq(ours(), head)
    }

    /// The job of a scope that began in `depth` services of this thread; 0, if it began on another thread.
    ///
    /// # Safety
    ///
    /// 1. `kind` stays until the job has run or was dropped.
    /// 2. It is for an `F`, which fits into the words and is `Send`.
    #[inline]
    pub(crate) unsafe fn scoped<F>(kind: *const Kind, depth: usize, f: F) -> Self {
        const { assert!(size_of::<F>() <= size_of::<Capture>()) };
        const { assert!(align_of::<F>() <= align_of::<Capture>()) };
        let tagged = kind.wrapping_byte_add((1 + depth).min(TAG)).cast_mut();
        // SAFETY: 1 — an address of something, and more.
        Job::of_kind(unsafe { NonNull::new_unchecked(tagged) }, f)
    }

    /// Whether it is a job of the scope that has this kind.
    #[inline]
    pub(crate) fn is_of(&self, scope: usize) -> bool {
        is_scoped(self.kind.as_ptr()) && self.kind().addr() == scope
    }

    /// The kind of the scope that it is of, if it is of one.
    #[inline]
    pub(crate) fn scope(&self) -> Option<*const Kind> {
        is_scoped(self.kind.as_ptr()).then(|| self.kind())
    }

    /// Whether it is the second half of a `join`.
    #[inline]
    pub(crate) fn is_half(&self) -> bool {
        ptr::eq(self.kind.as_ptr(), &ON_STACK)
    }

    /// Whether a frame on a stack waits for it, or will: it is a half, or a job of a scope.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_half() || is_scoped(self.kind.as_ptr())
    }

    /// The same of a copy, which may be of the words of several jobs.
    #[inline]
    pub(crate) fn are_awaited(words: &MaybeUninit<Job>) -> bool {
        let kind = kind_of(words);
        ptr::eq(kind, &ON_STACK) || is_scoped(kind)
    }

    /// Whether a copy, which may be of the words of several jobs, is that of a half, of a job of this scope, or of a job of
    /// a scope that began in more services than `depth`.
    pub(crate) fn are_within(words: &MaybeUninit<Job>, scope: usize, depth: usize) -> bool {
        let kind = kind_of(words);
        let (address, tag) = (kind.addr() & !TAG, kind.addr() & TAG);
        ptr::eq(kind, &ON_STACK) || tag > 0 && (address == scope || tag - 1 > depth)
    }

    /// Whether a copy, which may be of the words of several jobs, is that of a half.
    pub(crate) fn are_half(words: &MaybeUninit<Job>) -> bool {
        ptr::eq(kind_of(words), &ON_STACK)
    }

    #[inline(always)]
    fn kind(&self) -> *const Kind {
        self.kind.as_ptr().map_addr(|it| it & !TAG)
    }

    /// Neither runs it nor drops it.
    #[inline]
    pub(crate) fn forget(self) {
        mem::forget(self);
    }
}

/// The kind in the words of jobs. They may be of several, so it is compared and not followed.
#[inline]
fn kind_of(words: &MaybeUninit<Job>) -> *const Kind {
    // SAFETY: I6 — the words are those of jobs, so this is within the copy.
    let kind = unsafe { &raw const (*words.as_ptr()).kind };
    // SAFETY: I6 — the slot has held a job, whose every copy has this word.
    unsafe { kind.cast::<*const Kind>().read() }
}

/// Whether it is that of a scope.
#[inline]
fn is_scoped(kind: *const Kind) -> bool {
    kind.addr() & TAG != 0
}

impl Drop for Job {
    fn drop(&mut self) {
        let kind = self.kind();
        // SAFETY: I6 — it is there as long as the job has not run.
        let drop = unsafe { (*kind).drop };
        // SAFETY: I6 — it has not run, or it would not be dropped.
        unsafe { drop(&mut self.capture, kind) };
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Job { .. }")
    }
}
