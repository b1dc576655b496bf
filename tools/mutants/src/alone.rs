//! Mutants that cannot be switched, each built and tried by cargo-mutants.

use crate::end::End;
use crate::listed::Mutant;
use runner::{Result, cargo, folders, process};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Of each part those that come by nearly everywhere: what cannot be switched is mostly what all
/// the rest stands on.
const TESTS: [&str; 7] = ["api", "deque", "injector", "idle", "task", "pool", "fair"];

/// The modules of them that are run. The others take longer than a mutant may.
const MODULES: [&str; 8] = [
    "documented_promises::",
    "found_by_mutants::",
    "debug_and_display::",
    "against_vecdeque::",
    "event_count::",
    "tasks::",
    "thread_pool::",
    "over_executors::",
];

/// How each of them ends.
pub(crate) fn run(mutants: &[&Mutant]) -> Result<Vec<End>> {
    if mutants.is_empty() {
        return Ok(Vec::new());
    }
    let folder = folders::folder(folders::reports()?.join("mutants"))?;
    let output = folder.join("alone");
    let _ = fs::remove_dir_all(&output);
    let mut command = cargo::stable();
    command.args(["mutants", "--package", "filch", "--baseline", "skip", "--no-shuffle"]);
    // What is cut off counts as noticed, and the first build is from nothing.
    command.args(["--timeout", "60", "--build-timeout", "1800", "--all-features"]);
    command.args(["--colors", "never", "--output"]).arg(&output);
    mutants.iter().for_each(|it| {
        command.args(["--file", &it.file, "--re", &format!("^{}$", escaped(&it.name))]);
    });
    command.env("FILCH_STRESS", "0.2").env("PROPTEST_CASES", "200");
    // For building too: otherwise every example and test is built for each mutant.
    TESTS.iter().for_each(|test| _ = command.arg(format!("--cargo-arg=--test={test}")));
    // What follows the first is for `cargo test`, and what follows the second for the test
    // binaries.
    command.args(["--", "--"]).args(MODULES);
    let log = folder.join("alone.log");
    eprintln!("{} that cannot be switched: {}", mutants.len(), folders::relative(&log));
    // Its exit code says whether something was missed, which is looked at below.
    process::run(process::log_to(&mut command, &log)?, None)?;
    let folder = output.join("mutants.out");
    let [caught, timeouts, missed] = ["caught", "timeout", "missed"].map(|it| read(&folder, it));
    let (caught, timeouts, missed) = (caught?, timeouts?, missed?);
    let end = |it: &&Mutant| match &it.name {
        name if caught.contains(name) => End::ByTest("cargo-mutants".to_owned()),
        name if timeouts.contains(name) => End::ByTime("cargo-mutants".to_owned()),
        name if missed.contains(name) => End::Missed,
        _ => End::Refused,
    };
    Ok(mutants.iter().map(end).collect())
}

fn read(folder: &Path, name: &str) -> Result<BTreeSet<String>> {
    let path = folder.join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A name as a regular expression that matches it alone.
fn escaped(name: &str) -> String {
    // Not all that is no letter: `\\<` and `\\>` are boundaries of words.
    let special = |c: char| ".+*?()|[]{}^$\\".contains(c);
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_is_no_pattern() {
        assert_eq!(escaped("a.rs:1: <x> + (&)"), "a\\.rs:1: <x> \\+ \\(&\\)");
    }
}
