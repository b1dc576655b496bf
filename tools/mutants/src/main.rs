//! `cargo xtask mutants`: would the tests and the models notice if the source said something else?
//!
//! cargo-mutants says what can be changed. All changes are compiled together, each behind a switch,
//! and every test is run once to see which of them it passes; then each change is switched on for
//! those tests alone, cheapest first. What they let pass is given to the models of its part in the
//! same way, with `--all-models` to the others as well, and what these let pass too must be listed
//! in `proofs/mutants.md` with the reason why it is no loss. What cannot be switched, as in a
//! `const fn`, is built and tried by cargo-mutants, one after the other. With `--tests` all that is
//! left out: a first look, of which the survivors are for `--again`.

mod alone;
mod end;
mod listed;
mod sites;
mod trial;
mod viable;
mod weave;

use clap::{Arg, ArgAction, ArgMatches};
use end::End;
use listed::Mutant;
use runner::process::Progress;
use runner::table::Table;
use runner::{Result, all_well, cargo, folders};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use trial::Who;
use viable::Tree;

const EXPLAINED: &str = "proofs/mutants.md";

/// Most of what models find they find with few. A mutant that is no loss makes them all run to
/// their ends.
const FEW: Who = Who::Models(Some("2"));

/// A part of the source.
struct Part {
    name: &'static str,
    files: &'static [&'static str],
    /// The binaries of models that are about it. The others come by too, and take minutes to say
    /// nothing.
    models: &'static [&'static str],
}

const PARTS: [Part; 6] = [
    Part {
        name: "deque",
        files: &[
            "src/deque/**",
            "src/steal.rs",
            "src/sync/slot/copied.rs",
            "src/sync/slot/words.rs",
            "src/sync/epoch.rs",
        ],
        models: &["loom_deque"],
    },
    Part {
        name: "injector",
        files: &["src/injector/**", "src/sync/place.rs"],
        models: &["loom_injector"],
    },
    Part {
        name: "idle",
        files: &["src/idle/**", "src/sync/barrier.rs", "src/sync/lock.rs", "src/sync/park.rs"],
        models: &["loom_idle"],
    },
    Part {
        name: "task",
        files: &["src/task/**", "src/executor/**", "src/trace/**", "src/sync/thread.rs"],
        models: &["loom_task"],
    },
    Part { name: "pool", files: &["src/pool/**", "src/sync/snapshot.rs"], models: &["loom_pool"] },
    Part {
        name: "fair",
        files: &["src/fair/**", "src/sim/**", "src/sync/clock.rs"],
        models: &["loom_fair"],
    },
];

fn usage() -> clap::Command {
    let flag = |name, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    clap::Command::new("mutants")
        .bin_name("cargo xtask mutants")
        .about("Changes the source in one place at a time: does a test or a model notice?")
        .arg(flag("all-models", "Ask every model, and not those of a mutant's part alone"))
        .arg(flag("tests", "Ask the tests alone: a first look, of minutes"))
        .arg(
            Arg::new("shard")
                .long("shard")
                .value_name("K/N")
                .value_parser(Shard::parse)
                .help("Try every Nth mutant, from the Kth on"),
        )
        .arg(
            Arg::new("again")
                .long("again")
                .value_name("FILE")
                .help("Try those of mutants-survivors.txt of a run before"),
        )
        .arg(
            Arg::new("PART")
                .num_args(0..)
                .value_delimiter(',')
                .value_parser(PARTS.map(|it| it.name))
                .help("Try the mutants of these parts of the source"),
        )
        .after_help("Example: cargo xtask mutants --shard 0/16 deque,injector")
}

