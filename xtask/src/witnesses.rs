//! Reads and writes `loom-tests/witnesses.tsv`: for each ordering, a model that fails without it.
//!
//! The file only saves time: `--quick` first tries the recorded witness of an ordering. If that
//! model now passes without the ordering, this is no error. The command then searches all models.

use crate::listing::{self, Listed};
use crate::loom;
use crate::tsv::{self, cell};
use runner::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PATH: &str = "loom-tests/witnesses.tsv";

/// The full name of the witness of each site, by the site's key.
pub(crate) type Witnesses = BTreeMap<String, String>;

/// Reads the file. A missing file names no witness.
pub(crate) fn read() -> Result<Witnesses> {
    parse(&listing::text_of(PATH)?)
}

pub(crate) fn write(witnesses: &Witnesses) -> Result {
    fs::write(PATH, text(witnesses)).map_err(|error| format!("{PATH}: {error}").into())
}

/// Returns what the file and the list lack, given the keys of all sites. `--quick` would need many
/// minutes to search a witness that is not recorded.
pub(crate) fn unfit(
    keys: &BTreeSet<String>,
    listed: &[Listed],
    known: &Witnesses,
) -> Result<Vec<String>> {
    let is_listed = |key: &str| listed.iter().any(|row| row.key == key);
    let mut errors = Vec::new();
    let unknown = keys.iter().filter(|key| !known.contains_key(*key) && !is_listed(key));
    errors.extend(unknown.map(|key| format!("no witness is recorded for {key}")));
    let rows = listed.iter().map(|row| &row.key).chain(known.keys());
    let gone = rows.filter(|key| !keys.contains(*key));
    errors.extend(gone.map(|key| format!("there is no such site: {key}")));
    for (key, witness) in known {
        if !is_in_source(witness)? {
            errors.push(format!("{key}: there is no model {witness}"));
        }
    }
    println!("{} sites: {} with a witness, {} listed", keys.len(), known.len(), listed.len());
    Ok(errors)
}

/// Whether the source has a model, given its full name, such as `loom_deque::thieves::name`.
fn is_in_source(model: &str) -> Result<bool> {
    let (file, name) = model.rsplit_once("::").ok_or("a model's name has a path")?;
    let text = listing::text_of(&loom::source(file))?;
    Ok(text.contains(&format!("fn {name}(")))
}

fn parse(text: &str) -> Result<Witnesses> {
    let rows = tsv::parse(text)?;
    Ok(rows.iter().map(|row| (cell(row, "site").into(), cell(row, "witness").into())).collect())
}

fn text(witnesses: &Witnesses) -> String {
    let rows = witnesses.iter().map(|(key, witness)| format!("{key}\t{witness}\n"));
    format!("site\twitness\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Witnesses, parse, text, unfit};
    use crate::listing::Listed;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_written_is_read() {
        let key = "deque::CLAIM.release in src/deque/thief.rs::claim #2";
        let all = Witnesses::from([(key.to_owned(), "loom_deque::a::b".to_owned())]);
        assert_eq!(parse(&text(&all)).unwrap(), all);
        assert!(parse("").unwrap().is_empty(), "there is no file");
    }

    #[test]
    fn each_site_has_a_witness_or_is_listed() {
        let keys = |keys: &[&str]| keys.iter().map(|&it| it.to_owned()).collect::<BTreeSet<_>>();
        let model = "loom_deque::nowhere::model";
        let known = Witnesses::from([("caught".to_owned(), model.to_owned())]);
        let listed = [Listed { key: "listed".into(), judge: "a proof".into() }];
        let errors = |sites: &[&str]| unfit(&keys(sites), &listed, &known).unwrap().join("; ");
        assert_eq!(errors(&["caught", "listed"]), format!("caught: there is no model {model}"));
        assert!(errors(&["caught", "listed", "new"]).contains("no witness is recorded for new"));
        assert!(errors(&["listed"]).contains("there is no such site: caught"));
        assert!(errors(&["caught"]).contains("there is no such site: listed"));
    }
}
