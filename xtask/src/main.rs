//! The checks of this repository, each as one command: `cargo xtask <command>`.
//!
//! Most commands print a table, and write the same table to `target/filch/<command>.tsv`. Progress
//! goes to stderr. A command fails, with a reason, if anything that it checked is wrong.

mod api;
mod browser;
mod compile;
mod defects;
mod examples;
mod fuzz;
mod listing;
mod litmus;
mod loom;
mod modules;
mod mutants;
mod nightly;
mod orderings;
mod plants;
mod prove;
mod rayon;
mod sanitize;
mod shuttle;
mod sites;
mod slowest;
mod spin;
mod steps;
mod suite;
mod targets;
mod tiers;
mod tsv;
mod unrun;
mod usage;
mod valgrind;
mod verify;
mod versus;
mod witnesses;

use clap::ArgMatches;
use runner::{Result, folders};
use std::process::ExitCode;

/// A command: the function that declares its usage, and the function that runs it.
type Entry = (fn() -> clap::Command, fn(&ArgMatches) -> Result);

/// All commands in the order of the help: the whole, models and proofs, tools that run tests, the
/// rest.
const COMMANDS: [Entry; 18] = [
    (verify::usage, verify::command),
    (prove::usage, prove::command),
    (suite::usage, suite::command),
    (loom::usage, loom::command),
    (orderings::usage, orderings::command),
    (litmus::usage, litmus::command),
    (shuttle::usage, shuttle::command),
    (spin::usage, spin::command),
    (defects::usage, defects::command),
    (fuzz::usage, fuzz::command),
    (sanitize::usage, sanitize::command),
    (valgrind::usage, valgrind::command),
    (mutants::usage, mutants::command),
    (rayon::usage, rayon::command),
    (examples::usage, examples::command),
    (api::usage, api::command),
    (versus::usage, versus::command),
    (compile::usage, compile::command),
];

fn main() -> ExitCode {
    let commands = clap::Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .about("The checks of this repository, each as one command")
        .after_help("`cargo xtask help <COMMAND>` says more of one. Tables go to target/filch.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.map(|(usage, _)| usage()));
    let given = commands.get_matches();
    let (name, given) = given.subcommand().expect("clap has asked for one");
    let named = COMMANDS.iter().find(|(usage, _)| usage().get_name() == name);
    let (_, command) = named.expect("clap knows these only");
    match folders::enter_repository().and_then(|()| command(given)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}
