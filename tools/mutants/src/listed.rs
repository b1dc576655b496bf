//! The mutants there are, as cargo-mutants lists them, and those that are explained.

use runner::{Result, cargo};
use serde_json::Value;
use std::collections::BTreeSet;

/// A place in a file: line from 1, column from 0, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The body of a function becomes a value.
    Body,
    /// An operator becomes another, or nothing.
    Binary,
    Unary,
    /// The guard of a match's arm becomes `true` or `false`.
    Guard,
    /// An arm of a match is not there.
    Arm,
    /// A field of a struct's expression is not there.
    Field,
}

#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// As cargo-mutants prints it.
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) kind: Kind,
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) replacement: String,
    /// What the function around it returns, as written.
    pub(crate) returns: String,
}

/// The mutants of these files.
pub(crate) fn list(files: &[&str]) -> Result<Vec<Mutant>> {
    let mut command = cargo::stable();
    command.args(["mutants", "--package", "filch", "--list", "--json"]);
    files.iter().for_each(|file| _ = command.args(["--file", file]));
    // What is compiled for models only, or only shown to people.
    command.args(["--exclude-re", "model::", "--exclude-re", "fmt::Debug for"]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(json: &str) -> Result<Vec<Mutant>> {
    let listed: Vec<Value> = serde_json::from_str(json)?;
    listed.iter().map(|it| mutant(it).ok_or_else(|| format!("not a mutant: {it}").into())).collect()
}

fn mutant(it: &Value) -> Option<Mutant> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let place = |value: &Value| {
        let number = |name: &str| usize::try_from(value[name].as_u64()?).ok();
        Some(Place { line: number("line")?, column: number("column")?.checked_sub(1)? })
    };
    Some(Mutant {
        name: text(&it["name"])?,
        file: text(&it["file"])?,
        kind: match it["genre"].as_str()? {
            "FnValue" => Kind::Body,
            "BinaryOperator" => Kind::Binary,
            "UnaryOperator" => Kind::Unary,
            "MatchArmGuard" => Kind::Guard,
            "MatchArm" => Kind::Arm,
            "StructField" => Kind::Field,
            _ => return None,
        },
        from: place(&it["span"]["start"])?,
        to: place(&it["span"]["end"])?,
        replacement: text(&it["replacement"])?,
        returns: text(&it["function"]["return_type"]).unwrap_or_default(),
    })
}

/// A mutant without its line and column, which every change moves.
pub(crate) fn without_place(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    format!("{file}:{}", parts.nth(2).unwrap_or_default())
}

/// The mutants that are explained, as they stand between the first two backticks of their lines.
pub(crate) fn explained(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    // In a table a bar is written with a backslash.
    rows.filter_map(|line| line.split('`').nth(1)).map(|it| it.replace("\\|", "|")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Place, explained, parse, without_place};

    const NAME: &str = "src/idle/word.rs:50:32: replace << with >> in Word::is_nobody";

    #[test]
    fn a_mutant_is_known_wherever_it_stands() {
        let known = explained(
            "# x\n\n| `src/idle/word.rs: replace << with >> in Word::is_nobody` | because |\n",
        );
        assert!(known.contains(&without_place(NAME)));
        let bar = explained("| `src/a.rs: replace \\| with ^ in f` | because |");
        assert!(bar.contains(&without_place("src/a.rs:1:2: replace | with ^ in f")));
    }

    #[test]
    fn a_listed_mutant_is_read() {
        let listed = format!(
            r#"[{{"name": "{NAME}", "file": "src/idle/word.rs", "genre": "BinaryOperator", "replacement": ">>",
                "function": {{"return_type": "-> bool"}},
                "span": {{"start": {{"line": 50, "column": 32}}, "end": {{"line": 50, "column": 34}}}}}}]"#
        );
        let mutant = &parse(&listed).unwrap()[0];
        assert_eq!((mutant.kind, mutant.replacement.as_str()), (Kind::Binary, ">>"));
        assert_eq!(mutant.from, Place { line: 50, column: 31 });
        assert!(parse(&listed.replace("Binary", "Ternary")).is_err());
    }
}
