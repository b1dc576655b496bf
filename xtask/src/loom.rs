//! `cargo xtask loom`: runs every model, and prints the number of executions that loom explored.
//!
//! Each model runs in a process of its own, because a model that fails may well abort while it
//! unwinds. A model that passes is not believed unless it reports how much it explored.
//!
//! `--usual` leaves out the models that are declared too long for every change, and runs deep
//! models with a lower bound.

use crate::usage::{flag, number, word};
use crate::{slowest, tiers};
use clap::ArgMatches;
use runner::Result;
use runner::cargo::{self, Test};
use runner::folders::{self, relative};
use runner::process::{self, Progress};
use runner::table::{Table, grouped};
use std::env;
use std::fs;
use std::process::Command;

/// The fewest executions of a credible model. A model with fewer has no concurrency to speak of.
const FLOOR: u64 = 12;

/// Returns the path of a file of models, given the binary and its module, as in `loom_deque::batch`.
pub(crate) fn source(file: &str) -> String {
    format!("loom-tests/{}.rs", file.trim_start_matches("loom_").replace("::", "/"))
}

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("loom")
        .about("Run the models, and count the executions that loom explores")
        .arg(flag("usual", "Leave out or shorten the models that take too long for every change"))
        .arg(flag("short", "Shorten the long and the deep models, as CI does"))
        .arg(number("bound", "Allow N preemptions at most, instead of what each model says"))
        .arg(word("FILTER", "Run the models whose names contain this"))
        .after_help("Example: cargo xtask loom --bound 5 withdrawn")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let usual = given.get_flag("usual");
    let bound = given.get_one::<u64>("bound").copied();
    let short = usual || given.get_flag("short");
    let filter = given.get_one::<String>("FILTER").map_or("", String::as_str);
    refuse_early_ends()?;

    let tests: Vec<Test> =
        tests()?.into_iter().filter(|test| test.full_name().contains(filter)).collect();
    if tests.is_empty() {
        return Err(format!("no model is called `{filter}`").into());
    }
    let declared = tiers::declared(&tests)?;
    // A filter names the models to run, so none of them is left out.
    let is_left_out = |it: &tiers::Declared| usual && filter.is_empty() && it.is_long;
    let (left_out, mut chosen): (Vec<_>, Vec<_>) =
        tests.into_iter().zip(declared).partition(|(_, declared)| is_left_out(declared));
    tiers::longest_first(&mut chosen, &tiers::last_run());
    let tests: Vec<Test> = chosen.into_iter().map(|(test, _)| test).collect();

    let progress = Progress::of(tests.len());
    let outcomes = process::each(&tests, |test| {
        let outcome = run(test, bound, short);
        progress.step(describe(test, &outcome));
        outcome
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
    let mut ran: Vec<(Test, Outcome)> = tests.into_iter().zip(outcomes).collect();
    ran.sort_by_key(|(test, _)| test.full_name());
    for (test, _) in &left_out {
        eprintln!("left to `cargo xtask loom`: {}", test.full_name());
    }
    report(ran, left_out.len())
}

/// Fails if a limit is set at which loom stops early and still reports success.
pub(crate) fn refuse_early_ends() -> Result {
    for limit in ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"] {
        if env::var_os(limit).is_some() {
            return Err(format!("{limit} is set: loom would stop early and report success").into());
        }
    }
    Ok(())
}

/// A cargo command for a model build, which has a target folder of its own so that neither kind of
/// build disturbs the other.
pub(crate) fn model_build(subcommand: &str) -> Result<Command> {
    let mut command = cargo::stable();
    command.env("RUSTFLAGS", "--cfg loom");
    command.args([subcommand, "--target-dir"]);
    command.arg(folders::target_dir()?.join("loom"));
    Ok(command)
}

/// Builds the model binaries and lists their tests.
pub(crate) fn tests() -> Result<Vec<Test>> {
    let mut build = model_build("test")?;
    build.args(["--package", "filch"]);
    build.args(["--profile", "models", "--test", "loom_*"]);
    let tests = cargo::tests(cargo::build_tests(build)?)?;
    if tests.is_empty() {
        return Err("there are no models: the test targets called `loom_…` have no tests".into());
    }
    Ok(tests)
}

/// The exploration of one model, as the harness writes it in a line.
#[derive(Debug, PartialEq)]
struct Explored {
    name: String,
    bound: String,
    executions: u64,
    seconds: f64,
}

impl Explored {
    /// Parses `target⇥name⇥bound⇥executions⇥seconds`.
    fn parse(line: &str) -> Result<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, name, bound, executions, seconds] = fields[..] else {
            return Err(format!("the harness wrote `{line}`, not five fields").into());
        };
        Ok(Explored {
            name: name.to_owned(),
            bound: bound.to_owned(),
            executions: executions.parse().map_err(|_| format!("executions in `{line}`"))?,
            seconds: seconds.parse().map_err(|_| format!("seconds in `{line}`"))?,
        })
    }
}

struct Outcome {
    explored: Vec<Explored>,
    /// Why the test does not count as passed.
    failure: Option<String>,
    seconds: f64,
}

