//! Reads and writes `loom-tests/witnesses.tsv`: for each ordering, a model that fails without it.
//!
//! The file only saves time: `--quick` first tries the recorded witness of an ordering. If that
//! model now passes without the ordering, this is no error. The command then searches all models.

use crate::listing;
use crate::tsv::{self, cell};
use runner::Result;
use std::collections::BTreeMap;
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
    use super::{Witnesses, parse, text};

    #[test]
    fn what_is_written_is_read() {
        let key = "deque::CLAIM.release in src/deque/thief.rs::claim #2";
        let all = Witnesses::from([(key.to_owned(), "loom_deque::a::b".to_owned())]);
        assert_eq!(parse(&text(&all)).unwrap(), all);
        assert!(parse("").unwrap().is_empty(), "there is no file");
    }
}
