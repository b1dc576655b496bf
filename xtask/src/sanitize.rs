//! `cargo xtask sanitize`: the stress tests under ThreadSanitizer and under AddressSanitizer, and
//! under the latter nearly all of the other tests too.
//!
//! A sanitizer that reports nothing is believed only if it reports the canaries: planted errors in
//! the same binary, run in the same way.

use crate::nightly;
use crate::usage::flag;
use clap::{Arg, ArgMatches};
use runner::cargo::{self, TestBinary, plain_name};
use runner::folders::{self, relative};
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A stress test hangs if it takes longer than this under a sanitizer.
const LIMIT: Duration = Duration::from_secs(300);

struct Sanitizer {
    name: &'static str,
    rustflags: &'static str,
    /// The variable of the run-time options, and its value. The options leave the exit code to the
    /// test, since the reports are counted in the log.
    options: (&'static str, &'static str),
    /// The texts with which a report begins.
    marks: &'static [&'static str],
    /// Test targets that are run as a whole.
    wholes: &'static [&'static str],
}

/// All test targets of the library but three. `stress` runs test by test, `faults` has an allocator
/// that refuses on purpose, and `house` only reads files.
const WHOLES: [&str; 7] = ["api", "deque", "fair", "idle", "injector", "pool", "task"];

/// Tests of these targets that are left out.
const SKIPPED: [&str; 1] = [
    // Leaks on purpose: the pool forgets a payload that panics when it is dropped.
    "a_panic_is_counted_and_harms_nobody",
];

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "tsan",
        // The second flag allows a standard library that is not instrumented.
        rustflags: "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
        options: ("TSAN_OPTIONS", "exitcode=0 history_size=7"),
        marks: &["WARNING: ThreadSanitizer:"],
        wholes: &[],
    },
    Sanitizer {
        name: "asan",
        rustflags: "-Zsanitizer=address",
        options: ("ASAN_OPTIONS", "detect_leaks=1"),
        marks: &["ERROR: AddressSanitizer:", "ERROR: LeakSanitizer:"],
        wholes: &WHOLES,
    },
];

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("sanitize")
        .about("Run the tests under ThreadSanitizer and AddressSanitizer")
        .arg(flag("stress", "Leave out all tests but the stress tests and the canaries"))
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("SANITIZER")
                .value_parser(SANITIZERS.map(|it| it.name))
                .help("Take this sanitizer only"),
        )
        .after_help("Example: cargo xtask sanitize --stress --only tsan")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let only = given.get_one::<String>("only");
    let stress_only = given.get_flag("stress");
    let wanted = |one: &&Sanitizer| only.is_none_or(|only| only == one.name);
    let chosen: Vec<&Sanitizer> = SANITIZERS.iter().filter(wanted).collect();
    if let Some(reason) = nightly::missing() {
        return Err(reason.into());
    }

    let mut table = Table::new(&["sanitizer", "test", "verdict", "reports", "in std", "seconds"]);
    let (mut clean, mut canaries, mut failures) = (0, 0, Vec::new());
    for sanitizer in chosen {
        let wholes = if stress_only { &[][..] } else { sanitizer.wholes };
        let binaries = build(sanitizer, wholes)?;
        let stress = binaries.iter().find(|binary| binary.target == "stress");
        let stress = stress.ok_or("there is no test target `stress`")?;
        let tests = relevant(sanitizer, stress.names()?)?.into_iter().map(|it| (stress, it));
        let wholes = binaries.iter().filter(|binary| binary.target != "stress");
        let wholes = wholes.map(|binary| (binary, format!("all of {}", binary.target)));
        let tests: Vec<_> = tests.chain(wholes).collect();
        let progress = Progress::of(tests.len());
        for (binary, test) in tests {
            let run = run(sanitizer, binary, &test)?;
            let verdict = run.verdict();
            progress.step(format!("{verdict:<6} {} {test}", sanitizer.name));
            canaries += usize::from(verdict == "caught");
            clean += usize::from(verdict == "clean");
            if !matches!(verdict, "caught" | "clean") {
                let (log, excerpt) = (relative(&run.log), &run.excerpt);
                failures.push(format!("{} {test}: {verdict}; {log}:\n{excerpt}", sanitizer.name));
            }
            table.row([
                sanitizer.name.to_owned(),
                test,
                verdict.to_owned(),
                run.reports.to_string(),
                run.in_std.to_string(),
                format!("{:.1}", run.seconds),
            ]);
        }
    }
    table.publish("sanitize")?;
    println!("\n{clean} tests clean, {canaries} canaries caught");
    all_well(failures)
}

