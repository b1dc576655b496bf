//! Which executions of a litmus test C11 permits.
//!
//! The axioms are those of RC11 (Lahav, Vafeiadis, Kang, Hur and Dreyer, *Repairing sequential
//! consistency in C/C++11*, PLDI 2017), with the release sequences of C++20. RC11 also forbids load
//! buffering: that a read takes a value from a store that its own thread does later. Processors do
//! not forbid it, so a test is judged by a second, weaker model too: there a read may be overtaken
//! by every later store that does not depend on it.

use crate::program::Program;
use crate::relation::{Relation, bits};
use crate::syntax::{Condition, Order};
use crate::trace::{self, Event, Trace};
use std::collections::BTreeMap;

/// What becomes of the condition of a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Verdict {
    /// No execution meets it.
    Never,
    /// Only such as have a load that is overtaken by a later store of its thread.
    ByLoadBuffering,
    /// Some execution of RC11 does, or has a data race.
    Sometimes,
}

/// The verdict, and how many executions there are of which it is said.
pub(crate) fn judge(program: &Program) -> (Verdict, usize) {
    let (traces, _) = trace::traces(program);
    let mut chosen: Vec<&Trace> = Vec::new();
    let mut outcome = (Verdict::Never, 0);
    choose(program, &traces, &mut chosen, &mut outcome);
    outcome
}

/// Tries every combination of ways through the threads.
fn choose<'a>(
    program: &Program,
    traces: &'a [Vec<Trace>],
    chosen: &mut Vec<&'a Trace>,
    outcome: &mut (Verdict, usize),
) {
    let Some(ways) = traces.get(chosen.len()) else {
        if is_fed(program, chosen) {
            Candidate::new(program, chosen).explore(program, chosen, outcome);
        }
        return;
    };
    for way in ways {
        chosen.push(way);
        choose(program, traces, chosen, outcome);
        chosen.pop();
    }
}

/// Whether some write gives each read its value. Of a million combinations a few hundred are left.
fn is_fed(program: &Program, chosen: &[&Trace]) -> bool {
    let events = || chosen.iter().flat_map(|it| &it.events);
    let gives = |read: &Event| events().any(|it| it.written == read.read && it.place == read.place);
    let first = |place: &String| program.first.get(place).copied().unwrap_or(0);
    events().filter(|it| it.read.is_some()).all(|read| {
        let is_first = read.read == read.place.as_ref().map(first);
        is_first || gives(read)
    })
}

/// All events of one combination, those of no thread first: they give each place its first value.
struct Candidate {
    events: Vec<Event>,
    /// The thread of each; nothing for those of no thread.
    threads: Vec<Option<usize>>,
    /// Sequenced before.
    sb: Relation,
    /// From a read to the writes that depend on it.
    dep: Relation,
}

impl Candidate {
    fn new(program: &Program, chosen: &[&Trace]) -> Self {
        let mut places: Vec<&String> =
            chosen.iter().flat_map(|it| &it.events).filter_map(|it| it.place.as_ref()).collect();
        places.sort();
        places.dedup();
        let first = |place: &String| Event {
            place: Some(place.clone()),
            read: None,
            written: Some(program.first.get(place).copied().unwrap_or(0)),
            order: Order::Plain,
            depends: 0,
        };
        let mut events: Vec<Event> = places.into_iter().map(first).collect();
        let firsts = events.len();
        let mut threads = vec![None; firsts];
        for (thread, trace) in chosen.iter().enumerate() {
            events.extend(trace.events.iter().cloned());
            threads.resize(events.len(), Some(thread));
        }
        let (mut sb, mut dep) = (Relation::none(events.len()), Relation::none(events.len()));
        for to in firsts..events.len() {
            let start = threads.iter().position(|it| *it == threads[to]).expect("it is there");
            (0..firsts).chain(start..to).for_each(|from| sb.add(from, to));
            if events[to].written.is_some() {
                bits(events[to].depends).for_each(|from| dep.add(start + from, to));
            }
        }
        assert!(events.len() <= 64, "a litmus test is smaller than that");
        Candidate { events, threads, sb, dep }
    }

    fn set(&self, is: impl Fn(&Event) -> bool) -> u64 {
        let one = |(at, event): (usize, &Event)| u64::from(is(event)) << at;
        self.events.iter().enumerate().map(one).fold(0, |all, one| all | one)
    }

