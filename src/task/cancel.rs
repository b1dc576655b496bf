//! Cancellation tokens. Each token has a lock for its listeners: tokens, tasks and wakers. A
//! canceller marks a token and its descendants, and then cancels their tasks and wakes the wakers.

use super::CANCELLED;
use super::any::AnyTask;
use super::error::{CancelledBy, Cause, JoinError};
use super::living::WeakTask;
use super::slots::Slots;
use crate::sync::lock::Mutex;
use crate::sync::thread::{self, Finally, per_thread};
use crate::sync::{Arc, AtomicBool, Text, into_inner};
use alloc::vec::Vec;
use core::cell::Cell;
use core::task::Waker;
use core::{fmt, mem};

/// Tells tasks and listeners that their work is no longer wanted, and why.
///
/// Clones refer to the same token. A [`child`](Self::child) is cancelled with its parent, and can
/// be cancelled alone. A token can have several parents ([`any`](Self::any)). A cancellation
/// reaches all descendants, even past a token that has no handle any more. A parent forgets a child
/// that has neither a handle nor a listener, so it does not collect the tokens of past requests.
///
/// # Progress
///
/// [`is_cancelled`](Self::is_cancelled) is wait-free: one load. Linking or unlinking a child, a
/// task or a waker takes a lock for a few instructions. Cancelling takes the lock of each
/// descendant in turn, only to mark it, and tells tasks and wakers outside the locks. No method
/// recurses, so a chain of tokens may have any length.
///
/// # Examples
///
/// ```
/// use filch::task::CancelToken;
///
/// let (server, client) = (CancelToken::new(), CancelToken::new());
/// let request = CancelToken::any(&[&server, &client]);
/// client.cancel_with("the client has gone");
/// assert!(request.is_cancelled() && !server.is_cancelled());
/// assert_eq!(request.reason().as_deref(), Some("the client has gone"));
/// ```
#[derive(Clone)]
pub struct CancelToken(Arc<Node>);

/// The part of a token that lives as long as a handle of the token or a registered listener.
struct Node {
    /// The token's registrations, one at each parent. They keep the parents alive.
    links: Vec<CancelLink>,
    shared: Arc<TokenState>,
}

/// The part of a token to which its parents refer. The parents do not keep the [`Node`] of the
/// token alive.
struct TokenState {
    /// Whether `fate` is `Cancelled`.
    is_cancelled: AtomicBool,
    fate: Mutex<Fate>,
}

enum Fate {
    /// The tokens, tasks and wakers to tell of a cancellation.
    Open(Slots<Listener>),
    Cancelled(Option<Text>),
}

enum Listener {
    Token(Arc<TokenState>),
    Task(AnyTask),
    /// A future, which the token does not keep alive.
    Future(WeakTask),
    Waker(Waker),
}

/// The tasks and wakers of tokens that are marked as cancelled, and the reason.
#[must_use]
pub(crate) struct Marked {
    to_tell: Vec<Listener>,
    reason: Option<Text>,
}

/// A listener's registration at a token. Keeps the token alive. Dropping the link removes the
/// listener.
pub(crate) struct CancelLink {
    /// `None` after `let_go`.
    token: Option<Arc<Node>>,
    index: usize,
}

