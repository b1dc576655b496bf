//! `cargo xtask orderings`: checks whether each named ordering is needed.
//!
//! The command weakens every named ordering in turn, and runs the models that reach it until one
//! fails: that model is its witness. An ordering without a witness must be listed in
//! `unwitnessed.md` with the tool or proof that judges it. A listed ordering that has a witness is
//! an error.
//!
//! The search takes half an hour. `witnesses.tsv` keeps what it finds, so that `--quick` needs one
//! model for each ordering.

use crate::listing::{self, Listed};
use crate::loom;
use crate::sites::{self, Site};
use crate::usage::{flag, word};
use crate::witnesses::{self, Witnesses};
use clap::ArgMatches;
use runner::cargo::Test;
use runner::folders::{self, relative};
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The most preemptions of a weakened model. Two show every weakening of a deque; more only take
/// longer.
const PREEMPTIONS: &str = "2";

/// The models of whole pools.
const WHOLE_POOLS: &str = "loom_pool::pool";

/// The time limit of a known witness, which fails within seconds on two idle cores.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("orderings")
        .about("Weaken each named ordering in turn: which model notices?")
        .arg(flag("quick", "Try the known witnesses first, and nothing that has none"))
        .arg(flag("fit", "Weaken nothing, and check that each site has a witness or is listed"))
        .arg(word("FILTER", "Weaken the sites whose names contain this"))
        .after_help("Example: cargo xtask orderings deque::CLAIM")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    if given.get_flag("fit") {
        let keys = audited()?.into_iter().map(|one| one.key).collect();
        return all_well(witnesses::unfit(&keys, &listing::read()?, &witnesses::read()?)?);
    }
    let quick = given.get_flag("quick");
    let filter = given.get_one::<String>("FILTER").map_or("", String::as_str);
    loom::refuse_early_ends()?;
    let listed = listing::read()?;
    let is_listed = |one: &Audited| listed.iter().any(|row| row.key == one.key);
    let mut known = witnesses::read()?;

    let tests: Vec<Test> = loom::tests()?.into_iter().filter(Test::is_model).collect();
    let all = audited()?;
    let keys: BTreeSet<&str> = all.iter().map(|one| one.key.as_str()).collect();
    let chosen: Vec<&Audited> = all.iter().filter(|one| one.key.contains(filter)).collect();
    if chosen.is_empty() {
        return Err(format!("no named ordering's key contains `{filter}`").into());
    }

    let progress = Progress::of(chosen.len());
    let step = |one: &Audited, verdict: &Verdict| {
        progress.step(format!("{:<8}  {}", verdict.describe().0, one.key));
    };
    let mut verdicts: Vec<Option<Verdict>> = vec![None; chosen.len()];
    if quick {
        let found = process::each(&chosen, |one| -> Result<Option<Verdict>> {
            let verdict = match is_listed(one) {
                true => Some(Verdict::Listed),
                false => known_witness(one, &known, &tests)?,
            };
            verdict.iter().for_each(|verdict| step(one, verdict));
            Ok(verdict)
        });
        verdicts = found.into_iter().collect::<Result<_>>()?;
    }
    if verdicts.contains(&None) {
        let models = models(tests)?;
        all_are_in_source(&models, &all)?;
        let pairs: Vec<_> = chosen.iter().zip(verdicts).collect();
        let found = process::each(&pairs, |(one, known)| -> Result<Option<Verdict>> {
            if known.is_some() {
                return Ok(known.clone());
            }
            let verdict = judge(one, &models)?;
            step(one, &verdict);
            Ok(Some(verdict))
        });
        verdicts = found.into_iter().collect::<Result<_>>()?;
    }
    let verdicts: Vec<Verdict> = verdicts.into_iter().flatten().collect();

    known.retain(|key, _| keys.contains(key.as_str()));
    for (one, verdict) in chosen.iter().zip(&verdicts) {
        if let Verdict::Caught { witness } = verdict {
            known.insert(one.key.clone(), witness.clone());
        }
    }
    witnesses::write(&known)?;
    report(&chosen, verdicts, &listed, &keys)
}

/// A model, the sites that it passes, and its time.
struct Model {
    test: Test,
    sites: BTreeSet<Site>,
    seconds: f64,
}

