//! The steps of `cargo xtask verify`, in their order.
//!
//! Ordinary builds share the target folder, and model builds share `loom` inside it. No step
//! changes flags within a folder, so nothing is built twice.

use crate::loom::model_build;
use crate::{api, browser, nightly, spin, targets, valgrind};
use runner::{Result, cargo, folders};
use std::env;
use std::process::Command;

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// The step runs for each change: `cargo xtask verify`.
    Change,
    /// The step runs with `--all` only, as in CI.
    All,
}

/// One line of the final table.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) tier: Tier,
    /// The share of its tier's time that the step may take, in seconds: on two cores, with nothing
    /// built before.
    pub(crate) budget: u32,
    /// The commands of the step, which run one after another until one fails.
    pub(crate) commands: Vec<Command>,
    /// Why the step cannot run, if it cannot.
    pub(crate) skipped: Option<String>,
}

/// Returns the steps of both tiers. With `all`, the models run in the longer form of CI.
pub(crate) fn steps(all: bool) -> Result<Vec<Step>> {
    let filch = |rest: &[&str]| {
        let mut command = cargo(&["clippy", "--package", "filch"]);
        command.args(rest);
        lint(command)
    };
    Ok(vec![
        change("fmt", 5, formatting()),
        // This step lints the tests of xtask; `tools` runs them.
        change("clippy", 45, [filch(&["--package", "xtask", "--all-targets"])]),
        change("clippy-models", 25, [lint_models()?]),
        // This step finds in seconds a plant that no longer fits. The step `defects` would find it
        // too, but runs only with `--all`.
        change("plants", 1, [ours(&["defects", "--fit"])?]),
        // In the same way, this step finds an ordering for which `audit` would search a witness.
        change("witnesses", 1, [ours(&["orderings", "--fit"])?]),
        change("docs", 10, [docs(&["--package", "filch", "--all-features"])]),
        change("tests", 160, [ours(&["tests"])?, cargo(&["test", "--doc", "--package", "filch"])]),
        match all {
            true => change("models", 215, [ours(&["loom", "--short"])?]),
            false => change("models", 150, [ours(&["loom", "--usual"])?]),
        },
        change("litmus", 5, [ours(&["litmus"])?]),
        all_only(
            "clippy-all",
            45,
            [
                lint(cargo(&["clippy", "--workspace", "--all-targets"])),
                docs(&["--workspace", "--all-features"]),
            ],
        ),
        all_only(
            "features",
            45,
            [
                filch(&[]),
                filch(&["--no-default-features"]),
                filch(&["--features", "futures"]),
                filch(&["--features", "hyper"]),
                filch(&["--features", "metrics"]),
                cargo(&["build", "--package", "filch", "--no-default-features"]),
                model_build_of_all()?,
                locked_slots()?,
            ],
        ),
        all_only("tools", 75, [tools()]),
        Step { skipped: browser::missing(), ..all_only("browser", 10, [page()]) },
        all_only("rayon", 60, [lint_rayon()?, ours(&["rayon"])?]),
        all_only("examples", 50, [ours(&["examples"])?]),
        all_only("benches", 55, [cargo(&["test", "--package", "filch-benches", "--benches"])]),
        Step { skipped: api::missing(), ..all_only("api", 15, [ours(&["api"])?]) },
        all_only("package", 10, [cargo(&["package", "--package", "filch", "--allow-dirty"])]),
        Step { skipped: targets::missing(), ..all_only("targets", 15, targets::checks()) },
        all_only("fairness", 40, [fairness()]),
        all_only("schedules", 45, [ours(&["shuttle"])?]),
        Step { skipped: spin::missing(), ..all_only("spin", 15, [ours(&["spin"])?]) },
        Step { skipped: valgrind::missing(), ..all_only("valgrind", 40, [ours(&["valgrind"])?]) },
        all_only("defects", 400, [ours(&["defects"])?]),
        all_only("audit", 40, [ours(&["orderings", "--quick"])?]),
        Step { skipped: nightly::missing(), ..all_only("sanitizers", 155, [ours(&["sanitize"])?]) },
        Step {
            skipped: nightly::missing_for_fuzz(),
            ..all_only("fuzz", 90, [ours(&["fuzz", "--seconds", "10"])?])
        },
        // This step reads the reports of the steps above.
        all_only("proof", 5, [ours(&["prove", "--from-reports"])?]),
    ])
}

fn change(name: &'static str, budget: u32, commands: impl Into<Vec<Command>>) -> Step {
    Step { name, tier: Tier::Change, budget, commands: commands.into(), skipped: None }
}

fn all_only(name: &'static str, budget: u32, commands: impl Into<Vec<Command>>) -> Step {
    Step { tier: Tier::All, ..change(name, budget, commands) }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = cargo::stable();
    command.args(arguments);
    command
}

/// Returns a command of `cargo xtask` itself.
fn ours(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(arguments);
    Ok(command)
}

/// Returns a test of the shares of queues, in ten times as many random programs as `cargo test`
/// tries.
fn fairness() -> Command {
    let mut command = cargo(&["test", "--test", "fair", "fairness::"]);
    command.env("FILCH_STRESS", "10");
    command
}

/// The packages whose tests `cargo test` leaves out. `filch-drop-in` uses filch with its default
/// features, while filch's own tests use all features.
const TOOLS: [&str; 7] =
    ["filch-drop-in", "filch-service", "filch-tower", "litmus", "mutants", "runner", "xtask"];

