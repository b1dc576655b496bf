//! The public calls that close, cancel and shut down queues and schedulers, or wait until no task
//! is pending. Blocking waits are refused on threads that run jobs of the executor. A *listener* of
//! a token is code that runs when the token is cancelled, such as the code of a registered waker.

use super::fair_scheduler::FairScheduler;
use super::queue::Queue;
use super::queue::handle::LineRef;
use super::scheduler::ends;
use super::scheduler::executor_end::end_if_told;
use super::scheduler::quiet::{end_all_told, is_quiet, wait_until_all_quiet, wait_until_quiet};
use crate::executor::{Shutdown, ShutdownError, WouldDeadlock};
use crate::idle::until;
use crate::sync::Arc;
use crate::sync::clock::{self, Instant};
use crate::task::current;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::time::Duration;

impl Queue {
    /// Closes the queue: from then on it accepts tasks only from its own tasks. Accepted tasks
    /// still run. Returns whether the queue was open. Does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").build()?;
    /// assert!(queue.close());
    /// assert!(!queue.close());
    /// assert!(queue.spawn_detached(|| ()).is_err());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn close(&self) -> bool {
        ends::close_queue(self.scheduler(), self.line())
    }

    /// Closes the queue, drops the tasks that have not begun, and asks the running tasks to
    /// [stop](crate::task::is_cancelled). Returns the number of tasks that this call has dropped;
    /// their handles report that they were cancelled. Also cancels [`token`](Self::token). If a
    /// listener of the token panics, the [handler](super::Builder::panic_handler) gets the panic.
    ///
    /// Other threads may spawn tasks, wait for tasks, wake futures or look for work at the same
    /// time. If this call misses a task because of that, one of these threads, or the next thread
    /// that serves the queue, drops the task. The result does not count such a task. Nor does it
    /// count a task that a wait drops. If the destructor of a dropped task waits for another task
    /// of the queue that has not begun, the wait drops that other task.
    ///
    /// A dropped task's destructor may itself cancel the queue. Once such nested calls have taken
    /// half of the stack, a further call drops no task. The calls around it drop the other tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// let queue = fair.queue("a").paused().build()?;
    /// let task = queue.spawn(|| println!("never printed"));
    /// assert_eq!(queue.cancel(), 1);
    /// assert!(task.join().unwrap_err().is_cancelled());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn cancel(&self) -> usize {
        let reason = self.0.token.reason();
        let Some(dropped) = ends::cancel(self.scheduler(), self.line(), reason) else { return 0 };
        // A panic of a listener must not hide the result, nor end a shutdown before it has waited.
        self.scheduler().below.panics.take(|| self.0.token.cancel());
        dropped
    }

    /// Blocks until no task of this queue is pending. In a paused queue, a task that was cancelled
    /// before it began is not pending.
    ///
    /// A listener of a token can call this before the token's cancellation has reached this queue.
    /// If the cancellation can reach the queue only after the listener has returned, the wait might
    /// never end. So this call first cancels the queue itself. [`shutdown`](Self::shutdown) and a
    /// poll of the future of [`drained`](Self::drained) do the same.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread that
    /// - runs jobs of the executor;
    /// - drops tasks of this scheduler, or of a queue on which the scheduler runs. But a thread
    ///   that cancels a single future, by handle or token, and so drops it, may wait for queues
    ///   other than the future's.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// let task = queue.spawn(|| 7);
    /// queue.wait_idle()?;
    /// assert!(task.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        self.may_wait()?;
        let waited = wait_until_quiet(self.scheduler(), self.line(), None);
        waited.map(|_| ()).map_err(|_| WouldDeadlock)
    }

    /// Returns a future that is ready when no task of this queue is pending, as
    /// [`wait_idle`](Self::wait_idle) means it. The future blocks no thread, and keeps the queue
    /// open as a handle does.
    ///
    /// A future of this queue must not await the returned future. The awaiting future is itself
    /// pending, so the returned future would never be ready.
    ///
    /// # Examples
    ///
    /// ```
    /// # let fair = filch::fair::FairScheduler::over(filch::executor::Inline);
    /// use filch::executor::{Inline, spawn_future};
    ///
    /// let queue = fair.queue("a").paused().build()?;
    /// let task = queue.spawn(|| 7);
    /// let waits = spawn_future(Inline, queue.drained());
    /// assert!(!waits.is_finished());
    /// queue.resume();
    /// assert!(waits.is_finished() && task.is_finished());
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        until_quiet(self.0.queue.clone(), Some(self.clone()))
    }

    /// Closes the queue, and blocks until no task of the queue is pending.
    ///
    /// With [`Shutdown::Drain`], the accepted tasks run first; a paused queue is resumed for that.
    /// With [`Shutdown::Cancel`], this [cancels](Self::cancel) the queue.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on the same threads as [`wait_idle`](Self::wait_idle); then the
    /// queue is not closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Shutdown;
    ///
    /// let fair = filch::fair::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let queue = fair.queue("a").build()?;
    /// let task = queue.spawn(|| 7);
    /// queue.shutdown(Shutdown::Drain)?;
    /// assert!(task.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.end_by(how, None).map_err(|_| WouldDeadlock)
    }

    /// Closes the queue as [`shutdown`](Self::shutdown) does, but waits for at most `time`. Returns
    /// later if destructors or listeners that this thread runs take longer than `time`.
    ///
    /// # Errors
    ///
    /// - [`ShutdownError::StillRunning`] if tasks are still pending after `time`. These tasks end
    ///   later.
    /// - [`ShutdownError::WouldDeadlock`] on the same threads as [`wait_idle`](Self::wait_idle);
    ///   then the queue is not closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::{Shutdown, ShutdownError, from_fn};
    /// use std::time::Duration;
    ///
    /// let never = from_fn(1, |job| Ok(std::mem::forget(job)));
    /// let queue = filch::FairScheduler::over(never).queue("a").build()?;
    /// let task = queue.spawn(|| 7);
    /// let early = queue.shutdown_timeout(Shutdown::Drain, Duration::from_millis(1));
    /// assert_eq!(early, Err(ShutdownError::StillRunning));
    /// # Ok::<(), filch::fair::QueueError>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        self.end_by(how, clock::after(time))
    }

    /// Returns an error if this thread might wait for itself. For example, the thread drops a
    /// future of this queue, and the queue counts the future until the drop has ended.
    fn may_wait(&self) -> Result<(), WouldDeadlock> {
        self.scheduler().below.may_wait()?;
        if current::is_dropper(|it| it == self.0.id) { Err(WouldDeadlock) } else { Ok(()) }
    }

    fn end_by(&self, how: Shutdown, deadline: Option<Instant>) -> Result<(), ShutdownError> {
        self.may_wait()?;
        match how {
            Shutdown::Drain => {
                self.close();
                self.resume();
            }
            Shutdown::Cancel => _ = self.cancel(),
        }
        wait_until_quiet(self.scheduler(), self.line(), deadline).map(|_| ())
    }
}

