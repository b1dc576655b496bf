//! `cargo xtask versus`: prints filch's speed as a ratio to the rivals', measured in one run.

use crate::usage::word;
use clap::ArgMatches;
use runner::folders::{self, relative};
use runner::table::Table;
use runner::{Result, cargo, process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest acceptable ratio of the time of rayon's iterators on filch's threads to that on
/// rayon's own.
const GOAL: f64 = 1.05;

/// The number of runs of each of the two programs. The table shows medians.
const ROUNDS: usize = 11;

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("versus")
        .about("Measure our speed as a ratio to the rivals'")
        .arg(word(
            "STRUCTURE",
            "deque (if none is named), injector, idle, pool, futures, waits, fair, iterators or query",
        ))
        .after_help("Example: cargo xtask versus pool")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let structure = given.get_one::<String>("STRUCTURE").map_or("deque", String::as_str);
    match structure {
        "iterators" => return iterators(),
        "query" => return query(),
        _ => {}
    }
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

/// Builds a program on filch's threads and on rayon's own. They are two programs, since only one
/// `rayon-core` fits in one.
fn on_filch_and_rayon(name: &str) -> Result<[PathBuf; 2]> {
    let target = folders::target_dir()?;
    let build = |arguments: &[&str], target: &Path| -> Result {
        let mut command = cargo::stable();
        command.args(["build", "--release"]).args(arguments).arg("--target-dir").arg(target);
        let (end, _) = process::run(&mut command, None)?;
        if end.is_success() { Ok(()) } else { Err("the benchmark does not build".into()) }
    };
    build(&["--package", "filch-benches", "--bin", name], &target)?;
    let on_filch = ["--manifest-path", "compat/rayon-core/Cargo.toml", "--example", name];
    build(&on_filch, &target.join("rayon"))?;
    let programs = [target.join("rayon/release/examples"), target.join("release")];
    Ok(programs.map(|it| it.join(name)))
}

/// Compares the times of two tenants that query the same texts: on rayon's threads, and on filch's
/// without queues and with queues. The program on rayon's threads runs first. It writes its row to
/// a file, for the chart of the other program.
fn query() -> Result {
    let [on_filch, on_rayon] = on_filch_and_rayon("query")?;
    let tsv = folders::reports()?.join("query.tsv");
    for program in [on_rayon, on_filch] {
        let (end, _) = process::run(Command::new(program).env("FILCH_TSV", &tsv), None)?;
        if !end.is_success() {
            return Err("the query failed".into());
        }
    }
    Ok(())
}

/// Compares rayon's iterators on filch's threads with those on rayon's own. The two programs run by
/// turns.
fn iterators() -> Result {
    let programs = on_filch_and_rayon("iterators")?;
    // The name of each row, and both times of each round.
    let mut rows: Vec<(String, Vec<[f64; 2]>)> = Vec::new();
    for round in 0..ROUNDS {
        let mut times = [Vec::new(), Vec::new()];
        for turn in [round % 2, 1 - round % 2] {
            times[turn] = measured(&programs[turn])?;
        }
        let [ours, theirs] = times;
        for (row, ((name, ours), (_, theirs))) in ours.into_iter().zip(theirs).enumerate() {
            if round == 0 {
                rows.push((name, Vec::new()));
            }
            rows[row].1.push([ours, theirs]);
        }
    }
    let mut table =
        Table::new(&["ns an item, median", "filch", "rayon", "/rayon", "goal", "verdict"]);
    for (name, times) in rows {
        let of = |value: fn(&[f64; 2]) -> f64| median(times.iter().map(value).collect());
        let ratio = of(|it| it[0] / it[1]);
        table.row([
            name,
            format!("{:.2}", of(|it| it[0])),
            format!("{:.2}", of(|it| it[1])),
            format!("{ratio:.2}"),
            GOAL.to_string(),
            if ratio <= GOAL { "ok" } else { "above goal" }.to_owned(),
        ]);
    }
    table.publish("versus-iterators")
}

/// Returns the rows that a program prints: a name and a time each.
fn measured(program: &Path) -> Result<Vec<(String, f64)>> {
    let output = Command::new(program).output()?;
    let said = String::from_utf8(output.stdout)?;
    let row = |line: &str| {
        let (name, time) = line.split_once('\t')?;
        Some((name.to_owned(), time.parse().ok()?))
    };
    let rows: Option<Vec<_>> = said.lines().map(row).collect();
    match rows.filter(|it| output.status.success() && !it.is_empty()) {
        Some(rows) => Ok(rows),
        None => Err(format!("{} said: {said}", relative(program)).into()),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
