//! `cargo xtask fuzz`: runs each fuzz target for a given time, from its checked-in seeds.

use crate::nightly;
use crate::usage::{number, word};
use clap::ArgMatches;
use runner::folders::{self, relative};
use runner::process::{self, Progress};
use runner::table::{Table, grouped};
use runner::{Result, all_well};
use std::env;
use std::path::PathBuf;
use std::process::Stdio;

const SECONDS: u64 = 60;

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("fuzz")
        .about("Fuzz each target for a while, from its checked-in seeds")
        .arg(number("seconds", "Fuzz each target for N seconds (60)"))
        .arg(word("TARGET", "Fuzz this target only"))
        .after_help("Example: cargo xtask fuzz --seconds 600 pool_programs")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let seconds = given.get_one::<u64>("seconds").copied().unwrap_or(SECONDS);
    let wanted = given.get_one::<String>("TARGET");
    if let Some(reason) = nightly::missing_for_fuzz() {
        return Err(reason.into());
    }

    let mut targets = targets()?;
    if let Some(wanted) = wanted {
        targets.retain(|target| target == wanted);
        if targets.is_empty() {
            return Err(format!("no fuzz target is called `{wanted}`").into());
        }
    }
    let mut table = Table::new(&["target", "executions", "exec/s", "seconds", "corpus", "verdict"]);
    let mut failures = Vec::new();
    let mut executions = 0;
    let progress = Progress::of(targets.len());
    // The builds run one after another, since cargo locks its folder. Each target then fuzzes on
    // one core.
    let failures_to_build = targets.iter().map(|it| build(it)).collect::<Result<Vec<_>>>()?;
    let built: Vec<_> = targets.iter().zip(failures_to_build).collect();
    let runs = process::each(&built, |(target, failure)| -> Result<Run> {
        let run = match failure {
            None => fuzz(target, seconds)?,
            Some(_) => Run { failure: failure.clone(), ..Run::default() },
        };
        progress.step(format!("{:<6}  {target}", run.verdict()));
        Ok(run)
    });
    for (target, run) in targets.iter().zip(runs) {
        let run = run?;
        executions += run.stats.executions;
        table.row([
            target.clone(),
            run.stats.executions.to_string(),
            run.stats.per_second.to_string(),
            format!("{:.0}", run.seconds),
            run.stats.corpus.to_string(),
            run.verdict().to_owned(),
        ]);
        failures.extend(run.failure.map(|why| format!("{target}: {why}")));
    }
    table.publish("fuzz")?;

    let executions = grouped(&executions.to_string());
    println!("\n{} targets, {executions} executions", targets.len());
    all_well(failures)
}

fn targets() -> Result<Vec<String>> {
    let output = nightly::cargo().args(["fuzz", "list"]).stderr(Stdio::inherit()).output()?;
    let targets: Vec<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect();
    if !output.status.success() || targets.is_empty() {
        return Err("`cargo +nightly fuzz list` names no target".into());
    }
    Ok(targets)
}

#[derive(Default)]
struct Run {
    stats: Stats,
    seconds: f64,
    failure: Option<String>,
}

impl Run {
    fn verdict(&self) -> &'static str {
        if self.failure.is_none() { "ok" } else { "FAILED" }
    }
}

fn log_of(target: &str) -> Result<PathBuf> {
    Ok(folders::folder(folders::reports()?.join("fuzz"))?.join(format!("{target}.log")))
}

/// Builds a target. If that fails, returns the reason.
fn build(target: &str) -> Result<Option<String>> {
    let log = log_of(target)?;
    let mut build = nightly::cargo();
    build.args(["fuzz", "build", target]);
    eprintln!("building {target}");
    if process::run(process::log_to(&mut build, &log)?, None)?.0.is_success() {
        return Ok(None);
    }
    let tail = process::tail(&log, 30);
    Ok(Some(format!("it does not build; {}:\n{tail}", relative(&log))))
}

fn fuzz(target: &str, seconds: u64) -> Result<Run> {
    let log = log_of(target)?;
    // libFuzzer writes new inputs to the first folder, and only reads the other folders.
    let root = env::current_dir()?;
    let corpus = folders::folder(root.join("fuzz/corpus").join(target))?;
    let seeds = root.join("fuzz/seeds").join(target);
    let mut run = nightly::cargo();
    run.args(["fuzz", "run", target]).arg(corpus);
    if seeds.is_dir() {
        run.arg(seeds);
    }
    run.arg("--").arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    eprintln!("fuzzing {target} for {seconds} s");
    let (end, seconds) = process::run(process::log_to(&mut run, &log)?, None)?;

    let stats = Stats::parse(&String::from_utf8_lossy(&std::fs::read(&log)?));
    let failure = if !end.is_success() {
        Some(format!("it failed; {}:\n{}", relative(&log), process::tail(&log, 40)))
    } else if stats.executions == 0 {
        Some(format!("it ran nothing; {}", relative(&log)))
    } else {
        None
    };
    Ok(Run { stats, seconds, failure })
}

/// The statistics that libFuzzer prints when it ends.
#[derive(Debug, Default, PartialEq)]
struct Stats {
    executions: u64,
    per_second: u64,
    /// The number of inputs in the corpus, each of which reaches code that the others do not.
    corpus: u64,
}

impl Stats {
    fn parse(log: &str) -> Self {
        let stat = |name: &str| {
            let value = log.lines().rev().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        let corpus = log.lines().rev().find_map(|line| line.split_once(" corp: "));
        let corpus = corpus.and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        Stats {
            executions: stat("stat::number_of_executed_units:"),
            per_second: stat("stat::average_exec_per_sec:"),
            corpus: corpus.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stats;

    #[test]
    fn the_final_statistics_are_read() {
        let log = "\
#2	INITED cov: 110 ft: 111 corp: 1/1b exec/s: 0 rss: 40Mb
#4096	NEW    cov: 310 ft: 711 corp: 57/1024b lim: 43 exec/s: 0 rss: 44Mb L: 9/43 MS: 1 CMP-
#156345	DONE   cov: 412 ft: 902 corp: 88/4231b lim: 80 exec/s: 78172 rss: 61Mb
Done 156345 runs in 2 second(s)
stat::number_of_executed_units: 156345
stat::average_exec_per_sec:     78172
stat::new_units_added:          130
";
        let expected = Stats { executions: 156_345, per_second: 78_172, corpus: 88 };
        assert_eq!(Stats::parse(log), expected);
    }

    #[test]
    fn a_run_without_statistics_has_none() {
        assert_eq!(Stats::parse("error: could not compile"), Stats::default());
    }
}