    /// Tries every way in which reads get their values and writes to a place follow each other.
    fn explore(&self, program: &Program, chosen: &[&Trace], outcome: &mut (Verdict, usize)) {
        let reads: Vec<usize> = bits(self.set(|it| it.read.is_some())).collect();
        let mut sources = Vec::with_capacity(reads.len());
        for &read in &reads {
            let gives = |from: &usize| {
                *from != read
                    && self.events[*from].place == self.events[read].place
                    && self.events[*from].written == self.events[read].read
                    && !self.sb.has(read, *from)
            };
            let of: Vec<usize> = (0..self.events.len()).filter(gives).collect();
            if of.is_empty() {
                return;
            }
            sources.push(of);
        }
        let mut by_place: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
        for at in bits(self.set(|it| it.written.is_some())) {
            by_place.entry(self.events[at].place.as_ref().expect("a write")).or_default().push(at);
        }
        let orders: Vec<Vec<Vec<usize>>> = by_place.values().map(|it| self.orders(it)).collect();
        for rf in product(&sources) {
            for mo in product(&orders) {
                let execution = Execution::new(self, &reads, &rf, &mo);
                let Some(is_buffered) = execution.is_consistent() else { continue };
                outcome.1 += 1;
                let last = |place: &String| {
                    let order =
                        mo.iter().find(|it| self.events[it[0]].place.as_ref() == Some(place));
                    let value = |it: &Vec<usize>| self.events[*it.last()?].written;
                    order.and_then(value).unwrap_or(program.first.get(place).copied().unwrap_or(0))
                };
                if execution.has_race() || holds(&program.bad, chosen, &last) {
                    let verdict = match is_buffered {
                        true => Verdict::ByLoadBuffering,
                        false => Verdict::Sometimes,
                    };
                    outcome.0 = outcome.0.max(verdict);
                }
            }
        }
    }

    /// The orders of these writes that the threads permit, the first value first.
    fn orders(&self, writes: &[usize]) -> Vec<Vec<usize>> {
        let Some((&first, rest)) = writes.split_first() else { return vec![Vec::new()] };
        let mut orders = Vec::new();
        self.permute(vec![first], rest.to_vec(), &mut orders);
        orders
    }

    fn permute(&self, so_far: Vec<usize>, rest: Vec<usize>, orders: &mut Vec<Vec<usize>>) {
        if rest.is_empty() {
            orders.push(so_far);
            return;
        }
        for (at, &next) in rest.iter().enumerate() {
            if rest.iter().any(|&other| self.sb.has(other, next)) {
                continue;
            }
            let (mut so_far, mut rest) = (so_far.clone(), rest.clone());
            so_far.push(next);
            rest.remove(at);
            self.permute(so_far, rest, orders);
        }
    }
}

/// One choice of each.
fn product<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![Vec::new()], |all, choice| {
        let with = |so_far: Vec<T>| {
            let add = move |it: &T| so_far.iter().cloned().chain([it.clone()]).collect();
            choice.iter().map(add).collect::<Vec<Vec<T>>>()
        };
        all.into_iter().flat_map(with).collect()
    })
}

struct Execution<'a> {
    of: &'a Candidate,
    rf: Relation,
    /// Modification order.
    mo: Relation,
    /// From a read to the writes behind the one that it read.
    rb: Relation,
    hb: Relation,
}

impl<'a> Execution<'a> {
    fn new(of: &'a Candidate, reads: &[usize], sources: &[usize], orders: &[Vec<usize>]) -> Self {
        let count = of.events.len();
        let (mut rf, mut mo, mut rb) =
            (Relation::none(count), Relation::none(count), Relation::none(count));
        for (&read, &source) in reads.iter().zip(sources) {
            rf.add(source, read);
        }
        for order in orders {
            for (at, &write) in order.iter().enumerate() {
                order[at + 1..].iter().for_each(|&later| mo.add(write, later));
            }
        }
        for (&read, &source) in reads.iter().zip(sources) {
            // A read-modify-write is one event, and not behind itself.
            (0..count)
                .filter(|&it| it != read && mo.has(source, it))
                .for_each(|it| rb.add(read, it));
        }
        let hb = Self::happens_before(of, &rf);
        Execution { of, rf, mo, rb, hb }
    }

