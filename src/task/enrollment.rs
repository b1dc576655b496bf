//! The registrations of a future: at its cancellation token, and on the *roll*, the list of futures
//! that end with their executor. Nothing here depends on the type of the future, so a program
//! compiles this once.

use super::any::{AnyTask, Common, Count, Counted, Reference, Unfinished};
use super::cancel::{CancelLink, CancelToken};
use super::current;
use super::error::{CancelledBy, Cause, Reason};
use super::job::Job;
use super::living::WeakTask;
use super::polling::Polling;
use super::state::{Ended, OwnWake, Rest};
use crate::sync::lock::Mutex;
use crate::sync::{AtomicUsize, Relaxed, Unwatched, thread};
use core::ptr::NonNull;

/// The index of a future that is not on its executor's roll (`Living`).
const NOWHERE: usize = usize::MAX;

pub(super) struct Enrollment {
    polling: Unwatched<dyn Polling>,
    /// The number by which `polling` knows the future.
    number: u64,
    /// The index of the future on its executor's roll (`Living`), or `NOWHERE`.
    index: AtomicUsize,
    has_token: bool,
    pub(super) own_wake: OwnWake,
    link: Mutex<Option<CancelLink>>,
    /// The cause of the first request to cancel the future.
    cause: Mutex<Option<Cause>>,
}

fn any(this: &(dyn Unfinished + 'static)) -> AnyTask {
    this.common().state.refer();
    AnyTask(Reference(NonNull::from(this)))
}

impl Enrollment {
    pub(super) fn new(polling: Unwatched<dyn Polling>, number: u64, has_token: bool) -> Self {
        Enrollment {
            polling,
            number,
            index: AtomicUsize::new(NOWHERE),
            has_token,
            own_wake: OwnWake::default(),
            link: Mutex::default(),
            cause: Mutex::default(),
        }
    }

    /// Submits the first job of a new future, or cancels the future if its token is cancelled. If
    /// the executor refuses the job, returns the job and the reason.
    pub(super) fn begin(
        &self,
        this: &(dyn Unfinished + 'static),
        task: AnyTask,
        token: Option<&CancelToken>,
    ) -> Result<(), (Job, Reason)> {
        match self.register(this, token) {
            Ok(()) => self.polling.begin(self.number, Job::of_task(task))?,
            Err(Some(cause)) => {
                this.common().state.have_no_job();
                task.cancel(cause);
                return Ok(());
            }
            Err(None) => return Err((Job::of_task(task), Reason::Closed)),
        }
        self.end_if_over(this);
        Ok(())
    }

    /// Puts the future on the roll (`Living`), unless the executor drops its queued jobs when the
    /// executor ends. After that, links the future to its token, if it has one. If the executor has
    /// ended and closed the roll, the error is `None`. If the token is cancelled already, the error
    /// is the cause of that cancellation.
    fn register(
        &self,
        this: &(dyn Unfinished + 'static),
        token: Option<&CancelToken>,
    ) -> Result<(), Option<Cause>> {
        if !self.polling.drops_jobs() {
            self.enroll(this).map_err(|_| None)?;
        }
        if let Some(token) = token {
            let link = token.link_future(WeakTask(NonNull::from(this)));
            let by_token = |reason| Some(Cause::Cancelled(CancelledBy::Token, reason));
            *self.link.lock() = Some(link.map_err(by_token)?);
        }
        Ok(())
    }

    /// Puts the future on the roll (`Living`). If the executor has closed the roll, returns the
    /// cause.
    fn enroll(&self, this: &(dyn Unfinished + 'static)) -> Result<(), Cause> {
        let index = self.polling.living().add(NonNull::from(this))?;
        // Relaxed: only a claimer of the future loads the index. A thread that closes the roll
        // (`Living`) may claim before this store. It needs no index, because a closed roll has no
        // entry to remove. Any other thread claims later. Before that, this thread has linked the
        // future to a token, has submitted it, or has given its own claim back (POLLED). Each of
        // these releases this store, and the claimer acquires it.
        self.index.store(index, Relaxed);
        Ok(())
    }

    /// Submits a job, which takes over a reference that is already counted. If the executor refuses
    /// the job, this call cancels the future.
    pub(super) fn submit(&self, this: &(dyn Unfinished + 'static), is_last: bool) {
        let job = Job::of_task(AnyTask(Reference(NonNull::from(this))));
        if let Err((job, reason)) = self.polling.submit(job, is_last) {
            any(this).refuse(reason);
            drop(job);
        } else {
            thread::completes(|| self.end_if_over(this));
        }
    }

    /// Cancels the future if the executor has begun to drop its queued jobs. Called after each
    /// submission, because the executor might have missed the job that was just submitted.
    fn end_if_over(&self, this: &(dyn Unfinished + 'static)) {
        if let Some(cause) = self.polling.is_over() {
            any(this).cancel(cause);
        }
    }

    /// Gives the claim back after a poll that has left the future pending (`State::rest`). Before a
    /// future sleeps for the first time, puts it on the roll. Returns whether the future was woken
    /// during the poll. An error is the cause for which the future must end: the caller then keeps
    /// the claim, and ends the future.
    pub(super) fn rest(
        &self,
        this: &(dyn Unfinished + 'static),
        references: usize,
    ) -> Result<bool, Cause> {
        let state = &this.common().state;
        // Relaxed: as `enroll` says.
        let is_on_roll = self.index.load(Relaxed) != NOWHERE;
        let has_yielded = self.own_wake.take();
        if !has_yielded && !is_on_roll && !state.is_woken() {
            self.enroll(this)?;
        }
        match state.rest(has_yielded, references) {
            Rest::Asleep => Ok(false),
            Rest::Woken => Ok(true),
            Rest::Asked => {
                let cause = self.cause.lock().take();
                Err(cause.unwrap_or(CancelledBy::Handle.into()))
            }
        }
    }

    /// Unlinks the ending future from its token, and takes it off the roll and its queue's count.
    /// Returns whether the caller must call `Polling::ended` afterwards, and a guard if the queue
    /// must hear of the end. The caller drops the guard when the future has ended, and the drop
    /// notifies the queue.
    pub(super) fn leave<'a>(
        &self,
        task: &'a Common,
        count: Count<'_>,
        how: Ended,
        is_polled: bool,
    ) -> (bool, Option<Counted<'a>>) {
        let was_kept = self.polling.forget(self.number);
        let has_job = !is_polled && !was_kept && task.state.has_job();
        let index = self.index.load(Relaxed); // Relaxed: as `enroll` says
        if index != NOWHERE {
            self.polling.living().remove(index);
        }
        self.unlink();
        (!was_kept, task.count(count, how, has_job))
    }

    pub(super) fn unlink(&self) {
        if self.has_token {
            let link = self.link.lock().take();
            drop(link);
        }
    }

    /// Runs `f`, which drops the future, and marks this thread as a dropper of the future's queue.
    /// The queue counts the future until [`leave`](Self::leave), which comes later. So a destructor
    /// in `f` that waits for the queue would wait for ever. Because of the mark, the wait returns
    /// an error.
    pub(super) fn as_dropper<R>(&self, f: impl FnOnce() -> R) -> R {
        match self.polling.queue() {
            Some(queue) => current::as_dropper(queue, f),
            None => f(),
        }
    }

    pub(super) fn ended(&self) {
        self.polling.ended(self.number);
    }

    pub(super) fn note_cause(&self, cause: &Cause) {
        self.cause.lock().get_or_insert_with(|| cause.clone());
    }
}
