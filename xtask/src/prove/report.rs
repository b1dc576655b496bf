//! The report of `cargo xtask prove`: the checked properties, how far each was checked, and the
//! unchecked ones. Most methods of `Report` read the table of one command.

use super::bugs;
use super::claims::{claims, first_sentence};
use crate::loom;
use crate::tsv::{self, Row, cell, count, number, sum};
use runner::table::{Table, grouped};
use runner::{Result, folders};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The record of campaigns that were longer than a run of this command, each with its day.
const CAMPAIGNS: &str = "proofs/campaigns.tsv";

/// The record of the last run of all mutants, with its day.
const MUTANTS: &str = "proofs/mutants.tsv";

/// The surviving mutants that are no loss, each with its reason.
const EXPLAINED: &str = "proofs/mutants.md";

/// The limits of the checks, as the last section of the report.
const NOT_SHOWN: &str = "\
- Programs larger than the models, but by chance: shuttle's schedules, fuzzing, stress.
- Executions that loom 0.7 leaves out: load buffering, a read-modify-write or a failed compare-exchange that reads an
  old value, some interleavings that its partial-order reduction takes for equal. For the orderings on which these
  bear there are litmus tests, which are programs of a few lines and not the code itself.
- The real crossbeam-epoch: a model of it does not end here. Models use a reclaimer that frees as early as epoch's
  contract permits; the real one runs under the sanitizers.
- The asymmetric fence, which rests on what the manual of membarrier(2) says.
- What a compiler makes of the source for a processor with a weaker memory model than x86-64.
- Aliasing and provenance: that is Miri's, which is not installed where this report is made.
";

fn counted(number: u64) -> String {
    grouped(&number.to_string())
}

/// Writes the report. Returns the errors in the data of which it is made.
pub(super) fn write(ran: &[&str], command: &str, took: Duration) -> Result<Vec<String>> {
    let read = |name: &'static str| match ran.contains(&name) {
        true => tsv::report(name),
        false => Ok(Vec::new()),
    };
    let mut report = Report { text: String::new(), summary: Table::new(&["what", "how far"]) };
    let minutes = took.as_secs().div_ceil(60);
    report.line(&format!(
        "# What was checked, and how far\n\nWritten by `{command}`, in {minutes} minutes. Each part can be run \
         alone, by the command beside it.\n"
    ));
    let (loom, orderings, litmus) = (read("loom")?, read("orderings")?, read("litmus")?);
    let bugs = bugs::known()?;
    let mut wrong = bugs::missing(&bugs)?;
    report.models(&loom)?;
    report.pairs(&orderings)?;
    wrong.extend(report.unwitnessed(&orderings, &litmus));
    report.litmus(&litmus);
    report.played(&read("shuttle")?);
    report.spun(&read("spin")?);
    report.planted(&read("defects")?);
    report.sanitized(&read("sanitize")?, &read("valgrind")?);
    report.fuzzed(&read("fuzz")?)?;
    report.mutated(&read("mutants")?)?;
    report.bugs(&bugs);
    report.head("Not shown");
    report.line(NOT_SHOWN);

    let path = folders::reports()?.join("proof.md");
    fs::write(&path, &report.text).map_err(|error| format!("{}: {error}", path.display()))?;
    println!();
    report.summary.publish("proof")?;
    println!("\n{} has it all", folders::relative(&path));
    Ok(wrong)
}

struct Report {
    text: String,
    summary: Table,
}

impl Report {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn head(&mut self, text: &str) {
        self.line(&format!("\n## {text}\n"));
    }

