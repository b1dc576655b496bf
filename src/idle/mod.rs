//! Sleeping until there is something to do, without missing it.
//!
//! ```text
//!  sleeper                                     notifier
//!  ───────                                     ────────
//!  1  prepare: prepared += 1                   a  change something
//!  2  ── LOOK_AGAIN fence ───┐        ┌─────── b  ── LOOK_AGAIN fence ──
//!  3  look at everything     └────────┘        c  read the word: is anybody there?
//!  4  something: cancel                        d  somebody prepared: a signal
//!     nothing: commit                             or else: take the newest sleeper off, wake it
//!       a signal, or another stamp: look again
//!       otherwise, in one step: prepared −= 1, and on top of the list
//!  5  asleep until taken off
//!
//!  Never: 3 misses what a changed, and c misses the sleeper of 1.
//!  Without the fences both can (store buffering), and the sleeper sleeps on work.
//! ```
//!
//! Between 1 and 4 a sleeper is one of `prepared`, afterwards it is on the list, and one exchange of one
//! word makes the step. So whoever reads the word at c finds it in one place or the other.
//!
//! # Invariants
//!
//! - **I1** `prepared` is the number of threads between 1 and 4, and `signals` is at most that.
//! - **I2** A signal is taken from the word by a thread that looks again; or by one that cancels, and
//!   then it is passed on.
//! - **I3** What is on the list was put there by a thread that has prepared, in the exchange that took it
//!   out of `prepared`. Whoever exchanges `top` for what hangs below has taken it off, alone.
//! - **I4** A waiter that is `HELD` is its claimer's alone.
//! - **I5** The waker of a waiter is taken by whoever made it `TAKEN` or `TOUCHED`.
//! - **I6** Waiters stay until the event count is dropped.
//!
//! # Sources
//!
//! The three steps and the word are those of Eigen's `EventCount` (Vyukov, 2016), with signals for
//! those that have not committed; the stamp that also answers `notify_all`, going by oneself, and
//! passing a notification on are ours. The fences are Dekker's pattern, as in Go's scheduler. The
//! list is Treiber's (1986), with a counted pointer.
//!
//! # In a picture
//!
#![doc = include_str!("../../docs/pictures/sleep.svg")]

mod event_count;
mod park;
mod prepared;
mod searchers;
mod waiters;
mod word;

pub use event_count::EventCount;
pub use park::Park;
#[cfg(feature = "std")]
pub use park::ThreadPark;
pub use prepared::Prepared;
pub use searchers::{Resting, Search, Searchers};

use crate::sync::order::{FencePair, Pair};

/// A notifier changes something, then reads the word; a sleeper counts itself in the word, then looks at
/// everything. Of the two, at least one sees the other.
const LOOK_AGAIN: FencePair = FencePair::named("idle::LOOK_AGAIN");

/// A searcher that has found something and was the last takes itself off, then looks for more; whoever notifies
/// changes something, then looks whether somebody searches, behind the fence of LOOK_AGAIN. Of the two, at least
/// one sees the other.
const SEARCHED: FencePair = FencePair::named("idle::SEARCHED");

/// Whoever is told to look again sees what was done before the notification.
const TOLD: Pair = Pair::named("idle::TOLD");

/// Whoever sees a waiter in the list sees what its owner left there.
const LAIN: Pair = Pair::named("idle::LAIN");

/// Who has a waiter next has the last one's use of it behind itself.
const HANDED: Pair = Pair::named("idle::HANDED");
