//! `cargo xtask litmus`: the checker in `tools/litmus` judges the orderings that no model can
//! judge.

use crate::usage::word;
use clap::ArgMatches;
use runner::table::{Table, grouped};
use runner::{Result, all_well, folders, process};
use std::fs;
use std::path::Path;

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("litmus")
        .about("Judge what no model can, one small program at a time")
        .arg(word("FILTER", "Judge the tests whose paths contain this"))
        .after_help("Example: cargo xtask litmus injector/close")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let filter = given.get_one::<String>("FILTER").map_or("", String::as_str);
    let mut files = folders::files(Path::new("proofs/litmus"), "litmus")?;
    files.retain(|path| path.to_string_lossy().contains(filter));
    if files.is_empty() {
        return Err(format!("no litmus test is called `{filter}`").into());
    }
    let all = process::each(&files, |path| litmus::examine(&fs::read_to_string(path)?));
    let mut table = Table::new(&["test", "without", "found", "verdict"]);
    let (mut sites, mut executions, mut failures) = (0, 0, Vec::new());
    for (path, findings) in files.iter().zip(all) {
        let path = path.display();
        let findings = findings.map_err(|error| format!("{path}: {error}"))?;
        sites += findings.sites;
        executions += findings.executions;
        for line in &findings.found {
            let is_claimed = findings.claimed.contains(line);
            let verdict = if is_claimed { "as claimed" } else { "NOT CLAIMED" };
            let (site, found) = line.rsplit_once(": ").unwrap_or(("", line));
            let [name, verdict] = [findings.name.clone(), verdict.to_owned()];
            table.row([name, site.to_owned(), found.to_owned(), verdict]);
        }
        failures.extend(findings.objections().iter().map(|it| format!("{path}: {it}")));
    }
    table.publish("litmus")?;
    let executions = grouped(&executions.to_string());
    println!("\n{} litmus tests, {executions} executions, {sites} sites judged", files.len());
    all_well(failures)
}
