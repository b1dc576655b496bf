//! A search tree for the ready queue with the least virtual time (thread time divided by weight).
//! `WeightedFair` searches the tree for each pick. When a time becomes less or a queue becomes
//! ready, it lowers the tree's *floors*, which are lower bounds for the times below them.

use super::ready::{Bits, ReadySet, SUMMARIES};
use crate::fair::LEAST;
use crate::sync::{AtomicU64, FAN, GROUP, GROUPS, Relaxed, SUMMARY};
use alloc::boxed::Box;

/// The virtual times of the queues in a group (`GROUP` slots), side by side because a search reads
/// them in sequence. Next to the times are the floors of the group's *octets* of `FAN` slots.
#[derive(Debug)]
pub struct Times {
    /// The time of each queue.
    pub times: [AtomicU64; GROUP],
    floors: [AtomicU64; GROUP / FAN],
}

/// A tree above the times. Its *members* are the queues in the [`ReadySet`]. A node's *floor* is a
/// lower bound for the times of the members below the node.
///
/// ```text
///  node          number   children   queues below
///  word              16   8 parts           4,096   │ A pick begins at the words. At each level
///    part           128   8 groups            512   │ it takes the node with the least floor.
///      group      1,024   8 octets             64   │
///        octet    8,192   8 queues              8   ▼
///          queue 65,536                             has a time in place of a floor
/// ```
///
/// - A floor can be too low, which only makes a search look again. A pick raises the floors above
///   its queue, up to the last one at which a search compares floors (`raise`). Any other floor
///   that is too low stays so until a search comes to it.
/// - Once all calls have returned, no floor is too high. A thread that lowers a time then fences,
///   and lowers the floors above that time. A thread that raises floors then fences, looks at the
///   times again, and lowers the floors if it must. At least one sees the other's write (`LEAST`).
///
/// The tree is lock-free. A search begins again only if another thread has changed a word that the
/// search read, or if the search has raised a floor.
#[derive(Debug)]
pub struct Least {
    groups: Box<[AtomicU64]>,
    parts: Box<[AtomicU64]>,
    /// A floor for each word of the ready set's summary, in which each group has a bit.
    words: Box<[AtomicU64]>,
}

/// The number of floors above a queue: those of its octet, group, part and summary word.
const LEVELS: usize = 4;

/// The result of a search.
#[derive(Debug)]
pub struct Found {
    /// The queue.
    pub slot: usize,
    /// The queue's virtual time.
    pub time: u64,
    /// The least of the other times in the queue's octet.
    rest: Option<u64>,
    /// The nodes above the queue, from the lowest up.
    path: [Child; LEVELS],
}

/// A child of a node, with its floor and the least floor of its siblings.
#[derive(Clone, Copy, Debug)]
struct Child {
    at: usize,
    floor: u64,
    rest: Option<u64>,
}

impl Times {
    /// Returns times and floors that are all `start`.
    pub fn new(start: u64) -> Self {
        let all = || AtomicU64::new(start);
        Times { times: core::array::from_fn(|_| all()), floors: core::array::from_fn(|_| all()) }
    }
}

// Relaxed throughout: the fences of `LEAST` order floors and times.
impl Least {
    /// Returns a tree whose floors are all `start`.
    pub fn empty(start: u64) -> Self {
        let floors = |count| (0..count).map(|_| AtomicU64::new(start)).collect();
        Least { groups: floors(GROUPS), parts: floors(GROUPS / FAN), words: floors(SUMMARIES) }
    }

