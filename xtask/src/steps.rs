//! The steps of `cargo xtask verify`, in their order.
//!
//! Ordinary builds share the target folder, and model builds share `loom` inside it; no step
//! changes flags within a folder, so nothing is built twice.

use crate::loom::model_build;
use crate::{Result, api, cargo, nightly, spin, targets, valgrind};
use std::env;
use std::path::Path;
use std::process::Command;

/// One line of the final table.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Run one after another, until one fails.
    pub(crate) commands: Vec<Command>,
    /// Why the step does not run.
    pub(crate) skipped: Option<String>,
}

/// All steps; `quick` skips those that take minutes.
pub(crate) fn all(quick: bool) -> Result<Vec<Step>> {
    let slow = |reason: Option<String>| if quick { Some("--quick".to_owned()) } else { reason };
    let mut steps = vec![
        step("fmt", formatting()),
        step(
            "clippy",
            [
                lint(cargo(["clippy", "--workspace", "--all-targets"])),
                lint(cargo(["clippy", "--package", "filch", "--all-features", "--all-targets"])),
            ],
        ),
        step(
            "clippy-no-std",
            [lint(cargo(["clippy", "--package", "filch", "--no-default-features"]))],
        ),
        step("clippy-models", [lint_models()?]),
        step("docs", [docs()]),
        step(
            "tests",
            [
                // What is in the documentation runs once, below, with everything in it.
                cargo(["test", "--workspace", "--tests", "--no-fail-fast"]),
                cargo(["test", "--package", "filch", "--all-features", "--doc"]),
            ],
        ),
        step("no-std", [cargo(["build", "--package", "filch", "--no-default-features"])]),
        step("examples", [ours(&["examples"])?]),
        step("benches", [cargo(["bench", "--no-run", "--workspace"])]),
        Step { skipped: api::missing(), ..step("api", [ours(&["api"])?]) },
        step("package", [cargo(["package", "--package", "filch", "--allow-dirty"])]),
        Step { skipped: targets::missing(), ..step("targets", targets::checks()) },
        step("models", [models(quick)?]),
        step("litmus", [ours(&["litmus"])?]),
        step("schedules", [ours(&["shuttle"])?]),
    ];
    steps.extend([
        Step { skipped: spin::missing(), ..step("spin", [ours(&["spin"])?]) },
        Step { skipped: slow(valgrind::missing()), ..step("valgrind", [ours(&["valgrind"])?]) },
        Step { skipped: slow(None), ..step("reclamation", [ours(&["reclaim"])?]) },
        Step { skipped: slow(None), ..step("audit", [ours(&["orderings", "--quick"])?]) },
        Step { skipped: slow(nightly::missing()), ..step("sanitizers", [ours(&["sanitize"])?]) },
        Step {
            skipped: slow(nightly::missing_for_fuzz()),
            ..step("fuzz", [ours(&["fuzz", "--seconds", "10"])?])
        },
        // Of what the steps above have found.
        Step { skipped: slow(None), ..step("proof", [ours(&["prove", "--from-reports"])?]) },
    ]);
    Ok(steps)
}

fn step(name: &'static str, commands: impl Into<Vec<Command>>) -> Step {
    Step { name, commands: commands.into(), skipped: None }
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = cargo::stable();
    command.args(arguments);
    command
}

/// One of our own commands.
fn ours(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(arguments);
    Ok(command)
}

/// All models; quickly, with two preemptions at most.
fn models(quick: bool) -> Result<Command> {
    let mut command = ours(&["loom"])?;
    if quick {
        command.env("FILCH_PREEMPTIONS_AT_MOST", "2");
    }
    Ok(command)
}

fn formatting() -> Vec<Command> {
    let mut commands = vec![cargo(["fmt", "--all"])];
    if Path::new("fuzz/Cargo.toml").exists() {
        commands.push(cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml"]));
    }
    // rustfmt colours even what goes to a file, unless told otherwise.
    for command in &mut commands {
        command.args(["--check", "--", "--color", "never"]);
    }
    commands
}

fn lint(mut command: Command) -> Command {
    command.args(["--", "-D", "warnings"]);
    command
}

fn lint_models() -> Result<Command> {
    let mut command = model_build("clippy")?;
    command.arg("--tests");
    Ok(lint(command))
}

fn docs() -> Command {
    let mut command = cargo(["doc", "--no-deps", "--workspace", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}
