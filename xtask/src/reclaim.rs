//! `cargo xtask reclaim`: plants the breaches of the contract of epoch-based reclamation in the
//! real source.
//!
//! In models the reclaimer frees as early as the contract permits. That shows something only if
//! every breach of the contract makes a model fail. So the command writes each breach into a copy
//! of the source, and runs the models on that.

use crate::plants::{self, Plant, Tree, Trees};
use clap::ArgMatches;
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well, cargo};
use std::fs;
use std::time::Duration;

/// The path of the list of breaches.
pub(crate) const BREACHES: &str = "proofs/breaches.txt";

/// The time limit of the models with a breach. A breach that takes longer to show counts as not
/// found.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("reclaim")
        .about("Plant breaches of epoch's contract in a copy of the source: do the models notice?")
        .arg(plants::fit())
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let plants = plants::read(BREACHES)?;
    if given.get_flag("fit") {
        return plants::all_fit(&plants);
    }
    let trees = Trees::copy("reclaim", &[], &plants)?;
    let mut table = Table::new(&["structure", "planted", "seconds", "verdict"]);
    let sound = ["loom_deque::buffers", "loom_pool::snapshot"];
    let progress = Progress::of(plants.len() + sound.len());
    let (mut caught, mut failures) = (0, Vec::new());
    let runs = process::each(&sound, |models| trees.with(|tree| run(tree, models)));
    for (models, run) in sound.into_iter().zip(runs) {
        let (end, seconds) = run?;
        let verdict = if end.is_success() { "holds" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {models}, nothing planted"));
        table.row([models.to_owned(), "-".to_owned(), format!("{seconds:.1}"), verdict.to_owned()]);
        if verdict != "holds" {
            failures.push(format!("{models} fails with nothing planted"));
        }
    }
    let runs = process::each(&plants, |plant| -> Result<(&str, f64)> {
        let (verdict, seconds) = trees.with(|tree| judge(tree, plant))?;
        progress.step(format!("{verdict:<6} {}: {}", plant.subject, plant.defect));
        Ok((verdict, seconds))
    });
    for (plant, run) in plants.into_iter().zip(runs) {
        let (verdict, seconds) = run?;
        caught += usize::from(verdict == "caught");
        if verdict != "caught" {
            failures.push(format!("{}: {}: {verdict}", plant.subject, plant.defect));
        }
        table.row([plant.subject, plant.defect, format!("{seconds:.1}"), verdict.to_owned()]);
    }
    table.publish("reclaim")?;
    println!("\n{caught} breaches of the contract caught, in 2 structures");
    all_well(failures)
}

/// Returns the models' verdict on a breach, and after how many seconds.
fn judge(tree: &Tree, plant: &Plant) -> Result<(&'static str, f64)> {
    let (end, seconds) = tree.with(plant, || run(tree, &plant.witness))?;
    let verdict = match end {
        End::Exited(status) if status.success() => "MISSED",
        End::Hung => "HUNG",
        // A breach that does not compile shows nothing about the models.
        End::Exited(status) if status.code() == Some(101) && !was_built(tree)? => "UNBUILT",
        End::Exited(_) => "caught",
    };
    Ok((verdict, seconds))
}

/// Runs the models of one file, `binary::module`, in a copy. Their output goes to the copy's
/// `run.log`.
fn run(tree: &Tree, models: &str) -> Result<(End, f64)> {
    let (binary, module) = models.split_once("::").ok_or_else(|| {
        format!("{BREACHES}: `{models}` is not a binary of models and a module of it")
    })?;
    let mut command = cargo::stable();
    command.env("RUSTFLAGS", "--cfg loom").env("FILCH_PREEMPTIONS_AT_MOST", "2");
    command.env("RUST_BACKTRACE", "0").current_dir(tree.path());
    command.args(["test", "--profile", "models", "--test", binary, "--target-dir"]);
    command.arg(tree.target());
    command.args(["--", &format!("{module}::")]);
    let log = tree.path().join("run.log");
    let ran = process::run(process::log_to(&mut command, &log)?, Some(LIMIT))?;
    // libtest succeeds if the filter fits no test.
    if fs::read_to_string(&log)?.contains("\nrunning 0 tests") {
        return Err(format!("there are no models in `{models}`").into());
    }
    Ok(ran)
}

fn was_built(tree: &Tree) -> Result<bool> {
    Ok(fs::read_to_string(tree.path().join("run.log"))?.contains("Running loom-tests/"))
}
