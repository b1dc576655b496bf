//! `cargo xtask spin`: checks the Promela model in `proofs/`, and the planted bugs that spin must
//! find in it.
//!
//! spin makes a C program that goes through every state. Its result holds for the given numbers of
//! workers, submitters and items, and for memory in which every store is seen at once.

use clap::ArgMatches;
use runner::process::succeeds;
use runner::table::Table;
use runner::{Result, all_well, folders};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const MODEL: &str = "proofs/event_count.pml";
const CLAIM: &str = "all_taken";

/// The runs of spin: the sizes, and the planted bug, if there is one.
const RUNS: &[(&[&str], Option<&str>)] = &[
    (&[], None),
    (&["WORKERS=1", "SUBMITTERS=2"], None),
    (&["SUBMITTERS=2"], None),
    (&["WORKERS=3", "ITEMS=3"], None),
    (&["WORKERS=3", "SUBMITTERS=3", "ITEMS=1"], None),
    (&[], Some("NO_SECOND_LOOK")),
    (&[], Some("NOTIFY_FIRST")),
    (&[], Some("CANCEL_SWALLOWS")),
    (&[], Some("NO_SIGNALS")),
];

/// Returns how to install spin or a C compiler if one is missing.
pub(crate) fn missing() -> Option<String> {
    let there = |program: &str, argument: &str| succeeds(Command::new(program).arg(argument));
    (!there("spin", "-V") || !there("gcc", "--version"))
        .then(|| "no spin or no gcc: `apt-get install spin gcc`".to_owned())
}

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("spin").about("Check the Promela models: is every item taken at last?")
}

pub(crate) fn command(_: &ArgMatches) -> Result {
    if let Some(reason) = missing() {
        return Err(reason.into());
    }
    let mut table = Table::new(&["model", "size", "planted", "states", "seconds", "verdict"]);
    let mut failures = Vec::new();
    for (size, planted) in RUNS {
        let start = Instant::now();
        let found = check(size, *planted)?;
        let verdict = match (found.errors, planted) {
            (0, None) => "holds",
            (0, Some(_)) => "MISSED",
            (_, None) => "VIOLATED",
            (_, Some(_)) => "caught",
        };
        let size = if size.is_empty() { "as written".to_owned() } else { size.join(" ") };
        let planted = planted.unwrap_or("-");
        if matches!(verdict, "MISSED" | "VIOLATED") {
            failures.push(format!("{CLAIM}, {size}, planted {planted}: {verdict}"));
        }
        eprintln!("{verdict:<8} {size}, planted: {planted}");
        table.row([
            MODEL.to_owned(),
            size,
            planted.to_owned(),
            found.states.to_string(),
            format!("{:.1}", start.elapsed().as_secs_f64()),
            verdict.to_owned(),
        ]);
    }
    table.publish("spin")?;
    all_well(failures)
}

struct Found {
    errors: u64,
    states: u64,
}

fn check(size: &[&str], planted: Option<&str>) -> Result<Found> {
    let folder = folders::folder(folders::reports()?.join("spin"))?;
    let model = fs::canonicalize(MODEL)?;
    let defined = size.iter().copied().chain(planted).map(|it| format!("-D{it}"));
    output(&folder, Command::new("spin").args(defined).arg("-a").arg(model))?;
    let flags = ["-O2", "-DCOLLAPSE", "-DNFAIR=6", "-o", "pan", "pan.c"];
    output(&folder, Command::new("gcc").args(flags))?;
    let flags = ["-m1000000", "-a", "-f", "-N", CLAIM];
    let said = output(&folder, Command::new(folder.join("pan")).args(flags))?;
    if said.contains("max search depth too small") || said.contains("out of memory") {
        return Err(format!("spin has not gone through every state:\n{said}").into());
    }
    let number = |text: Option<&str>| text.and_then(|it| it.trim().parse::<f64>().ok());
    let errors = said.split("errors:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let states =
        said.lines().find_map(|line| line.split("states, stored").next().filter(|it| *it != line));
    match (number(errors), number(states)) {
        (Some(errors), Some(states)) => Ok(Found { errors: errors as u64, states: states as u64 }),
        _ => Err(format!("spin says neither errors nor states:\n{said}").into()),
    }
}

/// Runs a command in a folder, and returns its output.
fn output(folder: &Path, command: &mut Command) -> Result<String> {
    let output = command.current_dir(folder).output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(said.into_owned()),
        false => Err(format!("{command:?} failed:\n{said}").into()),
    }
}
