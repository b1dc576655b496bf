//! Prints the ratios of filch to its rivals, measured in interleaved rounds of one run.
//!
//! In each round every contender runs the scenario once, in an order that rotates from round to
//! round. A ratio is the median of the rounds' ratios, so a disturbance mostly hits both sides.

use filch_benches::scenarios::{self, Scenario};
use filch_benches::{fairness, floor, futures, idle, injector, pool, threads, waits};
use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::{env, fs};

const USAGE: &str = "usage: versus deque|injector|idle|pool|futures|waits|fair [--rounds N] [--rows TEXT]\n\
     TEXT is a part of the names of rows; of `fair`, of the headings of tables";

/// The columns of a table. The first is filch, and the second is in most tables the rival of the
/// goals. Most tables also have a ratio to the third, or to `LockedPool`.
type Columns = &'static [&'static str];

const DEQUES: Columns = &["filch", "crossbeam 0.8.8", "st3 0.4"];
const INJECTORS: Columns =
    &["filch", "crossbeam 0.8.8", "kanal 0.1", "SegQueue", "concurrent-queue", "Mutex<VecDeque>"];

const EVENT_COUNTS: Columns = &["filch", "floor", "event-listener 5", "RMW each time"];

const POOLS: Columns = &[
    "filch",
    "rayon",
    "executors",
    "channel",
    "threadpool",
    "tokio",
    "async-executor",
    "chili",
    "LockedPool",
];

const WAITS: Columns = &["filch", "rayon"];