fn main() -> ExitCode {
    let given = usage().get_matches();
    match folders::enter_repository().and_then(|()| run(&given)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(given: &ArgMatches) -> Result {
    if let Some(reason) = cargo::missing("mutants") {
        return Err(reason.into());
    }
    let shard = given.get_one::<Shard>("shard");
    let again = given.get_one::<String>("again").map(|it| names_in(it)).transpose()?;
    let asked: Vec<&String> = given.get_many("PART").unwrap_or_default().collect();
    let is_asked = |it: &&Part| asked.is_empty() || asked.iter().any(|name| *name == it.name);
    let chosen: Vec<&Part> = PARTS.iter().filter(is_asked).collect();
    let explained = listed::explained(&fs::read_to_string(EXPLAINED)?);
    let mut all = Campaign {
        explained,
        all_models: given.get_flag("all-models"),
        tests_only: given.get_flag("tests"),
        ..Campaign::default()
    };
    for part in &chosen {
        for mutant in listed::list(part.files)? {
            all.parts.push(part);
            all.mutants.push(mutant);
        }
    }
    let holds = |number: usize| {
        let name = listed::without_place(&all.mutants[number].name);
        shard.is_none_or(|it| it.holds(number))
            && again.as_ref().is_none_or(|it| it.contains(&name))
    };
    let wanted = (0..all.mutants.len()).filter(|it| holds(*it)).collect();
    all.run(&wanted)?;
    all.report(&chosen)
}

/// The mutants in a list of an earlier run, wherever they stand by now.
fn names_in(file: &str) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.lines().map(listed::without_place).collect())
}

/// `2/16`: every sixteenth, from the third.
#[derive(Clone)]
struct Shard {
    at: usize,
    of: usize,
}

impl Shard {
    fn parse(text: &str) -> Result<Self> {
        let parsed = text.split_once('/').and_then(|(at, of)| {
            let (at, of) = (at.parse().ok()?, of.parse().ok()?);
            (at < of).then_some(Shard { at, of })
        });
        parsed.ok_or_else(|| format!("`{text}` is no shard, as 0/16 is").into())
    }

    fn holds(&self, number: usize) -> bool {
        number % self.of == self.at
    }
}

#[derive(Default)]
struct Campaign {
    mutants: Vec<Mutant>,
    /// By number, as the mutants.
    parts: Vec<&'static Part>,
    ends: BTreeMap<usize, End>,
    /// Every model is asked, and not those of a mutant's part alone.
    all_models: bool,
    /// A look at what tests let pass, before the models and what cannot be switched take their
    /// hours.
    tests_only: bool,
    /// By name, without their places.
    explained: BTreeSet<String>,
}

impl Campaign {
    fn is_explained(&self, number: usize) -> bool {
        self.explained.contains(&listed::without_place(&self.mutants[number].name))
    }

    fn run(&mut self, wanted: &BTreeSet<usize>) -> Result {
        let tests = Tree::grow(&self.mutants, false)?;
        let models = (!self.tests_only).then(|| Tree::grow(&self.mutants, true)).transpose()?;
        let is_refused = |it: &usize| models.as_ref().is_some_and(|tree| tree.refused.contains(it));
        let refused = |it: &usize| tests.refused.contains(it) || is_refused(it);
        for number in wanted.iter().filter(|it| refused(it)) {
            self.ends.insert(*number, End::Refused);
        }

        let switched = tests.woven.intersection(wanted).copied().collect();
        let missed = self.ask(&tests, Who::Tests, switched)?;
        let Some(models) = &models else { return Ok(()) };
        // What only models are built with has not been asked for yet.
        let unasked = |it: &usize| !tests.woven.contains(it) && !refused(it);
        // Models would run to their ends for what is no loss.
        let left = |it: &usize| (missed.contains(it) || unasked(it)) && !self.is_explained(*it);
        let left = models.woven.intersection(wanted).copied().filter(left).collect();
        let missed = self.ask(models, FEW, left)?;
        self.ask(models, Who::Models(None), missed)?;
        // What follows takes its time, and may be cut off.
        self.save()?;

        let alone: Vec<usize> =
            wanted.iter().copied().filter(|it| !self.ends.contains_key(it)).collect();
        let named: Vec<&Mutant> = alone.iter().map(|it| &self.mutants[*it]).collect();
        let ends = alone::run(&named)?;
        self.ends.extend(alone.into_iter().zip(ends));
        Ok(())
    }

