//! `cargo xtask tests`: runs every test of the packages that `cargo test` tests, and records its
//! time.
//!
//! libtest measures each test itself, behind an option that stable toolchains lock.
//! `RUSTC_BOOTSTRAP` unlocks it, and is set for the test binaries only: cargo and rustc never see
//! it.

use crate::slowest;
use crate::usage::{flag, number, word};
use clap::ArgMatches;
use runner::cargo::{self, TestBinary};
use runner::folders::{self, relative};
use runner::process::{self, Progress};
use runner::table::Table;
use runner::{Result, all_well};
use std::fs;
use std::hint;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A test binary hangs if it takes longer than this.
pub(crate) const LIMIT: Duration = Duration::from_secs(900);

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("tests")
        .about("Run the tests, and time each")
        .arg(number("runs", "Run them N times in a row (1)"))
        .arg(number("load", "Keep N threads busy meanwhile (0)"))
        .arg(flag("release", "Build them with the profile `release`"))
        .arg(word("FILTER", "Run the tests whose names contain this"))
        .after_help("Example: cargo xtask tests --runs 20 --load 4 deque")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let number = |name, otherwise| given.get_one::<u64>(name).copied().unwrap_or(otherwise);
    let filter = given.get_one::<String>("FILTER").map(String::as_str);
    let mut build = cargo::stable();
    build.args(["test", "--tests"]);
    if given.get_flag("release") {
        build.arg("--release");
    }
    let binaries = cargo::build_tests(build)?;
    let (times, failures) =
        under_load(number("load", 0), || repeat(&binaries, number("runs", 1), filter))?;
    report(times)?;
    all_well(failures)
}

/// One test of one run.
#[derive(Debug, PartialEq)]
struct Timed {
    binary: String,
    test: String,
    seconds: f64,
}

/// Runs all binaries `runs` times. Each run and each failure is a line on stderr.
fn repeat(
    binaries: &[TestBinary],
    runs: u64,
    filter: Option<&str>,
) -> Result<(Vec<Timed>, Vec<String>)> {
    let (mut times, mut failures) = (Vec::new(), Vec::new());
    let progress = Progress::of(runs as usize * binaries.len());
    for number in 1..=runs {
        for binary in binaries {
            let (run, failure) = run(binary, number, filter)?;
            let verdict = if failure.is_some() { "FAILED" } else { "ok" };
            progress.step(format!("{verdict:<6}  {} ({} tests)", binary.target, run.len()));
            times.extend(run);
            failures.extend(failure);
        }
    }
    Ok((times, failures))
}

/// Runs the tests of one binary. A failure contains the end of its log.
fn run(
    binary: &TestBinary,
    number: u64,
    filter: Option<&str>,
) -> Result<(Vec<Timed>, Option<String>)> {
    let folder = folders::folder(folders::reports()?.join("tests"))?;
    let log = folder.join(format!("{}-{number}.log", binary.target));
    let mut child = Command::new(&binary.path);
    child.current_dir(&binary.folder).env("RUSTC_BOOTSTRAP", "1");
    child.args(filter).args(["-Zunstable-options", "--report-time"]);
    let (end, _) = process::run(process::log_to(&mut child, &log)?, Some(LIMIT))?;
    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    let failure = (!end.is_success()).then(|| {
        let (target, tail) = (&binary.target, process::tail(&log, 40));
        format!("{target}, run {number}: {end:?}; {}:\n{tail}", relative(&log))
    });
    Ok((text.lines().filter_map(|line| timed(&binary.target, line)).collect(), failure))
}

/// Reads `test pool::a_name ... ok <0.012s>`.
fn timed(binary: &str, line: &str) -> Option<Timed> {
    let (test, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.rsplit_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
    let test = test.trim_end_matches(" - should panic").to_owned();
    Some(Timed { binary: binary.to_owned(), test, seconds })
}

/// Keeps `threads` threads busy while `work` runs.
fn under_load<R>(threads: u64, work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            // Relaxed: the flag publishes no other data.
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    hint::spin_loop()
                }
            });
        }
        let result = work();
        is_over.store(true, Relaxed); // Relaxed: as above
        result
    })
}

/// Writes every row; prints the slowest and the sum.
fn report(times: Vec<Timed>) -> Result {
    let mut table = Table::new(&["binary", "test", "seconds"]);
    let (count, seconds) = (times.len(), times.iter().map(|it| it.seconds).sum::<f64>());
    for Timed { binary, test, seconds } in times {
        table.row([binary, test, format!("{seconds:.2}")]);
    }
    table.save("tests")?;
    slowest::tests()?;
    println!("\n{count} tests, {seconds:.0} s");
    match count {
        0 => Err("no test ran".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Timed, timed};

    #[test]
    fn a_line_of_libtest_is_read() {
        let row =
            |test: &str, seconds| Some(Timed { binary: "pool".into(), test: test.into(), seconds });
        assert_eq!(timed("pool", "test a::b ... ok <0.012s>"), row("a::b", 0.012));
        assert_eq!(timed("pool", "test b - should panic ... FAILED <1.5s>"), row("b", 1.5));
        assert_eq!(timed("pool", "test c ... ignored"), None);
        assert_eq!(timed("pool", "test result: ok. 3 passed; finished in 0.01s"), None);
    }
}