    /// Returns the member with the least virtual time. `times` returns the times of a group.
    #[inline]
    pub fn find<'a>(&self, set: &ReadySet, times: impl Fn(usize) -> &'a Times) -> Option<Found> {
        loop {
            let words = (0..SUMMARIES).filter(|at| set.summary(*at) != 0);
            let word = least(words.map(|at| (at, &self.words[at])))?;
            let summary = set.summary(word.at);
            let Some(part) = least(self.parts(word.at, summary)) else { continue };
            let Some(group) = least(self.groups(part.at, summary)) else { continue };
            let (members, times) = (set.members(group.at), times(group.at));
            let Some(octet) = least(floors(times, members)) else {
                // Another thread has removed the last member, but has not cleared the group's bit.
                set.tidy(group.at);
                continue;
            };
            let Some(queue) = least(queues(times, octet.at, members)) else { continue };
            let path = [octet, group, part, word];
            let Child { floor: time, rest, .. } = queue;
            let found = Found { slot: group.at * GROUP + queue.at, time, rest, path };
            if path.iter().all(|it| it.rest.is_none_or(|other| !is_before(other, time))) {
                return Some(found);
            }
            self.raise(&found, time, set, times);
        }
    }

    /// Raises the floors above the found queue, whose time the caller has just raised to `to`.
    #[inline]
    pub fn charged(&self, found: &Found, to: u64, set: &ReadySet, times: &Times) {
        let least = found.rest.map_or(to, |rest| earlier(rest, to));
        self.raise(found, least, set, times);
    }

    /// Raises the floors above the found queue, from its octet (the lowest node, of 8 queues) up.
    /// `least` is the least time in the octet. Stops after the highest node that has a sibling with
    /// members of the ready set: `find` compares no floor above that node. After raising a floor,
    /// looks again at the times and floors below, and lowers the floors that are too high.
    #[inline]
    fn raise(&self, found: &Found, mut least: u64, set: &ReadySet, times: &Times) {
        let path = &found.path;
        let Some(top) = path.iter().rposition(|it| it.rest.is_some()) else { return };
        let above = self.above(found.slot, times);
        let mut has_raised = false;
        for level in 0..=top {
            has_raised |= raise_to(above[level], path[level].floor, least);
            least = path[level].rest.map_or(least, |rest| earlier(rest, least));
        }
        if !has_raised {
            return;
        }
        LEAST.fence();
        let [octet, group, part, word] = path.map(|it| it.at);
        let (members, summary) = (set.members(group), set.summary(word));
        for level in 0..=top {
            let lowest = match level {
                0 => lowest(queues(times, octet, members)),
                1 => lowest(floors(times, members)),
                2 => lowest(self.groups(part, summary)),
                _ => lowest(self.parts(word, summary)),
            };
            if let Some(time) = lowest {
                lower_all(&above[level..], time);
            }
        }
    }

    /// Lowers the floors above a queue whose time has become less, or which has become a member.
    #[inline]
    pub fn lower(&self, slot: usize, time: u64, times: &Times) {
        LEAST.fence();
        lower_all(&self.above(slot, times), time);
    }

    /// Raises each floor that is less than `to`, so that no floor falls half a turn (2⁶³) behind.
    /// The new floor is `to`, or the least time under the floor if that time is less.
    pub fn bring_up<'a>(&self, to: u64, times: impl Fn(usize) -> Option<&'a Times>) {
        let raise = |floor: &AtomicU64| _ = raise_to(floor, floor.load(Relaxed), to);
        let groups = || (0..GROUPS).filter_map(|group| Some((group, times(group)?)));
        groups().flat_map(|(_, times)| &times.floors).for_each(raise);
        [&self.groups, &self.parts, &self.words].into_iter().flatten().for_each(raise);
        LEAST.fence();
        for (group, times) in groups() {
            for (at, time) in times.times.iter().enumerate() {
                lower_all(&self.above(group * GROUP + at, times), time.load(Relaxed));
            }
        }
    }

    /// Returns the floors above a queue; the floor of its octet comes first.
    #[inline]
    fn above<'a>(&'a self, slot: usize, times: &'a Times) -> [&'a AtomicU64; LEVELS] {
        let group = slot / GROUP;
        let octet = &times.floors[slot % GROUP / FAN];
        [octet, &self.groups[group], &self.parts[group / FAN], &self.words[group / SUMMARY]]
    }

    /// Returns the parts of a word that have members, with their floors.
    #[inline]
    fn parts(&self, word: usize, summary: u64) -> impl Iterator<Item = (usize, &AtomicU64)> {
        let first = word * (SUMMARY / FAN);
        octets(summary, SUMMARY).map(move |at| (first + at, &self.parts[first + at]))
    }

    /// Returns the groups of a part that have members, with their floors.
    #[inline]
    fn groups(&self, part: usize, summary: u64) -> impl Iterator<Item = (usize, &AtomicU64)> {
        let first = part * FAN;
        Bits(octet(summary, first % SUMMARY)).map(move |at| (first + at, &self.groups[first + at]))
    }
}

/// Returns the octets of a group that have members, with their floors.
#[inline]
fn floors(times: &Times, members: u64) -> impl Iterator<Item = (usize, &AtomicU64)> {
    octets(members, GROUP).map(|at| (at, &times.floors[at]))
}

/// Returns the members of an octet of a group, with their times.
#[inline]
fn queues(times: &Times, at: usize, members: u64) -> impl Iterator<Item = (usize, &AtomicU64)> {
    let first = at * FAN;
    Bits(octet(members, first)).map(move |at| (first + at, &times.times[first + at]))
}

#[inline]
fn octet(word: u64, first: usize) -> u64 {
    (word >> first) & (u64::MAX >> (64 - FAN))
}

/// Returns the numbers of the octets that are not zero, in the first `bits` bits of a word. An
/// octet is `FAN` bits.
#[inline]
fn octets(word: u64, bits: usize) -> impl Iterator<Item = usize> {
    (0..bits / FAN).filter(move |at| octet(word, at * FAN) != 0)
}

/// Returns the first child with the least floor, together with the least floor of its siblings.
#[inline]
fn least<'a>(all: impl Iterator<Item = (usize, &'a AtomicU64)>) -> Option<Child> {
    let mut best: Option<Child> = None;
    for (at, floor) in all {
        let floor = floor.load(Relaxed);
        let rest = match best {
            None => None,
            Some(it) if is_before(floor, it.floor) => Some(it.floor),
            Some(it) => {
                let rest = it.rest.map_or(floor, |rest| earlier(rest, floor));
                best = Some(Child { rest: Some(rest), ..it });
                continue;
            }
        };
        best = Some(Child { at, floor, rest });
    }
    best
}

#[inline]
fn lowest<'a>(all: impl Iterator<Item = (usize, &'a AtomicU64)>) -> Option<u64> {
    all.map(|it| it.1.load(Relaxed)).reduce(earlier)
}

#[inline]
fn earlier(one: u64, other: u64) -> u64 {
    if is_before(other, one) { other } else { one }
}

/// Raises a floor that is still `from` to `to`. Returns whether the floor was raised.
#[inline]
fn raise_to(floor: &AtomicU64, from: u64, to: u64) -> bool {
    is_before(from, to) && floor.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}

/// Lowers the floors that are greater than `to`, in the order of the slice, and fences after each
/// change. A thread that raises the next floor also fences, and then looks at the floors below. So
/// it sees this change and lowers the next floor, or this thread sees the raised floor and lowers
/// it.
#[inline]
fn lower_all(floors: &[&AtomicU64], to: u64) {
    for floor in floors {
        let lowered = |floor| is_before(to, floor).then_some(to);
        if floor.fetch_update(Relaxed, Relaxed, lowered).is_ok() {
            LEAST.fence();
        }
    }
}

/// Returns whether one virtual time is less than the other. Times wrap, and are always less than
/// half a turn (2⁶³) apart.
#[inline]
pub(super) fn is_before(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) < 0
}
