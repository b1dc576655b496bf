//! Reads the source as text, for the other modules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// The folder that holds the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file, with its path from the root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A constant that names an ordering, and the text by which the audit knows it.
pub(crate) struct Named {
    pub(crate) constant: String,
    pub(crate) text: String,
}

/// The places that break a rule; all of them are shown, when this goes out of scope.
pub(crate) struct Findings {
    rule: &'static str,
    places: Vec<String>,
}

impl Findings {
    pub(crate) fn of(rule: &'static str) -> Self {
        Findings { rule, places: Vec::new() }
    }

    pub(crate) fn add(&mut self, path: &str, what: &str) {
        self.places.push(format!("{path} {what}"));
    }

    pub(crate) fn add_line(&mut self, file: &Source, line: usize, what: &str) {
        self.places.push(format!("{}:{line}: {what}", file.path));
    }
}

impl Drop for Findings {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert!(self.places.is_empty(), "{}:\n  {}", self.rule, self.places.join("\n  "));
        }
    }
}

impl Source {
    pub(crate) fn read(path: &str) -> Option<Source> {
        let text = fs::read_to_string(root().join(path)).ok()?;
        Some(Source { path: path.to_owned(), text })
    }

    /// The module it belongs to: `src/deque/owner.rs` to `deque`, and so would `src/deque.rs`.
    pub(crate) fn module(&self) -> &str {
        let inside = self.path.strip_prefix("src/").expect("a file of the library");
        inside.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// Whether it is the first file of a module of the crate.
    pub(crate) fn is_head(&self) -> bool {
        self.depth() == 1 || self.depth() == 2 && self.path.ends_with("/mod.rs")
    }

    /// How many folders it is in.
    pub(crate) fn depth(&self) -> usize {
        self.path.matches('/').count()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The lines, without comments.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().map(|(number, line)| (number, line.split("//").next().unwrap()))
    }

    /// The text, without comments.
    pub(crate) fn code(&self) -> String {
        self.code_lines().map(|(_, line)| format!("{line}\n")).collect()
    }

    /// Every comment that begins with `SAFETY:`, with the lines that continue it.
    pub(crate) fn safety_comments(&self) -> Vec<(usize, String)> {
        let mut comments: Vec<(usize, String)> = Vec::new();
        let mut inside = false;
        for (number, line) in self.lines() {
            match line.split_once("// ") {
                Some((_, comment)) if comment.starts_with("SAFETY:") => {
                    comments.push((number, comment.to_owned()));
                    inside = true;
                }
                Some((code, comment)) if inside && code.trim().is_empty() => {
                    let (_, whole) = comments.last_mut().unwrap();
                    whole.push(' ');
                    whole.push_str(comment);
                }
                _ => inside = false,
            }
        }
        comments
    }

    /// The lines with an `unsafe` block or `impl` that no `SAFETY:` comment ends right above.
    pub(crate) fn unexplained_unsafe(&self) -> Vec<usize> {
        let lines: Vec<_> = self.text.lines().collect();
        let is_unsafe = |line: &str| {
            let code = line.split("//").next().unwrap();
            code.contains(concat!("unsafe", " {")) || code.trim_start().starts_with("unsafe impl")
        };
        let explained = |index: usize| {
            // A statement may begin a few lines above its `unsafe`.
            let ends =
                |line: &str| !line.trim_start().starts_with("//") && line.ends_with([';', '}']);
            let above = lines[..index].iter().rev().take(6);
            let mut above = above.take_while(|line| !ends(line));
            lines[index].contains("SAFETY:") || above.any(|line| line.contains("SAFETY:"))
        };
        let unexplained = (0..lines.len()).filter(|&it| is_unsafe(lines[it]) && !explained(it));
        unexplained.map(|index| index + 1).collect()
    }

    /// The constants that name orderings: `const PUBLISH: Pair = Pair::named("deque::PUBLISH");`
    pub(crate) fn named_orderings(&self) -> Vec<Named> {
        let code = self.code();
        let constants = code.split("const ").skip(1).filter_map(|rest| {
            let (constant, rest) = rest.split_once(':')?;
            let (kind, rest) = rest.split_once('=')?;
            if !["Pair", "FencePair", "Dekker"].contains(&kind.trim()) {
                return None;
            }
            let text = rest.split('"').nth(1)?;
            Some(Named { constant: constant.to_owned(), text: text.to_owned() })
        });
        constants.collect()
    }
}

/// The headings of proofs/orderings.md that are written as constants are.
pub(crate) fn ordering_headings() -> BTreeSet<String> {
    let text = Source::read("proofs/orderings.md").expect("proofs/orderings.md").text;
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| line.trim_matches(['#', ' ', '`']));
    let constant = |it: &&str| {
        let letter = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
        it.len() > 1 && it.chars().all(letter)
    };
    headings.filter(constant).map(str::to_owned).collect()
}

/// The paths of the files in a folder and the folders in it, in their order.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut paths = Vec::new();
    walk(Path::new(folder), &mut paths);
    paths
}

/// The Rust files in a folder and the folders in it, ordered by path.
pub(crate) fn rust_files(folder: &str) -> Vec<Source> {
    let rust = files(folder).into_iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| Source::read(&path).expect("a file in UTF-8")).collect()
}

/// The folders with code.
pub(crate) const CODE: [&str; 10] = [
    "src",
    "loom-tests",
    "shuttle-tests",
    "tests",
    "fuzz",
    "benches",
    "tools",
    "xtask",
    "examples",
    "compat",
];

pub(crate) fn all_code() -> Vec<Source> {
    CODE.iter().flat_map(|folder| rust_files(folder)).collect()
}

/// Every Cargo.toml of the repository.
pub(crate) fn manifests() -> Vec<Source> {
    let manifests = files("").into_iter().filter(|path| path.ends_with("Cargo.toml"));
    manifests.map(|path| Source::read(&path).expect("a file in UTF-8")).collect()
}

fn walk(folder: &Path, paths: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().unwrap().to_str().expect("a name in UTF-8").to_owned();
        let path = folder.join(&name);
        let built = ["target", "corpus", "artifacts", "coverage"].contains(&&*name);
        if entry.is_dir() && !built && !name.starts_with('.') {
            walk(&path, paths);
        } else if entry.is_file() {
            paths.push(path.to_str().unwrap().replace('\\', "/"));
        }
    }
}

/// The identifiers and numbers in a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |it: char| it.is_alphanumeric() || it == '_';
    text.split(move |it| !inside(it)).filter(|word| !word.is_empty())
}

/// The package names in a line of a manifest.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |it: char| it.is_alphanumeric() || it == '_' || it == '-';
    text.split(move |it| !inside(it)).filter(|name| !name.is_empty())
}

/// What follows `start::` in some code: `crate::{a, b::c}` gives `a` and `b`.
pub(crate) fn first_names(code: &str, start: &str) -> BTreeSet<String> {
    let start = format!("{start}::");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(&start) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|it| it.is_alphanumeric() || it == '_') {
            continue;
        }
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_names(group)),
            None => found.extend(words(rest).next().map(str::to_owned)),
        }
    }
    found
}

/// The first name of each path in a group, whose opening brace has been read.
fn group_names(group: &str) -> BTreeSet<String> {
    let mut depth = 1;
    let mut paths = vec![String::new()];
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => paths.push(String::new()),
            _ => paths.last_mut().unwrap().push(letter),
        }
        if depth == 0 {
            break;
        }
    }
    paths.iter().filter_map(|path| words(path).next().map(str::to_owned)).collect()
}
