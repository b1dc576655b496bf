//! Narrows a test binary to the modules that one of its tests needs, so that it builds sooner.

use runner::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One `mod` line of a main file, perhaps with a `#[path]` before it.
struct Module<'a> {
    name: &'a str,
    lines: &'a str,
    path: PathBuf,
}

/// Returns the main file without the modules that `test` does not need. A module needs those that
/// it names after `crate::` or `super::`.
pub(crate) fn narrowed(main: &Path, test: &str) -> Result<String> {
    let text = fs::read_to_string(main)?;
    let folder = main.parent().ok_or("a file is in a folder")?;
    let modules = modules(&text, folder);
    let (mut needed, mut open) = (BTreeSet::new(), vec![test.split("::").next().unwrap_or(test)]);
    while let Some(name) = open.pop() {
        let Some(module) = modules.iter().find(|it| it.name == name) else { continue };
        if needed.insert(name) {
            let text = sources(&module.path)?;
            open.extend(modules.iter().map(|it| it.name).filter(|it| names(&text, it)));
        }
    }
    let mut narrowed = text.clone();
    for module in modules.iter().filter(|it| !needed.contains(it.name)) {
        narrowed = narrowed.replacen(module.lines, "", 1);
    }
    Ok(narrowed)
}

fn modules<'a>(text: &'a str, folder: &Path) -> Vec<Module<'a>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = line.as_ptr() as usize - text.as_ptr() as usize + line.len();
        let name = line.trim_end().strip_prefix("mod ").and_then(|it| it.strip_suffix(';'));
        if let Some(name) = name {
            let lines = &text[start..end];
            let path = match lines.split_once("#[path = \"").and_then(|it| it.1.split_once('"')) {
                Some((path, _)) => folder.join(path),
                None => folder.join(format!("{name}.rs")),
            };
            found.push(Module { name, lines, path });
        }
        if !line.starts_with("#[path") {
            start = end;
        }
    }
    found
}

/// Returns the text of a module: that of its file, or of all files beside its `mod.rs`.
fn sources(path: &Path) -> Result<String> {
    if path.file_name().is_none_or(|it| it != "mod.rs") {
        return Ok(fs::read_to_string(path)?);
    }
    let files = runner::folders::files(path.parent().ok_or("a file is in a folder")?, "rs")?;
    files.iter().map(|it| Ok(fs::read_to_string(it)?)).collect()
}

/// Whether a text names a module after `crate::` or `super::`.
fn names(text: &str, module: &str) -> bool {
    let is_it = |rest: &str| {
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
        &rest[..end.unwrap_or(rest.len())] == module
    };
    ["crate::", "super::"].iter().any(|prefix| text.split(prefix).skip(1).any(is_it))
}

#[cfg(test)]
mod tests {
    use super::narrowed;
    use std::path::Path;

    #[test]
    fn a_test_keeps_what_it_needs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = narrowed(&root.join("tests/pool/main.rs"), "held::a_test").unwrap();
        assert!(text.contains("mod held;") && text.contains("mod common;"), "{text}");
        assert!(text.contains("#![cfg(not(any(loom, shuttle)))]"), "{text}");
        assert!(!text.contains("mod random_programs;") && !text.contains("suites"), "{text}");
    }
}
