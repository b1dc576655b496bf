//! Checks that the tests and models which are said to cover a known bug of peers or articles exist.

use runner::{Result, folders};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One bug, and its tests and models.
pub(super) struct Bug {
    pub(super) row: String,
    pub(super) what: String,
    pub(super) covered: String,
}

/// Returns the rows of the table in DESIGN.md, and every test in the files `known_bugs.rs`.
pub(super) fn known() -> Result<Vec<Bug>> {
    let design = fs::read_to_string("DESIGN.md")?;
    let section = design.split("\n## ").find(|it| it.contains("Known bugs of the field\n"));
    let section = section.ok_or("DESIGN.md has no section `Known bugs of the field`")?;
    let mut bugs = Vec::new();
    for line in section.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| row")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [row, what, covered] = cells[..] else {
            return Err(format!("DESIGN.md, known bugs: `{line}` has not three cells").into());
        };
        bugs.push(Bug { row: row.into(), what: what.into(), covered: covered.into() });
    }
    for (row, file) in [("pools", "pool/known_bugs"), ("fairness", "fair/known_bugs")] {
        for (what, test) in named_tests(&fs::read_to_string(format!("tests/{file}.rs"))?) {
            bugs.push(Bug { row: row.into(), what, covered: format!("`{test}`") });
        }
    }
    Ok(bugs)
}

/// Returns the tests, each with the first line of its comment.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "#[test]") {
        let name = lines[at + 1].trim_start_matches("fn ").split('(').next().unwrap_or_default();
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("///"));
        let first = above.last().map_or("", |line| line.trim_start_matches('/').trim());
        found.push((first.to_owned(), name.to_owned()));
    }
    found
}

/// Returns the names of tests and models that should cover the bugs, but do not exist.
pub(super) fn missing(bugs: &[Bug]) -> Result<Vec<String>> {
    let names = names()?;
    let is_name = |it: &&str| {
        it.contains('_')
            && it.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut missing = Vec::new();
    for bug in bugs {
        let quoted = bug.covered.split('`').skip(1).step_by(2);
        for name in quoted {
            let is_there = match name {
                path if path.contains('/') => Path::new(path).exists(),
                name if is_name(&name) => names.contains(name) || name == "push_was_empty",
                _ => true,
            };
            if !is_there {
                missing.push(format!("row {}: `{name}` is not there", bug.row));
            }
        }
    }
    Ok(missing)
}

/// Returns the names of all functions and modules of the tests and models, with those from macros.
fn names() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in ["tests", "loom-tests", "shuttle-tests"] {
        for path in folders::files(Path::new(folder), "rs")? {
            let text = fs::read_to_string(&path)?;
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            names.extend(words.map(str::to_owned));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{Bug, missing, named_tests};

    #[test]
    fn tests_are_found_with_what_is_said_of_them() {
        let text = "/// B7: a lost\n/// wake-up.\n#[test]\nfn nobody_sleeps() {\n}\n";
        assert_eq!(named_tests(text), [("B7: a lost".to_owned(), "nobody_sleeps".to_owned())]);
    }

    #[test]
    fn what_is_not_there_is_told() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        let bug =
            |covered: &str| Bug { row: "1".into(), what: String::new(), covered: covered.into() };
        let bugs =
            [bug("`no_such_test`, CLAIM"), bug("`tests/no_such_file.rs`"), bug("`pop`, said so")];
        assert_eq!(missing(&bugs).unwrap().len(), 2);
    }
}
