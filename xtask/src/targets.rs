//! Type-checks for processors that are not this one, as far as their standard libraries are installed.

use runner::cargo;
use std::path::Path;
use std::process::Command;

/// A target, what it stands for, and the features that it can have.
const TARGETS: [(&str, &str, &[&str]); 5] = [
    ("i686-unknown-linux-gnu", "32 bits", &[]),
    ("aarch64-unknown-linux-gnu", "ARM", &[]),
    ("s390x-unknown-linux-gnu", "big-endian", &[]),
    ("thumbv7em-none-eabi", "no standard library, no 64-bit atomics", &["--no-default-features"]),
    ("wasm32-unknown-unknown", "no threads", &["--no-default-features"]),
];

fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let root = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    root.is_ok_and(|root| Path::new(&root).join("lib/rustlib").join(target).join("lib").is_dir())
}

/// None of them is there: how to get them.
pub(crate) fn missing() -> Option<String> {
    let installed = |(target, ..): &(&str, &str, &[&str])| is_installed(target);
    (!TARGETS.iter().any(installed)).then(|| {
        let names: Vec<String> =
            TARGETS.iter().map(|(target, what, _)| format!("{target} ({what})")).collect();
        format!("none is installed: `rustup target add` {}", names.join(", "))
    })
}

/// A check for each that is there.
pub(crate) fn checks() -> Vec<Command> {
    let there = TARGETS.iter().filter(|(target, ..)| is_installed(target));
    let check = |(target, _, features): &(&str, &str, &[&str])| {
        let mut command = cargo::stable();
        command.args(["check", "--package", "filch", "--target", target]).args(*features);
        command
    };
    there.map(check).collect()
}
