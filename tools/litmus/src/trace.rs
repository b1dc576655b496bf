//! All ways through one thread, if every read may give any value that some thread writes.

use crate::program::Program;
use crate::syntax::{Expression, Modify, Order, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// An access to memory, or a fence.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Nothing for a fence.
    pub(crate) place: Option<String>,
    pub(crate) read: Option<i64>,
    pub(crate) written: Option<i64>,
    pub(crate) order: Order,
    /// Which reads of the thread it depends on, by data or control, as bits; those of a write
    /// count.
    pub(crate) depends: u64,
}

/// One way through a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
    pub(crate) registers: BTreeMap<String, i64>,
}

/// The values that each place may have.
pub(crate) type Domains = BTreeMap<String, BTreeSet<i64>>;

/// More values than this, and a test counts without end.
const MOST_VALUES: usize = 12;

/// All ways through each thread, and the values that go with them.
pub(crate) fn traces(program: &Program) -> (Vec<Vec<Trace>>, Domains) {
    let mut domains = Domains::new();
    for (place, value) in &program.first {
        domains.entry(place.clone()).or_default().insert(*value);
    }
    loop {
        let all: Vec<Vec<Trace>> =
            program.threads.iter().map(|it| Walk::through(it, &program.first, &domains)).collect();
        let mut grown = domains.clone();
        for event in all.iter().flatten().flat_map(|it| &it.events) {
            let Some(place) = &event.place else { continue };
            let first = program.first.get(place).copied().unwrap_or(0);
            let values = grown.entry(place.clone()).or_insert_with(|| BTreeSet::from([first]));
            values.extend(event.written.filter(|_| values.len() < MOST_VALUES));
        }
        if grown == domains {
            return (all, domains);
        }
        domains = grown;
    }
}

/// Where a walk is.
#[derive(Clone, Default)]
struct Walk {
    trace: Trace,
    /// On which reads a register depends.
    taints: BTreeMap<String, u64>,
    /// On which reads it depends that we are here.
    control: u64,
}

impl Walk {
    fn through(
        statements: &[Statement],
        first: &BTreeMap<String, i64>,
        domains: &Domains,
    ) -> Vec<Trace> {
        let mut walks = vec![Walk::default()];
        let context = Context { first, domains };
        for statement in statements {
            walks = walks.into_iter().flat_map(|it| it.step(statement, &context)).collect();
        }
        walks.into_iter().map(|it| it.trace).collect()
    }

    fn step(self, statement: &Statement, context: &Context<'_>) -> Vec<Walk> {
        match statement {
            Statement::Assign(register, expression) => {
                let assign = |(mut walk, value, taint): (Walk, i64, u64)| {
                    walk.trace.registers.insert(register.clone(), value);
                    walk.taints.insert(register.clone(), taint);
                    walk
                };
                self.evaluate(expression, context).into_iter().map(assign).collect()
            }
            Statement::Evaluate(expression) => {
                self.evaluate(expression, context).into_iter().map(|(walk, ..)| walk).collect()
            }
            Statement::Store(place, expression, order) => {
                let store = |(mut walk, value, taint): (Walk, i64, u64)| {
                    walk.add(Some(place), None, Some(value), *order, taint);
                    walk
                };
                self.evaluate(expression, context).into_iter().map(store).collect()
            }
            Statement::Fence(order) => {
                let mut walk = self;
                walk.add(None, None, None, *order, 0);
                vec![walk]
            }
            Statement::If(condition, then, other) => {
                let mut ends = Vec::new();
                for (mut walk, value, taint) in self.evaluate(condition, context) {
                    walk.control |= taint;
                    let mut walks = vec![walk];
                    for statement in if value != 0 { then } else { other } {
                        walks =
                            walks.into_iter().flat_map(|it| it.step(statement, context)).collect();
                    }
                    ends.extend(walks);
                }
                ends
            }
        }
    }

    /// Adds an event; returns its bit.
    fn add(
        &mut self,
        place: Option<&String>,
        read: Option<i64>,
        written: Option<i64>,
        order: Order,
        taint: u64,
    ) -> u64 {
        let depends = taint | self.control;
        self.trace.events.push(Event { place: place.cloned(), read, written, order, depends });
        1 << (self.trace.events.len() - 1)
    }

    /// The values that the expression may have, with the reads that they depend on.
    fn evaluate(self, expression: &Expression, context: &Context<'_>) -> Vec<(Walk, i64, u64)> {
        match expression {
            Expression::Number(number) => vec![(self, *number, 0)],
            Expression::Register(name) => {
                let value = self.trace.registers.get(name).copied().unwrap_or(0);
                let taint = self.taints.get(name).copied().unwrap_or(0);
                vec![(self, value, taint)]
            }
            Expression::Binary(left, operator, right) => {
                let mut all = Vec::new();
                for (walk, a, taint) in self.evaluate(left, context) {
                    for (walk, b, more) in walk.evaluate(right, context) {
                        all.push((walk, apply(a, operator, b), taint | more));
                    }
                }
                all
            }
            Expression::Load(place, order) => self.read(place, *order, context),
            Expression::Modify(place, how, by, order) => {
                let mut all = Vec::new();
                for (walk, by, taint) in self.evaluate(by, context) {
                    for old in context.values(place) {
                        let new = match how {
                            Modify::Add => old + by,
                            Modify::Sub => old - by,
                            Modify::Exchange => by,
                        };
                        let mut walk = walk.clone();
                        let bit = walk.add(Some(place), Some(old), Some(new), *order, taint);
                        all.push((walk, old, bit));
                    }
                }
                all
            }
            Expression::CompareExchange(place, expected, new, success, failure) => {
                let mut all = Vec::new();
                for (walk, wanted, taint) in self.read(expected, Order::Plain, context) {
                    for (walk, new, more) in walk.evaluate(new, context) {
                        for old in context.values(place) {
                            let mut walk = walk.clone();
                            let taint = taint | more;
                            let bit = if old == wanted {
                                walk.add(Some(place), Some(old), Some(new), *success, taint)
                            } else {
                                let bit = walk.add(Some(place), Some(old), None, *failure, taint);
                                walk.add(Some(expected), None, Some(old), Order::Plain, bit);
                                bit
                            };
                            all.push((walk, i64::from(old == wanted), bit));
                        }
                    }
                }
                all
            }
        }
    }

    fn read(self, place: &String, order: Order, context: &Context<'_>) -> Vec<(Walk, i64, u64)> {
        let read = |value| {
            let mut walk = self.clone();
            let bit = walk.add(Some(place), Some(value), None, order, 0);
            (walk, value, bit)
        };
        context.values(place).into_iter().map(read).collect()
    }
}

struct Context<'a> {
    first: &'a BTreeMap<String, i64>,
    domains: &'a Domains,
}

impl Context<'_> {
    fn values(&self, place: &str) -> Vec<i64> {
        match self.domains.get(place) {
            Some(values) => values.iter().copied().collect(),
            None => vec![self.first.get(place).copied().unwrap_or(0)],
        }
    }
}

fn apply(a: i64, operator: &str, b: i64) -> i64 {
    match operator {
        "+" => a + b,
        "-" => a - b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        _ => i64::from(a != 0 && b != 0),
    }
}
