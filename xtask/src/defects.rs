//! `cargo xtask defects`: plants defects in the real source. They are those of the articles'
//! schedulers (B1–B17), those that this crate once had, and breaches of epoch's contract.
//!
//! The list names a test for each defect. A test that passes with the defect in the source
//! shows nothing. So the command writes each defect into a copy of the source, and its test must
//! fail there.

use crate::modules;
use crate::plants::{self, Plant, Tree, Trees};
use crate::suite;
use clap::ArgMatches;
use runner::cargo::{self, TestBinary};
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The path of the list of defects.
pub(crate) const DEFECTS: &str = "proofs/defects.txt";

/// A test counts as hung if it takes longer than this plus ten times its time without the defect.
/// Models have a longer limit, since loom itself notices a hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// A test notices a defect if it fails in at least one of this many runs, since some defects need a
/// race.
const RUNS: u32 = 5;

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("defects")
        .about("Plant known defects in a copy of the source: do their tests notice?")
        .arg(plants::fit())
        .arg(crate::usage::word("FILTER", "Plant those whose number or text contains this"))
        .after_help("Example: cargo xtask defects b11")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let plants = plants::read(DEFECTS)?;
    if given.get_flag("fit") {
        return plants::all_fit(&plants);
    }
    let trees = Trees::copy(&plants)?;
    let filter = given.get_one::<String>("FILTER").map_or("", String::as_str);
    let is_wanted = |it: &Plant| format!("{} {}", it.subject, it.defect).contains(filter);
    let plants: Vec<Plant> = plants.into_iter().filter(is_wanted).collect();
    let tests: BTreeSet<&str> = plants.iter().map(|it| it.witness.as_str()).collect();
    if tests.is_empty() {
        return Err(format!("no defect in {DEFECTS} fits `{filter}`").into());
    }
    let progress = Progress::of(tests.len() + plants.len());
    let usual = trees.with(|tree| usual(tree, tests, &progress))?;
    trees.share_builds()?;
    // While a test hangs, other threads build the next tests.
    let ends: Vec<Result<(&str, f64)>> = thread::scope(|scope| {
        let numbered: Vec<(usize, &Plant)> = plants.iter().enumerate().collect();
        let runs = process::each(&numbered, |&(number, plant)| {
            let name = format!("{}-{number}", plant.subject);
            let binary = trees
                .with(|tree| tree.with(plant, || Ok(build_narrowed(tree, &plant.witness, &name))));
            let (usual, progress) = (usual[plant.witness.as_str()], &progress);
            scope.spawn(move || {
                let (verdict, seconds) = judge(binary?, &plant.witness, usual)?;
                progress.step(format!("{verdict:<8} {}: {}", plant.subject, plant.defect));
                Ok((verdict, seconds))
            })
        });
        runs.into_iter().map(|it| it.join().expect("it does not panic")).collect()
    });

    let mut table = Table::new(&["number", "planted", "test", "seconds", "verdict"]);
    let (mut noticed, mut failures) = (0, Vec::new());
    for (plant, end) in plants.iter().zip(ends) {
        let (verdict, seconds) = end?;
        let Plant { subject, defect, witness, .. } = plant;
        if ["fails", "hangs"].contains(&verdict) {
            noticed += 1;
        } else {
            failures.push(format!("{subject}: {defect}: {witness}: {verdict}"));
        }
        let [number, planted, test] = [subject, defect, witness].map(String::clone);
        table.row([number, planted, test, format!("{seconds:.1}"), verdict.to_owned()]);
    }
    table.publish("defects")?;
    println!("\n{noticed} defects noticed by their tests");
    all_well(failures)
}

/// Returns how many seconds each test takes without a defect. `judge` computes the test's limit
/// from this. Each test must pass. A model runs without preemptions, since another step checks it.
fn usual<'a>(
    tree: &Tree,
    tests: BTreeSet<&'a str>,
    progress: &Progress,
) -> Result<BTreeMap<&'a str, f64>> {
    let mut binaries = BTreeMap::new();
    for test in &tests {
        let (target, _) = split(test)?;
        if !binaries.contains_key(target) {
            binaries.insert(target, build(tree, test, "sound")?);
        }
    }
    let tests: Vec<&str> = tests.into_iter().collect();
    let runs = process::each(&tests, |test| -> Result<(&'a str, f64)> {
        let binary = &binaries[split(test)?.0];
        let (end, seconds) = run(binary, test, suite::LIMIT, "0")?;
        if !end.is_success() {
            let tail = process::tail(&log_of(binary, test), 40);
            return Err(format!("{test} fails with nothing planted: {end:?}:\n{tail}").into());
        }
        progress.step(format!("holds    {test}, nothing planted"));
        Ok((*test, seconds))
    });
    runs.into_iter().collect()
}

