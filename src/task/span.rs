//! Contexts for `tracing`.

use super::context::ContextFlow;
use crate::sync::Text;
use tracing::Span;

/// The current span of `tracing`, as a context: a task runs in the span in which it was spawned.
///
/// # Examples
///
/// ```
/// use filch::{task::CurrentSpan, ThreadPool};
///
/// let pool = ThreadPool::builder().num_threads(1).context(CurrentSpan).build()?;
/// let request = tracing::info_span!("request", id = 7);
/// request.in_scope(|| pool.spawn(|| tracing::info!("in the span of the request"))).join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct CurrentSpan;

impl ContextFlow for CurrentSpan {
    type Snapshot = Span;

    fn capture(&self) -> Span {
        Span::current()
    }

    fn enter<R>(span: Span, run: impl FnOnce() -> R) -> R {
        span.in_scope(run)
    }
}

/// A `tracing` span for each task, as a context. The parent of the span is the span in which the
/// task was spawned.
///
/// The span is called "task", and has the level INFO, the target "filch" and the field `queue`. The
/// span is created where the task is spawned, and entered where the task runs. It closes when the
/// task has ended or was dropped unrun. So a subscriber sees how long the task waited and how long
/// it ran.
///
/// # Examples
///
/// ```
/// use filch::{task::TaskSpan, FairScheduler, ThreadPool};
///
/// let fair = FairScheduler::over(ThreadPool::new(1)?);
/// let thumbnails = fair.queue("thumbnails").context(TaskSpan::of("thumbnails")).build()?;
/// let request = tracing::info_span!("request", id = 7);
/// let task = request.in_scope(|| {
///     thumbnails.spawn(|| tracing::info!("in a span `task` of the queue, in the span of the request"))
/// });
/// task.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TaskSpan {
    queue: Text,
}

impl TaskSpan {
    /// Returns a context whose spans have this value in their field `queue`.
    #[must_use]
    pub fn of(queue: impl Into<Text>) -> Self {
        TaskSpan { queue: queue.into() }
    }
}

impl ContextFlow for TaskSpan {
    type Snapshot = Span;

    fn capture(&self) -> Span {
        tracing::info_span!(target: "filch", "task", queue = &*self.queue)
    }

    fn enter<R>(span: Span, run: impl FnOnce() -> R) -> R {
        span.in_scope(run)
    }
}
