//! Runs a model: bounds its preemptions, prints a row with the number of its executions, and checks
//! that it explored enough.
//!
//! A model passes if every execution that loom generates, up to the stated bound on preemptions,
//! satisfies its assertions. A model that spawns no thread fails, because it shows nothing. So does
//! a model that, with the bound it asks for, explores fewer than a dozen executions.

#![allow(dead_code, unreachable_pub)] // each test target is a crate, and uses a part of this

pub mod canary;
pub mod deques;
pub mod injectors;
pub mod order;
mod stack_cache;
pub mod thieves;
pub mod trace;
pub mod tray;

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;
use std::{env, fmt};

/// How far a model is explored.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Every execution that loom generates.
    Exhaustive,
    /// Executions with at most this many preemptions.
    Preemptions(usize),
    /// At most this many preemptions, for a model that takes seconds. The audit (`cargo xtask
    /// orderings`), which runs models again for every site, leaves this model out.
    Slow(usize),
    /// At most `preemptions`, for a model that takes about `seconds`, more than ten. The audit and
    /// `cargo xtask loom --usual`, which runs for every change, leave the model out. CI (`--short`)
    /// takes away one of several preemptions, and the weekly campaign takes away none.
    Long { preemptions: usize, seconds: u32 },
    /// The bound `most` (`None` is every execution), for a model that takes more than ten seconds
    /// with this bound. For a change, and in CI, the model has `short` preemptions.
    Deep { most: Option<usize>, short: usize },
    /// At most this many preemptions, for a model that shows nothing with fewer. The audit does not
    /// lower this bound.
    Needs(usize),
}

impl Bound {
    /// Returns the bound to use. `FILCH_PREEMPTIONS` replaces the bound, and
    /// `FILCH_PREEMPTIONS_AT_MOST` lowers it. With `FILCH_SHORT`, a deep model has its short bound,
    /// and a long model with several preemptions has one less.
    fn effective(self) -> Option<usize> {
        let number = |name: &str| {
            let text = env::var(name).ok()?;
            Some(text.parse::<usize>().unwrap_or_else(|_| panic!("{name} is a number")))
        };
        let is_short = env::var_os("FILCH_SHORT").is_some();
        let own = match self {
            Bound::Exhaustive => None,
            Bound::Preemptions(bound) | Bound::Slow(bound) | Bound::Needs(bound) => Some(bound),
            Bound::Long { preemptions: several @ 2.., .. } if is_short => Some(several - 1),
            Bound::Long { preemptions, .. } => Some(preemptions),
            Bound::Deep { short, .. } if is_short => Some(short),
            Bound::Deep { most, .. } => most,
        };
        let bound = number("FILCH_PREEMPTIONS").or(own);
        if matches!(self, Bound::Needs(_)) {
            return bound;
        }
        match number("FILCH_PREEMPTIONS_AT_MOST") {
            Some(most) => Some(bound.map_or(most, |it| it.min(most))),
            None => bound,
        }
    }

    /// Returns the model's tier, and roughly its seconds. Each bound belongs to one tier.
    fn tier(self) -> (&'static str, u32) {
        match self {
            Bound::Exhaustive | Bound::Preemptions(_) | Bound::Deep { .. } | Bound::Needs(_) => {
                ("usual", 1)
            }
            Bound::Slow(_) => ("usual", 5),
            Bound::Long { seconds, .. } => ("long", seconds),
        }
    }

    /// Returns whether the model is short enough to run again for every site.
    fn is_for_the_audit(self) -> bool {
        !matches!(self, Bound::Slow(_) | Bound::Long { .. })
    }
}

/// A model that explores fewer executions than this is suspect.
const FLOOR: usize = 12;

static SPAWNED: AtomicUsize = AtomicUsize::new(0);

/// Spawns a modelled thread.
pub fn spawn<R: 'static>(f: impl FnOnce() -> R + 'static) -> loom::thread::JoinHandle<R> {
    note_spawn();
    loom::thread::spawn(f)
}

/// Tells the harness that the library has spawned a modelled thread.
pub fn note_spawn() {
    SPAWNED.fetch_add(1, SeqCst);
}

/// Explores a program, or only declares its tier for `cargo xtask loom`.
///
/// # Panics
///
/// Panics if an execution fails, and for the reasons at the head of this file.
pub fn model(name: &str, bound: Bound, program: impl Fn() + Send + Sync + 'static) {
    if let Ok(path) = env::var("FILCH_DECLARE_TO") {
        let (tier, seconds) = bound.tier();
        return append(&path, &format!("{name}\t{tier}\t{seconds}\n"));
    }
    for early in ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"] {
        assert!(env::var_os(early).is_none(), "{early} stops a model early and calls it a success");
    }
    if !bound.is_for_the_audit() && env::var_os("FILCH_AUDIT").is_some() {
        return;
    }
    let bound = bound.effective();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 20_000;

    let executions = Arc::new(AtomicUsize::new(0));
    let (counter, spawned, start) = (executions.clone(), SPAWNED.load(SeqCst), Instant::now());
    builder.check(move || {
        counter.fetch_add(1, SeqCst);
        program();
    });

    let executions = executions.load(SeqCst);
    let seconds = start.elapsed().as_secs_f64();
    report(name, bound, executions, seconds);
    assert!(SPAWNED.load(SeqCst) > spawned, "{name} spawns no thread: it models nothing");
    // The audit and `cargo xtask defects` lower bounds, and take each failure for a noticed defect.
    // So this check is off under a lowered bound.
    if env::var_os("FILCH_PREEMPTIONS_AT_MOST").is_none() {
        assert!(executions >= FLOOR, "{name} explored {executions} executions: it shows nothing");
    }
}

/// Explores a model in which each thread runs one program on a shared board. The main thread runs
/// the last program. `check` is called with the board when all threads have ended.
pub fn on_a_board<B: 'static>(
    name: &str,
    bound: Bound,
    board: fn() -> loom::sync::Arc<B>,
    threads: &'static [fn(&B)],
    check: fn(&B),
) {
    model(name, bound, move || {
        let board = board();
        let (mine, others) = threads.split_last().unwrap();
        let others: Vec<_> = others
            .iter()
            .map(|body| {
                let board = board.clone();
                spawn(move || body(&board))
            })
            .collect();
        mine(&board);
        others.into_iter().for_each(|it| it.join().unwrap());
        check(&board);
    });
}

/// Writes the model's row: for people to stdout, for `cargo xtask loom` to `FILCH_MODELS_TO`.
fn report(name: &str, bound: Option<usize>, executions: usize, seconds: f64) {
    let target = env!("CARGO_CRATE_NAME");
    let bound = bound.map_or("none".to_owned(), |it| it.to_string());
    println!("MODEL {target}::{name} bound={bound} executions={executions} seconds={seconds:.2}");
    if let Ok(path) = env::var("FILCH_MODELS_TO") {
        append(&path, &format!("{target}\t{name}\t{bound}\t{executions}\t{seconds:.3}\n"));
    }
}

/// Adds a row to a file.
fn append(path: &str, row: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(row.as_bytes()).unwrap();
}

/// Compares the items taken with the items pushed, in any order.
///
/// # Panics
///
/// Panics if an item was lost, or was taken twice.
pub fn each_once<T: Ord + fmt::Debug>(pushed: impl IntoIterator<Item = T>, taken: Vec<T>) {
    let (mut pushed, mut taken) = (Vec::from_iter(pushed), taken);
    pushed.sort();
    taken.sort();
    assert_eq!(pushed, taken, "an item was lost or taken twice: pushed, taken");
}
