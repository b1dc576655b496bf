//! `cargo xtask mutants`: would the tests and the models notice if the source said something else?
//!
//! cargo-mutants changes one thing at a time. What the tests of a module let pass is given to its models; what these
//! let pass as well must be listed in `proofs/mutants.md`, with the reason why it is no loss.

use crate::process::{self, Progress};
use crate::table::Table;
use crate::{all_well, cargo, Arguments, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const EXPLAINED: &str = "proofs/mutants.md";

/// A part of the source, and who is to notice.
struct Part {
    name: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
    models: &'static [&'static str],
}

const PARTS: [Part; 6] = [
    Part {
        name: "deque",
        files: &["src/deque/**", "src/steal.rs", "src/sync/slot.rs", "src/sync/epoch.rs"],
        tests: &[
            "deque_against_vecdeque",
            "items",
            "drops",
            "known_bugs",
            "deque_histories",
            "api",
        ],
        models: &["loom_deque", "loom_batch", "loom_buffers", "loom_epoch"],
    },
    Part {
        name: "injector",
        files: &["src/injector/**", "src/sync/place.rs"],
        tests: &["injector_against_vecdeque", "injector", "linearizability", "items", "known_bugs"],
        models: &["loom_injector", "loom_blocking"],
    },
    Part {
        name: "idle",
        files: &["src/idle/**", "src/sync/barrier.rs", "src/sync/lock.rs", "src/sync/park.rs"],
        tests: &["idle", "idle_programs", "idle_histories", "api"],
        models: &["loom_idle", "loom_searchers"],
    },
    Part {
        name: "task",
        files: &["src/task/**", "src/executor/**", "src/sync/thread.rs"],
        tests: &["tasks", "task_programs", "executors", "futures", "api"],
        models: &["loom_task"],
    },
    Part {
        name: "pool",
        files: &["src/pool/**", "src/sync/snapshot.rs"],
        tests: &["thread_pool", "pool", "executors", "known_pool_bugs", "pool_programs", "api"],
        models: &["loom_snapshot", "loom_pool"],
    },
    Part {
        name: "fair",
        files: &["src/fair/**", "src/sim/**"],
        tests: &[
            "fair",
            "fairness",
            "known_fair_bugs",
            "fair_programs",
            "virtual_time",
            "futures",
            "api",
        ],
        models: &["loom_fair", "loom_fair_ends", "loom_fair_parts"],
    },
];

pub(crate) fn command(mut arguments: Arguments) -> Result {
    let shard = arguments.option("--shard")?;
    let only = arguments.last()?;
    if let Some(reason) = cargo::missing("mutants") {
        return Err(reason.into());
    }
    let chosen: Vec<&Part> =
        PARTS.iter().filter(|it| only.as_deref().is_none_or(|only| only == it.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|it| it.name).collect();
        return Err(format!("a part is one of {}", names.join(", ")).into());
    }
    let explained = explained(&fs::read_to_string(EXPLAINED)?);
    let mut table = Table::new(&[
        "part",
        "mutants",
        "by tests",
        "by time",
        "by models",
        "explained",
        "survive",
    ]);
    let progress = Progress::of(chosen.len());
    let mut survivors = Vec::new();
    for part in chosen {
        let first = run(part, part.tests, &Which::Shard(shard.as_deref()), false)?;
        let names: Vec<String> = first.missed.iter().cloned().collect();
        let second = match names.is_empty() {
            true => Outcome::default(),
            false => run(part, part.models, &Which::These(&names), true)?,
        };
        // A mutant of what is not built for models is not in the second run.
        let left = first.missed.iter().filter(|it| !second.noticed.contains(*it));
        let (known, new): (Vec<&String>, Vec<&String>) =
            left.partition(|it| explained.contains(&without_place(it)));
        progress.step(format!("{}: {} survive", part.name, new.len()));
        let numbers = [
            first.caught + first.timeouts + first.missed.len(),
            first.caught,
            first.timeouts,
            first.missed.len() - known.len() - new.len(),
            known.len(),
            new.len(),
        ];
        let [a, b, c, d, e, f] = numbers.map(|it| it.to_string());
        table.row([part.name.to_owned(), a, b, c, d, e, f]);
        survivors.extend(new.into_iter().cloned());
    }
    table.publish("mutants")?;
    let list = cargo::reports()?.join("mutants-survivors.txt");
    fs::write(&list, survivors.iter().map(|it| format!("{it}\n")).collect::<String>())?;
    println!(
        "\n{} survive that {EXPLAINED} does not explain; {}",
        survivors.len(),
        cargo::relative(&list)
    );
    all_well(survivors)
}

