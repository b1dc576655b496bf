//! A timeline of a pool: which thread ran a task of which queue, and when.
//!
//! ```console
//! cargo run --release --example trace [-- FILE]       # by default target/filch/trace.json
//! ```
//!
//! Open the file in <https://ui.perfetto.dev> (*Open trace file*) or in `chrome://tracing`. The
//! file stays in the browser. Each thread has a track, and tasks are coloured by queue. A click on
//! a task shows how long the task waited, with an arrow from the place where it was spawned.
//!
//! Three queues share the pool. `gold` has three times the weight of `free`, and `log` runs one
//! task at a time. While `gold` and `free` both have work, `gold` gets three times as much time.

use filch::fair::Queue;
use filch::trace::{Slice, Timeline};
use filch::{FairScheduler, ThreadPool};
use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};
use xxhash_rust::xxh3::xxh3_64;

const USAGE: &str = "usage: cargo run --release --example trace [-- FILE]";
/// How many tasks `gold` and `free` each get.
const TASKS: usize = 400;
/// The text that a task hashes repeatedly: this file.
const TEXT: &str = include_str!("main.rs");

fn main() -> ExitCode {
    match file().and_then(|file| record(&file)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn file() -> Result<PathBuf, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => Ok("target/filch/trace.json".into()),
        [help] if help == "-h" || help == "--help" => {
            println!("{USAGE}");
            std::process::exit(0);
        }
        [file] if !file.starts_with('-') => Ok(file.into()),
        _ => Err(USAGE.into()),
    }
}

fn record(file: &Path) -> Result<(), Box<dyn Error>> {
    let timeline = Timeline::new();
    let pool = ThreadPool::builder()
        .num_threads(thread::available_parallelism()?.get())
        .on_thread_park(timeline.parks())
        .on_thread_unpark(timeline.unparks())
        .build()?;
    let fair = FairScheduler::over(pool);
    let gold = fair.queue("gold").weight(3).context(timeline.record("gold")).build()?;
    let free = fair.queue("free").context(timeline.record("free")).build()?;
    let log = fair.queue("log").max_parallel(1).context(timeline.record("log")).build()?;

    for task in 0..TASKS {
        submit(&gold, 200)?;
        submit(&free, 200)?;
        if task % 10 == 0 {
            submit(&log, 50)?;
        }
    }
    fair.wait_idle()?;
    thread::sleep(Duration::from_millis(2)); // meanwhile the workers fall asleep, and the next task wakes one
    submit(&gold, 200)?;
    fair.wait_idle()?;

    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut out = BufWriter::new(File::create(file)?);
    let slices = timeline.take();
    timeline.write_chrome(&slices, &mut out)?;
    out.flush()?;
    print(&slices, &timeline);
    println!("\n{}: open it in https://ui.perfetto.dev (Open trace file)", file.display());
    Ok(())
}

/// Submits a task that hashes this file `times` times.
fn submit(queue: &Queue, times: usize) -> Result<(), Box<dyn Error>> {
    let work = move || (0..times).for_each(|_| _ = black_box(xxh3_64(black_box(TEXT).as_bytes())));
    queue.spawn_detached(work).map_err(|refused| refused.to_string().into())
}

fn print(slices: &[Slice], timeline: &Timeline) {
    println!("  {:<8}{:>8}{:>14}{:>16}", "name", "slices", "on threads", "longest wait");
    for name in ["gold", "free", "log", "asleep"] {
        let of_name = slices.iter().filter(|it| &*it.name == name);
        let time: Duration = of_name.clone().map(|it| it.ended - it.began).sum();
        let wait = of_name.clone().filter_map(|it| Some(it.began - it.spawned?)).max();
        let wait = wait.map_or("-".to_owned(), |it| format!("{:.2} ms", it.as_secs_f64() * 1e3));
        println!(
            "  {name:<8}{:>8}{:>11.2} ms{wait:>16}",
            of_name.count(),
            time.as_secs_f64() * 1e3
        );
    }
    if timeline.lost() > 0 {
        println!("  {} slices are missing: the timeline had no room for them", timeline.lost());
    }
}