fn run(test: &Test, bound: Option<u64>, short: bool) -> Result<Outcome> {
    let folder = folders::folder(folders::reports()?.join("models"))?;
    let log = folder.join(test.file_stem() + ".log");
    let rows = folder.join(test.file_stem() + ".tsv");
    // The harness appends to this file, so rows of an earlier run are removed.
    let _ = fs::remove_file(&rows);

    let mut child = test.command();
    child.env("FILCH_MODELS_TO", &rows);
    if let Some(bound) = bound {
        child.env("FILCH_PREEMPTIONS", bound.to_string());
    }
    if short {
        child.env("FILCH_SHORT", "1");
    }
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, None)?;

    let written = fs::read_to_string(&rows).unwrap_or_default();
    let explored = written.lines().map(Explored::parse).collect::<Result<Vec<_>>>()?;
    let failure = if end.is_success() {
        doubt(test, &explored)
    } else {
        Some(format!("failed; {}:\n{}", relative(&log), process::tail(&log, 30)))
    };
    Ok(Outcome { explored, failure, seconds })
}

/// Returns why a model that passed is not to be believed.
fn doubt(test: &Test, explored: &[Explored]) -> Option<String> {
    if !test.is_model() {
        return None;
    }
    if explored.is_empty() {
        return Some("passed, but reported no executions: it ran outside the harness".into());
    }
    let shallow = explored.iter().find(|row| row.executions < FLOOR)?;
    Some(format!("explored {} executions, fewer than {FLOOR}", shallow.executions))
}

fn describe(test: &Test, outcome: &Result<Outcome>) -> String {
    let verdict = match outcome {
        Ok(Outcome { failure: None, seconds, .. }) => format!("ok      {seconds:>7.2} s"),
        Ok(Outcome { seconds, .. }) => format!("FAILED  {seconds:>7.2} s"),
        Err(_) => "FAILED".to_owned(),
    };
    format!("{verdict}  {}", test.full_name())
}

fn report(ran: Vec<(Test, Outcome)>, left_out: usize) -> Result {
    let mut table = Table::new(&["target", "model", "bound", "executions", "seconds", "verdict"]);
    let (mut models, mut executions, mut seconds, mut failures) = (0, 0, 0.0, Vec::new());
    for (test, outcome) in &ran {
        let target = test.file();
        let verdict = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        for row in &outcome.explored {
            models += 1;
            executions += row.executions;
            let [count, time] = [row.executions.to_string(), format!("{:.2}", row.seconds)];
            let [name, bound] = [row.name.clone(), row.bound.clone()];
            table.row([target.clone(), name, bound, count, time, verdict.into()]);
        }
        if outcome.explored.is_empty() {
            let [dash, time] = ["-".to_owned(), format!("{:.2}", outcome.seconds)];
            let name = test.name.clone();
            table.row([target.clone(), name, dash.clone(), dash, time, verdict.into()]);
        }
        seconds += outcome.seconds;
        let failure = outcome.failure.as_ref();
        failures.extend(failure.map(|why| format!("{}: {why}", test.full_name())));
    }
    table.publish("loom")?;

    slowest::models()?;
    let checks = ran.iter().filter(|(test, _)| !test.is_model()).count();
    let executions = grouped(&executions.to_string());
    let left = match left_out {
        0 => String::new(),
        n => format!("; {n} long models are left to `cargo xtask loom`"),
    };
    println!(
        "\n{models} models, {executions} executions, {checks} harness checks, {seconds:.1} s{left}"
    );
    match failures.len() {
        0 => Ok(()),
        n => Err(format!("{n} of {} failed\n\n{}", ran.len(), failures.join("\n")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Explored, Test, doubt};
    use runner::cargo::TestBinary;

    fn test(name: &str) -> Test {
        let binary = TestBinary { target: "loom_deque".into(), ..TestBinary::default() };
        Test { binary, name: name.into() }
    }

    #[test]
    fn a_row_of_the_harness_is_read() {
        let row = Explored::parse("loom_deque\tan_item_is_taken_once\tnone\t5338\t0.05").unwrap();
        let expected = Explored {
            name: "an_item_is_taken_once".into(),
            bound: "none".into(),
            executions: 5338,
            seconds: 0.05,
        };
        assert_eq!(row, expected);
        assert!(Explored::parse("loom_deque\tname\t2\tmany\t0.05").is_err());
        assert!(Explored::parse("name 2 5 0.05").is_err());
    }

    #[test]
    fn a_model_that_explored_little_or_nothing_is_not_believed() {
        let row = |executions| {
            let line = format!("loom_deque\tm\t2\t{executions}\t0.05");
            vec![Explored::parse(&line).unwrap()]
        };
        assert!(doubt(&test("m"), &[]).is_some());
        assert!(doubt(&test("m"), &row(11)).is_some());
        assert!(doubt(&test("m"), &row(12)).is_none());
    }

    #[test]
    fn checks_of_the_harness_need_no_executions() {
        assert!(doubt(&test("canary_missing_pin"), &[]).is_none());
        assert!(doubt(&test("inner::harness_needs_a_thread"), &[]).is_none());
    }
}
