//! Panics and cancellations of the jobs of a scope.

use crate::sync::lock::Mutex;
use crate::sync::{AtomicBool, Relaxed, thread};
use crate::task::{CancelledBy, JoinError};
use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Default)]
pub(crate) struct Failures {
    /// Whether `known` holds a failure. Written under the lock.
    is_any: AtomicBool,
    known: Mutex<Option<Box<KnownFailures>>>,
}

#[derive(Default)]
struct KnownFailures {
    /// The first failure of a job without a handle.
    first: Option<JoinError>,
    /// How many jobs were dropped unrun, and have no error in the other fields.
    dropped: usize,
    /// The token's error, if the token has kept jobs from beginning.
    cut: Option<JoinError>,
    /// The failures of jobs with handles, each with the id of the wait for the job.
    kept: Vec<(usize, JoinError)>,
}

impl Failures {
    #[cold]
    fn with<R>(&self, act: impl FnOnce(&mut KnownFailures) -> R) -> R {
        let mut known = self.known.lock();
        self.is_any.store(true, Relaxed); // Relaxed: the end of the job publishes it
        act(known.get_or_insert_default())
    }

    pub(crate) fn note(&self, error: JoinError) {
        let further = self.with(|it| error.keep_first(&mut it.first));
        if let Some(further) = further {
            further.discard();
        }
    }

    pub(crate) fn keep(&self, wait: usize, error: JoinError) {
        self.with(|it| it.kept.push((wait, error)));
    }

    pub(crate) fn take_kept(&self, wait: usize) -> JoinError {
        self.with(|KnownFailures { kept, .. }| {
            // Takes the newest error, because an earlier task at the same address might have left
            // one.
            let index = kept.iter().rposition(|it| it.0 == wait);
            kept.remove(index.expect("it was kept before the end")).1
        })
    }

    pub(crate) fn count_dropped(&self) {
        self.with(|it| it.dropped += 1);
    }

    /// Takes a job off the count of dropped jobs. The drop of a job with a handle calls this, if
    /// the handle gets the error or has taken the closure.
    pub(crate) fn forget_dropped(&self) {
        self.with(|it| it.dropped -= 1);
    }

    pub(crate) fn cut(&self, error: JoinError) {
        self.with(|it| it.cut = Some(error));
    }

    /// Decides how the call of a scope ends. Resumes the panic of the scope's closure, or else of a
    /// job. Without a panic, returns an error if a job has not run, and otherwise the closure's
    /// result. Panics and errors that the `join`s of handles have returned do not count.
    #[inline(always)]
    pub(crate) fn report<R>(&self, result: Result<R, thread::Payload>) -> Result<R, JoinError> {
        match (result, self.take_first()) {
            (Err(payload), further) => {
                further.into_iter().for_each(JoinError::discard);
                thread::resume(payload)
            }
            (Ok(_), Some(error)) => match error.try_into_panic() {
                Ok(payload) => thread::resume(payload),
                Err(error) => Err(error),
            },
            (Ok(result), None) => Ok(result),
        }
    }

    /// Returns the failure that the scope reports at its end. A panic takes precedence over a job
    /// that has not run.
    fn take_first(&self) -> Option<JoinError> {
        // Relaxed: the owner has acquired the ends of all jobs (JOINED), and so sees this flag.
        if self.is_any.load(Relaxed) { self.take_known() } else { None }
    }

    #[cold]
    fn take_known(&self) -> Option<JoinError> {
        let KnownFailures { first, dropped, cut, kept } = *self.known.lock().take()?;
        let dropped = (dropped > 0).then(|| JoinError::dropped(CancelledBy::Executor));
        let kept = kept.into_iter().map(|it| it.1);
        let (panics, others): (Vec<_>, Vec<_>) = kept.partition(JoinError::is_panic);
        let first = first.into_iter().chain(panics).chain(others);
        let mut errors = first.chain(cut).chain(dropped);
        let first = errors.next();
        errors.for_each(JoinError::discard);
        first
    }
}
