//! Sleeping until there is something to do, without losing a wake-up.
//!
//! - A *prepared* thread has announced that it is about to sleep, and looks once more.
//! - A *sleeper* blocks in its park. Its *waiter*, a record that holds its waker, is in a list.
//! - One *word* (`word.rs`) has the count `prepared`, the signals, the stamp and the list's head.
//! - A *signal* tells one prepared thread to look again instead of sleeping.
//! - The *stamp* counts each exchange that takes sleepers off the list, and each `notify_all`.
//! - A sleeper is *told* when a notifier takes it off the list. A prepared thread is told when its
//!   commit takes a signal, or finds that the stamp has changed since the prepare.
//!
//! ```text
//!  sleeper                                     notifier
//!  ───────                                     ────────
//!  1  prepare: prepared += 1                   a  change something
//!  2  ── LOOK_AGAIN fence ───┐        ┌─────── b  ── LOOK_AGAIN fence ──
//!  3  look at everything     └────────┘        c  read the word
//!  4  something: cancel                        d  a prepared thread has no signal: add one
//!     nothing: commit                             otherwise: take the newest sleeper off, wake it
//!       a signal, or another stamp: look again
//!       otherwise, in one step: prepared −= 1, and on top of the list
//!  5  asleep until taken off
//!
//!  Never: 3 misses what a changed, and c misses the sleeper of 1.
//!  Without the fences both can happen (store buffering): the thread sleeps although work is there.
//! ```
//!
//! If a prepared thread goes to sleep, one exchange of the word moves it from `prepared` to the
//! list. So a notifier that reads the word finds the thread either prepared or asleep.
//!
//! # Invariants
//!
//! - **I1** `prepared` is the number of threads that have prepared and have neither committed nor
//!   cancelled. `signals` is at most `prepared`.
//! - **I2** A thread that takes a signal out of the word looks again, or cancels and passes the
//!   signal on.
//! - **I3** One exchange takes a prepared thread out of `prepared` and puts its waiter on the list,
//!   whose head is `top`. Only the thread whose exchange moves `top` past a waiter takes it off.
//! - **I4** Only the thread that claimed a `HELD` waiter touches it. (`waiters.rs` has the states.)
//! - **I5** Only the thread that made a waiter `TAKEN` or `TOUCHED` takes the waiter's waker.
//! - **I6** Waiters are freed when the event count is dropped, and not before.
//!
//! # Orderings
//!
//! The constants below are the only orderings here stronger than `Relaxed`, apart from locks.
//! `proofs/orderings.md` argues each under its name.
//!
//! # Sources
//!
//! The steps prepare, look and commit, the word, and the signals for prepared threads are those of
//! Eigen's `EventCount` (Vyukov, 2016). Three things are ours: `notify_all` changes the stamp too,
//! sleepers can leave without a notification, and cancelling threads pass a notification on. The
//! fences are Dekker's pattern, as in Go's scheduler. The list is Treiber's (1986).
//!
//! # In a picture
//!
#![doc = include_str!("../../docs/pictures/sleep.svg")]

#[cfg(feature = "std")]
mod awaiting;
mod event_count;
mod park;
mod prepared;
mod searchers;
mod waiters;
mod word;

#[cfg(feature = "std")]
pub(crate) use awaiting::until;
pub use event_count::EventCount;
pub use park::Park;
#[cfg(feature = "std")]
pub use park::ThreadPark;
pub use prepared::Prepared;
pub use searchers::{Resting, Search, Searchers};

use crate::sync::order::{FencePair, Pair};

/// A notifier changes something, then reads the word. A sleeper counts itself in the word, then
/// looks at its condition. At least one of the two sees the other's write.
const LOOK_AGAIN: FencePair = FencePair::named("idle::LOOK_AGAIN");

/// The last searcher finds something, subtracts itself from the count of searchers, then looks for
/// more. A notifier changes something, then reads the count of searchers, after the fence of
/// LOOK_AGAIN. At least one of the two sees the other's write.
const SEARCHED: FencePair = FencePair::named("idle::SEARCHED");

/// A thread that is told sees everything that the notifier did before the notification.
const TOLD: Pair = Pair::named("idle::TOLD");

/// A thread that finds a waiter in the list sees what the waiter's owner stored in the waiter.
const LAIN: Pair = Pair::named("idle::LAIN");

/// Each use of a waiter happens before the claim that begins its next use.
const HANDED: Pair = Pair::named("idle::HANDED");
