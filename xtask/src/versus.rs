//! `cargo xtask versus`: our speed as a ratio to the rivals', measured in one run.

use crate::cargo::{self, relative};
use crate::{Arguments, Result, process};

pub(crate) fn command(arguments: Arguments) -> Result {
    let structure = arguments.last()?.unwrap_or_else(|| "deque".to_owned());
    let tsv = cargo::reports()?.join(format!("versus-{structure}.tsv"));
    let mut bench = cargo::stable();
    bench.args(["run", "--release", "--package", "filch-benches", "--bin", "versus", "--"]);
    bench.arg(&structure).env("FILCH_TSV", &tsv);
    let (end, _) = process::run(&mut bench, None)?;
    if !end.is_success() {
        return Err(format!("`versus {structure}` failed").into());
    }
    if tsv.is_file() {
        eprintln!("also in {}", relative(&tsv));
    }
    Ok(())
}
