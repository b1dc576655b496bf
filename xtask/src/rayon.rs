//! `cargo xtask rayon`: runs rayon's own tests, and those of rayon-core, on filch's threads.
//!
//! The tests come from the registry, in the versions of our lock file. rayon is unchanged, but for
//! the patch that every user makes. Of rayon-core only the tests are used: a package of their own
//! runs them on the interface of `compat/rayon-core`.

use clap::ArgMatches;
use runner::folders::{self, relative};
use runner::table::Table;
use runner::{Result, all_well, cargo, process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const COMPAT: &str = "compat/rayon-core";

/// The lines that a program adds to its manifest to use filch's threads.
const PATCH: &str = "\n[workspace]\n\n[patch.crates-io]\nrayon-core = { path = \"COMPAT\" }\n";

/// A test hangs if it takes longer than this.
const LIMIT: Duration = Duration::from_secs(900);

/// Tests of rayon-core that fail, and why. A test of this list that passes is an error, too.
const KNOWN: [(&str, &str); 2] =
    [("in_scope::mixed_fifo_lifo_order", MIXED), ("in_scope::mixed_fifo_order", MIXED)];

const MIXED: &str = "asks that the wait for a scope runs a job from before it: a stranger";

/// Texts in rayon-core's unit tests that name its internals, each with its replacement.
const INSTEAD: [(&str, &str); 5] = [
    ("#![cfg(test)]", ""),
    ("crate::registry::in_worker(move |_, _|", "crate::scope(move |_|"),
    ("Arc::clone(&thread_pool.registry)", "crate::Registry::of(&thread_pool)"),
    ("use super::", "use crate::"),
    ("crate::", "rayon_core_suite::"),
];

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("rayon").about("Run rayon's own tests, and rayon-core's, on filch's threads")
}

pub(crate) fn command(_: &ArgMatches) -> Result {
    let sources = sources()?;
    let source =
        |name: &str| sources.get(name).ok_or_else(|| format!("Cargo.lock does not name {name}"));
    let ground = folders::folder(folders::reports()?.join("rayon"))?;
    let core = folders::folder(ground.join("rayon-core"))?;
    let suite = Path::new(COMPAT).join("suite");
    copy(&suite, &core)?;
    write_manifest(&suite, &core, "")?;
    copy_tests(source("rayon-core")?, &core)?;
    let rayon = folders::folder(ground.join("rayon"))?;
    copy(source("rayon")?, &rayon)?;
    write_manifest(source("rayon")?, &rayon, PATCH)?;

    let mut table = Table::new(&["package", "passed", "ignored", "refused", "seconds", "verdict"]);
    let (mut failures, mut passed) = (Vec::new(), 0);
    let packages: [(_, _, &[&str], _); 3] = [
        ("compat", PathBuf::from(COMPAT), &[], &[][..]),
        ("rayon-core", core, &[], &KNOWN[..]),
        ("rayon", rayon, &["--lib", "--tests"], &[][..]),
    ];
    for (name, folder, what, known) in packages {
        eprintln!("{name}");
        let run = test(name, &folder, what)?;
        let wrong = run.judge(known);
        passed += run.of("ok").count();
        table.row([
            name.to_owned(),
            run.of("ok").count().to_string(),
            run.of("ignored").count().to_string(),
            run.of("FAILED")
                .filter(|it| known.iter().any(|known| known.0 == *it))
                .count()
                .to_string(),
            format!("{:.0}", run.seconds),
            if wrong.is_empty() { "ok" } else { "FAILED" }.to_owned(),
        ]);
        failures
            .extend(wrong.into_iter().map(|it| format!("{name}: {it}; {}", relative(&run.log))));
    }
    failures.extend(query()?);
    table.publish("rayon")?;
    println!();
    KNOWN.iter().for_each(|(test, why)| println!("{test} fails: {why}"));
    println!("\n{passed} tests passed, {} refused", KNOWN.len());
    all_well(failures)
}

