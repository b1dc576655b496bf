//! Telling many that something is no longer wanted.

use super::CANCELLED;
use super::cell::AnyTask;
use crate::sync::lock::Mutex;
use crate::sync::{Arc, AtomicBool, Text};
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Tells whoever looks that something is no longer wanted; and why, if that was said.
///
/// Clones are the same token. A [`child`](Self::child) is cancelled with its parent, and alone; a token can have
/// several parents ([`any`](Self::any)). When a token goes, its parents forget it: a parent that lives as
/// long as the process does not collect the tokens of requests.
///
/// # Progress
///
/// [`is_cancelled`](Self::is_cancelled) is wait-free: a load. Whatever links or cancels takes a lock for a few
/// instructions; whoever is told, is told outside of it, on the thread that cancels.
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

/// A token, with its place at its parents. Fields go in this order.
struct Node {
    /// At each parent.
    _links: Vec<Link>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether `fate` says that it is cancelled.
    is_cancelled: AtomicBool,
    fate: Mutex<Fate>,
}

enum Fate {
    /// Who is to be told, and under which number each can be forgotten.
    Open { next: u64, listeners: Vec<(u64, Listener)> },
    /// Why it was cancelled.
    Cancelled(Option<Text>),
}

enum Listener {
    Token(Arc<Shared>),
    Task(AnyTask),
    Waker(Waker),
}

/// A listener's place. Dropping it takes the listener off.
pub(crate) struct Link {
    shared: Arc<Shared>,
    number: u64,
}

impl CancelToken {
    /// A token that is not cancelled.
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

    /// A token that is cancelled with this one, and that can be cancelled alone.
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

    /// A token that is cancelled as soon as one of these is, and that can be cancelled alone.
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
        let fate = Mutex::new(Fate::Open { next: 0, listeners: Vec::new() });
        let shared = Arc::new(Shared { is_cancelled: AtomicBool::new(false), fate });
        let mut links = Vec::with_capacity(parents.len());
        for parent in parents {
            match Shared::link(&parent.0.shared, Listener::Token(Arc::clone(&shared))) {
                Ok(link) => links.push(link),
                Err(reason) => {
                    shared.cancel(reason);
                    break;
                }
            }
        }
        CancelToken(Arc::new(Node { _links: links, shared }))
    }

    /// Cancels the token and its children. Returns whether it was not cancelled before.
    ///
    /// Tasks that were spawned with it and have not begun are done when this returns; their closures are dropped
    /// on this thread. Those that run are asked to end.
    ///
    /// # Panics
    ///
    /// Panics if dropping a closure does, or waking a future. Then some may not have been told.
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

    /// As [`cancel`](Self::cancel), and says why. The first reason stays.
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

    /// Whether the token is cancelled.
    ///
    /// What was done before it was cancelled happens before this returns `true`.
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

    /// Why it is cancelled. `None` if it is not, or if that was not said.
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
            Fate::Open { .. } => None,
            Fate::Cancelled(reason) => reason.clone(),
        }
    }

    /// Waits until the token is cancelled.
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

    /// Has this task cancelled with the token. `Err` with the reason if it is cancelled already.
    /// Wakes this with the token; an error if it is cancelled already.
    pub(crate) fn link_waker(&self, waker: Waker) -> Result<Link, Option<Text>> {
        Shared::link(&self.0.shared, Listener::Waker(waker))
    }

    pub(crate) fn link(&self, task: AnyTask) -> Result<Link, Option<Text>> {
        Shared::link(&self.0.shared, Listener::Task(task))
    }
}

impl Shared {
    /// Has a listener told. `Err` with the reason if there is nothing to wait for.
    fn link(this: &Arc<Self>, listener: Listener) -> Result<Link, Option<Text>> {
        match &mut *this.fate.lock() {
            Fate::Open { next, listeners } => {
                let number = *next;
                *next += 1;
                listeners.push((number, listener));
                Ok(Link { shared: Arc::clone(this), number })
            }
            Fate::Cancelled(reason) => Err(reason.clone()),
        }
    }

    fn cancel(&self, reason: Option<Text>) -> bool {
        let mut fate = self.fate.lock();
        if matches!(*fate, Fate::Cancelled(_)) {
            return false;
        }
        let open = mem::replace(&mut *fate, Fate::Cancelled(reason.clone()));
        self.is_cancelled.store(true, CANCELLED.release());
        drop(fate);
        // Outside of the lock: they are the user's, or take locks of their own.
        if let Fate::Open { listeners, .. } = open {
            for (_, listener) in listeners {
                match listener {
                    Listener::Token(child) => _ = child.cancel(reason.clone()),
                    Listener::Task(task) => _ = task.cancel(reason.clone()),
                    Listener::Waker(waker) => waker.wake(),
                }
            }
        }
        true
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut fate = self.shared.fate.lock();
        let Fate::Open { listeners, .. } = &mut *fate else { return };
        let Some(place) = listeners.iter().position(|it| it.0 == self.number) else { return };
        let listener = listeners.swap_remove(place);
        drop(fate);
        // Outside of the lock, as above.
        drop(listener);
    }
}

/// The future of [`CancelToken::cancelled`].
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    token: CancelToken,
    /// Where the waker of the last poll is.
    link: Option<Link>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.link = None;
        match Shared::link(&self.token.0.shared, Listener::Waker(context.waker().clone())) {
            Ok(link) => {
                self.link = Some(link);
                Poll::Pending
            }
            Err(_) => Poll::Ready(()),
        }
    }
}

impl Default for CancelToken {
    /// A token that is not cancelled: [`new`](CancelToken::new).
    fn default() -> Self {
        CancelToken::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = match &*self.0.shared.fate.lock() {
            Fate::Open { listeners, .. } => listeners.len(),
            Fate::Cancelled(_) => 0,
        };
        f.debug_struct("CancelToken")
            .field("is_cancelled", &self.is_cancelled())
            .field("listeners", &listeners)
            .finish()
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").field("token", &self.token).finish_non_exhaustive()
    }
}
