//! Reads `loom-tests/unwitnessed.md`: the orderings that no model can judge, each with its judge.

use runner::Result;
use std::fs;

pub(crate) const PATH: &str = "loom-tests/unwitnessed.md";

/// A row of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Listed {
    /// The site's key.
    pub(crate) key: String,
    /// The tool or proof that judges it instead.
    pub(crate) judge: String,
}

/// Reads the list. A missing file is an empty list.
pub(crate) fn read() -> Result<Vec<Listed>> {
    parse(&text_of(PATH)?)
}

/// Returns the text of a file, or an empty text if there is no such file.
pub(crate) fn text_of(path: &str) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| format!("{path}: {error}").into()),
    }
}

/// Returns the rows whose first cell is in backticks: `| key | judged by | why loom cannot |`.
fn parse(text: &str) -> Result<Vec<Listed>> {
    let mut rows: Vec<Listed> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [key, judge, why] = cells[..] else {
            return Err(format!("{PATH}: not three cells: {line}").into());
        };
        if judge.is_empty() || why.is_empty() {
            return Err(format!("{PATH}: a judge and a reason are missing: {line}").into());
        }
        let key = key.trim_matches('`').to_owned();
        if rows.iter().any(|row| row.key == key) {
            return Err(format!("{PATH}: listed twice: {key}").into());
        }
        rows.push(Listed { key, judge: judge.to_owned() });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::{Listed, parse};

    #[test]
    fn rows_are_lines_whose_first_cell_is_code() {
        let text = "\
# Orderings without a witness

| site | judged by | why loom cannot |
|---|---|---|
| `deque::CLAIM.release in src/deque/thief.rs::claim #2` | GenMC, IMM | load buffering |

`deque::X.release in a::b` is mentioned here only.
";
        let key = "deque::CLAIM.release in src/deque/thief.rs::claim #2".to_owned();
        assert_eq!(parse(text).unwrap(), [Listed { key, judge: "GenMC, IMM".into() }]);
    }

    #[test]
    fn a_row_without_judge_or_reason_or_twice_is_an_error() {
        assert!(parse("| `a` |  | why |").is_err());
        assert!(parse("| `a` | who |  |").is_err());
        assert!(parse("| `a` | who |").is_err());
        assert!(parse("| `a` | who | why |\n| `a` | who | why |").is_err());
    }
}