fn build(sanitizer: &Sanitizer, wholes: &[&str]) -> Result<Vec<TestBinary>> {
    eprintln!("building for {}", sanitizer.name);
    let mut build = nightly::cargo();
    build.env("RUSTFLAGS", sanitizer.rustflags);
    build.args(["test", "--release", "--package", "filch", "--test", "stress"]);
    wholes.iter().for_each(|whole| _ = build.args(["--test", whole]));
    // A build with an explicit target does not sanitize build scripts and macros.
    build.args(["--target", &nightly::host()?, "--target-dir"]);
    build.arg(folders::target_dir()?.join(sanitizer.name));
    cargo::build_tests(build)
}

/// Returns the stress tests and the canaries of one sanitizer. Fails if there are none of either.
fn relevant(sanitizer: &Sanitizer, tests: Vec<String>) -> Result<Vec<String>> {
    let canary = format!("canary_{}_", sanitizer.name);
    for prefix in ["stress_", &canary] {
        if !tests.iter().any(|test| plain_name(test).starts_with(prefix)) {
            return Err(format!("`tests/stress/main.rs` has no test called `{prefix}…`").into());
        }
    }
    let wanted = |test: &String| {
        let name = plain_name(test);
        name.starts_with("stress_") || name.starts_with(&canary)
    };
    Ok(tests.into_iter().filter(wanted).collect())
}

struct Run {
    canary: bool,
    end: End,
    /// The number of reports about the test.
    reports: usize,
    /// The number of reports about the standard library alone.
    in_std: usize,
    seconds: f64,
    log: PathBuf,
    /// The part of the log that a failure shows: the first report, or else the end.
    excerpt: String,
}

impl Run {
    fn verdict(&self) -> &'static str {
        match (self.canary, self.reports, &self.end) {
            (_, _, End::Hung) => "HUNG",
            (true, 0, _) => "MISSED",
            (true, _, _) => "caught",
            (false, 0, end) if end.is_success() => "clean",
            (false, 0, _) => "FAILED",
            (false, _, _) => "REPORTS",
        }
    }
}

/// Runs one test, or all tests of a target, in a process of its own, which keeps the reports apart.
fn run(sanitizer: &Sanitizer, binary: &TestBinary, test: &str) -> Result<Run> {
    let folder = folders::folder(folders::reports()?.join(sanitizer.name))?;
    let log = folder.join(test.replace("::", "-").replace(' ', "-") + ".log");
    let mut child = match binary.target.as_str() {
        "stress" => binary.test(test),
        _ => binary.all(),
    };
    if binary.target != "stress" {
        SKIPPED.iter().for_each(|it| _ = child.args(["--skip", it]));
    }
    child.env(sanitizer.options.0, sanitizer.options.1);
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, Some(LIMIT))?;

    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    let (in_std, ours): (Vec<_>, Vec<_>) =
        reports(&text, sanitizer.marks).into_iter().partition(|report| is_in_std(report));
    let canary = plain_name(test).starts_with("canary_");
    let head = |report: &&str| report.lines().take(30).collect::<Vec<_>>().join("\n") + "\n";
    let excerpt = ours.first().map_or_else(|| process::tail(&log, 30), head);
    let (reports, in_std) = (ours.len(), in_std.len());
    Ok(Run { canary, end, reports, in_std, seconds, log, excerpt })
}

/// Splits a log into its reports, each from its mark to the next.
fn reports<'a>(log: &'a str, marks: &[&str]) -> Vec<&'a str> {
    let mut starts: Vec<usize> =
        marks.iter().flat_map(|mark| log.match_indices(mark)).map(|(at, _)| at).collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).copied().chain([log.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &log[start..end]).collect()
}

