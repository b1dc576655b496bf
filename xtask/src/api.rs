//! `cargo xtask api`: compares the public interface, line by line, with the committed
//! `docs/public-api.txt`, so that no change of it goes unseen.

use crate::nightly;
use crate::usage::flag;
use clap::ArgMatches;
use runner::{Result, cargo};
use std::collections::BTreeSet;
use std::fs;

const LIST: &str = "docs/public-api.txt";

/// Names a missing tool and how to install it; returns `None` if all are installed.
pub(crate) fn missing() -> Option<String> {
    nightly::missing().or_else(|| cargo::missing("public-api"))
}

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("api")
        .about("Compare the public interface with the one that is committed")
        .arg(flag("write", "Accept the interface as it is, and write docs/public-api.txt"))
        .after_help("Example: cargo xtask api --write")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let is_write = given.get_flag("write");
    if let Some(reason) = missing() {
        return Err(reason.into());
    }
    let mut command = nightly::cargo();
    // `-sss` leaves out the items that the compiler derives or implements by itself.
    command.args(["public-api", "--package", "filch", "--all-features", "-sss"]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let now = String::from_utf8(output.stdout)?;
    if is_write {
        fs::write(LIST, &now)?;
        println!("{LIST}: {} items", now.lines().count());
        return Ok(());
    }
    let committed = fs::read_to_string(LIST).map_err(|error| format!("{LIST}: {error}"))?;
    let changes = changes(&committed, &now);
    if changes.is_empty() {
        println!("{} public items, as committed in {LIST}", now.lines().count());
        return Ok(());
    }
    Err(format!("{}\n`cargo xtask api --write` accepts these", changes.join("\n")).into())
}

/// Returns the removed lines, and then the added ones.
fn changes(before: &str, now: &str) -> Vec<String> {
    let [before, now] = [before, now].map(|it| it.lines().collect::<BTreeSet<_>>());
    let gone = before.difference(&now).map(|it| format!("- {it}"));
    gone.chain(now.difference(&before).map(|it| format!("+ {it}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn what_has_gone_and_what_has_come_is_told() {
        assert_eq!(changes("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert!(changes("a\nb\n", "b\na\n").is_empty());
    }
}
