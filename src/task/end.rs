//! Tokens that are cancelled when an executor has ended.

use super::cancel::{CancelToken, Marked};
use crate::sync::lock::Mutex;
use crate::sync::{Text, thread};

/// The token of one executor, which is created at the first request. Once the end was told, each
/// request creates a cancelled token.
#[derive(Default)]
pub(crate) struct End(Mutex<Telling>);

enum Telling {
    Open(Option<CancelToken>),
    /// The end was told. The token is cancelled, or is about to be.
    Told,
}

impl Default for Telling {
    fn default() -> Self {
        Telling::Open(None)
    }
}

impl End {
    /// Returns the token. It is cancelled if the end was told.
    pub(crate) fn token(&self) -> CancelToken {
        self.token_unless(|| false, || None)
    }

    /// Returns the token, and cancels it if `has_ended` returns `true`. `reason` says why the
    /// executor has ended.
    ///
    /// A thread that ends the executor first makes `has_ended` true, and then calls
    /// [`tell`](Self::tell). This function calls `has_ended` under the lock that `tell` takes. So
    /// if `has_ended` returns `false`, a later call of `tell` finds and cancels the token.
    pub(crate) fn token_unless(
        &self,
        has_ended: impl FnOnce() -> bool,
        reason: impl FnOnce() -> Option<Text>,
    ) -> CancelToken {
        let mut end = self.0.lock();
        let (token, is_told) = match &mut *end {
            Telling::Open(token) => (token.get_or_insert_with(CancelToken::new).clone(), false),
            Telling::Told => (CancelToken::new(), true),
        };
        let has_ended = is_told || has_ended();
        drop(end);
        if has_ended {
            token.mark(reason()).into_iter().for_each(Marked::tell);
        }
        token
    }

    /// Cancels the token, if there is one. If a user's listener of the token panics, returns the
    /// payload as an error.
    pub(crate) fn tell(&self, reason: Option<Text>) -> Result<(), thread::Payload> {
        self.mark(reason).map_or(Ok(()), |marked| thread::catch(|| marked.tell()))
    }

    /// Marks the token as cancelled, if there is one. The caller then notifies the listeners of the
    /// token by [`Marked::tell`].
    pub(crate) fn mark(&self, reason: Option<Text>) -> Option<Marked> {
        let mut state = self.0.lock();
        let Telling::Open(token) = &mut *state else { return None };
        let token = token.take();
        *state = Telling::Told;
        drop(state);
        token?.mark(reason)
    }

    /// Forgets that the slot's queue has ended, before a new queue takes the slot. The next call of
    /// [`token`](Self::token) creates a new token, without listeners.
    pub(crate) fn forget(&self) {
        *self.0.lock() = Telling::default();
    }
}
