//! Who notices a mutant that is switched on.

use crate::end::End;
use crate::viable::Tree;
use runner::cargo::{self, Test, TestBinary};
use runner::process::{self, Progress};
use runner::{Result, folders};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// These read the source and know nothing of what it does.
const READERS: [&str; 1] = ["house"];

/// What a process may take, so that a mutant that allocates without end does not end the machine.
const KIBIBYTES: &str = "8388608";

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Tests,
    /// With these preemptions at most, or as they are written.
    Models(Option<&'static str>),
}

/// A test or model, with the mutants whose code it passes.
pub(crate) struct Witness {
    test: Test,
    reached: BTreeSet<usize>,
    seconds: f64,
}

/// Runs all of the binaries that are wanted once without a mutant; cheapest first in the result.
pub(crate) fn witnesses(
    tree: &Tree,
    who: Who,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Witness>> {
    let mut build = tree.cargo("test");
    build.arg("--tests").env("CARGO_PROFILE_TEST_OPT_LEVEL", "2"); // built once, and run often
    let of_kind = |target: &str| match who {
        Who::Models(_) => target.starts_with("loom_"),
        Who::Tests => !target.contains("loom_") && target != "shuttle",
    };
    let is_reader = |target: &str| READERS.contains(&target);
    let wanted =
        |it: &TestBinary| of_kind(&it.target) && is_wanted(&it.target) && !is_reader(&it.target);
    let mut tests = cargo::tests(cargo::build_tests(build)?.into_iter().filter(wanted))?;
    tests.retain(Test::is_model);
    let progress = Progress::of(tests.len());
    let runs = process::each(&tests, |test| {
        let witness = witness(tree, test, who);
        progress.step(format!("passes   {}", test.full_name()));
        witness
    });
    let mut witnesses: Vec<Witness> =
        runs.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    // The switches take room on the stack, and time: one test or another may not bear them.
    if witnesses.len() * 50 < tests.len() * 49 {
        return Err("more than a fiftieth fails with no mutant".into());
    }
    witnesses.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(witnesses)
}

fn witness(tree: &Tree, test: &Test, who: Who) -> Result<Option<Witness>> {
    let folder = folders::folder(folders::reports()?.join("mutants/reached"))?;
    let [log, list] = ["log", "txt"].map(|kind| folder.join(test.file_stem() + "." + kind));
    // The switch appends.
    let _ = fs::remove_file(&list);
    let mut child = child(tree, test, who);
    child.env("FILCH_MUTANTS_REACHED", &list);
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, None)?;
    if !end.is_success() {
        let tail = process::tail(&log, 10);
        eprintln!("left out: {} fails with no mutant:\n{tail}", test.full_name());
        return Ok(None);
    }
    let text = fs::read_to_string(&list).unwrap_or_default();
    let reached = text.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok(Some(Witness { test: test.clone(), reached, seconds }))
}

fn child(tree: &Tree, test: &Test, who: Who) -> Command {
    let mut child = Command::new("sh");
    child.args(["-c", "ulimit -v $0; ulimit -c 0; exec \"$@\"", KIBIBYTES]).arg(&test.binary.path);
    child.args(["--exact", &test.name, "--test-threads=2"]);
    child.current_dir(tree.folder()).env("RUST_BACKTRACE", "0");
    // What fails is neither made smaller nor remembered: the next mutant is another.
    child.env("FILCH_STRESS", "0.2").env("PROPTEST_CASES", "200");
    child.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    child.env_remove("FILCH_MUTANT").env_remove("FILCH_MUTANTS_REACHED").stdin(Stdio::null());
    if let Who::Models(Some(preemptions)) = who {
        // Without the slow ones, as for the audit.
        child.env("FILCH_PREEMPTIONS_AT_MOST", preemptions).env("FILCH_AUDIT", "1");
    }
    child
}

/// Tries each mutant on those that pass it and are `asked` about it.
pub(crate) fn judge(
    tree: &Tree,
    mutants: &BTreeSet<usize>,
    witnesses: &[Witness],
    who: Who,
    asked: impl Fn(usize, &str) -> bool + Sync,
    told: impl Fn(usize, &End) + Sync,
) -> Result<BTreeMap<usize, End>> {
    let all: Vec<usize> = mutants.iter().copied().collect();
    let ends = process::each(&all, |mutant| {
        let passes =
            |it: &&Witness| it.reached.contains(mutant) && asked(*mutant, &it.test.binary.target);
        let end = one(tree, *mutant, witnesses.iter().filter(passes), who)?;
        told(*mutant, &end);
        Ok((*mutant, end))
    });
    ends.into_iter().collect()
}

fn one<'a>(
    tree: &Tree,
    mutant: usize,
    witnesses: impl Iterator<Item = &'a Witness>,
    who: Who,
) -> Result<End> {
    let mut reached = false;
    for witness in witnesses {
        reached = true;
        let mut child = child(tree, &witness.test, who);
        child.env("FILCH_MUTANT", mutant.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let limit = Duration::from_secs_f64(6.0 + 8.0 * witness.seconds);
        let by = witness.test.full_name();
        return Ok(match (process::run(&mut child, Some(limit))?.0, who) {
            (process::End::Exited(status), _) if status.success() => continue,
            (process::End::Exited(_), Who::Tests) => End::ByTest(by),
            (process::End::Exited(_), Who::Models(_)) => End::ByModel(by),
            (process::End::Hung, _) => End::ByTime(by),
        });
    }
    Ok(if reached { End::Missed } else { End::Unreached })
}
