//! The harness of every program: schedules of two kinds, and a row for the table.
//!
//! shuttle runs a program under many random schedules. In each, one thread at a time makes a step,
//! so shuttle tests interleavings, but no memory orderings. *Random* takes any thread at each step.
//! *PCT* gives threads priorities, and changes them at a few steps, which finds bugs that need one
//! thread to be suspended for long. It is by Burckhardt et al., *A randomized scheduler with
//! probabilistic guarantees of finding bugs*, ASPLOS 2010.

#![allow(dead_code)] // each test target is a crate, and uses a part of this

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use std::{env, str};

/// The number of steps of a schedule at which PCT changes a thread's priority.
const CHANGES: usize = 3;

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    config
}

/// Returns the number of schedules of each kind: `FILCH_SCHEDULES`, or 1000.
fn schedules() -> usize {
    env::var("FILCH_SCHEDULES").map_or(1000, |it| it.parse().expect("FILCH_SCHEDULES is a number"))
}

/// Runs a program under schedules of both kinds. shuttle reports a program that hangs as a
/// deadlock.
pub(crate) fn explore(name: &str, program: impl Fn() + Clone + Send + Sync + 'static) {
    let start = Instant::now();
    let random = Runner::new(RandomScheduler::new(schedules()), config()).run(program.clone());
    let pct = Runner::new(PctScheduler::new(CHANGES, schedules()), config()).run(program);
    note(name, random, pct, start, "holds");
}

/// Expects that a program with a planted bug fails with this message. Notes how many schedules that
/// takes.
pub(crate) fn fails(name: &str, message: &str, program: impl Fn() + Clone + Send + Sync + 'static) {
    let start = Instant::now();
    let until_failure = |run: &dyn Fn(usize)| {
        // Doubles the number of schedules until the program fails, which gives the order of
        // magnitude without a counter in the program.
        let mut most = 1;
        while most <= 1 << 16 {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(most))) {
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("");
                assert!(text.contains(message), "it failed otherwise: {text}");
                return Some(most);
            }
            most *= 2;
        }
        None
    };
    let by_chance = program.clone();
    let random = until_failure(&|most| {
        Runner::new(RandomScheduler::new(most), config()).run(by_chance.clone());
    });
    let pct = until_failure(&|most| {
        Runner::new(PctScheduler::new(CHANGES, most), config()).run(program.clone());
    });
    assert!(random.is_some() || pct.is_some(), "the planted bug was not found");
    note(name, random.unwrap_or(0), pct.unwrap_or(0), start, "caught");
}

fn note(name: &str, random: usize, pct: usize, start: Instant, verdict: &str) {
    let row = format!("{name}\t{random}\t{pct}\t{:.1}\t{verdict}\n", start.elapsed().as_secs_f64());
    print!("{row}");
    if let Ok(path) = env::var("FILCH_SCHEDULES_TO") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(row.as_bytes()).unwrap();
    }
}
