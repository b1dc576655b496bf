//! A table for people, and the same as TSV for programs.

use crate::folders;
use crate::result::Result;
use comfy_table::{CellAlignment, LineStyle, TableStyle};
use csv::{QuoteStyle, WriterBuilder};

/// Rows of text under one head.
#[derive(Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub fn new(head: &[&'static str]) -> Self {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, which has as many cells as the head.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.head.len(), "a row has as many cells as the head");
        self.rows.push(cells.into());
    }

    /// Prints the table and writes it to `target/filch/<name>.tsv`.
    pub fn publish(&self, name: &str) -> Result {
        self.save(name)?;
        self.print();
        Ok(())
    }

    /// Prints it only: a part of a table that is written elsewhere.
    pub fn print(&self) {
        println!("{}", self.text());
    }

    /// Writes it only: a table that is too long to read.
    pub fn save(&self, name: &str) -> Result {
        let path = folders::reports()?.join(format!("{name}.tsv"));
        let tsv = self.tsv()?;
        std::fs::write(&path, tsv).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Nothing is quoted, so that any tool which splits at tabs can read it.
    fn tsv(&self) -> Result<Vec<u8>> {
        let mut writer = WriterBuilder::new()
            .delimiter(b'\t')
            .quote_style(QuoteStyle::Never)
            .from_writer(Vec::new());
        writer.write_record(&self.head)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| cell.replace(['\t', '\n'], " ")))?;
        }
        Ok(writer.into_inner()?)
    }

    fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        let rule = LineStyle { fill: Some('-'), ..LineStyle::default() };
        table.load_style(TableStyle::new().header_separator(rule)).set_header(&self.head);
        table.add_rows(self.rows.iter().map(|row| row.iter().map(|cell| grouped(cell))));
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            // Numbers stand flush right, so that their sizes can be compared by eye.
            if self.rows.iter().all(|row| is_number(&row[at])) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

fn is_number(cell: &str) -> bool {
    cell == "none" || cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '%'))
}

/// Writes a whole number with commas; returns anything else as it is.
pub fn grouped(cell: &str) -> String {
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
        table.row(["a_thief".into(), "1296086".into(), "stolen".into()]);
        table.row(["b".into(), "12".into(), String::new()]);
        table
    }

    #[test]
    fn numbers_stand_flush_right_with_commas() {
        let expected = "\
model    executions  note
-----------------------------
a_thief   1,296,086  stolen
b                12";
        assert_eq!(sample().text(), expected);
    }

    #[test]
    fn tsv_keeps_plain_numbers_and_one_line_per_row() {
        let mut table = sample();
        table.row(["c".into(), "1000".into(), "\"two\tlines\n\"".into()]);
        let expected = "model\texecutions\tnote\na_thief\t1296086\tstolen\nb\t12\t\n\
            c\t1000\t\"two lines \"\n";
        assert_eq!(String::from_utf8(table.tsv().unwrap()).unwrap(), expected);
    }

    #[test]
    fn only_whole_numbers_are_grouped() {
        assert_eq!(grouped("999"), "999");
        assert_eq!(grouped("1000"), "1,000");
        assert_eq!(grouped("12.5"), "12.5");
        assert_eq!(grouped(""), "");
    }
}
