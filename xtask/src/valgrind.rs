//! `cargo xtask valgrind`: runs memcheck over tests that count drops, and over planted errors that
//! it must find.

use clap::ArgMatches;
use runner::cargo::{self, TestBinary, plain_name};
use runner::folders::{self, relative};
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The exit code of a process in which memcheck itself found errors.
const FOUND: i32 = 9;

/// The modules that are run, each after its test target. Their tests are small, and use every kind
/// of memory.
const MODULES: [(&str, &str); 3] =
    [("deque", "drops::"), ("task", "tasks::"), ("idle", "event_count::")];

/// Returns how to install valgrind if it is missing.
pub(crate) fn missing() -> Option<String> {
    let there = process::succeeds(Command::new("valgrind").arg("--version"));
    (!there).then(|| "no valgrind: `apt-get install valgrind`".to_owned())
}

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("valgrind")
        .about("Run memcheck over tests that count drops, and over planted errors")
}

pub(crate) fn command(_: &ArgMatches) -> Result {
    if let Some(reason) = missing() {
        return Err(reason.into());
    }
    let mut build = cargo::stable();
    // The options are those of `cargo test`, so that the binaries are not built again.
    build.args(["test", "--test", "stress"]);
    MODULES.iter().for_each(|(target, _)| _ = build.args(["--test", target]));
    let binaries = cargo::build_tests(build)?;
    let mut runs: Vec<(&TestBinary, Option<String>)> = Vec::new();
    for binary in &binaries {
        if binary.target != "stress" {
            runs.push((binary, None));
            continue;
        }
        let is_canary = |it: &String| plain_name(it).starts_with("canary_asan_");
        runs.extend(binary.names()?.into_iter().filter(is_canary).map(|it| (binary, Some(it))));
    }
    if !runs.iter().any(|(_, canary)| canary.is_some()) {
        return Err("`tests/stress` has no test called `canary_asan_…`".into());
    }
    let progress = Progress::of(runs.len());
    let mut table = Table::new(&["binary", "test", "seconds", "verdict"]);
    let (mut clean, mut caught, mut failures) = (0, 0, Vec::new());
    let ends = process::each(&runs, |(binary, canary)| -> Result<Run> {
        let run = run(binary, canary.as_deref())?;
        progress.step(format!("{:<6} {} {}", run.verdict, binary.target, run.name));
        Ok(run)
    });
    for ((binary, _), run) in runs.iter().zip(ends) {
        let Run { name, log, seconds, verdict } = run?;
        clean += usize::from(verdict == "clean");
        caught += usize::from(verdict == "caught");
        if !matches!(verdict, "clean" | "caught") {
            let (tail, log) = (process::tail(&log, 30), relative(&log));
            failures.push(format!("{} {name}: {verdict}; {log}:\n{tail}", binary.target));
        }
        table.row([binary.target.clone(), name, format!("{seconds:.1}"), verdict.to_owned()]);
    }
    table.publish("valgrind")?;
    println!("\n{clean} test binaries clean, {caught} canaries caught");
    all_well(failures)
}

struct Run {
    name: String,
    log: PathBuf,
    seconds: f64,
    verdict: &'static str,
}

/// Runs a canary, or the module of a binary, under memcheck.
fn run(binary: &TestBinary, canary: Option<&str>) -> Result<Run> {
    let module = MODULES.iter().find(|(target, _)| *target == binary.target);
    let module = module.map_or("", |(_, module)| module);
    let name = canary.unwrap_or(module.trim_end_matches(':')).to_owned();
    let log = folders::folder(folders::reports()?.join("valgrind"))?
        .join(format!("{}-{name}.log", binary.target));
    let mut child = Command::new("valgrind");
    child.args(["--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    child.arg(format!("--error-exitcode={FOUND}")).arg(&binary.path).arg("--test-threads=1");
    match canary {
        Some(test) => _ = child.args(["--exact", test, "--include-ignored"]),
        // Tests of time or of stack size are skipped: under memcheck, both differ.
        None => _ = child.args([module, "--skip", "no_cpu", "--skip", "many_items"]),
    }
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, None)?;
    let is_found = matches!(end, End::Exited(status) if status.code() == Some(FOUND));
    let verdict = match (is_found, canary.is_some()) {
        (true, true) => "caught",
        (false, true) => "MISSED",
        // libtest succeeds if the filter fits no test.
        (false, false) if fs::read_to_string(&log)?.contains("\nrunning 0 tests") => "NO TESTS",
        (false, false) if end.is_success() => "clean",
        _ => "FAILED",
    };
    Ok(Run { name, log, seconds, verdict })
}
