//! `cargo xtask shuttle`: whole pools and schedulers under random schedules, and bugs that these must find.
//!
//! loom tries every execution of small programs; shuttle tries some of large ones, with every ordering as strong as
//! can be. So it says nothing of orderings and much of who waits for whom.

use crate::cargo::{self, TestBinary};
use crate::process::{self, Progress};
use crate::table::{Table, grouped};
use crate::{Arguments, Result, all_well};
use std::fs;

/// How many schedules of each kind a program is played under, if it is not said.
const SCHEDULES: u64 = 2000;

pub(crate) fn command(mut arguments: Arguments) -> Result {
    let schedules = arguments.number("--schedules")?.unwrap_or(SCHEDULES);
    let filter = arguments.last()?.unwrap_or_default();
    let mut tests: Vec<(TestBinary, String)> = Vec::new();
    for binary in build()? {
        let names = binary.tests()?.into_iter();
        tests.extend(
            names.map(|name| (binary.clone(), name)).filter(|(_, it)| it.contains(&filter)),
        );
    }
    if tests.is_empty() {
        return Err(format!("no program is called `{filter}`").into());
    }
    let progress = Progress::of(tests.len());
    let played = process::each(&tests, |(binary, name)| {
        let played = play(binary, name, schedules);
        let verdict = if matches!(played, Ok(Ok(_))) { "ok" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {name}"));
        played
    });
    let mut table = Table::new(&["program", "random", "PCT", "seconds", "verdict"]);
    let (mut total, mut caught, mut failures) = (0_u64, 0, Vec::new());
    for ((_, name), played) in tests.iter().zip(played) {
        match played? {
            Ok(rows) => {
                for row in rows {
                    caught += usize::from(row[4] == "caught");
                    total += row[1..3].iter().filter_map(|it| it.parse::<u64>().ok()).sum::<u64>();
                    table.row(row);
                }
            }
            Err(why) => failures.push(format!("{name}: {why}")),
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

fn build() -> Result<Vec<TestBinary>> {
    let mut build = cargo::stable();
    build.env("RUSTFLAGS", "--cfg shuttle");
    build.args(["test", "--release", "--package", "filch", "--test", "shuttle", "--target-dir"]);
    build.arg(cargo::target_dir()?.join("shuttle"));
    cargo::build_tests(build)
}

/// The rows that the harness wrote, or why there are none.
fn play(
    binary: &TestBinary,
    name: &str,
    schedules: u64,
) -> Result<std::result::Result<Vec<[String; 5]>, String>> {
    let folder = cargo::folder(cargo::reports()?.join("shuttle"))?;
    let stem = name.replace("::", "-");
    let (log, rows) = (folder.join(format!("{stem}.log")), folder.join(format!("{stem}.tsv")));
    // The harness appends: rows of an earlier run must not count.
    let _ = fs::remove_file(&rows);
    let mut child = binary.test(name);
    child.env("FILCH_SCHEDULES", schedules.to_string()).env("FILCH_SCHEDULES_TO", &rows);
    let (end, _) = process::run(process::log_to(&mut child, &log)?, None)?;
    if !end.is_success() {
        let log_name = cargo::relative(&log);
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
