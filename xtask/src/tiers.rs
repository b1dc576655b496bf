//! Finds out which models run for every change, and which take too long for that.
//!
//! The harness of the models declares this. If `FILCH_DECLARE_TO` is set, the harness writes a row
//! for each model, and explores none.

use crate::tsv::{self, Row, cell};
use runner::cargo::{self, Test};
use runner::{Result, folders, process};
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

/// The tier and the time that a test's models declare.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    /// Whether the models take too long for every change.
    pub(crate) is_long: bool,
    /// The rough time that the models take.
    seconds: f64,
}

/// Asks each test for the tier of its models. A model without a tier is an error.
pub(crate) fn declared(tests: &[Test]) -> Result<Vec<Declared>> {
    let rows = process::each(tests, ask);
    let of_one = |(test, rows): (&Test, Result<String>)| declared_in(test, &rows?);
    tests.iter().zip(rows).map(of_one).collect()
}

/// Returns the rows that the harness writes for one test.
fn ask(test: &Test) -> Result<String> {
    let folder = folders::folder(folders::reports()?.join("models"))?;
    let rows = folder.join(test.file_stem() + ".declared");
    // The harness appends to this file, so rows of an earlier build are removed.
    let _ = fs::remove_file(&rows);
    let mut child = test.command();
    child.env("FILCH_DECLARE_TO", &rows).stdout(Stdio::null()).stderr(Stdio::null());
    // The test may well fail, since its models do not run. Its rows say whether it got that far.
    process::run(&mut child, None)?;
    Ok(fs::read_to_string(&rows).unwrap_or_default())
}

/// Parses `name⇥tier⇥seconds`, a line for each model of the test.
fn declared_in(test: &Test, rows: &str) -> Result<Declared> {
    let mut all = Declared { is_long: false, seconds: 0.0 };
    for row in rows.lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        let [name, tier, seconds] = fields[..] else {
            return Err(format!("the harness declares `{row}`, not three fields").into());
        };
        if test.is_model() && name != cargo::plain_name(&test.name) {
            return Err(format!("{} calls its model `{name}`", test.full_name()).into());
        }
        all.is_long |= match tier {
            "usual" => false,
            "long" => true,
            _ => return Err(format!("{}: there is no tier `{tier}`", test.full_name()).into()),
        };
        all.seconds += seconds.parse::<f64>().map_err(|_| format!("seconds in `{row}`"))?;
    }
    // The checks of the harness are in the usual tier, whatever they declare.
    if !test.is_model() {
        all.is_long = false;
    } else if rows.is_empty() {
        let name = test.full_name();
        return Err(format!("{name} declares no tier: it runs outside the harness").into());
    }
    Ok(all)
}

/// Puts the longest tests first, so that all cores end at about the same time.
///
/// The last run of `cargo xtask loom` says how long a test takes, or else its declaration does.
pub(crate) fn longest_first(tests: &mut [(Test, Declared)], last_run: &LastRun) {
    let seconds = |(test, declared): &(Test, Declared)| {
        let row = (test.file(), cargo::plain_name(&test.name).to_owned());
        last_run.get(&row).copied().unwrap_or(declared.seconds)
    };
    tests.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
}

/// The seconds of each model, by its file and its name.
pub(crate) type LastRun = BTreeMap<(String, String), f64>;

/// Returns the times in the table of the last run; empty if there is no such table.
pub(crate) fn last_run() -> LastRun {
    seconds_in(tsv::report("loom").unwrap_or_default())
}

fn seconds_in(rows: Vec<Row>) -> LastRun {
    let one = |row: Row| {
        let name = ["target", "model"].map(|column| cell(&row, column).to_owned());
        Some((name.into(), cell(&row, "seconds").parse().ok()?))
    };
    rows.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::{Declared, declared_in, longest_first, seconds_in};
    use crate::tsv::parse;
    use runner::cargo::{Test, TestBinary};

    fn test(name: &str) -> Test {
        let binary = TestBinary { target: "loom_deque".into(), ..TestBinary::default() };
        Test { binary, name: name.into() }
    }

    #[test]
    fn a_model_says_its_tier() {
        let usual = declared_in(&test("batch::m"), "m\tusual\t1\n").unwrap();
        assert_eq!(usual, Declared { is_long: false, seconds: 1.0 });
        let long = declared_in(&test("batch::m"), "m\tlong\t20\nm\tusual\t1\n").unwrap();
        assert_eq!(long, Declared { is_long: true, seconds: 21.0 });
    }

    #[test]
    fn a_model_in_no_tier_is_refused() {
        assert!(declared_in(&test("batch::m"), "").is_err());
        assert!(declared_in(&test("batch::m"), "m\tsometimes\t1\n").is_err());
        assert!(declared_in(&test("batch::m"), "m\tusual\n").is_err());
    }

    #[test]
    fn a_model_is_called_as_its_test() {
        assert!(declared_in(&test("batch::m"), "another\tusual\t1\n").is_err());
    }

    #[test]
    fn planted_bugs_are_in_the_usual_tier() {
        let canary = test("batch::canary_m");
        assert!(!declared_in(&canary, "").unwrap().is_long);
        assert!(!declared_in(&canary, "canary_m, without the bug\tlong\t9\n").unwrap().is_long);
    }

    #[test]
    fn the_longest_comes_first() {
        let of = |name: &str, seconds| (test(name), Declared { is_long: false, seconds });
        let mut tests = [of("batch::a", 1.0), of("batch::b", 5.0), of("epoch::a", 2.0)];
        let table = "target\tmodel\tbound\texecutions\tseconds\tverdict\n\
                     loom_deque::batch\ta\t2\t99\t3.00\tok\n\
                     loom_deque::batch\tb\t2\t99\t0.50\tok\n";
        longest_first(&mut tests, &seconds_in(parse(table).unwrap()));
        assert_eq!(tests.map(|(test, _)| test.name), ["batch::a", "epoch::a", "batch::b"]);
    }
}