/// Returns the folder of each package from the registry, by its name.
fn sources() -> Result<BTreeMap<String, PathBuf>> {
    let output = cargo::stable().args(["metadata", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no package")?;
    let registered = packages.iter().filter(|it| !it["source"].is_null());
    Ok(registered
        .filter_map(|it| {
            let manifest = Path::new(it["manifest_path"].as_str()?);
            Some((it["name"].as_str()?.to_owned(), manifest.parent()?.to_owned()))
        })
        .collect())
}

/// Writes a file, unless it has this text already: cargo rebuilds a file with a new modification
/// time.
fn write(path: &Path, text: &[u8]) -> Result {
    if fs::read(path).is_ok_and(|it| it == text) { Ok(()) } else { Ok(fs::write(path, text)?) }
}

/// Copies the files that cargo needs of a package.
fn copy(from: &Path, to: &Path) -> Result {
    for extension in ["rs", "toml", "lock", "md"] {
        for file in folders::files(from, extension)? {
            let place = to.join(file.strip_prefix(from)?);
            place.parent().map_or(Ok(PathBuf::new()), |it| folders::folder(it.to_owned()))?;
            let is_manifest = file.file_name().is_some_and(|it| it == "Cargo.toml");
            // A manifest is not copied, since `write_manifest` adds lines to it.
            if !is_manifest {
                write(&place, &fs::read(&file)?)?;
            }
        }
    }
    Ok(())
}

/// Writes a manifest of rayon's, or of the suite, in which `rayon-core` is the package in `compat`.
fn write_manifest(from: &Path, to: &Path, lines: &str) -> Result {
    let ours = std::path::absolute(COMPAT)?;
    let text = fs::read_to_string(from.join("Cargo.toml"))? + lines;
    let text = text.replace("\"COMPAT\"", &format!("{ours:?}"));
    write(&to.join("Cargo.toml"), text.as_bytes())
}

/// Copies the tests in and beside rayon-core's source, as tests of another package. The programs
/// that must not compile become doc tests of that package.
fn copy_tests(from: &Path, to: &Path) -> Result {
    let tests = folders::folder(to.join("tests"))?;
    for file in folders::files(from, "rs")? {
        let (name, folder) = (file.file_stem(), file.parent().and_then(Path::file_name));
        let (name, folder) = (name.unwrap_or_default(), folder.unwrap_or_default());
        if folder == "compile_fail" {
            let folder = folders::folder(to.join("src").join(folder))?;
            write(&folder.join(name).with_extension("rs"), &fs::read(&file)?)?;
        } else if folder == "tests" {
            write(&tests.join(name).with_extension("rs"), &fs::read(&file)?)?;
        } else if name == "test" {
            let text = fs::read_to_string(&file)?;
            let text = INSTEAD.iter().fold(text, |text, (theirs, ours)| text.replace(theirs, ours));
            let name = format!("in_{}.rs", folder.to_string_lossy());
            write(&tests.join(name), text.as_bytes())?;
        }
    }
    Ok(())
}

/// The results of the tests of one package.
struct Run {
    /// The verdict of each test, by the test's name.
    verdicts: Vec<(String, String)>,
    seconds: f64,
    log: PathBuf,
}

/// Returns a cargo command for the package in this folder. Debug information and incremental builds
/// are off, since each package is built once.
fn cargo_in(folder: &Path, command: &[&str]) -> Result<Command> {
    let mut cargo = cargo::stable();
    cargo.args(command).arg("--manifest-path").arg(folder.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(folders::target_dir()?.join("rayon"));
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    Ok(cargo)
}

/// Runs the example `query` for a moment, which the tests have built. Returns its failure.
fn query() -> Result<Option<String>> {
    let log = folders::reports()?.join("rayon-query.log");
    let mut command = cargo_in(Path::new(COMPAT), &["run", "--example", "query"])?;
    command.args(["--", "0.1"]);
    let (end, _) = process::run(process::log_to(&mut command, &log)?, Some(LIMIT))?;
    Ok((!end.is_success()).then(|| format!("the example fails; {}", relative(&log))))
}

fn test(name: &str, folder: &Path, what: &[&str]) -> Result<Run> {
    let log = folders::reports()?.join(format!("rayon-{name}.log"));
    let mut command = cargo_in(folder, &["test", "--no-fail-fast"])?;
    command.args(what);
    let (_, seconds) = process::run(process::log_to(&mut command, &log)?, Some(LIMIT))?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut binary = String::new();
    let verdicts = said.lines().filter_map(|line| {
        if let Some((_, rest)) = line.split_once("Running ") {
            let file = rest.split_whitespace().find(|it| it.ends_with(".rs"));
            binary = file.map(Path::new).and_then(Path::file_stem)?.to_string_lossy().into_owned();
        }
        let (test, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let test = test.trim_end_matches(" - should panic");
        Some((format!("{binary}::{test}"), verdict.to_owned()))
    });
    Ok(Run { verdicts: verdicts.collect(), seconds, log })
}

impl Run {
    /// Returns the tests with this verdict.
    fn of<'a>(&'a self, verdict: &'a str) -> impl Iterator<Item = &'a str> {
        let such = self.verdicts.iter().filter(move |it| it.1.starts_with(verdict));
        such.map(|it| it.0.as_str())
    }

    /// Returns the errors: failures that are not known, known ones that pass, and a run in which no
    /// test has passed.
    fn judge(&self, known: &[(&str, &str)]) -> Vec<String> {
        let is_known = |test: &str| known.iter().any(|it| it.0 == test);
        let failed = self.of("FAILED").filter(|it| !is_known(it)).map(|it| format!("{it} fails"));
        let cured =
            self.of("ok").filter(|it| is_known(it)).map(|it| format!("{it} passes: strike it"));
        let none = self.of("ok").next().is_none().then(|| "no test has passed".to_owned());
        failed.chain(cured).chain(none).collect()
    }
}
