//! Runs the nightly toolchain, and says how to install it if it is missing.

use runner::process::succeeds;
use runner::{Result, cargo};
use std::process::Command;

/// Returns a command of the nightly cargo.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    cargo::isolate(&mut command);
    command.arg("+nightly");
    command
}

/// Returns how to install the nightly toolchain if it is missing.
pub(crate) fn missing() -> Option<String> {
    let there = succeeds(cargo().arg("--version"));
    (!there).then(|| "no nightly: `rustup toolchain install nightly --profile minimal`".to_owned())
}

/// Returns how to install the nightly toolchain or cargo-fuzz if one is missing.
pub(crate) fn missing_for_fuzz() -> Option<String> {
    missing().or_else(|| cargo::missing("fuzz"))
}

/// The triple of this machine, as the nightly spells it.
pub(crate) fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    cargo::isolate(&mut rustc);
    let output = rustc.args(["+nightly", "-vV"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc +nightly -vV` names no host".into())
}
