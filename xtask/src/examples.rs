//! `cargo xtask examples`: runs every example. Each must succeed and refuse a wrong argument with a
//! helpful message.

use crate::usage::word;
use clap::ArgMatches;
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well, cargo, folders};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const FOLDER: &str = "examples";

/// Each example, with the arguments of a short run.
const EXAMPLES: [(&str, &[&str]); 9] = [
    ("tour", &[]),
    ("tenants", &["--quick"]),
    ("harness", &["--tasks", "20000"]),
    ("trace", &[]),
    ("pictures", &["--check"]),
    ("pool_from_parts", &[]),
    ("blocking_queue", &["100000"]),
    ("io_driver", &[]),
    ("service", &["load", "--quick"]),
];

/// The examples that are a binary of the package `filch-NAME`. It is no default member, so that no
/// other command builds its dependencies.
const APART: [&str; 1] = ["service"];

/// An argument that no example knows.
const NONSENSE: &str = "--nonsense";

/// An example hangs if it takes longer than this.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("examples")
        .about("Run every example, and ask it for what it cannot do")
        .arg(word("NAME", "Run this example only"))
        .after_help("Example: cargo xtask examples tour")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let only = given.get_one::<String>("NAME");
    let known: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let there = names()?;
    let mut failures: Vec<String> =
        there.symmetric_difference(&known).map(|it| format!("{it} is not here or there")).collect();
    let chosen: Vec<_> =
        EXAMPLES.iter().filter(|it| only.is_none_or(|only| only == it.0)).collect();
    let apart = chosen.iter().filter(|it| APART.contains(&it.0));
    // The builds are optimized, with the profile in which `cargo test` builds the same
    // dependencies.
    let mut builds = vec![vec!["--examples".to_owned()]];
    builds.extend(apart.map(|it| vec!["--package".to_owned(), format!("filch-{}", it.0)]));
    for build in builds {
        if !cargo::stable().args(["build", "--profile", "test"]).args(build).status()?.success() {
            return Err("the examples cannot be built".into());
        }
    }
    let mut table = Table::new(&["example", "arguments", "seconds", "verdict", "last line"]);
    let progress = Progress::of(chosen.len());
    for (name, arguments) in chosen {
        let log = folders::reports()?.join(format!("example-{name}.log"));
        let (end, seconds) = run(name, arguments, &log)?;
        let last = fs::read_to_string(&log)?.lines().next_back().unwrap_or_default().to_owned();
        let mut found = Vec::new();
        if !end.is_success() || last.is_empty() {
            found.push(format!("fails, or says nothing:\n{}", process::tail(&log, 20)));
        }
        found.extend(introduces_itself(name)?);
        found.extend(refuses_nonsense(name)?);
        let verdict = if found.is_empty() { "ok" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {name}"));
        let row = [(*name).to_owned(), arguments.join(" "), format!("{seconds:.1}")];
        let [name, arguments, seconds] = row;
        failures.extend(found.into_iter().map(|it| format!("{name} {it}")));
        table.row([name, arguments, seconds, verdict.to_owned(), last]);
    }
    table.publish("examples")?;
    all_well(failures)
}

/// Returns the names of all examples: files, and packages with a `main.rs`.
fn names() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(FOLDER)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|it| it == "rs") {
            names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
        }
    }
    Ok(names)
}

fn run(name: &str, arguments: &[&str], log: &Path) -> Result<(End, f64)> {
    let program = match APART.contains(&name) {
        true => format!("filch-{name}"),
        false => format!("examples/{name}"),
    };
    let mut command = Command::new(folders::target_dir()?.join("debug").join(program));
    command.args(arguments).env("RUST_BACKTRACE", "0");
    process::run(process::log_to(&mut command, log)?, Some(LIMIT))
}

/// Checks that the example's header says how to run it.
fn introduces_itself(name: &str) -> Result<Option<String>> {
    let file = PathBuf::from(FOLDER).join(format!("{name}.rs"));
    let file = if file.exists() { file } else { PathBuf::from(FOLDER).join(name).join("main.rs") };
    let text = fs::read_to_string(&file)?;
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let typed = match APART.contains(&name) {
        true => format!("cargo run --release -p filch-{name}"),
        false => format!("cargo run --release --example {name}"),
    };
    let says = header.iter().any(|line| line.contains(&typed));
    Ok((!says).then(|| format!("does not say in its header how it is run: `{typed}`")))
}

/// Checks that the example fails on an argument that it does not know, and names those that it
/// knows.
fn refuses_nonsense(name: &str) -> Result<Option<String>> {
    let log = folders::reports()?.join(format!("example-{name}-nonsense.log"));
    let (end, _) = run(name, &[NONSENSE], &log)?;
    let text = fs::read_to_string(&log)?.to_lowercase();
    let helps = text.contains("usage") || text.contains("--help");
    let is_well = !end.is_success() && helps && !text.contains("panicked");
    Ok((!is_well).then(|| format!("takes {NONSENSE}, or says nothing helpful: `{text}`")))
}
