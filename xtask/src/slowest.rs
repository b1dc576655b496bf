//! The tests and models that took longest, of the last run.

use runner::table::Table;
use runner::{Result, folders};
use std::fs;

/// How many of each are shown.
const COUNT: usize = 10;

/// Prints the slowest tests.
pub(crate) fn tests() -> Result {
    print("tests", ["binary", "slowest tests", "seconds"], [0, 1, 2])
}

/// Prints the slowest models.
pub(crate) fn models() -> Result {
    print("loom", ["target", "slowest models", "seconds"], [0, 1, 4])
}

/// Prints the rows of a report with the most seconds; `columns` are those of the cells to show.
fn print(report: &str, head: [&'static str; 3], columns: [usize; 3]) -> Result {
    let path = folders::reports()?.join(format!("{report}.tsv"));
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let mut table = Table::new(&head);
    slowest(&text, columns).into_iter().for_each(|row| table.row(row));
    println!();
    table.print();
    Ok(())
}

/// The rows with the most seconds, most first; `columns` ends with the column of the seconds.
fn slowest(text: &str, columns: [usize; 3]) -> Vec<[String; 3]> {
    let rows = text.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let row = columns.map(|at| cells.get(at).copied());
        let row = [row[0]?, row[1]?, row[2]?].map(str::to_owned);
        Some((row[2].parse::<f64>().ok()?, row))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().take(COUNT).map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::slowest;

    #[test]
    fn rows_are_sorted_by_seconds() {
        let text = "binary\ttest\tseconds\na\tx\t0.5\nb\ty\t12.25\nc\tz\t3\n";
        let names: Vec<String> =
            slowest(text, [0, 1, 2]).into_iter().map(|[binary, ..]| binary).collect();
        assert_eq!(names, ["b", "c", "a"]);
    }
}
