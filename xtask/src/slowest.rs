//! Prints the slowest tests and models of the last run.

use crate::tsv::{self, Row, cell};
use runner::Result;
use runner::table::Table;

/// How many tests, and how many models, are shown.
const COUNT: usize = 10;

/// Prints the slowest tests.
pub(crate) fn tests() -> Result {
    print("tests", ["binary", "slowest tests", "seconds"], ["binary", "test"])
}

/// Prints the slowest models.
pub(crate) fn models() -> Result {
    print("loom", ["target", "slowest models", "seconds"], ["target", "model"])
}

/// Prints the rows of a report with the most seconds; `names` are the columns that name a row.
fn print(report: &str, head: [&'static str; 3], names: [&str; 2]) -> Result {
    let mut table = Table::new(&head);
    for row in slowest(tsv::report(report)?) {
        table.row([names[0], names[1], "seconds"].map(|name| cell(&row, name).to_owned()));
    }
    println!();
    table.print();
    Ok(())
}

/// Returns the rows with the most seconds, the slowest first.
fn slowest(mut rows: Vec<Row>) -> Vec<Row> {
    let seconds = |row: &Row| cell(row, "seconds").parse::<f64>().unwrap_or(0.0);
    rows.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
    rows.truncate(COUNT);
    rows
}

#[cfg(test)]
mod tests {
    use super::slowest;
    use crate::tsv::{cell, parse};

    #[test]
    fn rows_are_sorted_by_seconds() {
        let rows = parse("binary\ttest\tseconds\na\tx\t0.5\nb\ty\t12.25\nc\tz\t3\n").unwrap();
        let rows = slowest(rows);
        let names: Vec<&str> = rows.iter().map(|row| cell(row, "binary")).collect();
        assert_eq!(names, ["b", "c", "a"]);
    }
}