fn tools() -> Command {
    let mut command = cargo(&["test"]);
    TOOLS.iter().for_each(|it| _ = command.args(["--package", it]));
    command
}

/// Returns the test of the service's page, which `tools` leaves out because it needs Chromium. It
/// names the packages of `tools`, so that cargo builds none of them again.
fn page() -> Command {
    let mut command = tools();
    command.args(["--test", "service", "page::", "--", "--ignored"]);
    command
}

fn formatting() -> Vec<Command> {
    let others = ["fuzz/Cargo.toml", "compat/rayon-core/Cargo.toml"];
    let others = others.map(|it| cargo(&["fmt", "--manifest-path", it]));
    let mut commands: Vec<_> = [cargo(&["fmt", "--all"])].into_iter().chain(others).collect();
    // rustfmt colors even its output to a file, unless this option is given.
    for command in &mut commands {
        command.args(["--check", "--", "--color", "never"]);
    }
    commands
}

fn lint(mut command: Command) -> Command {
    command.args(["--", "-D", "warnings"]);
    command
}

/// Lints the package `compat/rayon-core`, which is in no workspace of ours. `cargo xtask rayon`
/// builds it in the same target folder.
fn lint_rayon() -> Result<Command> {
    let mut command = cargo(&["clippy", "--manifest-path", "compat/rayon-core/Cargo.toml"]);
    command.arg("--all-targets").arg("--target-dir").arg(folders::target_dir()?.join("rayon"));
    Ok(lint(command))
}

fn lint_models() -> Result<Command> {
    let mut command = model_build("clippy")?;
    command.args(["--package", "filch", "--tests"]);
    Ok(lint(command))
}

/// Checks all that `RUSTFLAGS="--cfg loom" cargo test` builds, with examples and other packages.
fn model_build_of_all() -> Result<Command> {
    let mut command = model_build("check")?;
    command.args(["--tests", "--examples"]);
    Ok(command)
}

/// Tests the deque with the locked slots that WebAssembly and Miri use (`src/sync/slot`).
fn locked_slots() -> Result<Command> {
    let mut command = cargo(&["test", "--no-default-features", "--test", "deque"]);
    command.arg("--target-dir").arg(folders::target_dir()?.join("locked"));
    command.env("RUSTFLAGS", "--cfg filch_locked_slots");
    Ok(command)
}

fn docs(rest: &[&str]) -> Command {
    let mut command = cargo(&["doc", "--no-deps"]);
    command.args(rest);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

#[cfg(test)]
mod tests {
    use super::{TOOLS, Tier, steps};
    use runner::cargo;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Reads a file of the repository by its absolute path, since another test changes the current
    /// folder.
    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        fs::read_to_string(root.join(path)).unwrap()
    }

    #[test]
    fn the_jobs_of_the_workflow_run_each_step_once() {
        let workflow = read(".github/workflows/ci.yml");
        let of_jobs = workflow.lines().filter_map(|it| it.trim().strip_prefix("steps: "));
        let only = workflow.lines().filter_map(|it| it.split_once("--only ")).map(|(_, it)| it);
        let lists = of_jobs.chain(only.filter(|it| !it.starts_with('$')));
        let named: Vec<&str> = lists.flat_map(|it| it.split(',')).map(str::trim).collect();
        let there: BTreeSet<&str> = steps(true).unwrap().iter().map(|step| step.name).collect();
        assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(named.len(), there.len(), "a step is in two jobs");
    }

    #[test]
    fn the_shares_of_a_tier_fit_its_time() {
        let sum = |all| -> u32 {
            let steps = steps(all).unwrap().into_iter();
            steps.filter(|step| all || step.tier == Tier::Change).map(|step| step.budget).sum()
        };
        assert!(sum(false) <= 600, "verify: {} s", sum(false));
        assert!(sum(true) <= 1800, "verify --all: {} s", sum(true));
    }

    #[test]
    fn every_package_is_tested_by_cargo_test_or_by_the_step_tools() {
        let metadata = cargo::stable()
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .output()
            .unwrap();
        let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
        let defaults = metadata["workspace_default_members"].as_array().unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let others = packages.iter().filter(|it| !defaults.contains(&it["id"]));
        let others: BTreeSet<&str> = others.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(others, BTreeSet::from(TOOLS));
    }

    #[test]
    fn the_workflow_runs_the_steps_that_it_names() {
        let workflow = read(".github/workflows/ci.yml");
        let run = "- run: cargo xtask verify --all --only ${{ matrix.steps }}";
        assert_eq!(workflow.matches(run).count(), 1);
    }

    #[test]
    fn every_fuzz_target_has_its_hour_each_week() {
        let manifest = read("fuzz/Cargo.toml");
        let bins = manifest.split("[[bin]]").skip(1);
        let bins = bins.map(|it| it.split('"').nth(1).unwrap());
        let weekly = read(".github/workflows/weekly.yml");
        let (_, matrix) = weekly.split_once("target:\n").unwrap();
        let rows = matrix.lines().map_while(|line| line.trim().strip_prefix("- "));
        assert_eq!(bins.collect::<BTreeSet<_>>(), rows.collect::<BTreeSet<_>>());
    }
}
