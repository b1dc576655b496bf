//! Checks the house rules that a program can check. DESIGN.md gives their reasons.

use crate::source::{
    self, Findings, Named, Source, all_code, first_names, names, rust_files, words,
};
use std::collections::{BTreeMap, BTreeSet};

/// From the ground up: a module uses only what comes before it.
const ORDER: [&str; 13] = [
    "sync",
    "steal",
    "deque",
    "injector",
    "idle",
    "task",
    "executor",
    "pool",
    "fair",
    "sim",
    "trace",
    "ecosystem",
    "guide",
];

fn src() -> Vec<Source> {
    rust_files("src")
}

fn outside_sync() -> Vec<Source> {
    src().into_iter().filter(|file| file.module() != "sync").collect()
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let mut findings = Findings::of("a module uses what comes before it in ORDER, by that name");
    for file in src().iter().filter(|file| file.module() != "lib") {
        let Some(rank) = ORDER.iter().position(|&it| it == file.module()) else {
            findings.add(&file.path, "belongs to a module that ORDER does not know");
            continue;
        };
        for used in first_names(&file.code(), "crate") {
            if !ORDER[..=rank].contains(&&*used) {
                findings.add(&file.path, &format!("uses `crate::{used}`"));
            }
        }
        // Above the head of a module is the crate.
        let beyond = if file.is_head() { "use super::" } else { "super::super::" };
        if file.module() != "sync" && file.code().contains(beyond) {
            findings.add(&file.path, &format!("leaves its module by `{beyond}`"));
        }
    }
}

#[test]
fn only_sync_knows_atomics_threads_clocks_and_strong_orderings() {
    let mut findings = Findings::of("this comes from `crate::sync`, and orderings have names");
    let forbidden =
        ["UnsafeCell", "Acquire", "Release", "AcqRel", "SeqCst", "SystemTime", "thread_local"];
    for file in outside_sync() {
        for library in ["std", "core", "alloc"] {
            for used in first_names(&file.code(), library) {
                if ["sync", "thread"].contains(&&*used) {
                    findings.add(&file.path, &format!("uses `{library}::{used}`"));
                }
            }
        }
        for (line, code) in file.code_lines() {
            for word in words(code).filter(|word| forbidden.contains(word)) {
                findings.add_line(&file, line, &format!("uses `{word}`"));
            }
            // A deadline may be handed on; what time it is only `sync` asks.
            for asked in ["Instant::now", ".elapsed("].iter().filter(|it| code.contains(**it)) {
                findings.add_line(&file, line, &format!("asks for the time: `{asked}`"));
            }
        }
    }
}

#[test]
fn only_sync_knows_the_model() {
    let mut findings =
        Findings::of("what ships is what is checked: `loom` and `shuttle` are for `src/sync`");
    for file in outside_sync() {
        for (line, code) in file.code_lines() {
            if words(code).any(|word| ["loom", "shuttle"].contains(&word)) {
                findings.add_line(&file, line, "knows the model");
            }
        }
    }
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut findings =
        Findings::of("a file has 100 to 300 lines; 400 in `src` and 600 elsewhere is the most");
    for file in all_code() {
        let lines = file.text.lines().count();
        let most = if file.path.starts_with("src/") { 400 } else { 600 };
        if lines > most {
            findings.add(&file.path, &format!("has {lines} lines"));
        }
    }
}

/// The names of structs that stand for two things in `src`, which their modules tell apart.
const SHARED_NAMES: [&str; 2] = ["Builder", "Drain"];

/// In `src/sync` a name may have a form for the machine and others for models.
#[test]
fn a_type_has_a_name_of_its_own() {
    let mut findings = Findings::of("a struct, enum or trait has a name of its own in `src`");
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in src() {
        for (_, line) in file.code_lines() {
            let mut left = words(line).skip_while(|it| {
                ["pub", "crate", "super", "in", "unsafe"].contains(it) && !line.contains("use ")
            });
            if ["struct", "enum", "union", "trait"].contains(&left.next().unwrap_or_default()) {
                let name = left.next().unwrap_or_default().to_owned();
                places.entry(name).or_default().push(file.path.clone());
            }
        }
    }
    assert!(places.len() > 200, "only {} types: has their form changed?", places.len());
    for (name, files) in places {
        let is_twice = files.len() > 1 && !files.iter().all(|it| it.starts_with("src/sync/"));
        if is_twice != SHARED_NAMES.contains(&&*name) {
            findings.add(&name, &format!("is in {}", files.join(", ")));
        }
    }
}

