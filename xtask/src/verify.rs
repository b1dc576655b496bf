//! `cargo xtask verify`: runs every check that a change must pass, and prints a table; with
//! `--all`, every check that CI runs.
//!
//! Every step runs even if an earlier one failed. The output of a step goes to
//! `target/filch/verify-<step>.log`, and its end is shown if the step fails. A step that takes
//! longer than its share of the time is named. That is no failure, since the machine may be busy.

use crate::steps::{self, Step, Tier};
use crate::usage::{flag, option};
use crate::{slowest, targets, unrun};
use clap::ArgMatches;
use runner::Result;
use runner::folders::{self, relative};
use runner::process::{self, End};
use runner::table::Table;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("verify")
        .about("Check all that a change must pass, in ten minutes; with --all, all that CI runs")
        .arg(flag("all", "Run the steps that take longer too: an hour"))
        .arg(option("only", "STEPS", "Run these steps only, separated by commas"))
        .arg(flag("list", "Print the names of the steps, and run none"))
        .after_help("Example: cargo xtask verify --only clippy,tests")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let all = given.get_flag("all");
    let only = given.get_one::<String>("only").map(String::as_str);
    let steps = chosen(steps::steps(all)?, all, only)?;
    if given.get_flag("list") {
        steps.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }

    let start = Instant::now();
    let mut table = Table::new(&["step", "verdict", "seconds", "share", "detail"]);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let (mut ran, mut slow) = (Vec::new(), Vec::new());
    for step in steps {
        let (name, share) = (step.name.to_owned(), step.budget);
        if let Some(reason) = step.skipped {
            eprintln!("{name}: skipped: {reason}");
            table.row([name, "skipped".into(), "0.0".into(), share.to_string(), reason]);
            skipped += 1;
            continue;
        }
        eprint!("{name} (its share is {share} s) ... ");
        ran.push(step.name);
        let outcome = run(step)?;
        let seconds = format!("{:.1}", outcome.seconds);
        if outcome.seconds > f64::from(share) {
            slow.push(format!("{name} ({seconds} s; its share is {share} s)"));
        }
        let (verdict, detail) = if outcome.passed {
            eprintln!("ok, {seconds} s");
            passed += 1;
            ("ok", outcome.detail)
        } else {
            eprintln!("FAILED, {seconds} s; {}:\n{}", outcome.log, outcome.tail);
            failed += 1;
            ("FAILED", outcome.log)
        };
        table.row([name, verdict.into(), seconds, share.to_string(), detail]);
    }
    table.publish("verify")?;
    // A step that failed may have left no report, but its verdict is in the table.
    if ran.contains(&"tests") {
        slowest::tests().unwrap_or_else(|missing| eprintln!("{missing}"));
    }
    if ran.contains(&"models") {
        slowest::models().unwrap_or_else(|missing| eprintln!("{missing}"));
    }
    if !slow.is_empty() {
        println!("\nover their share of the time: {}", slow.join(", "));
    }
    // With `--all`, the step `proof` has checked the reports of all steps.
    if only.is_none() && !all {
        let unrun = unrun::tests(false)?;
        failed += usize::from(!unrun.is_empty());
        unrun.iter().for_each(|test| println!("no step has run {test}"));
    }
    println!("\n{:.0} s in all", start.elapsed().as_secs_f64());
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    match failed {
        0 => Ok(()),
        // The line above must be the last one, and an `Err` would print another.
        _ => std::process::exit(1),
    }
}

/// Returns the steps of a tier, or those that are named.
fn chosen(mut steps: Vec<Step>, all: bool, only: Option<&str>) -> Result<Vec<Step>> {
    let Some(only) = only else {
        steps.retain(|step| all || step.tier == Tier::Change);
        return Ok(steps);
    };
    let names: Vec<&str> = only.split(',').collect();
    if let Some(unknown) = names.iter().find(|name| !steps.iter().any(|it| it.name == **name)) {
        let known: Vec<&str> = steps.iter().map(|it| it.name).collect();
        return Err(format!("no step `{unknown}`: {}", known.join(", ")).into());
    }
    steps.retain(|step| names.contains(&step.name));
    Ok(steps)
}

struct Outcome {
    passed: bool,
    seconds: f64,
    /// The summary of a step that passed.
    detail: String,
    log: String,
    /// The end of the log.
    tail: String,
}

fn run(step: Step) -> Result<Outcome> {
    let log = folders::reports()?.join(format!("verify-{}.log", step.name));
    let mut file = File::create(&log)?;
    let start = Instant::now();
    let mut passed = true;
    // A command hangs if it takes longer than this.
    let limit = Duration::from_secs(10 * u64::from(step.budget).max(60));
    for mut command in step.commands {
        writeln!(file, "$ {}", typed(&command))?;
        command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        let (end, _) = process::run(&mut command, Some(limit))?;
        if matches!(end, End::Hung) {
            writeln!(file, "killed after {} s", limit.as_secs())?;
        }
        passed = end.is_success();
        if !passed {
            break;
        }
    }
    // libtest succeeds if the filter fits no test.
    let is_filtered = ["browser", "fairness"].contains(&step.name);
    passed &= !is_filtered || !fs::read_to_string(&log)?.contains("\nrunning 0 tests");
    Ok(Outcome {
        passed,
        seconds: start.elapsed().as_secs_f64(),
        detail: detail(step.name, &log),
        tail: process::tail(&log, 60),
        log: relative(&log),
    })
}

/// Formats a command as a person would type it.
fn typed(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let flags = set.filter(|(name, _)| name.to_string_lossy().ends_with("FLAGS"));
    let flags = flags.map(|(name, value)| format!("{}={value:?} ", name.to_string_lossy()));
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("{}{}", flags.collect::<String>(), words.join(" "))
}

fn detail(step: &str, log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match step {
        "tests" => {
            let ours = text.lines().rev().find_map(|line| line.split_once(" tests, "));
            let count = ours.map_or("no", |(count, _)| count);
            format!("{count} tests; of the documentation {}", tests_in(&text))
        }
        "tools" | "browser" | "fairness" => tests_in(&text),
        "targets" => targets::not_installed(),
        // Our own commands print a summary as their last line.
        "models" | "api" | "litmus" | "schedules" | "valgrind" | "defects" | "audit"
        | "sanitizers" | "fuzz" | "rayon" => {
            text.lines().next_back().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// Adds up the summary lines of libtest.
fn tests_in(log: &str) -> String {
    let results = || log.lines().filter_map(|line| line.strip_prefix("test result: "));
    let sum = |what: &str| -> u64 {
        let count = |part: &str| part.trim().strip_suffix(what)?.trim().parse::<u64>().ok();
        let parts = results().flat_map(|line| line.split([';', '.']));
        parts.filter_map(count).sum()
    };
    format!("{} tests passed, {} ignored", sum("passed"), sum("ignored"))
}

#[cfg(test)]
mod tests {
    use super::{tests_in, typed};
    use std::process::Command;

    #[test]
    fn a_command_is_shown_with_the_flags_it_sets() {
        let mut command = Command::new("cargo");
        command.env("RUSTFLAGS", "--cfg loom").env_remove("RUSTDOCFLAGS").env("OTHER", "1");
        command.args(["test", "--release"]);
        assert_eq!(typed(&command), "RUSTFLAGS=\"--cfg loom\" cargo test --release");
    }

    #[test]
    fn test_results_are_added_up() {
        let log = "\
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s

test result: ok. 40 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.50s
";
        assert_eq!(tests_in(log), "43 tests passed, 3 ignored");
    }
}