impl CancelToken {
    /// Returns a new token, which is not cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(!filch::task::CancelToken::new().is_cancelled());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        CancelToken::any(&[])
    }

    /// Returns a token that is cancelled with this token, and that can be cancelled alone.
    ///
    /// # Examples
    ///
    /// ```
    /// let parent = filch::task::CancelToken::new();
    /// let (one, another) = (parent.child(), parent.child());
    /// one.cancel();
    /// assert!(!another.is_cancelled() && !parent.is_cancelled());
    /// parent.cancel();
    /// assert!(another.is_cancelled());
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        CancelToken::any(&[self])
    }

    /// Returns a token that is cancelled as soon as any of `parents` is. Cancelling the new token
    /// does not cancel its parents.
    ///
    /// # Examples
    ///
    /// ```
    /// use filch::task::CancelToken;
    ///
    /// let parents = [CancelToken::new(), CancelToken::new()];
    /// let child = CancelToken::any(&[&parents[0], &parents[1]]);
    /// parents[1].cancel();
    /// assert!(child.is_cancelled());
    /// ```
    #[must_use]
    pub fn any(parents: &[&CancelToken]) -> Self {
        let fate = Mutex::new(Fate::Open(Slots::default()));
        let shared = Arc::new(TokenState { is_cancelled: AtomicBool::new(false), fate });
        let mut links = Vec::with_capacity(parents.len());
        for parent in parents {
            match parent.add(Listener::Token(Arc::clone(&shared))) {
                Ok(link) => links.push(link),
                Err(reason) => {
                    shared.cancel(reason);
                    break;
                }
            }
        }
        CancelToken(Arc::new(Node { links, shared }))
    }

    /// Cancels the token and all its descendants. Returns `true` if this call cancelled the token,
    /// and `false` if the token was cancelled already.
    ///
    /// First marks all these tokens, then cancels their tasks and wakes their wakers. When this
    /// returns, a task that had not begun is done, and its closure has been dropped on this thread.
    /// A running task is asked to end. Exception: if another call had marked one of the tokens
    /// before, that call cancels the tasks of that token and wakes its wakers, perhaps later.
    ///
    /// # Panics
    ///
    /// Resumes the first panic of a closure's destructor or of a waker, after this call has told
    /// all tasks and wakers of the cancellation. Drops the payloads of further panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = filch::task::CancelToken::new();
    /// assert!(token.cancel());
    /// assert!(!token.cancel());
    /// ```
    pub fn cancel(&self) -> bool {
        self.0.shared.cancel(None)
    }

    /// Cancels the token as [`cancel`](Self::cancel) does, and gives a reason. If the token is
    /// cancelled already, its reason, or the lack of one, stays.
    ///
    /// # Panics
    ///
    /// Resumes the first panic of a destructor or of a waker, as [`cancel`](Self::cancel) does.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = filch::task::CancelToken::new();
    /// token.cancel_with("out of time");
    /// token.cancel_with("out of memory");
    /// assert_eq!(token.reason().as_deref(), Some("out of time"));
    /// ```
    pub fn cancel_with(&self, reason: impl Into<Text>) -> bool {
        self.0.shared.cancel(Some(reason.into()))
    }

    /// Returns whether the token is cancelled.
    ///
    /// The canceller's earlier writes happen before this returns `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = filch::task::CancelToken::new();
    /// token.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.shared.is_cancelled.load(CANCELLED.acquire())
    }

    /// Returns the reason of the cancellation. Returns `None` if the token is not cancelled, or no
    /// reason was given.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = filch::task::CancelToken::new();
    /// token.cancel();
    /// assert_eq!(token.reason(), None);
    /// ```
    #[must_use]
    pub fn reason(&self) -> Option<Text> {
        match &*self.0.shared.fate.lock() {
            Fate::Open(_) => None,
            Fate::Cancelled(reason) => reason.clone(),
        }
    }

    /// Marks the token and all its descendants as cancelled. The caller tells their listeners, by
    /// [`Marked::tell`]. Returns `None` if the token was cancelled already.
    pub(crate) fn mark(&self, reason: Option<Text>) -> Option<Marked> {
        self.0.shared.mark(reason)
    }

    pub(crate) fn check(&self) -> Result<(), JoinError> {
        match self.is_cancelled() {
            false => Ok(()),
            true => Err(JoinError::dropped(Cause::Cancelled(CancelledBy::Token, self.reason()))),
        }
    }

    /// Registers a waker, to be woken when the token is cancelled. If the token is cancelled
    /// already, returns the reason as an error.
    pub(crate) fn link_waker(&self, waker: Waker) -> Result<CancelLink, Option<Text>> {
        self.add(Listener::Waker(waker))
    }

    /// Registers a task, to be cancelled with the token. If the token is cancelled already, returns
    /// the reason as an error.
    pub(crate) fn link(&self, task: AnyTask) -> Result<CancelLink, Option<Text>> {
        self.add(Listener::Task(task))
    }

    /// Registers a future, as `link` registers a task. The token does not keep the future alive, so
    /// the link must be dropped before the future is freed.
    pub(super) fn link_future(&self, future: WeakTask) -> Result<CancelLink, Option<Text>> {
        self.add(Listener::Future(future))
    }

    fn add(&self, listener: Listener) -> Result<CancelLink, Option<Text>> {
        let index = match &mut *self.0.shared.fate.lock() {
            Fate::Open(listeners) => listeners.add(listener),
            Fate::Cancelled(reason) => return Err(reason.clone()),
        };
        Ok(CancelLink { token: Some(Arc::clone(&self.0)), index })
    }
}