#[test]
fn the_package_for_rayon_is_small() {
    let files = rust_files("compat/rayon-core/src");
    let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
    assert!(lines < 1500, "it has {lines} lines: a part of filch lacks a public hook");
}

#[test]
fn every_file_says_first_what_it_is() {
    let mut findings = Findings::of("a file opens with `//!` and a sentence");
    for file in all_code() {
        let first = file.text.lines().find(|line| !line.starts_with("#![") && !line.is_empty());
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            findings.add(&file.path, "opens with something else");
        }
    }
}

/// The invariants of a structure stand in the header of its `mod.rs`, as `**I1**`.
#[test]
fn safety_comments_cite_an_invariant_that_exists() {
    let mut findings = Findings::of("`SAFETY:` cites an invariant, or a promise of the caller's");
    let is_invariant =
        |word: &&str| word.strip_prefix('I').is_some_and(|it| it.parse::<u8>().is_ok());
    let is_promise = |word: &str| word == "caller" || word.parse::<u8>().is_ok();

    for head in src().iter().filter(|file| file.text.contains("//! # Invariants")) {
        let header: Vec<_> = head.text.lines().take_while(|it| it.starts_with("//!")).collect();
        let header = header.join("\n");
        let known: BTreeSet<_> = words(&header).filter(is_invariant).collect();

        for file in rust_files(head.path.trim_end_matches("/mod.rs")) {
            for (line, comment) in file.safety_comments() {
                if !words(&comment).any(|word| is_invariant(&word) || is_promise(word)) {
                    findings.add_line(&file, line, &comment);
                }
            }
            for (line, text) in file.lines() {
                for cited in words(text).filter(is_invariant).filter(|it| !known.contains(it)) {
                    findings.add_line(&file, line, &format!("there is no {cited}"));
                }
            }
        }
    }
}

#[test]
fn safety_comments_say_why_it_holds_here() {
    let mut findings = Findings::of("`SAFETY:` says in a clause why the invariant holds here");
    let is_citation = |word: &&str| {
        word.trim_start_matches('I').parse::<u8>().is_ok() || ["SAFETY", "and"].contains(word)
    };
    for file in src() {
        for (line, comment) in file.safety_comments() {
            let said = words(&comment).filter(|it| !is_citation(it)).count();
            if said < 4 || comment.contains("as above") {
                findings.add_line(&file, line, &comment);
            }
        }
    }
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    let mut findings = Findings::of("`unsafe` has a comment `SAFETY:` right above");
    for file in all_code() {
        for line in file.unexplained_unsafe() {
            findings.add_line(&file, line, "has none");
        }
    }
}

#[test]
fn only_slots_are_copied() {
    let mut findings = Findings::of("only `src/sync` copies what it does not own yet");
    let copies = [
        "ptr::read",
        "ptr::write",
        "ptr::copy",
        "ptr::swap",
        "ptr::replace",
        "copy_nonoverlapping",
        "read_volatile",
        "write_volatile",
        "read_unaligned",
        "write_unaligned",
        "assume_init_read",
        "transmute_copy",
    ];
    let may = [
        "src/sync/slot/words.rs",
        "src/sync/slot/locked.rs",
        "src/sync/slot/model.rs",
        "src/sync/place.rs",
    ];
    for file in src().iter().filter(|file| !may.contains(&&*file.path)) {
        for (line, code) in file.code_lines() {
            if let Some(copy) = copies.iter().find(|&&it| code.contains(it)) {
                findings.add_line(file, line, &format!("uses `{copy}`"));
            }
        }
    }
}

#[test]
fn each_named_ordering_is_argued() {
    let mut findings =
        Findings::of("a named ordering and its heading in proofs/orderings.md are spelled alike");
    let headings = source::ordering_headings();
    let mut constants = BTreeSet::new();
    // `order.rs` says how they are made.
    for file in src().into_iter().filter(|file| file.path != "src/sync/order.rs") {
        for Named { constant, text } in file.named_orderings() {
            if text != format!("{}::{constant}", file.module()) {
                findings.add(&file.path, &format!("the audit knows {constant} as {text}"));
            }
            if !headings.contains(&constant) {
                findings
                    .add(&file.path, &format!("{constant} has no heading in proofs/orderings.md"));
            }
            constants.insert(constant);
        }
    }
    assert!(!constants.is_empty(), "no named ordering was found: has their form changed?");
    for heading in headings.difference(&constants) {
        findings
            .add("proofs/orderings.md", &format!("argues {heading}, which `src` does not have"));
    }
}