impl FairScheduler {
    /// Blocks until no task is pending in any queue.
    ///
    /// A listener of a token can call this before the token's cancellation has reached all queues.
    /// Then this call first cancels the queues that the token is to cancel, because the wait might
    /// otherwise never end. [`Queue::wait_idle`] does the same.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on a thread that runs jobs of the executor. A thread that drops
    /// tasks of this scheduler, or of a queue on which the scheduler runs, also gets this error.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let task = fair.spawn(|| 7);
    /// fair.wait_idle()?;
    /// assert!(task.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_idle(&self) -> Result<(), WouldDeadlock> {
        self.may_wait()?;
        wait_until_all_quiet(&self.scheduler, None).map_err(|_| WouldDeadlock)
    }

    /// Returns a future that is ready when no task is pending in any queue. The future waits as
    /// [`wait_idle`](Self::wait_idle) does, without blocking a thread, and keeps no queue open.
    ///
    /// A future of one of the queues must not await the returned future. The awaiting future is
    /// itself pending, so the returned future would never be ready.
    ///
    /// # Examples
    ///
    /// The example at [`Queue::drained`] waits until a paused queue has run its task.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let scheduler = Arc::clone(&self.scheduler);
        async move {
            let mut has_waited = true;
            while has_waited {
                has_waited = false;
                end_all_told(&scheduler);
                for line in scheduler.queues.table.iter().filter(|it| !it.is_idle()) {
                    until_quiet(LineRef::new(&scheduler, line), None).await;
                    has_waited = true;
                }
            }
        }
    }

    /// Closes all queues, and blocks until no task is pending. New queues are refused.
    ///
    /// With [`Shutdown::Drain`], the accepted tasks run first; paused queues are resumed for that.
    /// With [`Shutdown::Cancel`], queued tasks are dropped, and running tasks are
    /// [asked](crate::task::is_cancelled) to stop. This does not end the executor.
    ///
    /// # Errors
    ///
    /// Returns [`WouldDeadlock`] on the same threads as [`wait_idle`](Self::wait_idle); then no
    /// queue is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::fair::FairScheduler;
    /// use filch::executor::Shutdown;
    ///
    /// let fair = FairScheduler::over(filch::ThreadPool::new(1)?);
    /// let task = fair.spawn(|| 7);
    /// fair.shutdown(Shutdown::Drain)?;
    /// assert!(task.is_finished());
    /// assert!(fair.spawn_detached(|| ()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> Result<(), WouldDeadlock> {
        self.end_by(how, None).map_err(|_| WouldDeadlock)
    }

    /// Closes all queues as [`shutdown`](Self::shutdown) does, but waits for at most `time`.
    /// Returns later if destructors or listeners that this thread runs take longer than `time`.
    ///
    /// # Errors
    ///
    /// - [`ShutdownError::StillRunning`] if tasks are still pending after `time`. These tasks end
    ///   later.
    /// - [`ShutdownError::WouldDeadlock`] on the same threads as [`wait_idle`](Self::wait_idle);
    ///   then no queue is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::executor::Shutdown;
    /// use std::time::Duration;
    ///
    /// let fair = filch::FairScheduler::over(filch::ThreadPool::new(1)?);
    /// fair.shutdown_timeout(Shutdown::Drain, Duration::from_secs(60)).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(&self, how: Shutdown, time: Duration) -> Result<(), ShutdownError> {
        self.end_by(how, clock::after(time))
    }

    /// Returns an error if this thread might wait for itself, as [`Queue::may_wait`] does.
    fn may_wait(&self) -> Result<(), WouldDeadlock> {
        self.scheduler.below.may_wait()?;
        let lines = &self.scheduler.queues.table;
        let is_queue = |id| lines.iter().any(|line| line.id() == Some(id));
        if current::is_dropper(is_queue) { Err(WouldDeadlock) } else { Ok(()) }
    }

    fn end_by(&self, how: Shutdown, deadline: Option<Instant>) -> Result<(), ShutdownError> {
        self.may_wait()?;
        self.scheduler.queues.registry.lock().is_closed = true;
        let tokens = match how {
            Shutdown::Cancel => ends::mark_all(&self.scheduler),
            Shutdown::Drain => Vec::new(),
        };
        let lines = self.scheduler.queues.table.iter();
        lines.for_each(|line| ends::close(&self.scheduler, line, how));
        // A token's listener may wait until the scheduler is idle, and so for a task that ends only
        // when another queue's token is cancelled. If that token were not marked yet, the wait
        // might never end. So this thread marks all tokens before it calls the first listener.
        let marked: Vec<_> = tokens.iter().filter_map(|it| it.mark(None)).collect();
        for marked in marked {
            self.scheduler.below.panics.take(|| marked.tell());
        }
        wait_until_all_quiet(&self.scheduler, deadline)
    }
}

/// Returns a future that is ready when no task of the queue is pending. It keeps the handle, if
/// any.
fn until_quiet(queue: LineRef, handle: Option<Queue>) -> impl Future<Output = ()> + Send {
    let is_over = |(it, _): &(LineRef, _)| is_quiet(&it.scheduler, it.line());
    let mut quiet = until((queue.clone(), handle), |(it, _)| it.line().quiet(), is_over);
    poll_fn(move |context| {
        end_if_told(&queue.scheduler, queue.line());
        Pin::new(&mut quiet).poll(context)
    })
}
