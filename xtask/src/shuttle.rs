//! `cargo xtask shuttle`: runs whole pools and schedulers under random schedules, and bugs that
//! these must find.
//!
//! loom tries every execution of small programs; shuttle tries some executions of large ones, with
//! every ordering at its strongest. So it shows nothing about orderings, and much about threads
//! that wait for each other.

use crate::usage::{number, word};
use clap::ArgMatches;
use runner::cargo::{self, Test};
use runner::folders::{self, relative};
use runner::process::{self, Progress};
use runner::table::{Table, grouped};
use runner::{Result, all_well};
use std::fs;

/// The schedules of each kind under which a program is played, unless `--schedules` is given.
const SCHEDULES: u64 = 2000;

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("shuttle")
        .about("Run whole pools and schedulers under random schedules")
        .arg(number("schedules", "Play each program under N schedules of each kind (2000)"))
        .arg(word("FILTER", "Play the programs whose names contain this"))
        .after_help("Example: cargo xtask shuttle --schedules 40000 batch")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let schedules = given.get_one::<u64>("schedules").copied().unwrap_or(SCHEDULES);
    let filter = given.get_one::<String>("FILTER").map_or("", String::as_str);
    let mut tests = tests()?;
    tests.retain(|test| test.name.contains(filter));
    if tests.is_empty() {
        return Err(format!("no program is called `{filter}`").into());
    }
    let progress = Progress::of(tests.len());
    let played = process::each(&tests, |test| {
        let played = play(test, schedules);
        let verdict = if matches!(played, Ok(Ok(_))) { "ok" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {}", test.name));
        played
    });
    let mut table = Table::new(&["program", "random", "PCT", "seconds", "verdict"]);
    let (mut total, mut caught, mut failures) = (0_u64, 0, Vec::new());
    for (test, played) in tests.iter().zip(played) {
        match played? {
            Ok(rows) => {
                for row in rows {
                    caught += usize::from(row[4] == "caught");
                    total += row[1..3].iter().filter_map(|it| it.parse::<u64>().ok()).sum::<u64>();
                    table.row(row);
                }
            }
            Err(why) => failures.push(format!("{}: {why}", test.name)),
        }
    }
    table.publish("shuttle")?;
    let (programs, total) = (tests.len() - caught, grouped(&total.to_string()));
    println!("\n{programs} programs, {total} schedules, {caught} canaries caught");
    if caught == 0 && filter.is_empty() {
        failures.push("no planted bug was found, so nothing is shown".to_owned());
    }
    all_well(failures)
}

fn tests() -> Result<Vec<Test>> {
    let mut build = cargo::stable();
    build.env("RUSTFLAGS", "--cfg shuttle");
    build.args(["test", "--release", "--package", "filch", "--test", "shuttle", "--target-dir"]);
    build.arg(folders::target_dir()?.join("shuttle"));
    cargo::tests(cargo::build_tests(build)?)
}

/// Returns the rows that the harness wrote, or why there are none.
fn play(test: &Test, schedules: u64) -> Result<std::result::Result<Vec<[String; 5]>, String>> {
    let folder = folders::folder(folders::reports()?.join("shuttle"))?;
    let name = &test.name;
    let stem = name.replace("::", "-");
    let (log, rows) = (folder.join(format!("{stem}.log")), folder.join(format!("{stem}.tsv")));
    // The harness appends to this file, so rows of an earlier run are removed.
    let _ = fs::remove_file(&rows);
    let mut child = test.command();
    child.env("FILCH_SCHEDULES", schedules.to_string()).env("FILCH_SCHEDULES_TO", &rows);
    let (end, _) = process::run(process::log_to(&mut child, &log)?, None)?;
    if !end.is_success() {
        let log_name = relative(&log);
        return Ok(Err(format!("failed; {log_name}:\n{}", process::tail(&log, 30))));
    }
    let written = fs::read_to_string(&rows).unwrap_or_default();
    let row = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(String::from).collect();
        <[String; 5]>::try_from(cells).map_err(|_| format!("the harness wrote `{line}`"))
    };
    let rows: std::result::Result<Vec<_>, String> = written.lines().map(row).collect();
    Ok(rows.and_then(|rows| match rows.is_empty() {
        true => Err("it says that it holds, and played nothing".to_owned()),
        false => Ok(rows),
    }))
}
