//! Checks that the files, functions, tests and commands that the texts name exist, so that a
//! renaming reaches the texts.

use crate::source::{CODE, Findings, Source, all_code, root, rust_files, words};
use std::collections::BTreeSet;

const TEXTS: [&str; 12] = [
    "README.md",
    "DESIGN.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benches/README.md",
    "examples/README.md",
    "loom-tests/README.md",
    "proofs/README.md",
    "proofs/orderings.md",
    "tools/litmus/README.md",
    "tools/mutants/README.md",
    "tests/README.md",
];

/// The texts, without what stands between fences: that is compiled, or drawn.
fn prose() -> Vec<Source> {
    let texts = TEXTS.into_iter().map(|it| Source::read(it).expect("a text is there"));
    let without_blocks = |source: Source| {
        let mut is_inside = false;
        let lines = source.text.lines().map(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_inside ^= is_fence;
            if is_inside || is_fence { "" } else { line }
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        Source { text, path: source.path }
    };
    texts.map(without_blocks).collect()
}

/// The heads of the models, with their tables of pairs, sites and models.
fn heads_of_models() -> impl Iterator<Item = Source> {
    rust_files("loom-tests").into_iter().map(|Source { path, text }| {
        let head = text.lines().map_while(|line| line.strip_prefix("//!"));
        Source { path, text: head.collect::<Vec<_>>().join("\n") }
    })
}

/// What stands between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A name, or names joined by `::`, perhaps called: `Worker::push`, `LOOK`, `shutdown(Cancel)`.
fn names(quoted: &str) -> Option<Vec<&str>> {
    let path = quoted.split('(').next()?;
    let is_name = |it: &str| {
        let mut letters = it.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_')
    };
    let parts: Vec<&str> = path.split("::").collect();
    parts.iter().all(|it| is_name(it)).then_some(parts)
}

/// A file of Rust without its folder, such as `worker.rs`: some folder has it.
fn is_bare_file(quoted: &str) -> bool {
    quoted.strip_suffix(".rs").is_some_and(|it| names(it).is_some_and(|parts| parts.len() == 1))
}

/// A file or folder of the repository. A text may name files of the library from `src` on, and
/// files beside the text from its own folder on.
fn is_path(quoted: &str) -> bool {
    let first = quoted.split('/').next().unwrap_or_default();
    let is_ours = CODE.contains(&first) || ["docs", "proofs"].contains(&first);
    let is_one = quoted.contains('/') && !quoted.contains(['*', ' ', '<', '{']);
    is_one && (is_ours || quoted.ends_with(".rs"))
}

#[test]
fn what_is_quoted_exists() {
    let mut findings = Findings::of("a name in the texts is spelled as in the code");
    let code = all_code();
    let files: BTreeSet<&str> = code.iter().filter_map(|it| it.path.rsplit('/').next()).collect();
    let manifests = ["Cargo.toml", "benches/Cargo.toml", "build.rs"];
    let others: Vec<Source> = manifests.into_iter().filter_map(Source::read).collect();
    // Comments are left out, since they may quote names that are gone. Strings count, since in them
    // a test names a variable of the environment, or a printed text.
    let code: Vec<String> = code.iter().map(Source::code).collect();
    let others = others.iter().flat_map(|it| it.text.lines().filter(|line| !line.starts_with('#')));
    let known: BTreeSet<&str> =
        code.iter().map(String::as_str).chain(others).flat_map(words).collect();
    let mut seen = 0;
    for text in prose().into_iter().chain(heads_of_models()) {
        let beside = root().join(&text.path).parent().expect("a file is in a folder").to_owned();
        for (line, content) in text.lines() {
            for name in quoted(content) {
                if is_path(name) {
                    seen += 1;
                    let places =
                        [root().join(name), root().join("src").join(name), beside.join(name)];
                    if !places.iter().any(|it| it.exists()) {
                        findings.add_line(&text, line, &format!("there is no `{name}`"));
                    }
                } else if is_bare_file(name) {
                    seen += 1;
                    if !files.contains(name) && !root().join(name).exists() {
                        findings.add_line(&text, line, &format!("no file is called `{name}`"));
                    }
                } else if let Some(parts) = names(name) {
                    seen += 1;
                    for part in parts.into_iter().filter(|it| !known.contains(it)) {
                        findings.add_line(&text, line, &format!("nothing is called `{part}`"));
                    }
                }
            }
        }
    }
    assert!(seen > 500, "only {seen} names were found: has the form of the texts changed?");
}

#[test]
fn links_lead_somewhere() {
    let mut findings = Findings::of("a link to a file leads to one");
    for text in prose() {
        let folder = root().join(&text.path).parent().expect("a file is in a folder").to_owned();
        for (line, content) in text.lines() {
            for part in content.split("](").skip(1) {
                let target = part.split(')').next().unwrap_or_default();
                let file = target.split('#').next().unwrap_or_default();
                if !target.contains("://") && !file.is_empty() && !folder.join(file).exists() {
                    findings.add_line(&text, line, &format!("links to `{target}`"));
                }
            }
        }
    }
}

#[test]
fn commands_exist() {
    let mut findings = Findings::of("a command in the texts is one that xtask has");
    let declared: String = rust_files("xtask").into_iter().map(|file| file.text).collect();
    let workflows = ["ci", "weekly", "release"].map(|it| format!(".github/workflows/{it}.yml"));
    for path in TEXTS.into_iter().chain(workflows.iter().map(String::as_str)) {
        let text = Source::read(path).expect("a text is there");
        for (line, content) in text.lines() {
            for part in content.split("cargo xtask ").skip(1) {
                let end = part.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(part.len());
                let command = &part[..end];
                if !command.is_empty()
                    && !declared.contains(&format!("clap::Command::new(\"{command}\")"))
                {
                    findings.add_line(&text, line, &format!("`cargo xtask {command}`"));
                }
            }
        }
    }
}

#[test]
fn the_design_has_a_row_for_each_module() {
    let mut findings = Findings::of("DESIGN.md, *The house*, has a row for each module");
    let design = Source::read("DESIGN.md").expect("it is there");
    for file in rust_files("src").iter().filter(|it| it.is_head() && it.module() != "lib") {
        if !design.text.contains(&format!("\n| `{}` | ", file.module())) {
            findings.add(&file.path, "has none");
        }
    }
}

/// `deque::GROWN.release at src/deque/room.rs:165`: the site stands in that line.
#[test]
fn sites_in_texts_stand_where_they_say() {
    let mut findings = Findings::of("a text gives the line of a site");
    for path in TEXTS {
        let text = Source::read(path).expect("a text is there").text;
        for (before, after) in text.lines().filter_map(|line| line.split_once(" at src/")) {
            let site = before.rsplit([' ', '"']).next().unwrap_or_default();
            let place: String =
                after.chars().take_while(|c| !c.is_whitespace() && *c != '"').collect();
            let Some((file, number)) = place.rsplit_once(':') else { continue };
            let (Some((_, name)), Ok(number)) = (site.split_once("::"), number.parse::<usize>())
            else {
                continue;
            };
            let code = Source::read(&format!("src/{file}")).map(|it| it.text).unwrap_or_default();
            if !code.lines().nth(number - 1).is_some_and(|line| line.contains(name)) {
                findings.add(path, &format!("{site} is not at src/{place}"));
            }
        }
    }
}
