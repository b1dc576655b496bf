//! Checks that the index of a folder, its `README.md`, names the folder's files.

use crate::source::{Findings, Source, files};
use std::collections::BTreeSet;

/// Each has a `README.md` that names its files, by their paths from the folder on, between
/// backticks.
///
/// `some/folder/**` names all files in that folder.
const FOLDERS: [&str; 4] = ["tests", "loom-tests", "proofs", "examples"];

/// Endings by which a name is known to be a file's.
const ENDINGS: [&str; 10] =
    [".rs", ".md", ".toml", ".txt", ".tsv", ".json", ".litmus", ".pml", ".py", ".sh"];

/// The names between backticks, with their lines.
fn quoted(text: &Source) -> impl Iterator<Item = (usize, &str)> {
    text.lines().flat_map(|(line, content)| {
        content.split('`').skip(1).step_by(2).map(move |name| (line, name))
    })
}

/// The files that an index does not name, and the files that it names in vain, with their lines.
fn faults<'a>(
    index: &'a Source,
    there: &BTreeSet<&'a str>,
) -> (Vec<&'a str>, Vec<(usize, &'a str)>) {
    let is_in = |file: &str, name: &str| {
        name.strip_suffix("**").map_or(file == name, |folder| file.starts_with(folder))
    };
    let is_named = |file: &str| quoted(index).any(|(_, name)| is_in(file, name));
    let is_there = |name: &str| there.iter().any(|file| is_in(file, name));
    let is_file = |name: &str| ENDINGS.iter().any(|it| name.ends_with(it)) || name.ends_with("/**");
    let missing = there.iter().copied().filter(|it| *it != "README.md" && !is_named(it));
    let vain = quoted(index).filter(|(_, name)| {
        let is_elsewhere = Source::read(name).is_some(); // named from the root on
        let is_made = name.contains([' ', '<']) || name.starts_with("target/");
        !is_made && is_file(name) && !is_there(name) && !is_elsewhere
    });
    (missing.collect(), vain.collect())
}

#[test]
fn each_index_names_the_files_of_its_folder() {
    let mut findings =
        Findings::of("the README.md of a folder names each file in it, and no other");
    for folder in FOLDERS {
        let index = Source::read(&format!("{folder}/README.md")).expect("the folder has an index");
        let all = files(folder);
        let there = all.iter().map(|it| it[folder.len() + 1..].as_ref()).collect();
        let (missing, vain) = faults(&index, &there);
        missing
            .iter()
            .for_each(|file| findings.add(&index.path, &format!("does not name `{file}`")));
        for (line, name) in vain {
            findings.add_line(&index, line, &format!("there is no `{name}` in `{folder}`"));
        }
    }
}

#[test]
fn an_index_that_lags_behind_is_noticed() {
    let text =
        "`a.rs`, `b/main.rs`, `gone.rs` and `c/**`\n`Cargo.toml`, `cargo test x.rs`, `no/**`";
    let index = Source { path: "README.md".to_owned(), text: text.to_owned() };
    let there = BTreeSet::from(["README.md", "a.rs", "b/main.rs", "b/new.rs", "c/d.txt"]);
    assert_eq!(faults(&index, &there), (vec!["b/new.rs"], vec![(1, "gone.rs"), (2, "no/**")]));
}