struct Row {
    name: &'static str,
    goal: f64,
    /// For each contender, its name and its median, smallest and largest time for an item.
    times: Vec<(&'static str, [f64; 3])>,
    /// The rival of the goal.
    against: &'static str,
    to_rival: f64,
    /// The ratio to `LockedPool`, or else to the third contender, if the row has one.
    to_other: Option<f64>,
    /// The second goal, if the row has one: the rival's name, the ratio, and the goal.
    to_second: Option<(&'static str, f64, f64)>,
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (arguments, only) = match &arguments[..] {
        [first @ .., "--rows", text] => (first, *text),
        all => (all, ""),
    };
    let asked = match *arguments {
        [structure] => Some((structure, 11)),
        [structure, "--rounds", n] => {
            n.parse().ok().filter(|&it| it > 0).map(|rounds| (structure, rounds))
        }
        _ => None,
    };
    let (columns, mut scenarios, rounds) = match asked {
        Some(("deque", rounds)) => (DEQUES, against_second(scenarios::all()), rounds),
        Some(("injector", rounds)) => (INJECTORS, against_second(injector::all()), rounds),
        Some(("idle", rounds)) => (EVENT_COUNTS, against_second(idle::all()), rounds),
        Some(("pool", rounds)) => (POOLS, pool::all(), rounds),
        Some(("waits", rounds)) => (WAITS, waits::all(), rounds),
        Some(("futures", rounds)) => return of_futures(rounds, only),
        Some(("fair", rounds)) => return of_fairness(rounds, only),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    scenarios.retain(|(scenario, _)| scenario.name.contains(only));
    let rows: Vec<_> =
        scenarios.into_iter().map(|(it, against)| measure(it, against, rounds)).collect();
    print!("{}", report(columns, &rows, rounds));
    written(&tsv(columns, &rows))
}

/// Writes the tab-separated table to the file that `FILCH_TSV` names, if `xtask` has set it.
fn written(tsv: &str) -> ExitCode {
    match env::var("FILCH_TSV").map(|path| fs::write(path, tsv)) {
        Ok(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints the table of futures, in which filch has two contenders and each row has three goals.
fn of_futures(rounds: usize, only: &str) -> ExitCode {
    let scenarios = futures::all();
    let columns: Vec<_> = scenarios[0].contenders.iter().map(|it| it.0).collect();
    let goals = futures::GOALS.map(|(ours, rival, goal)| (format!("{ours}/{rival}"), goal));
    let mut text = format!("\n{}\n\n{:<33}", circumstances(rounds), "ns an item, median (least)");
    let mut tsv = format!("scenario\t{}", columns.join("\t"));
    columns.iter().for_each(|it| _ = write!(text, " {it:>16}"));
    for (name, goal) in &goals {
        let name = format!("{name} ≤ {goal}");
        let _ = write!(text, " {name:>25}");
        let _ = write!(tsv, "\t{name}");
    }
    text.push('\n');
    tsv.push('\n');
    for scenario in scenarios.into_iter().filter(|it| it.name.contains(only)) {
        let name = scenario.name;
        let (names, times) = take_turns(scenario, rounds);
        let _ = write!(text, "{name:<33}");
        tsv.push_str(name);
        for times in &times {
            let [median, least, _] = spread(times.clone());
            let time = format!("{median:.1} ({least:.1})");
            let _ = write!(text, " {time:>16}");
            let _ = write!(tsv, "\t{median:.3}");
        }
        for (ours, rival, goal) in futures::GOALS {
            let times_of = |name| &times[names.iter().position(|it| *it == name).expect("in it")];
            let ratio = ratio(times_of(ours), times_of(rival));
            let verdict = if ratio <= goal { "ok" } else { "above" };
            let ratio = format!("{ratio:.2} {verdict}");
            let _ = write!(text, " {ratio:>25}");
            let _ = write!(tsv, "\t{ratio}");
        }
        text.push('\n');
        tsv.push('\n');
    }
    print!("{text}");
    written(&tsv)
}

/// Prints the tables of fairness. Their goals are no ratios, but nanoseconds above the bare pool,
/// multiples of a fair time, and shares.
fn of_fairness(rounds: usize, only: &str) -> ExitCode {
    let (text, tsv) = fairness::tables(rounds, only);
    print!("\n{}\n{text}", circumstances(rounds));
    written(&tsv)
}

/// Pairs each scenario with its second contender, which is the rival of its goal.
fn against_second(scenarios: Vec<Scenario>) -> Vec<(Scenario, &'static str)> {
    let second = |it: Scenario| {
        let against = it.contenders[1].0;
        (it, against)
    };
    scenarios.into_iter().map(second).collect()
}

/// The most attempts at a round. An attempt in which no second thread took part is repeated.
const TRIES: usize = 100;

/// Runs the rounds. Returns the contenders' names, and for each contender the nanoseconds of an
/// item in each round.
fn take_turns(scenario: Scenario, rounds: usize) -> (Vec<&'static str>, Vec<Vec<f64>>) {
    eprintln!("{}", scenario.name);
    let Scenario { name, items, mut contenders, .. } = scenario;
    let count = contenders.len();
    let mut times = vec![Vec::new(); count];
    for round in 0..=rounds {
        for turn in 0..count {
            let who = (round + turn) % count;
            // A round without the second thread is discarded: it does not measure the scenario.
            let mut rounds = std::iter::repeat_with(|| contenders[who].1(items)).take(TRIES);
            let Some((time, done)) = rounds.find(|it| it.1 > 0) else {
                let who = contenders[who].0;
                panic!("{name}: the second thread of {who} did not run in {TRIES} rounds");
            };
            // The first round warms up.
            if round > 0 {
                times[who].push(time.as_nanos() as f64 / done as f64);
            }
        }
    }
    (contenders.iter().map(|it| it.0).collect(), times)
}

/// Returns the median of the rounds' ratios.
fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    spread(ratios.collect())[0]
}

fn measure(scenario: Scenario, against: &'static str, rounds: usize) -> Row {
    let (name, goal) = (scenario.name, scenario.goal);
    let (names, times) = take_turns(scenario, rounds);
    let count = names.len();
    let ratio = |to: usize| ratio(&times[0], &times[to]);
    let median = |who: &usize| spread(times[*who].clone())[0];
    let is_rival = |who: &usize| names[*who] != "LockedPool"; // it is ours
    let rival = match against {
        "best" => {
            let rivals = (1..count).filter(is_rival);
            rivals.min_by(|a, b| median(a).total_cmp(&median(b))).expect("a rival")
        }
        named => names.iter().position(|it| *it == named).expect("it takes part"),
    };
    let other = names.iter().position(|it| *it == "LockedPool").or((count > 2).then_some(2));
    let to_second = scenarios::SECOND_GOALS.iter().find_map(|&(of, rival, goal)| {
        let to = names.iter().position(|it| *it == rival && name.contains(of))?;
        Some((rival, ratio(to), goal))
    });
    let (against, to_rival, to_other) = (names[rival], ratio(rival), other.map(ratio));
    let times = names.into_iter().zip(times.into_iter().map(spread)).collect();
    Row { name, goal, against, to_rival, to_other, to_second, times }
}

impl Row {
    /// Returns the times for a column, which has the contender's name and perhaps its version.
    fn of(&self, column: &str) -> Option<[f64; 3]> {
        let name = |it: &&(&str, _)| column.split(' ').next() == Some(it.0) || column == it.0;
        self.times.iter().find(name).map(|it| it.1)
    }
}

/// Returns the median, the smallest and the largest of the times.
fn spread(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0], times[times.len() - 1]]
}

fn report(columns: Columns, rows: &[Row], rounds: usize) -> String {
    let mut text = format!("\n{}\n\n", circumstances(rounds));
    let other = if columns.contains(&"LockedPool") { "/Locked" } else { "/third" };
    let _ = write!(text, "{:<32}", "ns an item, median (least–most)");
    columns.iter().for_each(|it| _ = write!(text, " {it:>18}"));
    let _ = writeln!(text, " {:>8} {:>8} {other:>8} {:>6}  verdict", "floor", "/rival", "goal");
    let floors = floor::all();
    for row in rows {
        let _ = write!(text, "{:<32}", row.name);
        for column in columns {
            let time = row.of(column).map_or("-".to_owned(), |[median, least, most]| {
                format!("{median:.2} ({least:.1}–{most:.1})")
            });
            let _ = write!(text, " {time:>18}");
        }
        let to_other = row.to_other.map_or("-".to_owned(), |it| format!("{it:.2}"));
        let (to_rival, goal) = (row.to_rival, row.goal);
        let floor = floor::of(row.name).map_or("-".to_owned(), |it| format!("{:.2}", floors[it].1));
        let _ = write!(text, " {floor:>8} {to_rival:>8.2} {to_other:>8} {goal:>6.2}");
        let _ = write!(text, "  {} (to {})", verdict(to_rival, goal), row.against);
        if let Some((name, ratio, goal)) = row.to_second {
            let _ =
                write!(text, "; {ratio:.2}, goal {goal:.2}: {} (to {name})", verdict(ratio, goal));
        }
        text.push('\n');
    }
    text.push_str("\nThe floor on this processor, ns:\n");
    for (what, time) in floors {
        let _ = writeln!(text, "{time:>8.2}  {what}");
    }
    text
}

fn verdict(ratio: f64, goal: f64) -> &'static str {
    if ratio <= goal { "ok" } else { "above goal" }
}

fn circumstances(rounds: usize) -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = processor.lines().find(|it| it.starts_with(name));
        line.and_then(|it| it.split(": ").nth(1)).unwrap_or("-").to_owned()
    };
    format!(
        "{} (family {}, model {}), {} CPUs; {}; commit {}; {}; {rounds} rounds; \
         a line to the other core and back: {} ns",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        std::thread::available_parallelism().map_or(1, usize::from),
        said("rustc", &["--version"]),
        said("git", &["rev-parse", "--short", "HEAD"]),
        said("date", &["+%F"]),
        threads::round_trip().as_nanos(),
    )
}

/// Returns the output of a command, or a dash if the command fails.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let output = output.filter(|it| it.status.success());
    output.map_or("-".to_owned(), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
}

fn tsv(columns: Columns, rows: &[Row]) -> String {
    let name = |it: &&str| it.split(' ').next().unwrap_or_default().to_owned() + "_ns";
    let names: Vec<_> = columns.iter().map(name).collect();
    let mut text =
        format!("scenario\t{}\tto_rival\trival\tto_other\tgoal\tverdict\n", names.join("\t"));
    for row in rows {
        let _ = write!(text, "{}", row.name);
        for column in columns {
            let time = row.of(column).map_or("-".to_owned(), |it| format!("{:.3}", it[0]));
            let _ = write!(text, "\t{time}");
        }
        let to_other = row.to_other.map_or("-".to_owned(), |it| format!("{it:.3}"));
        let (to_rival, goal, against) = (row.to_rival, row.goal, row.against);
        let verdict = verdict(to_rival, goal);
        let _ = writeln!(text, "\t{to_rival:.3}\t{against}\t{to_other}\t{goal}\t{verdict}");
    }
    text
}
