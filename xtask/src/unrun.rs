//! Finds tests in the source that no step has run. Their file is in no target, their target is
//! built by no command, or every tier leaves their model out.

use crate::tsv::{self, Row, cell};
use runner::{Result, folders};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A folder of tests, and the name of both its report and the `xtask` command that writes it.
const FOLDERS: [(&str, &str); 3] =
    [("tests", "tests"), ("loom-tests", "loom"), ("shuttle-tests", "shuttle")];

/// Lists the tests that are not in the reports. Those of models and schedules are listed with `all`
/// only. A test with `#[ignore]` is not listed: it is a canary, without which `sanitize` and
/// `valgrind` refuse to run.
pub(crate) fn tests(all: bool) -> Result<Vec<String>> {
    let mut unrun = Vec::new();
    for (folder, report) in FOLDERS.iter().take(if all { 3 } else { 1 }) {
        let ran: BTreeSet<String> = tsv::report(report)?.iter().map(ran).collect();
        for file in folders::files(Path::new(folder), "rs")? {
            let inside = file.strip_prefix(folder)?.with_extension("");
            let modules = inside.iter().map(|it| it.to_string_lossy()).collect::<Vec<_>>();
            for name in names(&fs::read_to_string(&file)?) {
                if !ran.iter().any(|it| is_that(it, &modules.join("::"), &name)) {
                    unrun.push(format!("`{name}` of {}", file.display()));
                }
            }
        }
    }
    Ok(unrun)
}

/// Returns the path of the test, model or program in a row. A program of the schedules has no
/// target.
fn ran(row: &Row) -> String {
    let columns = ["binary", "target", "test", "model", "program"];
    let cells = columns.map(|name| cell(row, name)).into_iter().filter(|it| !it.is_empty());
    let path = cells.collect::<Vec<_>>().join("::");
    // The report also has a row for a canary without its bug: `canary_x, without the bug`.
    path.split(',').next().unwrap_or_default().trim_start_matches("loom_").to_owned()
}

/// Tells whether `ran`, such as `pool::corners::inner::name`, is the test `name` of the file with
/// these modules, such as `pool::corners`.
fn is_that(ran: &str, modules: &str, name: &str) -> bool {
    // The root of a binary, and files that several binaries include, do not appear in the path.
    let modules = modules.trim_end_matches("main").trim_end_matches("mod").trim_end_matches("::");
    let is_shared = ["common", "programs", "suites"].iter().any(|it| modules.starts_with(it));
    // The harness of the schedules writes names without their files.
    let is_there = is_shared || !ran.contains("::") || ran.starts_with(modules);
    is_there && ran.strip_suffix(name).is_some_and(|it| it.is_empty() || it.ends_with("::"))
}

/// The functions below an attribute `#[test]`, but for those that are ignored.
fn names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in source.lines().map(str::trim) {
        is_test |= line == "#[test]";
        is_ignored |= line.starts_with("#[ignore");
        if let Some(rest) = line.trim_start_matches("pub ").strip_prefix("fn ") {
            // A macro makes a test for each of its names. The macro's own text has `fn $name`,
            // which is no test.
            if is_test && !is_ignored && !rest.starts_with('$') {
                names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{is_that, names, ran};
    use crate::tsv::parse;

    #[test]
    fn tests_are_found_below_other_attributes() {
        let source = "\
#[test]
#[should_panic = \"x\"]
fn one() {}

fn helper() {}

    #[test]
    pub fn two() {
        $(#[test]
        fn $name() {})*
#[test]
#[ignore = \"an error that a sanitizer must find\"]
fn canary() {}
";
        assert_eq!(names(source), ["one", "two"]);
    }

    #[test]
    fn a_row_is_known_by_its_file() {
        let ran = |table: &str| ran(&parse(table).unwrap()[0]);
        assert_eq!(ran("binary\ttest\npool\tcorners::soak"), "pool::corners::soak");
        assert_eq!(ran("target\tmodel\tbound\nloom_deque::batch\tm\t2"), "deque::batch::m");
        let without = "target\tmodel\nloom_idle::x\tcanary_m, without the bug";
        assert_eq!(ran(without), "idle::x::canary_m");
        assert_eq!(ran("program\tPCT\ntwo_sleepers\t2000"), "two_sleepers");
        assert!(is_that("two_sleepers", "idle", "two_sleepers"));
        assert!(is_that("pool::corners::soak", "pool::corners", "soak"));
        assert!(is_that("stress::stress_x", "stress::main", "stress_x"));
        assert!(is_that("pool::every_executor::one::x", "suites::every_executor", "x"));
        assert!(!is_that("fair::corners::soak", "pool::corners", "soak"));
        assert!(!is_that("pool::corners::no_soak", "pool::corners", "soak"));
    }
}