/// Runs every model once as written. The result has the cheapest models first.
fn models(tests: Vec<Test>) -> Result<Vec<Model>> {
    let progress = Progress::of(tests.len());
    let runs = process::each(&tests, |test| {
        let run = passed_sites(test);
        progress.step(format!("passes   {}", test.full_name()));
        run
    });
    let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
    let mut models: Vec<Model> = tests
        .into_iter()
        .zip(runs)
        .map(|(test, (sites, seconds))| Model { test, sites, seconds })
        .collect();
    models.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(models)
}

/// Returns the sites in `src` that a model passes, and how many seconds it takes.
fn passed_sites(test: &Test) -> Result<(BTreeSet<Site>, f64)> {
    let folder = folders::folder(folders::reports()?.join("sites"))?;
    let [log, list] = ["log", "txt"].map(|kind| folder.join(test.file_stem() + "." + kind));
    // The library appends to this file, so the sites of an earlier run are removed.
    let _ = fs::remove_file(&list);
    let mut child = child(test);
    child.env("FILCH_SITES_TO", &list);
    let (end, seconds) = process::run(process::log_to(&mut child, &log)?, None)?;
    if !end.is_success() {
        let (name, log, tail) = (&test.name, relative(&log), process::tail(&log, 30));
        return Err(format!("{name} fails with nothing weakened; {log}:\n{tail}").into());
    }
    let text = fs::read_to_string(&list).unwrap_or_default();
    let parse = |line| Site::parse(line).ok_or_else(|| format!("not a site: `{line}`"));
    let sites = text.lines().map(parse).collect::<std::result::Result<BTreeSet<_>, _>>()?;
    // A whole pool passes nearly everything, and takes long. Its parts have models of their own.
    let of_interest = if test.file() == WHOLE_POOLS { "src/pool/" } else { "src/" };
    Ok((sites.into_iter().filter(|site| site.file.starts_with(of_interest)).collect(), seconds))
}

fn child(test: &Test) -> Command {
    let mut child = test.command();
    child.env("FILCH_PREEMPTIONS_AT_MOST", PREEMPTIONS).env("FILCH_AUDIT", "1");
    child.env_remove("FILCH_WEAKEN").env_remove("FILCH_SITES_TO").env_remove("FILCH_MODELS_TO");
    child
}

/// A site with its stable key.
struct Audited {
    site: Site,
    key: String,
}

/// The sites in the source.
fn audited() -> Result<Vec<Audited>> {
    let all = sites::in_source()?;
    let keys = sites::keys(&all, |file| {
        fs::read_to_string(file).map_err(|error| format!("{file}: {error}").into())
    })?;
    Ok(all.into_iter().zip(keys).map(|(site, key)| Audited { site, key }).collect())
}

/// Fails if a model passes a site that the search of the source has not found.
fn all_are_in_source(models: &[Model], all: &[Audited]) -> Result {
    let in_source: BTreeSet<&Site> = all.iter().map(|one| &one.site).collect();
    let mut passed = models.iter().flat_map(|model| &model.sites);
    match passed.find(|site| !in_source.contains(site)) {
        Some(site) => Err(format!("a model passes, but it is not found: {}", site.text()).into()),
        None => Ok(()),
    }
}

/// The result of weakening a site.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Caught {
        /// The full name of the model that fails.
        witness: String,
    },
    Survives,
    /// No model passes the site, so it cannot be judged.
    Unreached,
    /// The site was not weakened: the list says that no model fails then.
    Listed,
}

impl Verdict {
    /// Returns the verdict as a word, and the name of the witness.
    fn describe(&self) -> (&'static str, &str) {
        match self {
            Verdict::Caught { witness } => ("caught", witness),
            Verdict::Survives => ("SURVIVES", ""),
            Verdict::Unreached => ("NO MODEL", ""),
            Verdict::Listed => ("listed", ""),
        }
    }
}