#[test]
fn each_unwitnessed_ordering_has_its_litmus_test() {
    let mut findings =
        Findings::of("what no model can judge is named in the litmus test that does");
    let list = Source::read("loom-tests/unwitnessed.md").expect("it is there");
    for (line, text) in list.lines().filter(|(_, text)| text.starts_with("| `")) {
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).take(2).collect();
        let &[site, path] = &quoted[..] else { unreachable!("a site and its judge") };
        let is_named = |test: &Source| {
            let labels = test.text.lines().filter_map(|it| it.split_once("// ")).map(|(_, it)| it);
            let mut labels = labels.flat_map(|it| it.split("; "));
            labels.any(|it| it.trim_start_matches("on failure: ") == site)
        };
        if !Source::read(path).as_ref().is_some_and(is_named) {
            findings.add_line(&list, line, &format!("{path} does not name `{site}`"));
        }
    }
}

#[test]
fn nothing_is_left_to_be_done() {
    let mut findings = Findings::of("what is not done is an issue, not a mark in the code");
    let marks = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
    ];
    for file in all_code() {
        for (line, text) in file.lines() {
            if let Some(mark) = marks.iter().find(|&&mark| text.contains(mark)) {
                findings.add_line(&file, line, &format!("contains `{mark}`"));
            }
        }
    }
}

#[test]
fn every_example_is_compiled() {
    let mut findings = Findings::of("an example that nobody compiles rots");
    let texts =
        ["README.md", "DESIGN.md", "proofs/orderings.md"].into_iter().filter_map(Source::read);
    for file in all_code().into_iter().chain(texts) {
        for (line, text) in file.lines() {
            let fence = text.trim_start_matches(['/', '!', ' ']);
            if fence.starts_with("```") && fence.contains("ignore") {
                findings.add_line(&file, line, fence);
            }
        }
    }
}

/// The first files of the test binaries: those that cargo finds by itself, and those that a
/// manifest names.
fn test_roots() -> Vec<Source> {
    let is_found =
        |it: &Source| it.depth() == 1 || it.depth() == 2 && it.path.ends_with("/main.rs");
    let mut roots: Vec<Source> = rust_files("tests").into_iter().filter(is_found).collect();
    for manifest in source::manifests().iter().filter(|it| it.path.starts_with("tests/")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let named = manifest.text.lines().filter_map(|it| it.strip_prefix("path = \""));
        let files = named.map(|it| format!("{folder}{}", it.trim_end_matches('"')));
        roots.extend(files.map(|it| Source::read(&it).expect("a manifest names what is there")));
    }
    roots
}

#[test]
fn models_and_tests_keep_out_of_each_others_builds() {
    let mut findings = Findings::of("a test says in which build it is");
    let models = |folder| {
        let files = rust_files(folder).into_iter();
        files.filter(|file| file.path.ends_with("/main.rs")).collect::<Vec<Source>>()
    };
    for (roots, gate) in [
        (models("loom-tests"), "#![cfg(loom)]"),
        (models("shuttle-tests"), "#![cfg(shuttle)]"),
        (test_roots(), "#![cfg(not(any(loom, shuttle)))]"),
    ] {
        assert!(!roots.is_empty(), "{gate}: no target was found: have they moved?");
        for file in roots {
            if !file.text.lines().any(|line| line == gate) {
                findings.add(&file.path, &format!("has no `{gate}`"));
            }
            if file.text.starts_with(gate) {
                findings.add(&file.path, "has its gate before its `//!`, which rustc then drops");
            }
        }
    }
}

#[test]
fn every_model_is_a_test_target() {
    let manifest = Source::read("Cargo.toml").expect("Cargo.toml").text;
    for folder in ["loom-tests/", "shuttle-tests/"] {
        let paths = manifest.lines().filter_map(|line| line.strip_prefix("path = \""));
        let paths = paths.map(|path| path.trim_end_matches('"').to_owned());
        let listed: BTreeSet<_> = paths.filter(|path| path.starts_with(folder)).collect();
        let files = rust_files(folder).into_iter().filter(|file| file.path.ends_with("/main.rs"));
        let there: BTreeSet<_> = files.map(|file| file.path).collect();
        assert_eq!(there, listed, "left: files in {folder}; right: [[test]] targets in Cargo.toml");
    }
}

