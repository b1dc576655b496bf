//! The future that waits for the cancellation of a token.

use super::cancel::{CancelLink, CancelToken};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The future of [`CancelToken::cancelled`].
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    token: CancelToken,
    link: Option<CancelLink>,
}

impl CancelToken {
    /// Returns a future that is ready when the token is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let token = filch::task::CancelToken::new();
    /// let (mut cancelled, mut context) = (pin!(token.cancelled()), Context::from_waker(Waker::noop()));
    /// assert_eq!(cancelled.as_mut().poll(&mut context), Poll::Pending);
    /// token.cancel();
    /// assert_eq!(cancelled.as_mut().poll(&mut context), Poll::Ready(()));
    /// ```
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), link: None }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.link = None;
        match self.token.link_waker(context.waker().clone()) {
            Ok(link) => {
                self.link = Some(link);
                Poll::Pending
            }
            Err(_) => Poll::Ready(()),
        }
    }
}

opaque!(Cancelled, |it| token: it.token);