/// Returns `Caught` if the known witness of a site still fails. Returns `None` if it passes, or if
/// there is none.
fn known_witness(one: &Audited, known: &Witnesses, tests: &[Test]) -> Result<Option<Verdict>> {
    let Some(witness) = known.get(&one.key) else { return Ok(None) };
    let Some(test) = tests.iter().find(|it| it.full_name() == *witness) else { return Ok(None) };
    // A model that exceeds `LIMIT` may only be slow today, so it does not count as failed. The
    // search then tries it again, with a limit from the model's own time.
    let notices = matches!(weakened(one, test, LIMIT)?, End::Exited(status) if !status.success());
    Ok(notices.then(|| Verdict::Caught { witness: witness.clone() }))
}

/// Searches the models that pass the site for one that fails when the site is weakened.
fn judge(one: &Audited, models: &[Model]) -> Result<Verdict> {
    let mut passed = false;
    for model in models.iter().filter(|model| model.sites.contains(&one.site)) {
        passed = true;
        let limit = Duration::from_secs_f64(60.0 + 10.0 * model.seconds);
        if !weakened(one, &model.test, limit)?.is_success() {
            return Ok(Verdict::Caught { witness: model.test.full_name() });
        }
    }
    Ok(if passed { Verdict::Survives } else { Verdict::Unreached })
}

/// Returns how a model ends while a site is weakened.
fn weakened(one: &Audited, test: &Test, limit: Duration) -> Result<End> {
    let mut child = child(test);
    child.env("FILCH_WEAKEN", one.site.text()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(process::run(&mut child, Some(limit))?.0)
}

fn report(
    audited: &[&Audited],
    verdicts: Vec<Verdict>,
    listed: &[Listed],
    keys: &BTreeSet<&str>,
) -> Result {
    let mut table = Table::new(&["verdict", "site", "witness", "line"]);
    let mut errors = Vec::new();
    let (mut caught, mut survive) = (0, 0);
    for (one, verdict) in audited.iter().zip(verdicts) {
        let row = listed.iter().find(|row| row.key == one.key);
        errors.extend(objection(&one.key, &verdict, row.is_some()));
        caught += usize::from(matches!(verdict, Verdict::Caught { .. }));
        survive += usize::from(!matches!(verdict, Verdict::Caught { .. }) && row.is_some());
        let (word, witness) = verdict.describe();
        let witness = match row {
            // The clause before the first semicolon names the judge.
            Some(row) if witness.is_empty() => {
                format!("listed: {}", row.judge.split(';').next().unwrap_or_default())
            }
            _ => witness.to_owned(),
        };
        let line = format!("{}:{}", one.site.file, one.site.line);
        table.row([word.to_owned(), one.key.clone(), witness, line]);
    }
    let gone = listed.iter().filter(|row| !keys.contains(row.key.as_str()));
    errors.extend(gone.map(|row| format!("listed, but there is no such site: {}", row.key)));
    table.publish("orderings")?;

    println!("\n{} sites: {caught} caught, {survive} listed survivors", audited.len());
    match errors.len() {
        0 => Ok(()),
        n => Err(format!("{n} against {}\n  {}", listing::PATH, errors.join("\n  ")).into()),
    }
}

/// Returns the error in a site's verdict, given whether the site is listed as having no witness.
fn objection(key: &str, verdict: &Verdict, listed: bool) -> Option<String> {
    match (verdict, listed) {
        (Verdict::Caught { .. }, false)
        | (Verdict::Survives | Verdict::Unreached, true)
        | (Verdict::Listed, _) => None,
        (Verdict::Caught { witness }, true) => {
            Some(format!("listed, but {witness} catches it: {key}"))
        }
        (Verdict::Survives, false) => Some(format!("survives and is not listed: {key}")),
        (Verdict::Unreached, false) => {
            Some(format!("no model passes it, and it is not listed: {key}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, objection};

    #[test]
    fn the_list_and_the_models_must_agree() {
        let caught = Verdict::Caught { witness: "an_item_is_taken_once".into() };
        assert_eq!(objection("k", &caught, false), None);
        assert_eq!(objection("k", &Verdict::Survives, true), None);
        assert!(objection("k", &caught, true).is_some());
        assert!(objection("k", &Verdict::Survives, false).is_some());
        assert_eq!(objection("k", &Verdict::Unreached, true), None);
        assert!(objection("k", &Verdict::Unreached, false).is_some());
    }
}