/// Whether both accesses of a race are the standard library's, with none of our code on the stack.
///
/// libtest hands over each test and its result through code that is not instrumented, so every test
/// has such a report. A suppression is no way to leave it out: it looks for a name anywhere in
/// either stack, and could hide a race of ours.
fn is_in_std(report: &str) -> bool {
    let stacks: Vec<&str> = report.split("\n\n").take(2).collect();
    report.starts_with("WARNING: ThreadSanitizer: data race")
        && stacks.len() == 2
        && stacks.iter().all(|stack| {
            let mut frames = stack.lines().filter(|line| line.starts_with("    #")).peekable();
            frames.peek().is_some() && frames.all(is_frame_of_std)
        })
}

fn is_frame_of_std(frame: &str) -> bool {
    let theirs = [" /rustc/", " (libc.so", " __rust_try"].iter().any(|mark| frame.contains(mark));
    theirs && !frame.contains("stress::") && !frame.contains("filch::")
}

#[cfg(test)]
mod tests {
    use super::{SANITIZERS, WHOLES, is_in_std, relevant, reports};
    use std::collections::BTreeSet;
    use std::fs;

    /// A report with one frame on each stack.
    fn race(first: &str, second: &str) -> String {
        let heap =
            "    #0 calloc /rustc/llvm/x.cpp:1\n    #1 filch::deque::new /home/me/deque.rs:1";
        format!(
            "WARNING: ThreadSanitizer: data race (pid=1)\n  Read of size 8 by main thread:\n    \
             #0 memcpy /rustc/llvm/memintrinsics.inc:117:5 (stress-98+0x66)\n    #1 {first}\n\n  \
             Previous write of size 8 by thread T1:\n    #0 {second}\n\n  \
             Location is heap block allocated by thread T1:\n{heap}\n\n==================\n"
        )
    }

    const RECV: &str =
        "<std::sync::mpmc::list::Channel<E>>::recv /rustc/e5/list.rs:431:33 (stress-98+0x11)";
    const TRY: &str = "__rust_try stress.9ac6f05677f23d25-cgu.1 (stress-98+0xfa)";
    const LIBC: &str = "__libc_start_call_main csu/../nptl/start.h:58:16 (libc.so.6+0x27)";
    const GLUE: &str =
        "core::ptr::drop_glue::<stress::Parcel> /rustc/e5/mod.rs:825:1 (stress-98+0xf5)";
    const OURS: &str =
        "<filch::deque::Worker<u8>>::pop /home/me/src/deque/owner.rs:12:3 (stress-98+0x9)";
    const LOST: &str = "[failed to restore the stack]";

    #[test]
    fn a_race_is_in_std_only_if_every_frame_is() {
        for (first, second) in [(RECV, RECV), (LIBC, RECV), (RECV, TRY)] {
            assert!(is_in_std(&race(first, second)), "{first} {second}");
        }
        for (first, second) in [(RECV, OURS), (OURS, RECV), (RECV, GLUE), (RECV, LOST)] {
            assert!(!is_in_std(&race(first, second)), "{first} {second}");
        }
        let restored_nowhere = race(RECV, RECV).replace("    #0 <std", "    [failed <std");
        assert!(!is_in_std(&restored_nowhere));
    }

    #[test]
    fn a_log_is_cut_into_reports() {
        let log = format!("running 1 test\n{}{}", race(RECV, RECV), race(OURS, RECV));
        let verdicts: Vec<bool> =
            reports(&log, SANITIZERS[0].marks).into_iter().map(is_in_std).collect();
        assert_eq!(verdicts, [true, false]);
    }

    #[test]
    fn a_sanitizer_without_a_canary_is_refused() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let all = names(&["canary_asan_leak", "canary_tsan_race", "other", "stress_steal"]);
        let chosen = relevant(&SANITIZERS[0], all).unwrap();
        assert_eq!(chosen, ["canary_tsan_race", "stress_steal"]);
        assert!(relevant(&SANITIZERS[0], names(&["canary_asan_leak", "stress_steal"])).is_err());
        assert!(relevant(&SANITIZERS[1], names(&["canary_asan_leak"])).is_err());
    }

    #[test]
    fn every_test_binary_runs_under_address_sanitizer_but_two() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests");
        let binaries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let binaries = binaries.filter(|it| it.path().join("main.rs").exists());
        let binaries = binaries.map(|it| it.file_name().into_string().unwrap());
        let sanitized = WHOLES.into_iter().chain(["faults", "house", "stress"]).map(str::to_owned);
        assert_eq!(binaries.collect::<BTreeSet<_>>(), sanitized.collect::<BTreeSet<_>>());
    }
}
