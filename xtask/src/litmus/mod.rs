//! `cargo xtask litmus`: the orderings that no model can judge, judged one small program at a time.
//!
//! A test in `proofs/litmus` is C as herd7 reads it. An ordering in it that carries the name of a site of the audit is
//! weakened as the audit would, alone and together with each other one, and what then becomes possible is compared
//! with what the test claims. `proofs/litmus/known` holds programs of which the answer is in the literature: they
//! judge the judge.

mod model;
mod parser;
mod program;
mod relation;
mod trace;

use crate::table::Table;
use crate::{Arguments, Result, all_well, cargo, process};
use model::{Verdict, judge};
use program::{Program, Site};
use std::fmt;
use std::fs;
use std::path::Path;

/// What a site is good for in one test.
#[derive(PartialEq, Eq, Debug)]
enum Use {
    /// Without it, what must not be may be.
    Needed,
    /// The same, if loads may be overtaken by later stores.
    AgainstLoadBuffering,
    /// Without it and this other one.
    Beside(String),
    /// Neither alone nor with another.
    Surplus,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Needed => f.write_str("needed"),
            Use::AgainstLoadBuffering => f.write_str("needed against load buffering"),
            Use::Beside(other) => write!(f, "needed beside {other}"),
            Use::Surplus => f.write_str("surplus here"),
        }
    }
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Never => "never",
            Verdict::ByLoadBuffering => "by load buffering",
            Verdict::Sometimes => "sometimes",
        }
    }
}

/// What is found of one test: one line as written, and one for each site.
struct Findings {
    name: String,
    /// How many executions of the test as written C11 permits.
    executions: usize,
    /// Each claim, as the file would have to say it.
    found: Vec<String>,
    claimed: Vec<String>,
    sites: usize,
}

pub(crate) fn command(arguments: Arguments) -> Result {
    let filter = arguments.last()?.unwrap_or_default();
    let mut table = Table::new(&["test", "without", "found", "verdict"]);
    let (mut tests, mut sites, mut executions, mut failures) = (0, 0, 0, Vec::new());
    for path in cargo::files(Path::new("proofs/litmus"), "litmus")? {
        if !path.to_string_lossy().contains(&filter) {
            continue;
        }
        let findings = examine(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        tests += 1;
        sites += findings.sites;
        executions += findings.executions;
        let Findings { name, found, claimed, .. } = findings;
        for line in &found {
            let verdict = if claimed.contains(line) { "as claimed" } else { "NOT CLAIMED" };
            let (site, found) = line.rsplit_once(": ").unwrap_or(("", line));
            table.row([name.clone(), site.to_owned(), found.to_owned(), verdict.to_owned()]);
            if verdict != "as claimed" {
                failures.push(format!("{}: `{line}` is not claimed", path.display()));
            }
        }
        let wrong = claimed.iter().filter(|it| !found.contains(it));
        failures.extend(wrong.map(|it| format!("{}: `{it}` is not so", path.display())));
    }
    table.publish("litmus")?;
    println!("\n{tests} litmus tests, {executions} executions, {sites} sites judged");
    all_well(failures)
}

fn examine(path: &Path) -> Result<Findings> {
    let text = fs::read_to_string(path)?;
    let program = Program::parse(&text, &[])?;
    let (verdict, executions) = judge(&program);
    let mut found = vec![verdict.name().to_owned()];
    let uses = process::each(&program.sites, |site| use_of(&text, &program.sites, site));
    for (site, used) in program.sites.iter().zip(uses) {
        found.push(format!("{}: {}", site.name, used?));
    }
    let claimed = program.claims.clone();
    Ok(Findings { name: program.name, executions, found, claimed, sites: program.sites.len() })
}

fn use_of(text: &str, sites: &[Site], site: &Site) -> Result<Use> {
    let without =
        |weakened: &[&Site]| -> Result<Verdict> { Ok(judge(&Program::parse(text, weakened)?).0) };
    match without(&[site])? {
        Verdict::Sometimes => return Ok(Use::Needed),
        Verdict::ByLoadBuffering => return Ok(Use::AgainstLoadBuffering),
        Verdict::Never => {}
    }
    // Two names of one ordering are one site.
    let is_other = |it: &&Site| !it.is_same(site);
    for other in sites.iter().filter(is_other) {
        if without(&[other])? == Verdict::Never && without(&[site, other])? != Verdict::Never {
            return Ok(Use::Beside(other.name.clone()));
        }
    }
    Ok(Use::Surplus)
}

#[cfg(test)]
mod tests {
    use super::{Program, Use, Verdict, cargo, examine, judge, use_of};
    use std::path::Path;

    const MESSAGE: &str = "C message
{ x = 0; y = 0; e = 0; }
P0 (int* x, atomic_int* y) {
  *x = 1;
  atomic_store_explicit(y, 1, memory_order_release); // pair::MP.release in a
}
P1 (int* x, atomic_int* y, int* e) {
  int a = atomic_compare_exchange_strong_explicit(y, e, 2, memory_order_relaxed, memory_order_acquire); // on failure: pair::MP.acquire in b
  if (a == 0) {
    int b = *x;
  }
}
exists (1:a=0 /\\ 1:b=0)
";

    /// What the literature says, without which the rest is worth nothing.
    #[test]
    fn the_known_are_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proofs/litmus/known");
        let files = cargo::files(&folder, "litmus").unwrap();
        assert!(files.len() >= 24);
        for path in files {
            let findings = examine(&path).unwrap();
            assert_eq!(findings.found, findings.claimed, "{}", path.display());
        }
    }

    #[test]
    fn each_end_of_a_pair_is_weakened_alone() {
        let program = Program::parse(MESSAGE, &[]).unwrap();
        assert_eq!(judge(&program).0, Verdict::Never);
        assert_eq!(program.sites.len(), 2);
        for site in &program.sites {
            assert_eq!(use_of(MESSAGE, &program.sites, site).unwrap(), Use::Needed);
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for text in ["", "C x\n{ x = 0 ", "C x\n{ }\nP0 () { x? }\nexists (0:a=1)"] {
            assert!(Program::parse(text, &[]).is_err(), "{text}");
        }
        let named =
            MESSAGE.replace("memory_order_release); // pair", "memory_order_relaxed); // pair");
        let program = Program::parse(&named, &[]).unwrap();
        assert!(use_of(&named, &program.sites, &program.sites[0]).is_err());
    }
}
