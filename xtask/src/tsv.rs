//! Reads the tables that other commands have written.

use runner::{Result, folders};
use std::collections::BTreeMap;
use std::fs;

/// One line of a table, by the heads of its columns.
pub(crate) type Row = BTreeMap<String, String>;

/// Returns the rows of `target/filch/<name>.tsv`.
pub(crate) fn report(name: &str) -> Result<Vec<Row>> {
    let path = folders::reports()?.join(format!("{name}.tsv"));
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}: run `cargo xtask {name}`", path.display()))?;
    parse(&text)
}

/// Reads a table; lines that begin with `#` are remarks.
pub(crate) fn parse(text: &str) -> Result<Vec<Row>> {
    let mut reader = csv::ReaderBuilder::new();
    reader.delimiter(b'\t').comment(Some(b'#')).quoting(false);
    Ok(reader.from_reader(text.as_bytes()).deserialize().collect::<csv::Result<_>>()?)
}

/// Returns a cell of a row; an empty text if there is none.
pub(crate) fn cell<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).map_or("", String::as_str)
}

pub(crate) fn number(row: &Row, name: &str) -> u64 {
    cell(row, name).parse().unwrap_or(0)
}

pub(crate) fn sum(rows: &[Row], name: &str) -> u64 {
    rows.iter().map(|row| number(row, name)).sum()
}

/// Returns how many rows have `value` in the column `name`.
pub(crate) fn count(rows: &[Row], name: &str, value: &str) -> usize {
    rows.iter().filter(|row| cell(row, name) == value).count()
}

#[cfg(test)]
mod tests {
    use super::{count, parse, sum};

    #[test]
    fn rows_are_read_by_their_heads() {
        let rows = parse("# a remark\nname\tcount\tverdict\na\t3\tok\nb\t4\tok\n").unwrap();
        assert_eq!((rows.len(), sum(&rows, "count"), count(&rows, "verdict", "ok")), (2, 7, 2));
    }
}
