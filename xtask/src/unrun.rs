//! Tests that stand in the source and that no step has run: a file that no target includes, a target
//! that no command builds, a model that every tier leaves out.

use runner::cargo::plain_name;
use runner::{Result, folders};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A folder of tests, the report with a row for each that ran, and the column of its name.
const FOLDERS: [(&str, &str, usize); 3] =
    [("tests", "tests", 1), ("loom-tests", "loom", 1), ("shuttle-tests", "shuttle", 0)];

/// The tests that are not in the reports; those of models and schedules only if all of them ran.
pub(crate) fn tests(all: bool) -> Result<Vec<String>> {
    let mut unrun = Vec::new();
    for (folder, report, column) in FOLDERS.iter().take(if all { 3 } else { 1 }) {
        let path = folders::reports()?.join(format!("{report}.tsv"));
        let rows = fs::read_to_string(&path).unwrap_or_default();
        let ran: BTreeSet<&str> = rows
            .lines()
            .filter_map(|line| Some(plain_name(line.split('\t').nth(*column)?)))
            .collect();
        for file in folders::files(Path::new(folder), "rs")? {
            let missing = names(&fs::read_to_string(&file)?).into_iter();
            let missing = missing.filter(|name| !ran.contains(name.as_str()));
            unrun.extend(missing.map(|name| format!("`{name}` of {}", file.display())));
        }
    }
    Ok(unrun)
}

/// The functions below an attribute `#[test]`.
fn names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            is_test = false;
        }
    }
    // A macro makes a test for each name that it is given; its own text has `fn $name`.
    names.retain(|name| !name.starts_with('$'));
    names
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn tests_are_found_below_other_attributes() {
        let source = "\
#[test]
#[should_panic = \"x\"]
fn one() {}

fn helper() {}

    #[test]
    fn two() {
        $(#[test]
        fn $name() {})*
";
        assert_eq!(names(source), ["one", "two"]);
    }
}
