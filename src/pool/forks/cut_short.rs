//! `join` and scopes with a token. A closure that has not begun when the token is cancelled is
//! dropped.

use super::scope::Scope;
use crate::pool::handle::ThreadPool;
use crate::task::{CancelToken, JoinError};

impl ThreadPool {
    /// Calls [`join`](Self::join), but drops a closure that has not begun when the token is
    /// cancelled. A running closure can look at the token.
    ///
    /// # Errors
    ///
    /// The token's cancellation, if a closure was dropped because of it. When `join_with` returns,
    /// neither closure runs.
    ///
    /// # Panics
    ///
    /// Resumes the panic of a closure, like [`join`](Self::join).
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    ///
    /// let (pool, token) = (filch::ThreadPool::new(2)?, CancelToken::new());
    /// assert_eq!(pool.join_with(&token, || 1, || 2).unwrap(), (1, 2));
    /// token.cancel_with("enough");
    /// let error = pool.join_with(&token, || 1, || 2).unwrap_err();
    /// assert_eq!(error.reason(), Some("enough"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_with<A, B, RA, RB>(
        &self,
        token: &CancelToken,
        a: A,
        b: B,
    ) -> Result<(RA, RB), JoinError>
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let (a, b) = self.join(|| token.check().map(|()| a()), || token.check().map(|()| b()));
        Ok((a?, b?))
    }

    /// Calls [`scope`](Self::scope), but drops jobs that have not begun when the token is
    /// cancelled. The thread that would run such a job drops it. A running job can look at the
    /// token. `f` is called even if the token is cancelled.
    ///
    /// # Errors
    ///
    /// The token's cancellation, if a job was dropped because of it. The pool's cancellation, if
    /// [`shutdown(Cancel)`](ThreadPool::shutdown) has dropped a job. When `scope_with` returns, all
    /// jobs have ended.
    ///
    /// # Panics
    ///
    /// After all jobs have ended, resumes the panic of `f`, or else the first panic of a job.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    ///
    /// let (pool, token) = (filch::ThreadPool::new(1)?, CancelToken::new());
    /// let (same, mut has_run) = (token.clone(), false);
    /// let result = pool.scope_with(&token, |scope| {
    ///     same.cancel();
    ///     scope.spawn(|| has_run = true);
    /// });
    /// assert!(result.unwrap_err().is_cancelled());
    /// assert!(!has_run);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scope_with<'env, R>(
        &'env self,
        token: &CancelToken,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R, JoinError> {
        self.scope_of(Some(token.clone()), f)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a closure that does not begin once the scope's token is cancelled.
    #[cold]
    pub(crate) fn push_unless_cut<F: FnOnce() + Send + 'scope>(&'scope self, f: F) {
        let core = &self.core;
        self.push(move || match core.check() {
            Ok(()) => f(),
            Err(error) => {
                core.failures.cut(error);
                drop(f);
            }
        });
    }
}
