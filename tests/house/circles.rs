//! Checks that the files of a module import one way, as modules do, and call one way.

use crate::source::{Findings, Source, rust_files, words};
use std::collections::{BTreeMap, BTreeSet};

/// The paths in the tree of a `use`: of `a::{b, c::{d, e}}`, three.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inside = rest.rsplit_once('}').map_or(rest, |it| it.0);
    let mut depth = 0;
    let parts = inside.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|it| !it.is_empty());
    parts.flat_map(|it| paths(&format!("{}{it}", before.trim()))).collect()
}

/// What follows `start` wherever it begins a line, up to the `;`.
fn statements<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let begins = move |at: &usize| code[..*at].rsplit('\n').next().unwrap().trim().is_empty();
    let found = code.match_indices(start).map(|(at, _)| at).filter(begins);
    found.map(move |at| code[at + start.len()..].split(';').next().unwrap())
}

/// The files of a module, by their paths in it: `policy/ready`, and `policy` for the head of a
/// folder. The head of the module is no file of it.
struct Module<'a> {
    name: &'a str,
    files: BTreeMap<String, String>,
    /// The file of a name that a head passes on, by the head and the name.
    passed_on: BTreeMap<(String, String), String>,
}

impl<'a> Module<'a> {
    fn new(name: &'a str, sources: &[Source]) -> Self {
        let files = sources.iter().filter(|it| it.module() == name).map(|it| {
            let path = it.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
            let inside = path.trim_start_matches("src/").trim_start_matches(name);
            (inside.trim_start_matches('/').to_owned(), it.code())
        });
        let mut module = Module { name, files: files.collect(), passed_on: BTreeMap::new() };
        for (file, code) in &module.files {
            for path in statements(code, "pub use ").flat_map(paths) {
                let passed = module.file_of(file, &path);
                let name = path.rsplit("::").next().unwrap().to_owned();
                let names = passed.map(|it| ((file.clone(), name), it));
                module.passed_on.extend(names);
            }
        }
        module
    }

    /// The other file of the module that a path in this one leads to.
    fn file_of(&self, file: &str, path: &str) -> Option<String> {
        let join = |at: &str, part: &str| format!("{at}/{part}").trim_matches('/').to_owned();
        let above = |at: &str| at.rsplit_once('/').map_or(String::new(), |it| it.0.to_owned());
        let mut parts = path.split("::").map(|it| words(it).next().unwrap_or_default());
        let mut at = match parts.next()? {
            "crate" if parts.next() == Some(self.name) => String::new(),
            "super" => above(file),
            // A head names its own files like this, and every file other crates.
            first => Some(join(file, first)).filter(|it| self.files.contains_key(it))?,
        };
        for part in parts {
            if part == "super" {
                at = above(&at);
                continue;
            }
            if let Some(passed) = self.passed_on.get(&(at.clone(), part.to_owned())) {
                return Some(passed.clone());
            }
            match join(&at, part) {
                deeper if self.files.contains_key(&deeper) => at = deeper,
                _ => break,
            }
        }
        (!at.is_empty() && at != file).then_some(at)
    }

    fn used_by(&self, file: &str) -> BTreeSet<String> {
        let code = &self.files[file];
        let starts = ["super::".to_owned(), format!("crate::{}::", self.name)];
        let named = starts.iter().flat_map(|start| {
            let found = code.match_indices(start.as_str()).map(|(at, _)| &code[at..]);
            found.map(|it| it.split([';', '(', '<', '=', ')']).next().unwrap())
        });
        let trees = statements(code, "use ").chain(named);
        trees.flat_map(paths).filter_map(|it| self.file_of(file, &it)).collect()
    }

    /// The files that are in a circle, or lead to one.
    fn circle(&self) -> BTreeSet<String> {
        let files = self.files.keys().filter(|it| !it.is_empty());
        let mut uses: BTreeMap<_, _> = files.map(|it| (it.clone(), self.used_by(it))).collect();
        // A file that uses none of those that are left is in no circle.
        loop {
            let left: BTreeSet<String> = uses.keys().cloned().collect();
            uses.retain(|_, used| used.iter().any(|it| left.contains(it)));
            if uses.len() == left.len() {
                return left;
            }
        }
    }
}

#[test]
fn files_of_a_module_import_one_way() {
    let mut findings = Findings::of("no two files of a module import each other, also by others");
    let sources = rust_files("src");
    for head in sources.iter().filter(|it| it.is_head() && it.depth() == 2) {
        let circle = Module::new(head.module(), &sources).circle();
        if !circle.is_empty() {
            findings.add(&head.path, &format!("circle: {circle:?}"));
        }
    }
}

/// The only private types that may have methods in several files. For these, no import shows which
/// file calls which.
const SPREAD: [&str; 8] =
    ["AnyTask", "Core", "Group", "Head", "Local", "Pool", "Reference", "Turns"];

/// Then a file that calls a method imports the type's file, or that of a type which has one. The
/// methods of a public type may be apart: nothing below the type calls them.
#[test]
fn the_methods_of_a_private_type_are_in_its_file() {
    let mut findings = Findings::of("what calls whom is seen in the imports");
    let sources: Vec<_> =
        rust_files("src").into_iter().filter(|it| it.module() != "sync").collect();
    let first = |line: &str| words(line).next().unwrap_or_default().to_owned();
    let mut private = BTreeMap::new();
    for file in &sources {
        for (_, line) in file.code_lines() {
            if let Some((before, name)) = line.split_once("struct ") {
                if before.trim().is_empty() || before.trim_start().starts_with("pub(") {
                    private.insert((file.module(), first(name)), &file.path);
                }
            }
        }
    }
    let mut spread = BTreeSet::new();
    for file in &sources {
        for (_, line) in file.code_lines().filter(|(_, it)| !it.contains(" for ")) {
            let Some(rest) = line.strip_prefix("impl") else { continue };
            let rest = rest.strip_prefix('<').map_or(rest, |it| it.split_once('>').unwrap().1);
            let name = first(rest);
            let place = private.get(&(file.module(), name.clone()));
            if place.is_some_and(|it| **it != file.path) {
                if !SPREAD.contains(&&*name) {
                    findings.add(&file.path, &format!("has methods of {name}"));
                }
                spread.insert(name);
            }
        }
    }
    for name in SPREAD.iter().filter(|it| !spread.contains(**it)) {
        findings.add(name, "is not spread any more");
    }
}

#[test]
fn a_circle_through_a_folder_is_noticed() {
    let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let mut sources = vec![
        file("src/fair/mod.rs", "pub use below::clock::Clock;"),
        file("src/fair/below/mod.rs", "pub(crate) mod clock;"),
        file("src/fair/below/clock.rs", "use core::fmt;"),
        file("src/fair/line/mod.rs", "mod life;\nuse life::{Life, Look};"),
        file("src/fair/line/life.rs", "use crate::fair::{Clock, LOOK};"),
        file("src/fair/queue.rs", "use super::line::{Line, life::Life};"),
    ];
    assert!(Module::new("fair", &sources).circle().is_empty());
    sources[2].text = "fn f() { crate::fair::queue::g() }".to_owned();
    let circle = Module::new("fair", &sources).circle();
    assert_eq!(circle, ["below/clock", "line", "line/life", "queue"].map(String::from).into());
}
