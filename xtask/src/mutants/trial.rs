//! Who notices a mutant that is switched on.

use super::viable::Tree;
use crate::cargo::{self, plain_name, TestBinary};
use crate::process::{self, End, Progress};
use crate::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// These read the source and know nothing of what it does.
const READERS: [&str; 2] = ["house_rules", "texts"];

/// What a process may take, so that a mutant that allocates without end does not end the machine.
const KIBIBYTES: &str = "8388608";

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Tests,
    /// With these preemptions at most, or as they are written.
    Models(Option<&'static str>),
}

/// A test or model, with the mutants whose code it passes.
pub(super) struct Witness {
    binary: TestBinary,
    name: String,
    reached: BTreeSet<usize>,
    seconds: f64,
}

/// How a mutant ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Noticed {
        by: String,
    },
    Hung {
        by: String,
    },
    Missed,
    /// Nothing passes it.
    Unreached,
}

/// Runs everything once without a mutant, cheapest first in the result.
pub(super) fn witnesses(tree: &Tree, who: Who) -> Result<Vec<Witness>> {
    let mut build = tree.cargo("test");
    build.arg("--tests");
    let wanted = |it: &TestBinary| match who {
        Who::Models(_) => it.target.starts_with("loom_"),
        Who::Tests => !it.target.contains("loom_") && !it.target.contains("shuttle_"),
    };
    let mut tests = Vec::new();
    for binary in cargo::build_tests(build)?.into_iter().filter(wanted) {
        if !READERS.contains(&binary.target.as_str()) {
            let listed = binary.tests()?;
            tests.extend(listed.into_iter().map(|name| (binary.clone(), name)));
        }
    }
    tests.retain(|(_, name)| {
        !plain_name(name).starts_with("canary_") && !plain_name(name).starts_with("harness_")
    });
    let progress = Progress::of(tests.len());
    let runs = process::each(&tests, |(binary, name)| {
        let witness = witness(tree, binary, name, who);
        progress.step(format!("passes   {}::{name}", binary.target));
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

fn witness(tree: &Tree, binary: &TestBinary, name: &str, who: Who) -> Result<Option<Witness>> {
    let folder = cargo::folder(cargo::reports()?.join("mutants/reached"))?;
    let stem = format!("{}-{}", binary.target, name.replace("::", "-"));
    let [log, list] = ["log", "txt"].map(|kind| folder.join(format!("{stem}.{kind}")));
    // The switch appends.
    let _ = fs::remove_file(&list);
    let mut child = child(tree, binary, name, who);
    child.env("FILCH_MUTANTS_REACHED", &list);
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, None)?;
    if !end.is_success() {
        let tail = process::tail(&log, 10);
        eprintln!("left out: {}::{name} fails with no mutant:\n{tail}", binary.target);
        return Ok(None);
    }
    let text = fs::read_to_string(&list).unwrap_or_default();
    let reached = text.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok(Some(Witness { binary: binary.clone(), name: name.to_owned(), reached, seconds }))
}

fn child(tree: &Tree, binary: &TestBinary, name: &str, who: Who) -> Command {
    let mut child = Command::new("sh");
    child.args(["-c", "ulimit -v $0; ulimit -c 0; exec \"$@\"", KIBIBYTES]).arg(&binary.path);
    child.args(["--exact", name, "--test-threads=2"]);
    child.current_dir(tree.folder()).env("RUST_BACKTRACE", "0");
    // What fails is neither made smaller nor remembered: the next mutant is another.
    child.env("FILCH_STRESS", "0.2").env("PROPTEST_CASES", "200");
    child.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    child.env_remove("FILCH_MUTANT").env_remove("FILCH_MUTANTS_REACHED").stdin(Stdio::null());
    if let Who::Models(Some(preemptions)) = who {
        child.env("FILCH_PREEMPTIONS_AT_MOST", preemptions);
    }
    child
}

/// Tries each mutant on those that pass it.
pub(super) fn judge(
    tree: &Tree,
    mutants: &BTreeSet<usize>,
    witnesses: &[Witness],
    who: Who,
    told: impl Fn(usize, &Verdict) + Sync,
) -> Result<BTreeMap<usize, Verdict>> {
    let all: Vec<usize> = mutants.iter().copied().collect();
    let verdicts = process::each(&all, |mutant| {
        let verdict = one(tree, *mutant, witnesses, who)?;
        told(*mutant, &verdict);
        Ok((*mutant, verdict))
    });
    verdicts.into_iter().collect()
}

fn one(tree: &Tree, mutant: usize, witnesses: &[Witness], who: Who) -> Result<Verdict> {
    let mut reached = false;
    for witness in witnesses.iter().filter(|it| it.reached.contains(&mutant)) {
        reached = true;
        let mut child = child(tree, &witness.binary, &witness.name, who);
        child.env("FILCH_MUTANT", mutant.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let limit = Duration::from_secs_f64(6.0 + 8.0 * witness.seconds);
        let by = format!("{}::{}", witness.binary.target, witness.name);
        match process::run(&mut child, Some(limit))?.0 {
            End::Exited(status) if status.success() => {}
            End::Exited(_) => return Ok(Verdict::Noticed { by }),
            End::Hung => return Ok(Verdict::Hung { by }),
        }
    }
    Ok(if reached { Verdict::Missed } else { Verdict::Unreached })
}