/// Returns how a test ends that meets a defect, and after how many seconds.
fn judge(binary: Result<TestBinary>, test: &str, usual: f64) -> Result<(&'static str, f64)> {
    // A defect that does not compile shows nothing about the test.
    let Ok(binary) = binary else { return Ok(("UNBUILT", 0.0)) };
    let limit = match is_of_models(&binary.target) {
        true => suite::LIMIT,
        false => PATIENCE + Duration::from_secs_f64(10.0 * usual),
    };
    let (mut seconds, mut verdict) = (0.0, "MISSED");
    for _ in 0..RUNS {
        let (end, took) = run(&binary, test, limit, "2")?;
        seconds += took;
        verdict = match end {
            End::Exited(status) if status.success() => continue,
            End::Exited(_) => "fails",
            End::Hung => "hangs",
        };
        break;
    }
    fs::remove_file(&binary.path)?;
    Ok((verdict, seconds))
}

/// Builds the same as `build`, but with only the modules that the test needs. The other modules
/// would take two thirds of the time to build a large binary.
fn build_narrowed(tree: &Tree, test: &str, name: &str) -> Result<TestBinary> {
    let (target, path) = split(test)?;
    let folder = target.strip_prefix("loom_").map(|it| format!("loom-tests/{it}"));
    let main = folder.unwrap_or_else(|| format!("tests/{target}")) + "/main.rs";
    let main = tree.path().join(main);
    let whole = fs::read_to_string(&main)?;
    fs::write(&main, modules::narrowed(&main, path)?)?;
    let binary = build(tree, test, name);
    fs::write(&main, whole)?;
    binary
}

/// Builds the binary that has a test, from the present state of the copy, and keeps it under
/// `name`.
fn build(tree: &Tree, test: &str, name: &str) -> Result<TestBinary> {
    let (target, _) = split(test)?;
    let mut command = cargo::stable();
    command.args(["test", "--quiet", "--test", target, "--target-dir"]);
    command.env("CARGO_PROFILE_TEST_DEBUG", "0"); // built often, and run once
    // A defect may leave an item unused, which is no error here.
    if is_of_models(target) {
        command.env("RUSTFLAGS", "--cfg loom -Awarnings").arg(tree.target().join("loom"));
    } else {
        command.env("RUSTFLAGS", "-Awarnings").arg(tree.target());
    }
    command.current_dir(tree.path());
    let mut binary = cargo::build_tests(command)?.pop().ok_or("no test was built")?;
    let kept = tree.target().join(format!("{target}-{name}"));
    // The binary is moved, not copied. While one thread writes a copy, another thread's child may
    // inherit the open file, and then the copy cannot be run.
    fs::rename(&binary.path, &kept)?;
    binary.path = kept;
    Ok(binary)
}

fn run(binary: &TestBinary, test: &str, limit: Duration, preemptions: &str) -> Result<(End, f64)> {
    let (_, name) = split(test)?;
    let log = log_of(binary, test);
    let mut command = binary.test(name);
    command.current_dir(&binary.folder).env("FILCH_PREEMPTIONS_AT_MOST", preemptions);
    // A failing property is not shrunk, because only its failure matters.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env_remove("FILCH_STRESS");
    let ran = process::run(process::log_to(&mut command, &log)?, Some(limit))?;
    // libtest succeeds if no test has this name.
    if fs::read_to_string(&log)?.contains("\nrunning 0 tests") {
        return Err(format!("{DEFECTS}: there is no test `{test}`").into());
    }
    Ok(ran)
}

fn is_of_models(target: &str) -> bool {
    target.starts_with("loom_")
}

fn log_of(binary: &TestBinary, test: &str) -> PathBuf {
    binary.path.with_extension(test.replace("::", "-") + ".log")
}

/// Splits `binary::name` into the test's binary and its name.
fn split(test: &str) -> Result<(&str, &str)> {
    let parts = test.split_once("::");
    parts.ok_or_else(|| format!("{DEFECTS}: `{test}` is not a binary and a test of it").into())
}
