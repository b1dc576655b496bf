//! The checks of this repository, each as one command: `cargo xtask <command>`.
//!
//! A command prints a table and writes the same table to `target/filch/<command>.tsv`; progress
//! goes to stderr. It fails, with a reason, unless everything it looked at is as it should be.

mod api;
mod cargo;
mod examples;
mod fuzz;
mod listing;
mod litmus;
mod loom;
mod mutants;
mod nightly;
mod orderings;
mod process;
mod prove;
mod reclaim;
mod sanitize;
mod shuttle;
mod sites;
mod spin;
mod steps;
mod table;
mod targets;
mod tiers;
mod valgrind;
mod verify;
mod versus;

use std::process::ExitCode;

/// What a command returns: the reason is written for the person who typed it.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error that tells all of these, unless there are none.
pub(crate) fn all_well(failures: Vec<String>) -> Result {
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n").into()),
    }
}

const USAGE: &str = "\
usage: cargo xtask <command>

  loom [--usual] [--bound N] [FILTER]  run the models, with N preemptions at most if N is given; usual: without
                                  those that take too long for every change
  orderings [--quick] [FILTER]    weaken each named ordering in turn: which model notices?
  litmus [FILTER]                 judge what no model can, one small program at a time
  fuzz [--seconds N] [TARGET]     fuzz each target for N seconds (60)
  sanitize [--stress] [--only S]  the stress tests under ThreadSanitizer (tsan), and most tests under AddressSanitizer (asan)
  shuttle [--schedules N] [FILTER] random schedules of whole pools and schedulers
  spin                            the Promela models: is every item taken at last?
  reclaim                         breaches of epoch's contract, planted: do the models notice?
  mutants [--shard K/N] [--again FILE] [PART,…] change the source: who notices? (hours; a shard is one of N;
                                  FILE is mutants-survivors.txt of a run before)
  valgrind                        memcheck over tests that count drops
  examples [NAME]                 run every example, and ask it for what it cannot do
  api [--write]                   is the public interface as committed? (or commit to the one there is)
  versus [NAME]                   our speed as a ratio to the rivals': deque, injector, idle, pool, fair
  prove [--quick]                 what is known of correctness, as a report; quick: 20 minutes, not a day
  verify [--quick]                everything, and a table; quick: no audit, sanitizers, fuzzing
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), Arguments(rest.to_vec())),
        None => ("", Arguments(Vec::new())),
    };
    if matches!(command, "help" | "--help" | "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match cargo::enter_repository().and_then(|()| dispatch(command, rest)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &str, rest: Arguments) -> Result {
    match command {
        "loom" => loom::command(rest),
        "orderings" => orderings::command(rest),
        "litmus" => litmus::command(rest),
        "api" => api::command(rest),
        "examples" => examples::command(rest),
        "fuzz" => fuzz::command(rest),
        "sanitize" => sanitize::command(rest),
        "mutants" => mutants::command(rest),
        "prove" => prove::command(rest),
        "reclaim" => reclaim::command(rest),
        "shuttle" => shuttle::command(rest),
        "spin" => spin::command(rest),
        "versus" => versus::command(rest),
        "valgrind" => valgrind::command(rest),
        "verify" => verify::command(rest),
        "" => Err(format!("no command\n\n{USAGE}").into()),
        unknown => Err(format!("unknown command `{unknown}`\n\n{USAGE}").into()),
    }
}

/// What stands behind the command's name.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// Takes `--name` out, and says whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() != before
    }

    /// Takes `--name value` out.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} needs a value\n\n{USAGE}").into());
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// As [`option`](Self::option), for a number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.option(name)? else { return Ok(None) };
        value.parse().map(Some).map_err(|_| format!("{name} {value}: not a number").into())
    }

    /// Nothing more is expected; whatever is left is an error.
    pub(crate) fn end(self) -> Result {
        match self.last()? {
            Some(extra) => Err(format!("unexpected argument `{extra}`\n\n{USAGE}").into()),
            None => Ok(()),
        }
    }

    /// The one positional argument, if any; whatever else is left is an error.
    pub(crate) fn last(mut self) -> Result<Option<String>> {
        let word = self.0.pop();
        match self.0.first().or(word.as_ref().filter(|word| word.starts_with('-'))) {
            Some(extra) => Err(format!("unexpected argument `{extra}`\n\n{USAGE}").into()),
            None => Ok(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn arguments(line: &str) -> Arguments {
        Arguments(line.split_whitespace().map(String::from).collect())
    }

    #[test]
    fn options_and_the_positional_come_in_any_order() {
        let mut given = arguments("steal --bound 3");
        assert_eq!(given.number("--bound").unwrap(), Some(3));
        assert_eq!(given.last().unwrap().as_deref(), Some("steal"));
    }

    #[test]
    fn what_nobody_asked_for_is_an_error() {
        assert!(arguments("a b").last().is_err());
        assert!(arguments("--quik").last().is_err());
        assert!(arguments("a").end().is_err() && arguments("").end().is_ok());
        assert!(arguments("--bound").number("--bound").is_err());
        assert!(arguments("--bound x").number("--bound").is_err());
    }
}
