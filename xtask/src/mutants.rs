//! `cargo xtask mutants`: runs the mutation tool, which is a package of its own: `tools/mutants`.

use clap::{Arg, ArgMatches};
use runner::process::{self, End};
use runner::{Result, cargo};

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("mutants")
        .about("Change the source in one place at a time: who notices? (hours)")
        .disable_help_flag(true)
        .arg(
            Arg::new("ARGUMENTS")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("Options of the tool; `cargo xtask mutants --help` lists them"),
        )
        .after_help("Example: cargo xtask mutants --shard 0/16 deque,injector")
}

pub(crate) fn command(given: &ArgMatches) -> Result {
    let mut tool = cargo::stable();
    tool.args(["run", "--quiet", "--package", "mutants", "--"]);
    tool.args(given.get_many::<String>("ARGUMENTS").unwrap_or_default());
    match process::run(&mut tool, None)?.0 {
        End::Exited(status) if status.success() => Ok(()),
        // The tool has printed the reason.
        _ => std::process::exit(1),
    }
}
