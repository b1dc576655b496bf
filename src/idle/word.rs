//! The word that decides which thread sleeps and which looks again.
//!
//! ```text
//!  │ stamp: 26 │ signals: 12 │ prepared: 12 │ top: 14 │
//! ```
//!
//! - *top*: the number of the newest waiter in the list, or 0 if the list is empty. Each waiter
//!   links to the next older.
//! - *prepared*: the number of threads that have prepared and have neither committed nor cancelled.
//! - *signals*: the number of prepared threads that are to look again. At most *prepared*.
//! - *stamp*: counts each exchange that takes sleepers off, and each `notify_all`.
//!
//! The stamp has two uses. First, a thread that takes the newest sleeper off reads the next older
//! sleeper before it exchanges the word. An unchanged stamp proves that no sleeper was taken off in
//! between. Second, a thread that prepared before a `notify_all` finds another stamp when it
//! commits, and does not sleep. The stamp wraps. A wrap deceives a thread only if exactly
//! 67,108,864 wake-ups pass between two of the thread's instructions. That takes at least a minute.

const TOP_BITS: u32 = 14;
const COUNT_BITS: u32 = 12;
const PREPARED_SHIFT: u32 = TOP_BITS;
const SIGNALS_SHIFT: u32 = PREPARED_SHIFT + COUNT_BITS;
const STAMP_SHIFT: u32 = SIGNALS_SHIFT + COUNT_BITS;

const TOP: u64 = (1 << TOP_BITS) - 1;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const ONE_PREPARED: u64 = 1 << PREPARED_SHIFT;
const ONE_SIGNAL: u64 = 1 << SIGNALS_SHIFT;
const ONE_STAMP: u64 = 1 << STAMP_SHIFT;

pub(super) const MOST_WAITERS: usize = TOP as usize;
pub(super) const MOST_PREPARED: u64 = COUNT;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Word {
    /// The word of a new event count: no thread is prepared or asleep. The stamp starts just below
    /// its wrap, so that tests cross the wrap.
    pub(super) const START: Word = Word(u64::MAX << STAMP_SHIFT);

    #[inline(always)]
    pub(super) const fn is_nobody(self) -> bool {
        self.0 & (TOP | (COUNT << PREPARED_SHIFT)) == 0
    }

    pub(super) const fn top(self) -> usize {
        (self.0 & TOP) as usize
    }

    pub(super) const fn prepared(self) -> u64 {
        (self.0 >> PREPARED_SHIFT) & COUNT
    }

    pub(super) const fn signals(self) -> u64 {
        (self.0 >> SIGNALS_SHIFT) & COUNT
    }

    pub(super) const fn stamp(self) -> Stamp {
        Stamp(self.0 >> STAMP_SHIFT)
    }

    /// Returns the word with one more prepared thread, or `None` if the count is full.
    pub(super) fn one_more(self) -> Option<Word> {
        (self.prepared() < MOST_PREPARED).then(|| Word(self.0 + ONE_PREPARED).checked())
    }

    /// Returns the word after a prepared thread has left without sleeping. If each prepared thread
    /// had a signal, one signal leaves with the thread, and the second value is `true`.
    pub(super) fn one_less(self) -> (Word, bool) {
        let is_signalled = self.signals() == self.prepared();
        let signals = if is_signalled { ONE_SIGNAL } else { 0 };
        (Word(self.0 - ONE_PREPARED - signals).checked(), is_signalled)
    }

    /// Returns the word after a thread was told, by a signal or by a stamp other than `since`, the
    /// stamp at its prepare. Returns `None` if the thread is not told, and may sleep.
    pub(super) fn one_told(self, since: Stamp) -> Option<Word> {
        if self.stamp() != since {
            return Some(self.one_less().0);
        }
        (self.signals() > 0).then(|| Word(self.0 - ONE_PREPARED - ONE_SIGNAL).checked())
    }

    /// Returns the word after a prepared thread has put its `waiter` on the list. The caller has
    /// found no signal in this word.
    pub(super) fn one_asleep(self, waiter: usize) -> Word {
        debug_assert!(self.signals() == 0 && waiter != 0);
        Word((self.0 - ONE_PREPARED) & !TOP | waiter as u64).checked()
    }

    /// Returns the word with up to `most` more signals, at most one for each prepared thread. Also
    /// returns the number of signals added.
    pub(super) fn signalled(self, most: usize) -> (Word, usize) {
        let free = self.prepared() - self.signals();
        let count = free.min(most as u64);
        (Word(self.0 + count * ONE_SIGNAL).checked(), count as usize)
    }

    /// Returns the word after the newest sleeper was taken off. `next` is the next older sleeper,
    /// or 0.
    pub(super) fn without_top(self, next: usize) -> Word {
        Word((self.0 & !TOP | next as u64).wrapping_add(ONE_STAMP)).checked()
    }

    /// Returns the word after all sleepers were taken off. Its new stamp tells all prepared
    /// threads.
    pub(super) fn all_told(self) -> Word {
        self.without_top(0)
    }

    #[inline(always)]
    fn checked(self) -> Word {
        debug_assert!(self.signals() <= self.prepared(), "{self:?}");
        self
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (prepared, signals) = (self.prepared(), self.signals());
        write!(
            f,
            "top {}, {prepared} prepared, {signals} signals, {:x}",
            self.top(),
            self.stamp().0
        )
    }
}