impl TokenState {
    fn cancel(&self, reason: Option<Text>) -> bool {
        self.mark(reason).map(Marked::tell).is_some()
    }

    fn mark(&self, reason: Option<Text>) -> Option<Marked> {
        let mut listeners = self.close(reason.as_ref())?;
        let mut to_tell = Vec::new();
        while let Some(listener) = listeners.pop() {
            match listener {
                Listener::Token(child) => {
                    listeners.extend(child.close(reason.as_ref()).unwrap_or_default())
                }
                _ => to_tell.push(listener),
            }
        }
        Some(Marked { to_tell, reason })
    }

    /// Marks the token as cancelled, and returns its listeners. Returns `None` if the token was
    /// cancelled before.
    fn close(&self, reason: Option<&Text>) -> Option<Vec<Listener>> {
        let mut fate = self.fate.lock();
        let Fate::Open(listeners) = &mut *fate else { return None };
        let listeners = mem::take(listeners).into_items().into_iter();
        // Upgraded under the lock: before a future is freed, its link takes this lock.
        let listeners = listeners.filter_map(Listener::upgrade).collect();
        *fate = Fate::Cancelled(reason.cloned());
        self.is_cancelled.store(true, CANCELLED.release());
        Some(listeners)
    }
}

per_thread! {
    static TELLING: Cell<bool> = Cell::new(false);
}

/// Returns whether this thread is within [`Marked::tell`].
pub(crate) fn is_telling() -> bool {
    TELLING.try_with(Cell::get).unwrap_or(false)
}

impl Marked {
    /// Cancels the tasks and wakes the wakers. At the end, resumes the first panic of user code.
    pub(crate) fn tell(mut self) {
        let outer = TELLING.try_with(|it| it.replace(true)).unwrap_or(false);
        let _back = Finally(|| _ = TELLING.try_with(|it| it.set(outer)));
        let mut panicked = None;
        while let Some(listener) = self.to_tell.pop() {
            if let Err(payload) = thread::catch(|| listener.tell(self.reason.as_ref())) {
                match panicked {
                    None => panicked = Some(payload),
                    Some(_) => thread::forget_if_it_panics(payload),
                }
            }
        }
        if let Some(payload) = panicked {
            thread::resume(payload);
        }
    }
}

impl Listener {
    /// Turns a weak reference to a future into a counted one. Returns `None` if the future is about
    /// to be freed. The caller holds the token's lock.
    fn upgrade(self) -> Option<Self> {
        match self {
            Listener::Future(future) => future.upgrade().map(Listener::Task),
            other => Some(other),
        }
    }

    /// Cancels a task or wakes a waker. `Marked::tell` calls this on no other listener, and holds
    /// no lock, because wakers and destructors may be user code.
    fn tell(self, reason: Option<&Text>) {
        match self {
            Listener::Task(task) => {
                _ = task.cancel(Cause::Cancelled(CancelledBy::Token, reason.cloned()));
            }
            Listener::Waker(waker) => waker.wake(),
            Listener::Token(_) | Listener::Future(_) => {}
        }
    }
}

impl CancelLink {
    /// Removes the listener, and returns the token.
    fn let_go(&mut self) -> Option<Arc<Node>> {
        let token = self.token.take()?;
        let listener = match &mut *token.shared.fate.lock() {
            Fate::Open(listeners) => listeners.remove(self.index),
            Fate::Cancelled(_) => None,
        };
        drop(listener); // outside the lock: the destructor of a waker might be user code
        Some(token)
    }
}

impl Drop for CancelLink {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A list instead of recursion, which could overflow the stack on a long chain of parents.
        let mut links = mem::take(&mut self.links);
        while let Some(mut link) = links.pop() {
            if let Some(mut parent) = link.let_go().and_then(into_inner) {
                links.append(&mut parent.links);
            }
        }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        CancelToken::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = match &*self.0.shared.fate.lock() {
            Fate::Open(listeners) => listeners.len(),
            Fate::Cancelled(_) => 0,
        };
        f.debug_struct("CancelToken")
            .field("is_cancelled", &self.is_cancelled())
            .field("listeners", &listeners)
            .finish()
    }
}