    fn happens_before(of: &Candidate, rf: &Relation) -> Relation {
        let count = of.events.len();
        let is_atomic = |it: &Event| it.order != Order::Plain;
        let writes = of.set(|it| it.written.is_some() && is_atomic(it));
        let reads = of.set(|it| it.read.is_some() && is_atomic(it));
        let fences = of.set(|it| it.place.is_none());
        let changes = of.set(|it| it.written.is_some() && it.read.is_some());
        // A release sequence: a write, and the read-modify-writes that read it or each other.
        let sequence = rf.between(u64::MAX, changes).closed().or_none();
        let from_write = Relation::none(count).or_none().between(u64::MAX, writes).then(&sequence);
        let met = from_write.then(rf).between(u64::MAX, reads);
        let none = Relation::none(count).or_none();
        let before = of.sb.between(fences, writes).or(&none);
        let after = of.sb.between(reads, fences).or(&none);
        let releases = of.set(|it| it.order.releases());
        let acquires = of.set(|it| it.order.acquires());
        let sw = before.then(&met).then(&after).between(releases, acquires);
        of.sb.or(&sw).closed()
    }

    /// Whether C11 permits it: nothing if not, otherwise whether only by load buffering.
    fn is_consistent(&self) -> Option<bool> {
        let eco = self.rf.or(&self.mo).or(&self.rb).closed();
        let is_coherent =
            self.hb.is_irreflexive() && eco.is_irreflexive() && self.hb.then(&eco).is_irreflexive();
        // Nobody writes between what a read-modify-write reads and what it writes.
        let is_atomic = self.rb.then(&self.mo).is_irreflexive();
        if !is_coherent || !is_atomic || !self.of.dep.or(&self.rf).is_acyclic() || !self.is_sc(&eco)
        {
            return None;
        }
        Some(!self.of.sb.or(&self.rf).is_acyclic())
    }

    fn is_sc(&self, eco: &Relation) -> bool {
        let of = self.of;
        let sc = of.set(|it| it.order == Order::SeqCst);
        let fences = of.set(|it| it.order == Order::SeqCst && it.place.is_none());
        if sc == 0 {
            return true;
        }
        let place = |at: usize| of.events[at].place.as_ref();
        let same = |a: usize, b: usize| place(a).is_some() && place(a) == place(b);
        let other = of.sb.filter(|a, b| !same(a, b));
        let around = other.then(&self.hb).then(&other);
        let scb = of.sb.or(&around).or(&self.hb.filter(same)).or(&self.mo).or(&self.rb);
        let none = Relation::none(of.events.len()).or_none();
        let begin = none.between(sc, sc).or(&self.hb.or_none().between(fences, u64::MAX));
        let end = none.between(sc, sc).or(&self.hb.or_none().between(u64::MAX, fences));
        let base = begin.then(&scb).then(&end);
        let by_fences = self.hb.or(&self.hb.then(eco).then(&self.hb)).between(fences, fences);
        base.or(&by_fences).is_acyclic()
    }

    /// Whether two threads touch a place at once, one of them without an atomic access.
    fn has_race(&self) -> bool {
        let events = &self.of.events;
        let races = |a: usize, b: usize| {
            let (one, two) = (&events[a], &events[b]);
            one.place.is_some()
                && one.place == two.place
                && self.of.threads[a] != self.of.threads[b]
                && (one.written.is_some() || two.written.is_some())
                && (one.order == Order::Plain || two.order == Order::Plain)
                && !self.hb.has(a, b)
                && !self.hb.has(b, a)
        };
        (0..events.len()).any(|a| (0..a).any(|b| races(a, b)))
    }
}

fn holds(condition: &Condition, chosen: &[&Trace], last: &impl Fn(&String) -> i64) -> bool {
    match condition {
        Condition::Register(thread, register, value) => chosen
            .get(*thread)
            .is_some_and(|it| it.registers.get(register).copied().unwrap_or(0) == *value),
        Condition::Place(place, value) => last(place) == *value,
        Condition::Not(inner) => !holds(inner, chosen, last),
        Condition::All(parts) => parts.iter().all(|it| holds(it, chosen, last)),
        Condition::Any(parts) => parts.iter().any(|it| holds(it, chosen, last)),
    }
}
