//! Helpers by which the commands declare their options and words.

use clap::{Arg, ArgAction, value_parser};

/// Declares an option without a value: `--name`.
pub(crate) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Declares an option with a number: `--name N`.
pub(crate) fn number(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).help(help)
}

/// Declares an option with a text: `--name VALUE`.
pub(crate) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Declares a word that may follow the options.
pub(crate) fn word(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).help(help)
}
