//! The tour: hashes and counts every file under a path, serially and on each pool.
//!
//! ```text
//! cargo run --release --example tour [-- PATH]
//! ```
//!
//! A round is one pass for each executor. Each pass submits two batches. The large batch has a job
//! for each file. When a tenth of it is done, the pass submits the small batch, which has the
//! smallest files again. The time at which the small batch is done shows which batch the executor
//! serves first. Every result of every pass is compared with that of the first serial pass.
//!
//! Without PATH the tour reads the sources that cargo has unpacked, or this repository if there are
//! none.

mod files;
mod pass;

use filch::ThreadPool;
use filch::fair::{FairScheduler, RoundRobin};
use filch::pool::LockedPool;
use pass::{Pass, Shared, Workload};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// One pass for each row of the table.
type Round = [Pass; 5];

/// The most rounds that run. No further round starts once the rounds have taken `LONG_ENOUGH`
/// together.
const MOST_ROUNDS: usize = 5;
const LONG_ENOUGH: Duration = Duration::from_secs(3);

const HELP: &str = "\
Hashes and counts every file under PATH: serially, on each pool of filch, and on two queues that
share a pool. Compares all results and prints the time of each. Symbolic links are not followed.

Usage: cargo run --release --example tour [-- PATH]

Without PATH: the sources that cargo has unpacked, or, where there are none, this repository.

Exit code: 0 if all results agree, 1 if not, 2 if PATH cannot be read.";

fn main() -> ExitCode {
    match argument().and_then(|path| tour(&path)) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("tour: {message}");
            ExitCode::from(2)
        }
    }
}

/// Returns the path to read, or the error to print.
fn argument() -> Result<PathBuf, String> {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    match first.as_ref().map(|it| it.to_string_lossy()).as_deref() {
        Some("-h" | "--help") => {
            println!("{HELP}");
            std::process::exit(0);
        }
        Some(option) if option.starts_with('-') => {
            return Err(format!("there is no option `{option}`; see --help"));
        }
        _ if arguments.next().is_some() => return Err("one PATH at most; see --help".into()),
        _ => {}
    }
    Ok(first.map_or_else(default_path, PathBuf::from))
}

/// Returns the folder of sources that cargo has unpacked, or this repository.
fn default_path() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|it| Path::new(&it).join(".cargo")));
    let sources = home.map(|it| it.join("registry").join("src"));
    let there = sources.filter(|it| fs::read_dir(it).is_ok_and(|mut it| it.next().is_some()));
    there.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../..").into())
}

/// Reads all files once for each row, compares the results, and prints the table.
fn tour(path: &Path) -> Result<ExitCode, String> {
    let found = files::find(path).map_err(|error| format!("cannot read {error}"))?;
    println!("{}: {} files", path.display(), found.files.len());
    if found.unreachable > 0 {
        println!("left out: {} entries that cannot be listed", found.unreachable);
    }
    if found.files.is_empty() {
        println!("there is nothing to do");
        return Ok(ExitCode::SUCCESS);
    }
    let threads = thread::available_parallelism().map_err(|it| it.to_string())?.get();
    let work = Arc::new(Workload::new(found.files));

    println!(
        "every file is read once unmeasured, to warm the page cache; pools of {threads} threads"
    );
    pass::serial("warm-up", &work);
    let start = Instant::now();
    let mut rounds = Vec::new();
    while rounds.is_empty() || (rounds.len() < MOST_ROUNDS && start.elapsed() < LONG_ENOUGH) {
        rounds.push(round(threads, &work).map_err(|it| format!("cannot start a pool: {it}"))?);
    }
    print_table(&rounds, &work);
    Ok(if agree(&rounds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one pass on each executor, the serial one first.
fn round(threads: usize, work: &Arc<Workload>) -> io::Result<Round> {
    // Schedulers over pools like that of the row `ThreadPool`, with a queue for each batch.
    let in_turn = FairScheduler::builder(ThreadPool::new(threads)?).policy(RoundRobin::new).build();
    let by_time = FairScheduler::over(ThreadPool::new(threads)?);
    Ok([
        pass::serial("serial", work),
        pass::pooled("LockedPool", Arc::new(LockedPool::new(threads)?), work),
        pass::pooled("ThreadPool", Arc::new(ThreadPool::new(threads)?), work),
        pass::pooled("round robin", Arc::new(Shared::new(in_turn)), work),
        pass::pooled("weighted fair", Arc::new(Shared::new(by_time)), work),
    ])
}

/// Prints the fastest pass of each executor.
fn print_table(rounds: &[Round], work: &Workload) {
    let fastest = |row: usize| rounds.iter().map(|it| &it[row]).min_by_key(|it| it.large);
    let passes: Vec<_> = (0..5).filter_map(fastest).collect();
    let small = format!("small batch ({} files)", work.small().len());
    println!("\n{:>67}  {small}", "");
    println!(
        "{:<13}{:>9}{:>16}{:>10}{:>9}{:>10}  {:>12}{:>12}",
        "executor", "files", "bytes", "seconds", "MB/s", "speed-up", "done after", "at"
    );
    for pass in &passes {
        let seconds = pass.large.as_secs_f64();
        println!(
            "{:<13}{:>9}{:>16}{:>10.3}{:>9.0}{:>9.2}x  {:>10.4} s{:>10.0} %",
            pass.name,
            pass.results.len() - pass.unreadable(),
            pass.bytes(),
            seconds,
            pass.bytes() as f64 / seconds / 1e6,
            passes[0].large.as_secs_f64() / seconds,
            pass.small.as_secs_f64(),
            100.0 * pass.large_done_by_then,
        );
    }
    println!(
        "the fastest of {} rounds; `at`: the part of the large batch that was done by then",
        rounds.len()
    );
}

/// Compares every result of every pass with the first pass, and prints the verdict.
fn agree(rounds: &[Round]) -> bool {
    let serial = &rounds[0][0];
    println!("\n{} lines; {} files could not be read", serial.lines(), serial.unreadable());
    let wrong_in = |pass: &Pass| {
        let pairs = pass.results.iter().zip(&serial.results);
        pairs.filter(|(ours, theirs)| ours != theirs).count() + pass.wrong_in_small
    };
    let wrong: usize = rounds.iter().flatten().map(wrong_in).sum();
    match wrong {
        0 => println!("all results of all passes equal those of the first serial pass"),
        _ => println!("{wrong} RESULTS DIFFER from those of the first serial pass"),
    }
    wrong == 0
}