    /// Tests or models; returns what they let pass.
    fn ask(&mut self, tree: &Tree, who: Who, mutants: BTreeSet<usize>) -> Result<BTreeSet<usize>> {
        if mutants.is_empty() {
            return Ok(mutants);
        }
        let (parts, names) = (&self.parts, &self.mutants);
        let asked = |number: usize, binary: &str| {
            who == Who::Tests || self.all_models || parts[number].models.contains(&binary)
        };
        let is_wanted = |binary: &str| mutants.iter().any(|it| asked(*it, binary));
        let witnesses = trial::witnesses(tree, who, is_wanted)?;
        let progress = Progress::of(mutants.len());
        let ends = trial::judge(tree, &mutants, &witnesses, who, asked, |number, end| {
            let (how, by) = match end {
                End::ByTest(by) | End::ByModel(by) => ("noticed", by.as_str()),
                End::ByTime(by) => ("hung", by.as_str()),
                End::Unreached => ("unreached", ""),
                End::Missed | End::Refused => ("missed", ""),
            };
            progress.step(format!("{how:<9} {}  {by}", names[number].name).trim_end());
        })?;
        let mut missed = BTreeSet::new();
        for (number, end) in ends {
            let end = match end {
                // The tests may have passed what no model does.
                End::Unreached => self.ends.remove(&number).unwrap_or(End::Unreached),
                end => end,
            };
            if matches!(end, End::Missed | End::Unreached) {
                missed.insert(number);
            }
            self.ends.insert(number, end);
        }
        Ok(missed)
    }

    /// What became of a mutant in a word, and by whom.
    fn word(&self, number: usize) -> (&'static str, &str) {
        match &self.ends[&number] {
            End::Refused => ("does not compile", ""),
            End::ByTest(by) => ("test", by),
            End::ByTime(by) => ("time", by),
            End::ByModel(by) => ("model", by),
            End::Unreached | End::Missed if self.is_explained(number) => ("explained", ""),
            End::Unreached => ("unreached", ""),
            End::Missed => ("missed", ""),
        }
    }

    /// Writes down every end so far, and returns who survives.
    fn save(&self) -> Result<Vec<String>> {
        let mut each = Table::new(&["mutant", "end", "by"]);
        let mut survivors = Vec::new();
        for number in self.ends.keys() {
            let name = &self.mutants[*number].name;
            let (word, by) = self.word(*number);
            if matches!(word, "unreached" | "missed") {
                survivors.push(name.clone());
            }
            each.row([name.clone(), word.to_owned(), by.to_owned()]);
        }
        each.save("mutants-each")?;
        let list = survivors.iter().map(|it| format!("{it}\n")).collect::<String>();
        fs::write(survivors_list()?, list)?;
        Ok(survivors)
    }

    fn report(&self, chosen: &[&Part]) -> Result {
        let survivors = self.save()?;
        // Of each part: how many of its mutants have ended with a word.
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for number in self.ends.keys() {
            *counts.entry((self.parts[*number].name, self.word(*number).0)).or_default() += 1;
        }
        let head = ["part", "mutants", "by tests", "by time", "by models", "explained", "survive"];
        let mut table = Table::new(&head);
        for part in chosen {
            let count = |word| counts.get(&(part.name, word)).copied().unwrap_or(0);
            let survive = count("unreached") + count("missed");
            let [tests, time, models, explained] =
                ["test", "time", "model", "explained"].map(count);
            let all = tests + time + models + explained + survive;
            let [all, tests, time, models, explained, survive] =
                [all, tests, time, models, explained, survive].map(|it| it.to_string());
            table.row([part.name.to_owned(), all, tests, time, models, explained, survive]);
        }
        table.publish("mutants")?;
        let (count, list) = (survivors.len(), folders::relative(&survivors_list()?));
        println!("\n{count} survive that {EXPLAINED} does not explain; {list}");
        all_well(survivors)
    }
}

fn survivors_list() -> Result<PathBuf> {
    Ok(folders::reports()?.join("mutants-survivors.txt"))
}

#[cfg(test)]
mod tests {
    use super::{PARTS, Shard};
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn every_binary_of_models_is_about_one_part() {
        let manifest = fs::read_to_string("../../Cargo.toml").unwrap();
        let named = manifest.lines().filter_map(|it| it.strip_prefix("name = \""));
        let named = named.map(|it| it.trim_end_matches('"')).filter(|it| it.starts_with("loom_"));
        let named: BTreeSet<&str> = named.collect();
        let of_parts = PARTS.iter().flat_map(|it| it.models);
        assert_eq!(named, of_parts.clone().copied().collect());
        assert_eq!(named.len(), of_parts.count());
    }

    #[test]
    fn shards_share_everything() {
        let shards = ["0/3", "1/3", "2/3"].map(|it| Shard::parse(it).unwrap());
        assert!((0..10).all(|it| shards.iter().filter(|shard| shard.holds(it)).count() == 1));
        assert!(Shard::parse("3/3").is_err() && Shard::parse("x").is_err());
    }
}
