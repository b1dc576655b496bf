//! What goes wrong with the jobs of a scope.

use crate::sync::lock::Mutex;
use crate::task::{CancelledBy, JoinError};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What has gone wrong with the jobs of a scope: nothing, as a rule.
#[derive(Default)]
pub(super) struct Failures(Mutex<Option<Box<Known>>>);

#[derive(Default)]
struct Known {
    /// The first, of the jobs without handles.
    first: Option<JoinError>,
    /// How many jobs were dropped unrun that nobody else knows of.
    dropped: usize,
    /// Why others were, which the token has ended.
    cut: Option<JoinError>,
    /// Of the jobs with handles, by their latches.
    kept: Vec<(usize, JoinError)>,
}

impl Failures {
    #[cold]
    fn with<R>(&self, act: impl FnOnce(&mut Known) -> R) -> R {
        act(self.0.lock().get_or_insert_default())
    }

    /// Notes the panic of a job that has no handle.
    pub(super) fn note(&self, error: JoinError) {
        let further = self.with(|it| error.keep_first(&mut it.first));
        if let Some(further) = further {
            further.discard();
        }
    }

    /// Keeps the error of a job that has a handle.
    pub(super) fn keep(&self, latch: usize, error: JoinError) {
        self.with(|it| it.kept.push((latch, error)));
    }

    /// The error of a job that has a handle, and has no result.
    pub(super) fn take_kept(&self, latch: usize) -> JoinError {
        self.with(|Known { kept, .. }| {
            // The newest: a task that has gone may have had the same address.
            let place = kept.iter().rposition(|it| it.0 == latch);
            kept.remove(place.expect("it was kept before the end")).1
        })
    }

    /// A job is dropped unrun.
    pub(super) fn count_dropped(&self) {
        self.with(|it| it.dropped += 1);
    }

    /// Takes a job off the count: its handle was told, or the closure has run before.
    pub(super) fn forget_dropped(&self) {
        self.with(|it| it.dropped -= 1);
    }

    /// A job does not begin, which nobody else knows of.
    pub(super) fn cut(&self, error: JoinError) {
        self.with(|it| it.cut = Some(error));
    }

    /// What the scope goes on with, after the end: a panic rather than that a job has not run.
    pub(super) fn take_first(&self) -> Option<JoinError> {
        let known = self.0.lock().take();
        known.and_then(|it| it.take_first())
    }
}

impl Known {
    #[cold]
    fn take_first(self) -> Option<JoinError> {
        let dropped = (self.dropped > 0).then(|| JoinError::dropped(CancelledBy::Executor));
        let kept = self.kept.into_iter().map(|it| it.1);
        let (panics, others): (Vec<_>, Vec<_>) = kept.partition(JoinError::is_panic);
        let first = self.first.into_iter().chain(panics).chain(others);
        let mut errors = first.chain(self.cut).chain(dropped);
        let first = errors.next();
        errors.for_each(JoinError::discard);
        first
    }
}