#[test]
fn every_file_of_tests_and_models_is_in_a_test_target() {
    let mut findings = Findings::of("rustc ignores a file that no file names as its module");
    let folders = ["tests", "loom-tests", "shuttle-tests"];
    let files: Vec<Source> = folders.into_iter().flat_map(rust_files).collect();
    let roots: BTreeSet<String> = test_roots().into_iter().map(|file| file.path).collect();
    let is_root = |file: &Source| file.path.ends_with("/main.rs") || roots.contains(&file.path);
    let named: BTreeSet<String> = files.iter().flat_map(modules_of).collect();
    for file in files.iter().filter(|file| !is_root(file)) {
        if !named.contains(&file.path) {
            findings.add(&file.path, "is in no test target");
        }
    }
}

#[test]
fn no_test_stands_where_no_command_looks_for_it() {
    let mut findings = Findings::of("tests of the library stand in `tests`");
    for folder in ["src", "examples", "compat", "benches/src", "fuzz"] {
        // Those in a package's own `tests` are run by its `cargo test`.
        for file in rust_files(folder).iter().filter(|it| !it.path.contains("/tests/")) {
            for (line, _) in file.code_lines().filter(|(_, code)| code.trim() == "#[test]") {
                findings.add_line(file, line, "no command runs it");
            }
        }
    }
}

#[test]
fn every_bench_and_fuzz_target_is_in_its_manifest() {
    let mut findings = Findings::of("cargo builds the targets that a manifest names");
    for (package, folder) in [("benches", "benches"), ("fuzz", "fuzz/fuzz_targets")] {
        let manifest = Source::read(&format!("{package}/Cargo.toml")).expect("it is there");
        let depth = folder.matches('/').count() + 1;
        for file in rust_files(folder).iter().filter(|file| file.depth() == depth) {
            let inside = &file.path[package.len() + 1..];
            if !manifest.text.contains(&format!("path = \"{inside}\"")) {
                findings.add(&file.path, "is in no target");
            }
        }
    }
}

/// Where the modules may be that a file names.
fn modules_of(file: &Source) -> Vec<String> {
    let (folder, _) = file.path.rsplit_once('/').expect("a file in a folder");
    let mut paths = Vec::new();
    let mut elsewhere = None;
    for (_, line) in file.lines() {
        if let Some(path) = line.strip_prefix("#[path = \"../") {
            let above = folder.rsplit_once('/').expect("a folder in a folder").0;
            elsewhere = Some(format!("{above}/{}", path.trim_end_matches("\"]")));
        }
        let item = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        let item = item.strip_prefix("mod ");
        if let Some(module) = item.and_then(|it| it.strip_suffix(';')) {
            let beside = [format!("{folder}/{module}.rs"), format!("{folder}/{module}/mod.rs")];
            paths.extend(elsewhere.take().map_or(beside.to_vec(), |path| vec![path]));
        }
    }
    paths
}

#[test]
fn rivals_are_met_in_benches_only() {
    let mut findings = Findings::of("rivals belong to `benches`, out of the library's sight");
    for manifest in source::manifests().iter().filter(|it| !it.path.starts_with("benches/")) {
        for (line, text) in manifest.lines() {
            let entry = text.split('#').next().unwrap();
            if let Some(rival) = names(entry).find(|it| ["crossbeam-deque", "st3"].contains(it)) {
                findings.add_line(manifest, line, rival);
            }
        }
    }
}

#[test]
fn the_changelog_has_the_version_that_comes_next() {
    let changelog = Source::read("CHANGELOG.md").expect("CHANGELOG.md");
    let version = concat!("## ", env!("CARGO_PKG_VERSION"));
    let headings = changelog.text.lines().map(|line| line.replace(['[', ']'], ""));
    let mut next = headings.filter(|it| it.starts_with("## Unreleased") || it.starts_with(version));
    assert!(next.next().is_some(), "CHANGELOG.md has no section Unreleased and no `{version}`");
}
