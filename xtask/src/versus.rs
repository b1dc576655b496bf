//! `cargo xtask versus`: our speed as a ratio to the rivals', measured in one run.

use crate::usage::word;
use clap::ArgMatches;
use runner::folders::{self, relative};
use runner::{Result, cargo, process};

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("versus")
        .about("Measure our speed as a ratio to the rivals'")
        .arg(word(
            "STRUCTURE",
            "deque (if none is named), injector, idle, pool, futures, waits or fair",
        ))
        .after_help("Example: cargo xtask versus pool")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let structure = given.get_one::<String>("STRUCTURE").map_or("deque", String::as_str);
    let tsv = folders::reports()?.join(format!("versus-{structure}.tsv"));
    let mut bench = cargo::stable();
    bench.args(["run", "--release", "--package", "filch-benches", "--bin", "versus", "--"]);
    bench.arg(structure).env("FILCH_TSV", &tsv);
    let (end, _) = process::run(&mut bench, None)?;
    if !end.is_success() {
        return Err(format!("`versus {structure}` failed").into());
    }
    if tsv.is_file() {
        eprintln!("also in {}", relative(&tsv));
    }
    Ok(())
}
