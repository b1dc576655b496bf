//! The judgement of a test: is the bad outcome possible, and which named orderings keep it from
//! being so?

use crate::model::{Verdict, judge};
use crate::program::{Program, Site};
use crate::result::Result;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

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

/// The findings of one test: one line as written, and one for each site.
#[derive(Debug)]
pub struct Findings {
    /// The name on the first line of the test.
    pub name: String,
    /// How many executions of the test as written C11 permits.
    pub executions: usize,
    /// Each finding, as the file would have to claim it: `never`, `<site>: needed`.
    pub found: Vec<String>,
    /// Each claim of the file.
    pub claimed: Vec<String>,
    /// How many named orderings were weakened.
    pub sites: usize,
}

impl Findings {
    /// Lists the findings that are not claimed, and the claims that are not so.
    pub fn objections(&self) -> Vec<String> {
        let (found, claimed) = (&self.found, &self.claimed);
        let unclaimed = found.iter().filter(|it| !claimed.contains(it));
        let wrong = claimed.iter().filter(|it| !found.contains(it));
        let unclaimed = unclaimed.map(|it| format!("`{it}` is not claimed"));
        unclaimed.chain(wrong.map(|it| format!("`{it}` is not so"))).collect()
    }
}

/// Judges a test as written, and with each of its named orderings a step weaker.
pub fn examine(text: &str) -> Result<Findings> {
    let program = Program::parse(text, &[])?;
    let (verdict, executions) = judge(&program);
    let mut found = vec![verdict.name().to_owned()];
    for (site, used) in program.sites.iter().zip(uses(text, &program.sites)?) {
        found.push(format!("{}: {used}", site.name));
    }
    let Program { name, claims: claimed, sites, .. } = program;
    Ok(Findings { name, executions, found, claimed, sites: sites.len() })
}

/// Weakens each site alone, and those that nothing needs alone in pairs.
fn uses(text: &str, sites: &[Site]) -> Result<Vec<Use>> {
    let without =
        |weakened: &[&Site]| -> Result<Verdict> { Ok(judge(&Program::parse(text, weakened)?).0) };
    let alone = sites.iter().map(|it| without(&[it])).collect::<Result<Vec<_>>>()?;
    // A pair is judged once, and counts for both.
    let mut pairs = BTreeMap::new();
    let mut uses = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        let mut used = match alone[at] {
            Verdict::Sometimes => Use::Needed,
            Verdict::ByLoadBuffering => Use::AgainstLoadBuffering,
            Verdict::Never => Use::Surplus,
        };
        for (other_at, other) in sites.iter().enumerate() {
            // Two names of one ordering are one site.
            if used != Use::Surplus || alone[other_at] != Verdict::Never || other.is_same(site) {
                continue;
            }
            let both = match pairs.entry((at.min(other_at), at.max(other_at))) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(without(&[site, other])?),
            };
            if both != Verdict::Never {
                used = Use::Beside(other.name.clone());
            }
        }
        uses.push(used);
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use super::{Program, Use, Verdict, examine, judge, uses};
    use std::fs;
    use std::path::{Path, PathBuf};

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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proofs/litmus/known");
        let entries = fs::read_dir(folder).unwrap();
        let files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
        assert!(files.len() >= 24);
        for path in files {
            let findings = examine(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(findings.found, findings.claimed, "{}", path.display());
        }
    }

    #[test]
    fn each_end_of_a_pair_is_weakened_alone() {
        let program = Program::parse(MESSAGE, &[]).unwrap();
        assert_eq!(judge(&program).0, Verdict::Never);
        assert_eq!(program.sites.len(), 2);
        assert_eq!(uses(MESSAGE, &program.sites).unwrap(), [Use::Needed, Use::Needed]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for text in ["", "C x\n{ x = 0 ", "C x\n{ }\nP0 () { x? }\nexists (0:a=1)"] {
            assert!(Program::parse(text, &[]).is_err(), "{text}");
        }
        let named =
            MESSAGE.replace("memory_order_release); // pair", "memory_order_relaxed); // pair");
        assert!(Program::parse(&named, &[]).is_ok() && examine(&named).is_err());
    }

    #[test]
    fn the_example_of_the_readme_is_as_it_claims() {
        let readme = include_str!("../README.md");
        let example = readme.split("```text\n").nth(1).and_then(|it| it.split("```").next());
        let findings = examine(example.unwrap()).unwrap();
        assert_eq!(findings.found.len(), 2);
        assert_eq!(findings.objections(), [""; 0]);
    }

    #[test]
    fn what_is_found_and_what_is_claimed_must_agree() {
        let claimed = MESSAGE.replace("\n{ x", "\n(* claim: sometimes *)\n{ x");
        let objections = examine(&claimed).unwrap().objections();
        assert_eq!(objections.len(), 4, "never, two sites, and the wrong claim: {objections:?}");
    }
}
