//! Type-checks the crate for other processors, as far as their standard libraries are installed.

use runner::cargo;
use std::path::Path;
use std::process::Command;

/// A target, the property for which it stands, and the cargo options of its check.
const TARGETS: [(&str, &str, &[&str]); 6] = [
    ("i686-unknown-linux-gnu", "32 bits", &["--tests"]),
    ("aarch64-unknown-linux-gnu", "ARM", &["--tests"]),
    ("s390x-unknown-linux-gnu", "big-endian", &["--tests"]),
    ("thumbv7em-none-eabi", "no standard library, no 64-bit atomics", &["--no-default-features"]),
    ("wasm32-unknown-unknown", "no threads", &[]),
    ("wasm32-unknown-unknown", "no threads, no standard library", &["--no-default-features"]),
];

fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let root = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    root.is_ok_and(|root| Path::new(&root).join("lib/rustlib").join(target).join("lib").is_dir())
}

/// Returns how to install the targets if none is installed.
pub(crate) fn missing() -> Option<String> {
    let installed = |(target, ..): &(&str, &str, &[&str])| is_installed(target);
    (!TARGETS.iter().any(installed)).then(not_installed)
}

/// Names the targets that are not installed, and how to install them. Returns an empty text if
/// every target is installed.
pub(crate) fn not_installed() -> String {
    let missing = TARGETS.iter().filter(|(target, ..)| !is_installed(target));
    let names: Vec<String> =
        missing.map(|(target, what, _)| format!("{target} ({what})")).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("not installed: `rustup target add` {}", names.join(", ")),
    }
}

/// Returns a check for each installed target.
pub(crate) fn checks() -> Vec<Command> {
    let there = TARGETS.iter().filter(|(target, ..)| is_installed(target));
    let check = |(target, _, what): &(&str, &str, &[&str])| {
        let mut command = cargo::stable();
        command.args(["check", "--package", "filch", "--target", target]).args(*what);
        command
    };
    there.map(check).collect()
}
