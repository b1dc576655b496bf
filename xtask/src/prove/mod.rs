//! `cargo xtask prove`: checks every claim about the structures, and records how far each was
//! checked.
//!
//! It runs the commands that each check one kind of claim, and makes one report of their tables:
//! `target/filch/proof.md`, and `proof.tsv` with its summary.

mod bugs;
mod claims;
mod report;

use crate::usage::flag;
use crate::{nightly, spin, unrun, valgrind};
use clap::ArgMatches;
use runner::{Result, all_well, cargo, process};
use std::env;
use std::process::Command;
use std::time::Instant;

/// One of our own commands: its name, its arguments with `--quick`, those without, and why it
/// cannot run.
struct Part {
    name: &'static str,
    quick: &'static [&'static str],
    full: &'static [&'static str],
    skipped: Option<String>,
}

fn parts() -> Vec<Part> {
    let part = |name, quick, full, skipped| Part { name, quick, full, skipped };
    vec![
        part("litmus", &[], &[], None),
        part("shuttle", &[], &["--schedules", "200000"], None),
        part("spin", &[], &[], spin::missing()),
        part("valgrind", &[], &[], valgrind::missing()),
        part("loom", &[], &[], None),
        part("defects", &[], &[], None),
        part("sanitize", &["--stress"], &[], nightly::missing()),
        part("fuzz", &["--seconds", "10"], &["--seconds", "3600"], nightly::missing_for_fuzz()),
        part("orderings", &["--quick"], &[], None),
        part("mutants", &[], &[], cargo::missing("mutants")),
    ]
}

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("prove")
        .about("Check all that is claimed of the structures, and write a report")
        .arg(flag("quick", "Take minutes, not hours: fewer preemptions, no mutants"))
        .arg(flag("from-reports", "Run nothing: report what the commands have found before"))
        .after_help("Example: cargo xtask prove --quick")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let quick = given.get_flag("quick");
    let from_reports = given.get_flag("from-reports");
    let start = Instant::now();
    let mut failures = Vec::new();
    let mut ran = Vec::new();
    // A recorded run of the mutants (`proofs/mutants.tsv`) stands in for them, as they take hours.
    for part in parts().into_iter().filter(|it| !(quick || from_reports) || it.name != "mutants") {
        let more = if quick { part.quick } else { part.full };
        if let Some(reason) = part.skipped {
            eprintln!("{}: skipped: {reason}", part.name);
            continue;
        }
        ran.push(part.name);
        if from_reports {
            continue;
        }
        eprintln!("{} ...", part.name);
        let mut command = Command::new(env::current_exe()?);
        command.arg(part.name).args(more);
        if quick && part.name == "loom" {
            command.env("FILCH_PREEMPTIONS_AT_MOST", "2");
        }
        let (end, seconds) = process::run(&mut command, None)?;
        eprintln!("{}: {seconds:.0} s", part.name);
        if !end.is_success() {
            failures.push(format!("`cargo xtask {}` failed", part.name));
        }
    }
    let command = match (quick, from_reports) {
        (_, true) => "cargo xtask prove --from-reports",
        (true, false) => "cargo xtask prove --quick",
        (false, false) => "cargo xtask prove",
    };
    failures.extend(report::write(&ran, command, start.elapsed())?);
    if from_reports {
        let unrun = unrun::tests(true)?.into_iter();
        failures.extend(unrun.map(|test| format!("no step has run {test}")));
    }
    all_well(failures)
}