    fn table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(N)));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|it| it.replace('|', "\\|")).collect();
            self.line(&format!("| {} |", cells.join(" | ")));
        }
    }

    /// Returns these columns of some rows.
    fn columns<'a, const N: usize>(
        &mut self,
        names: [&'static str; N],
        rows: impl IntoIterator<Item = &'a Row>,
    ) {
        let cells = |row: &Row| names.map(|name| cell(row, name).to_owned());
        self.table(names, rows.into_iter().map(cells));
    }

    fn sum_up(&mut self, what: &str, how_far: String) {
        self.summary.row([what.to_owned(), how_far]);
    }

    fn models(&mut self, loom: &[Row]) -> Result {
        self.head("Models (`cargo xtask loom`)");
        self.line(
            "Every execution that loom generates, up to so many preemptions, satisfies the model's assertions. \
             `none` is no bound.\n",
        );
        let mut by_file: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in loom.iter().filter(|row| cell(row, "bound") != "-") {
            by_file.entry(cell(row, "target")).or_default().push(row);
        }
        let mut rows = Vec::new();
        for (target, models) in &by_file {
            let path = loom::source(target);
            let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let about = first_sentence(&text);
            let executions = models.iter().map(|row| number(row, "executions")).sum();
            let seconds: f64 =
                models.iter().filter_map(|row| cell(row, "seconds").parse::<f64>().ok()).sum();
            let models = models.len().to_string();
            rows.push([path, about, models, counted(executions), format!("{seconds:.1}")]);
        }
        self.table(["file", "about", "models", "executions", "seconds"], rows);
        self.line("");
        let all: Vec<[String; 5]> = by_file
            .values()
            .flatten()
            .map(|row| {
                let name = cell(row, "model").to_owned();
                let [bound, seconds, verdict] =
                    ["bound", "seconds", "verdict"].map(|it| cell(row, it).to_owned());
                [name, bound, counted(number(row, "executions")), seconds, verdict]
            })
            .collect();
        let exhaustive = all.iter().filter(|row| row[1] == "none").count();
        let canaries = all.iter().filter(|row| row[0].starts_with("canary")).count();
        let (models, files) = (all.len(), by_file.len());
        self.table(["model", "preemptions", "executions", "seconds", "verdict"], all);
        let executions = counted(sum(loom, "executions"));
        self.sum_up(
            "models",
            format!(
                "{models} in {files} files, {executions} executions; {exhaustive} without a bound, the others up to \
                 the stated one; {canaries} of them planted bugs and their controls"
            ),
        );
        Ok(())
    }

    fn pairs(&mut self, orderings: &[Row]) -> Result {
        self.head("Named orderings (`cargo xtask orderings`)");
        self.line("Each site is weakened in turn. A witness is a model that then fails.\n");
        let claims = claims()?;
        let mut pairs: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        for row in orderings {
            let pair = cell(row, "site").split(" in ").next().unwrap_or_default();
            let pair = pair.rsplit_once('.').map_or(pair, |(pair, _)| pair);
            pairs.entry(pair.to_owned()).or_default().push(row);
        }
        let mut rows = Vec::new();
        for (pair, sites) in &pairs {
            let caught = sites.iter().filter(|row| cell(row, "verdict") == "caught").count();
            let witnesses: BTreeSet<&str> =
                sites.iter().map(|row| cell(row, "witness")).filter(|it| !it.is_empty()).collect();
            let witnesses: Vec<&str> = witnesses.into_iter().take(2).collect();
            let name = pair.rsplit("::").next().unwrap_or_default();
            let claim = claims.get(name).cloned().unwrap_or_default();
            let (sites, caught) = (sites.len().to_string(), caught.to_string());
            rows.push([pair.clone(), claim, sites, caught, witnesses.join(", ")]);
        }
        let count_of_pairs = rows.len();
        self.table(["pair", "claim", "sites", "with a witness", "for one"], rows);
        self.line("");
        self.columns(["site", "verdict", "witness"], orderings);
        let caught = count(orderings, "verdict", "caught");
        let sites = orderings.len();
        self.sum_up(
            "named orderings",
            format!(
                "{sites} sites of {count_of_pairs} pairs: {caught} are needed by a model, {} are judged by litmus tests",
                sites - caught
            ),
        );
        Ok(())
    }

    /// Returns the sites that no model and no list judges.
    fn unwitnessed(&mut self, orderings: &[Row], litmus: &[Row]) -> Vec<String> {
        self.head("Orderings that no model judges (`cargo xtask litmus`)");
        self.line(
            "*Needed*: without it the bad outcome of that test may be. *Beside*: without it and that other one. \
             *Surplus here*: not in a program of that shape; kept, for the reason that `loom-tests/unwitnessed.md` \
             gives.\n",
        );
        let (mut rows, mut wrong) = (Vec::new(), Vec::new());
        for row in orderings.iter().filter(|row| cell(row, "verdict") != "caught") {
            let site = cell(row, "site");
            let judged: Vec<&Row> =
                litmus.iter().filter(|it| cell(it, "without") == site).collect();
            if judged.is_empty() {
                wrong.push(format!("nothing judges `{site}`"));
            }
            for it in judged {
                rows.push([site.to_owned(), cell(it, "test").into(), cell(it, "found").into()]);
            }
        }
        self.table(["site", "test", "verdict"], rows);
        wrong
    }

    fn litmus(&mut self, litmus: &[Row]) {
        self.head("Litmus tests (`cargo xtask litmus`)");
        self.line(
            "The checker is `tools/litmus`: RC11, and a weaker model in which loads may be overtaken by later \
             stores that do not depend on them. Those in `proofs/litmus/known` have answers from the literature.\n",
        );
        let written: Vec<&Row> =
            litmus.iter().filter(|row| cell(row, "without").is_empty()).collect();
        let rows = written
            .iter()
            .map(|row| ["test", "found", "verdict"].map(|it| cell(row, it).to_owned()));
        let rows: Vec<_> = rows.collect();
        self.table(["test", "the bad outcome is", "verdict"], rows);
        let (tests, sites) = (written.len(), litmus.len() - written.len());
        self.sum_up(
            "litmus tests",
            format!("{tests}, in which {sites} sites are weakened alone and in pairs"),
        );
    }

    fn played(&mut self, shuttle: &[Row]) {
        self.head("Random schedules (`cargo xtask shuttle`)");
        self.line("Whole pools and schedulers; sequentially consistent, with the real code.\n");
        self.columns(["program", "random", "PCT", "verdict"], shuttle);
        let held: Vec<Row> =
            shuttle.iter().filter(|row| cell(row, "verdict") == "holds").cloned().collect();
        let schedules = counted(sum(&held, "random") + sum(&held, "PCT"));
        let (programs, caught) = (held.len(), count(shuttle, "verdict", "caught"));
        self.sum_up(
            "random schedules",
            format!("{schedules} of {programs} programs of whole pools and schedulers; {caught} planted bugs found"),
        );
    }

    fn spun(&mut self, spin: &[Row]) {
        self.head("Liveness (`cargo xtask spin`)");
        self.columns(["model", "size", "planted", "states", "verdict"], spin);
        let (states, holds, caught) = (
            counted(sum(spin, "states")),
            count(spin, "verdict", "holds"),
            count(spin, "verdict", "caught"),
        );
        self.sum_up(
            "liveness",
            format!("{holds} sizes of the event count in Promela, {states} states; {caught} planted bugs found"),
        );
    }

    fn planted(&mut self, defects: &[Row]) {
        self.head("Defects (`cargo xtask defects`)");
        self.line("Those of the articles' code and of this crate, and breaches of epoch's contract, planted in a copy of the source; their tests must fail.\n");
        self.columns(["number", "planted", "test", "seconds", "verdict"], defects);
        let numbers: BTreeSet<&str> = defects.iter().map(|row| cell(row, "number")).collect();
        let (planted, numbers) = (defects.len(), numbers.len());
        self.sum_up(
            "defects",
            format!("{numbers}, in {planted} forms, are noticed by their tests"),
        );
    }

    fn sanitized(&mut self, sanitize: &[Row], valgrind: &[Row]) {
        self.head("Sanitizers (`cargo xtask sanitize`, `cargo xtask valgrind`)");
        let mut rows: Vec<[String; 4]> = sanitize
            .iter()
            .map(|row| {
                ["sanitizer", "test", "verdict", "seconds"].map(|it| cell(row, it).to_owned())
            })
            .collect();
        rows.extend(valgrind.iter().map(|row| {
            let test = format!("{} {}", cell(row, "binary"), cell(row, "test"));
            ["memcheck".to_owned(), test, cell(row, "verdict").into(), cell(row, "seconds").into()]
        }));
        let clean = rows.iter().filter(|row| row[2] == "clean").count();
        let caught = rows.iter().filter(|row| row[2] == "caught").count();
        self.table(["tool", "test", "verdict", "seconds"], rows);
        self.sum_up(
            "ThreadSanitizer, AddressSanitizer, memcheck",
            format!("{clean} tests clean, {caught} planted errors found"),
        );
    }

    fn fuzzed(&mut self, fuzz: &[Row]) -> Result {
        self.head("Fuzzing (`cargo xtask fuzz`)");
        self.columns(["target", "executions", "seconds", "corpus", "verdict"], fuzz);
        self.line(&format!("\nCampaigns that were recorded (`{CAMPAIGNS}`):\n"));
        let text =
            fs::read_to_string(CAMPAIGNS).map_err(|error| format!("{CAMPAIGNS}: {error}"))?;
        let campaigns = tsv::parse(&text)?;
        self.columns(["day", "kind", "target", "seconds", "executions", "found"], &campaigns);
        let (executions, seconds) = (counted(sum(fuzz, "executions")), sum(fuzz, "seconds"));
        let fuzzing: Vec<Row> =
            campaigns.iter().filter(|row| cell(row, "kind") == "fuzz").cloned().collect();
        let hours = sum(&fuzzing, "seconds") as f64 / 3600.0;
        let recorded = counted(sum(&fuzzing, "executions"));
        let targets = fuzz.len();
        self.sum_up(
            "fuzzing",
            format!(
                "{targets} targets, {executions} executions in {seconds} s; in recorded campaigns {recorded} in \
                 {hours:.1} hours"
            ),
        );
        Ok(())
    }

    /// Reports the mutants of this run, or else the recorded ones.
    fn mutated(&mut self, mutants: &[Row]) -> Result {
        self.head("Mutants (`cargo xtask mutants`)");
        let text = fs::read_to_string(MUTANTS).map_err(|error| format!("{MUTANTS}: {error}"))?;
        let recorded = tsv::parse(&text)?;
        let (rows, when) = match mutants.is_empty() {
            true => (
                recorded.as_slice(),
                recorded.iter().map(|row| cell(row, "day")).max().unwrap_or_default(),
            ),
            false => (mutants, "now"),
        };
        let head = ["part", "mutants", "by tests", "by time", "by models", "explained", "survive"];
        self.columns(head, rows);
        let text =
            fs::read_to_string(EXPLAINED).map_err(|error| format!("{EXPLAINED}: {error}"))?;
        let table = text.find("\n| ").map_or("", |at| &text[at..]);
        self.line(&format!("\nThose that are no loss, and why (`{EXPLAINED}`):\n{table}"));
        let [_, all, tests, time, models, explained, survive] =
            head.map(|name| counted(sum(rows, name)));
        self.sum_up(
            "mutants",
            format!(
                "{all} that compile: tests notice {tests}, another {time} end by time, models notice {models}; \
                 {explained} are no loss, {survive} survive ({when})"
            ),
        );
        Ok(())
    }

    fn bugs(&mut self, bugs: &[bugs::Bug]) {
        self.head("Known bugs of peers and articles");
        let rows: Vec<[String; 3]> =
            bugs.iter().map(|it| [it.row.clone(), it.what.clone(), it.covered.clone()]).collect();
        self.sum_up(
            "known bugs",
            format!("{} rows, each with a test or the reason why it cannot arise", rows.len()),
        );
        self.table(["row", "bug", "covered by"], rows);
    }
}
