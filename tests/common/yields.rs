//! A future that wakes itself in its poll, as one that yields does.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

pub(crate) type Polls = Arc<AtomicUsize>;

/// Returns a future that wakes itself in each poll until `is_over` returns `true`. The future
/// counts its polls in `polls`, and passes the count to `is_over`.
pub(crate) fn yields(
    polls: &Polls,
    is_over: impl Fn(usize) -> bool + Send + 'static,
) -> impl Future<Output = usize> + Send + 'static {
    let polls = Arc::clone(polls);
    poll_fn(move |context| {
        let so_far = polls.fetch_add(1, SeqCst) + 1;
        if is_over(so_far) {
            return Poll::Ready(so_far);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}
