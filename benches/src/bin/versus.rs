//! Ratios to the rivals, taken in interleaved rounds of one run.
//!
//! In each round every contender does the scenario once, in an order that rotates from round to
//! round. A ratio is the median of the rounds' ratios, so that a disturbance hits both or neither.

use filch_benches::scenarios::{self, Scenario};
use filch_benches::{floor, threads};
use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::{env, fs};

const USAGE: &str = "usage: versus deque [--rounds N]";

struct Row {
    name: &'static str,
    goal: f64,
    /// Medians, and smallest and largest.
    times: Vec<[f64; 3]>,
    to_crossbeam: f64,
    to_st3: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let rounds = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["deque"] => Some(11),
        ["deque", "--rounds", n] => n.parse().ok().filter(|&it| it > 0),
        _ => None,
    };
    let Some(rounds) = rounds else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let rows: Vec<_> = scenarios::all().into_iter().map(|it| measure(it, rounds)).collect();
    print!("{}", report(&rows, rounds));
    if let Ok(path) = env::var("FILCH_TSV") {
        if let Err(error) = fs::write(&path, tsv(&rows)) {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(scenario: Scenario, rounds: usize) -> Row {
    eprintln!("{}", scenario.name);
    let Scenario { name, goal, items, mut contenders } = scenario;
    let count = contenders.len();
    let mut times = vec![Vec::new(); count];
    for round in 0..=rounds {
        for turn in 0..count {
            let who = (round + turn) % count;
            let (time, done) = contenders[who].1(items);
            // The first round warms up.
            if round > 0 {
                times[who].push(time.as_nanos() as f64 / done as f64);
            }
        }
    }
    let ratio = |to: usize| {
        let ratios = times[0].iter().zip(&times[to]).map(|(ours, theirs)| ours / theirs);
        spread(ratios.collect())[0]
    };
    let (to_crossbeam, to_st3) = (ratio(1), ratio(2));
    Row { name, goal, to_crossbeam, to_st3, times: times.into_iter().map(spread).collect() }
}

/// Median, smallest, largest.
fn spread(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [times[times.len() / 2], times[0], times[times.len() - 1]]
}

fn report(rows: &[Row], rounds: usize) -> String {
    let mut text = format!("\n{}\n\n", circumstances(rounds));
    let head = ["ns an item, median (least–most)", "filch", "crossbeam 0.8.8", "st3 0.4"];
    let _ = writeln!(
        text,
        "{:<32} {:>18} {:>18} {:>18} {:>8} {:>7} {:>6}  verdict",
        head[0], head[1], head[2], head[3], "/crossb.", "/st3", "goal"
    );
    for row in rows {
        let times = row.times.iter().map(|[median, least, most]| {
            format!("{:>18}", format!("{median:.2} ({least:.1}–{most:.1})"))
        });
        let _ = writeln!(
            text,
            "{:<32} {} {:>8.2} {:>7.2} {:>6.2}  {}",
            row.name,
            times.collect::<Vec<_>>().join(" "),
            row.to_crossbeam,
            row.to_st3,
            row.goal,
            verdict(row),
        );
    }
    text.push_str("\nThe floor on this processor, ns:\n");
    for (what, time) in floor::all() {
        let _ = writeln!(text, "{time:>8.2}  {what}");
    }
    text
}

fn verdict(row: &Row) -> &'static str {
    if row.to_crossbeam <= row.goal {
        "ok"
    } else {
        "above goal"
    }
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

/// What a command says, or a dash.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let output = output.filter(|it| it.status.success());
    output.map_or("-".to_owned(), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
}

fn tsv(rows: &[Row]) -> String {
    let mut text =
        "scenario\tfilch_ns\tcrossbeam_ns\tst3_ns\tto_crossbeam\tto_st3\tgoal\tverdict\n"
            .to_owned();
    for row in rows {
        let times: Vec<_> = row.times.iter().map(|it| format!("{:.3}", it[0])).collect();
        let _ = writeln!(
            text,
            "{}\t{}\t{:.3}\t{:.3}\t{}\t{}",
            row.name,
            times.join("\t"),
            row.to_crossbeam,
            row.to_st3,
            row.goal,
            verdict(row),
        );
    }
    text
}
