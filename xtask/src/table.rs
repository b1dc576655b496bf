//! A table for people, and the same as TSV for programs.

use crate::{Result, cargo};
use std::fs;

/// Rows of text under one head.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.head.len(), "a row has as many cells as the head");
        self.rows.push(cells.into());
    }

    /// Prints the table and writes it to `target/filch/<name>.tsv`.
    pub(crate) fn publish(&self, name: &str) -> Result {
        self.save(name)?;
        print!("{}", self.text());
        Ok(())
    }

    /// Writes it only: a table that is too long to read.
    pub(crate) fn save(&self, name: &str) -> Result {
        let path = cargo::reports()?.join(format!("{name}.tsv"));
        fs::write(&path, self.tsv()).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn tsv(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            cells.map(|cell| cell.replace(['\t', '\n'], " ")).collect::<Vec<_>>().join("\t") + "\n"
        };
        let mut text = line(&mut self.head.iter().copied());
        for row in &self.rows {
            text += &line(&mut row.iter().map(String::as_str));
        }
        text
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| grouped(cell)).collect()).collect();
        let columns: Vec<Column> = (0..self.head.len())
            .map(|at| Column::fit(self.head[at], rows.iter().map(|row| row[at].as_str())))
            .collect();

        let mut text = line(&columns, self.head.iter().copied());
        let rules: Vec<String> = columns.iter().map(|column| "-".repeat(column.width)).collect();
        text += &line(&columns, rules.iter().map(String::as_str));
        for row in &rows {
            text += &line(&columns, row.iter().map(String::as_str));
        }
        text
    }
}

struct Column {
    width: usize,
    /// Numbers stand flush right, so that their sizes can be compared by eye.
    numeric: bool,
}

impl Column {
    fn fit<'a>(head: &str, cells: impl Iterator<Item = &'a str> + Clone) -> Self {
        let length = |cell: &str| cell.chars().count();
        let numeric = |cell: &str| {
            cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '%'))
                || cell == "none"
        };
        Column {
            width: cells.clone().map(length).max().unwrap_or(0).max(length(head)),
            numeric: cells.clone().any(|cell| cell.contains(|c: char| c.is_ascii_digit()))
                && cells.clone().all(numeric),
        }
    }
}

fn line<'a>(columns: &[Column], cells: impl Iterator<Item = &'a str>) -> String {
    let cells = columns.iter().zip(cells).map(|(column, cell)| match column.numeric {
        true => format!("{cell:>0$}", column.width),
        false => format!("{cell:<0$}", column.width),
    });
    let text = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", text.trim_end())
}

/// A whole number with commas; anything else as it is.
pub(crate) fn grouped(cell: &str) -> String {
    if cell.is_empty() || !cell.chars().all(|c| c.is_ascii_digit()) {
        return cell.to_owned();
    }
    let mut text = String::new();
    for (at, digit) in cell.chars().enumerate() {
        if at > 0 && (cell.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Table, grouped};

    fn sample() -> Table {
        let mut table = Table::new(&["model", "executions", "note"]);
        table.row(["a_thief".into(), "1296086".into(), "two\tthieves".into()]);
        table.row(["b".into(), "12".into(), String::new()]);
        table
    }

    #[test]
    fn numbers_stand_flush_right_with_commas() {
        let expected = "\
model    executions  note
-------  ----------  -----------
a_thief   1,296,086  two\tthieves
b                12
";
        assert_eq!(sample().text(), expected);
    }

    #[test]
    fn tsv_keeps_plain_numbers_and_one_line_per_row() {
        let expected = "model\texecutions\tnote\na_thief\t1296086\ttwo thieves\nb\t12\t\n";
        assert_eq!(sample().tsv(), expected);
    }

    #[test]
    fn only_whole_numbers_are_grouped() {
        assert_eq!(grouped("999"), "999");
        assert_eq!(grouped("1000"), "1,000");
        assert_eq!(grouped("12.5"), "12.5");
        assert_eq!(grouped(""), "");
    }
}