/// Which mutants of a part.
enum Which<'a> {
    /// `2/16`, or all.
    Shard(Option<&'a str>),
    These(&'a [String]),
}

#[derive(Default)]
struct Outcome {
    caught: usize,
    timeouts: usize,
    missed: BTreeSet<String>,
    noticed: BTreeSet<String>,
}

fn run(part: &Part, tests: &[&str], which: &Which<'_>, as_models: bool) -> Result<Outcome> {
    let kind = if as_models { "models" } else { "tests" };
    let folder = cargo::folder(cargo::reports()?.join("mutants"))?;
    let output = folder.join(format!("{}-{kind}", part.name));
    let _ = fs::remove_dir_all(&output);
    let mut command = cargo::stable();
    command.args(["mutants", "--package", "filch", "--baseline", "skip", "--no-shuffle"]);
    // What is cut off counts as noticed: the first build is from nothing, and a model that goes on and on ends by
    // itself, at a bound of its own.
    command.args(["--timeout", if as_models { "900" } else { "45" }, "--build-timeout", "1800"]);
    command.args(["--colors", "never", "--output"]).arg(&output);
    part.files.iter().for_each(|file| _ = command.args(["--file", file]));
    // What is compiled for models only, or only shown to people.
    command.args(["--exclude-re", "model::", "--exclude-re", "impl fmt::Debug"]);
    match which {
        Which::Shard(None) => {}
        Which::Shard(Some(shard)) => {
            command.args(["--shard", shard, "--sharding", "round-robin"]);
        }
        Which::These(names) => names.iter().for_each(|name| {
            command.args(["--re", &format!("^{}$", escaped(name))]);
        }),
    }
    if as_models {
        command.env("RUSTFLAGS", "--cfg loom").env("FILCH_PREEMPTIONS_AT_MOST", "3");
    } else {
        command.args(["--all-features"]).env("FILCH_STRESS", "0.2").env("PROPTEST_CASES", "300");
    }
    // For building too: otherwise every example and test is built for each mutant, and models cannot be.
    tests.iter().for_each(|test| _ = command.arg(format!("--cargo-arg=--test={test}")));
    let log = folder.join(format!("{}-{kind}.log", part.name));
    eprintln!("{}: {kind}; {}", part.name, cargo::relative(&log));
    // Its exit code says whether something was missed, which is looked at below.
    process::run(process::log_to(&mut command, &log)?, None)?;
    read(&output.join("mutants.out"))
        .map_err(|error| format!("{}: {error}:\n{}", part.name, process::tail(&log, 20)).into())
}

fn read(folder: &Path) -> Result<Outcome> {
    let lines = |name: &str| -> Result<BTreeSet<String>> {
        let path: PathBuf = folder.join(name);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let (caught, timeouts, missed) =
        (lines("caught.txt")?, lines("timeout.txt")?, lines("missed.txt")?);
    Ok(Outcome {
        caught: caught.len(),
        timeouts: timeouts.len(),
        missed,
        noticed: caught.union(&timeouts).cloned().collect(),
    })
}

/// A name as a regular expression that matches it alone.
fn escaped(name: &str) -> String {
    // Not all that is no letter: `\\<` and `\\>` are boundaries of words.
    let special = |c: char| ".+*?()|[]{}^$\\".contains(c);
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A mutant without its line and column, which every change moves.
fn without_place(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    format!("{file}:{}", parts.nth(2).unwrap_or_default())
}

/// The mutants that are listed, as they stand between the first two backticks of their lines.
fn explained(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|line| line.split('`').nth(1)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{escaped, explained, without_place};

    const NAME: &str = "src/idle/word.rs:50:32: replace << with >> in Word::is_nobody";

    #[test]
    fn a_mutant_is_known_wherever_it_stands() {
        let known = explained(
            "# x\n\n| `src/idle/word.rs: replace << with >> in Word::is_nobody` | because |\n",
        );
        assert!(known.contains(&without_place(NAME)));
    }

    #[test]
    fn a_name_is_no_pattern() {
        assert_eq!(escaped("a.rs:1: <x> + (&)"), "a\\.rs:1: <x> \\+ \\(&\\)");
    }
}
