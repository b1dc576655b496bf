//! Files of a module import one way, as modules do.

use crate::source::{Findings, Source, rust_files, words};
use std::collections::{BTreeMap, BTreeSet};

/// The names after `use super::`, of one statement or path.
fn imports(code: &str) -> impl Iterator<Item = &str> {
    code.split("super::").skip(1).flat_map(|rest| {
        let end = if rest.starts_with('{') {
            rest.find('}')
        } else {
            rest.find([';', '(', '<', ',', ' '])
        };
        words(&rest[..end.unwrap_or(rest.len())])
    })
}

/// Which file of a module defines a name that its head passes on.
fn passed_on(head: &Source, files: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in head.code().split(';') {
        let Some((_, path)) = statement.split_once("use ") else { continue };
        let path = path.trim().trim_start_matches("self::");
        let Some((file, rest)) = path.split_once("::") else { continue };
        if files.contains(file) {
            names.extend(words(rest).map(|name| (name.to_owned(), file.to_owned())));
        }
    }
    names
}

#[test]
fn files_of_a_module_import_one_way() {
    let mut findings = Findings::of("no two files of a module import each other, also by others");
    let sources = rust_files("src");
    let name_of = |file: &Source| {
        // The head of a folder inside has the folder's name.
        let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        path.rsplit('/').next().unwrap().to_owned()
    };
    for head in sources.iter().filter(|it| it.is_head() && it.depth() == 2) {
        let inside = sources.iter().filter(|it| it.module() == head.module() && !it.is_head());
        let files: BTreeSet<String> = inside.clone().map(name_of).collect();
        let passed_on = passed_on(head, &files);
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in inside {
            let code = file.code().replace(&format!("crate::{}::", head.module()), "super::");
            let file_of = |name: &str| files.get(name).or_else(|| passed_on.get(name)).cloned();
            let used = imports(&code).filter_map(file_of).filter(|it| *it != name_of(file));
            uses.entry(name_of(file)).or_default().extend(used);
        }
        // A file that uses none of those that are left is in no circle.
        loop {
            let left: BTreeSet<String> = uses.keys().cloned().collect();
            let before = left.len();
            uses.retain(|_, used| used.iter().any(|it| left.contains(it)));
            if uses.len() == before {
                break;
            }
        }
        if !uses.is_empty() {
            findings.add(&head.path, &format!("circle: {:?}", uses.keys()));
        }
    }
}
