//! Toub's question, on real work: a small batch arrives while a large one runs. When is it done?
//!
//! ```text
//! cargo run --release --example tenants [-- --svg FILE] [--quick]
//! ```
//!
//! Both batches hash blocks of this repository's sources, on a pool with a thread for each
//! processor. The example compares three policies: one queue for both batches (FIFO), one task of
//! each in turn, and time by weight. Each policy runs in three settings. The first has equal
//! weights and costs, the second weights of three to one. In the third, tasks of the large batch
//! cost a hundred times as much. The chart draws the service of each batch over time. Where both
//! batches have work and equal weights, lines that rise together are fair.

mod chart;

use filch::fair::{FairScheduler, Queue, Report, RoundRobin};
use filch::{Executor, ThreadPool};
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use walkdir::WalkDir;
use xxhash_rust::xxh3::xxh3_64;

/// The bytes that a task hashes in about 20 µs.
const BLOCK: usize = 256 << 10;
/// How long the large batch takes on all threads.
const LARGE: Duration = Duration::from_millis(1500);
/// The interval at which the services are sampled.
const SAMPLE: Duration = Duration::from_millis(2);

/// The repository whose sources are hashed.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const USAGE: &str = "usage: cargo run --release --example tenants [-- --svg FILE] [--quick]";

/// How the batches share the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    OneQueue,
    InTurn,
    ByTime,
}

impl Sharing {
    const ALL: [Sharing; 3] = [Sharing::OneQueue, Sharing::InTurn, Sharing::ByTime];

    fn name(self) -> &'static str {
        match self {
            Sharing::OneQueue => "FIFO",
            Sharing::InTurn => "RoundRobin",
            Sharing::ByTime => "WeightedFair",
        }
    }
}

/// The weights and costs of the two batches.
#[derive(Clone, Copy, Debug)]
struct Setting {
    title: &'static str,
    /// The weights of the small and of the large batch.
    weights: [u64; 2],
    /// How many blocks a task of the large batch hashes. A task of the small batch hashes one.
    cost: usize,
}

const SETTINGS: [Setting; 3] = [
    Setting { title: "equal weights, equal costs", weights: [1, 1], cost: 1 },
    Setting { title: "weights 3:1, equal costs", weights: [3, 1], cost: 1 },
    Setting { title: "equal weights, costs 1:100", weights: [1, 1], cost: 100 },
];

/// The results of one setting under one policy.
struct Outcome {
    setting: Setting,
    sharing: Sharing,
    /// The time from the arrival of the small batch until it was done.
    took: Duration,
    /// The time that the small batch would have taken with exactly its share.
    fair: Duration,
    /// The report of the time in which both batches had work.
    both: Report,
    waits: [filch::fair::Wait; 2],
    small_slot: usize,
    /// Times in seconds, with the service of the small and of the large batch until then.
    samples: Vec<(f64, [f64; 2])>,
}

fn main() -> ExitCode {
    match arguments().and_then(|(svg, is_quick)| tenants(svg, is_quick)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tenants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<(PathBuf, bool), Box<dyn Error>> {
    let (mut svg, mut is_quick) = (PathBuf::from("target/filch/tenants.svg"), false);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--svg" => svg = arguments.next().ok_or(USAGE)?.into(),
            "--quick" => is_quick = true,
            "-h" | "--help" => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            _ => return Err(USAGE.into()),
        }
    }
    Ok((svg, is_quick))
}

fn tenants(svg: PathBuf, is_quick: bool) -> Result<(), Box<dyn Error>> {
    let blocks = Arc::new(read_blocks()?);
    let block = cost_of_a_block(&blocks);
    let threads = thread::available_parallelism()?.get();
    println!(
        "{} blocks of {} KiB; a block takes {} µs; a pool of {threads} threads",
        blocks.len(),
        BLOCK >> 10,
        block.as_micros()
    );
    let large = if is_quick { LARGE / 10 } else { LARGE };
    let mut outcomes = Vec::new();
    for setting in SETTINGS {
        println!("\n{}", setting.title);
        println!(
            "  {:<13}{:>12}{:>11}{:>9}{:>8}{:>16}{:>14}{:>14}",
            "policy",
            "small done",
            "fair time",
            "ratio",
            "Jain",
            "share of small",
            "its p99 wait",
            "large's p99"
        );
        for sharing in Sharing::ALL {
            let outcome = run(setting, sharing, &blocks, block, large, threads)?;
            print(&outcome);
            outcomes.push(outcome);
        }
    }
    println!(
        "\nJain's index and the share cover the time in which both batches had work; `-`: both were in one queue."
    );
    if let Some(folder) = svg.parent() {
        fs::create_dir_all(folder)?;
    }
    chart::draw(&svg, &outcomes)?;
    println!("the services over time: {}", svg.display());
    Ok(())
}

/// Returns 16 blocks of this repository's concatenated sources, repeated as often as needed.
fn read_blocks() -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut text = Vec::new();
    for folder in ["src", "tests", "loom-tests", "examples", "benches"] {
        for entry in WalkDir::new(Path::new(REPOSITORY).join(folder)) {
            let entry = entry?;
            if entry.path().extension().is_some_and(|it| it == "rs") {
                text.extend(fs::read(entry.path())?);
            }
        }
    }
    let length = text.len();
    Ok((0..16)
        .map(|at| text.iter().cycle().skip(at * length / 16).take(BLOCK).copied().collect())
        .collect())
}

fn hash(blocks: &[Vec<u8>], which: usize) {
    black_box(xxh3_64(&blocks[which % blocks.len()]));
}

/// Returns the median of 301 measurements.
fn cost_of_a_block(blocks: &[Vec<u8>]) -> Duration {
    let mut times: Vec<_> = (0..301)
        .map(|which| {
            let start = Instant::now();
            hash(blocks, which);
            start.elapsed()
        })
        .collect();
    times.sort();
    times[150]
}

fn run(
    setting: Setting,
    sharing: Sharing,
    blocks: &Arc<Vec<Vec<u8>>>,
    block: Duration,
    time: Duration,
    threads: usize,
) -> Result<Outcome, Box<dyn Error>> {
    let builder = FairScheduler::builder(ThreadPool::new(threads)?).measure_waits(true);
    let builder =
        if sharing == Sharing::InTurn { builder.policy(RoundRobin::new) } else { builder };
    let fair = builder.build();
    let queue = |name: &str, weight| fair.queue(name).weight(weight).build();
    let large = queue("large", setting.weights[1])?;
    let small = match sharing {
        Sharing::OneQueue => large.clone(),
        _ => queue("small", setting.weights[0])?,
    };
    let all = time.as_nanos() * threads as u128 / block.as_nanos();
    let (large_tasks, small_tasks) = (all as usize / setting.cost, all as usize / 10);

    submit(&large, large_tasks, setting.cost, blocks);
    let (start, is_over) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let sampler = {
        let (small, large, is_over) = (small.clone(), large.clone(), is_over.clone());
        thread::spawn(move || sample(start, [&small, &large], &is_over))
    };
    thread::sleep(time / 5);
    let arrival = Instant::now();
    submit(&small, small_tasks, 1, blocks);
    let before = fair.report();
    // The report ends while both batches have work: at the latest when half of the small batch is
    // done.
    let half = small.metrics().completed + small_tasks as u64 / 2;
    while small.metrics().completed < half && arrival.elapsed() < time / 4 {
        thread::sleep(SAMPLE);
    }
    let both = fair.report().since(&before);
    match sharing {
        // In one queue the large batch comes first, so the small one is done when the queue is idle.
        Sharing::OneQueue => large.wait_idle()?,
        _ => small.wait_idle()?,
    }
    let took = arrival.elapsed();
    fair.wait_idle()?;
    is_over.store(true, Relaxed);
    let samples = sampler.join().expect("the sampler does not panic");
    let waits = [&small, &large].map(|it| it.metrics().wait.expect("tasks have waited"));
    let [weight, other] = setting.weights;
    let part = f64::from(u32::try_from(weight)?) / f64::from(u32::try_from(weight + other)?);
    let fair_time =
        (block * u32::try_from(small_tasks)?).div_f64(part * fair.parallelism().get() as f64);
    let small_slot = small.slot();
    Ok(Outcome { setting, sharing, took, fair: fair_time, both, waits, small_slot, samples })
}

fn submit(queue: &Queue, tasks: usize, cost: usize, blocks: &Arc<Vec<Vec<u8>>>) {
    for task in 0..tasks {
        let blocks = blocks.clone();
        let work = move || (0..cost).for_each(|it| hash(&blocks, task + it));
        queue.spawn_detached(work).expect("the queue is open");
    }
}

fn sample(start: Instant, queues: [&Queue; 2], is_over: &AtomicBool) -> Vec<(f64, [f64; 2])> {
    let mut samples = Vec::new();
    while !is_over.load(Relaxed) {
        let services = queues.map(|it| it.metrics().service.as_secs_f64());
        samples.push((start.elapsed().as_secs_f64(), services));
        thread::sleep(SAMPLE);
    }
    samples
}

fn print(outcome: &Outcome) {
    let Outcome { sharing, took, fair, both, waits, small_slot, .. } = outcome;
    let share = both.share(*small_slot).filter(|_| *sharing != Sharing::OneQueue);
    println!(
        "  {:<13}{:>9.0} ms{:>8.0} ms{:>9.2}{:>8}{:>16}{:>11.1} ms{:>11.1} ms",
        sharing.name(),
        took.as_secs_f64() * 1e3,
        fair.as_secs_f64() * 1e3,
        took.as_secs_f64() / fair.as_secs_f64(),
        both.jain().map_or("-".to_owned(), |it| format!("{it:.3}")),
        share.map_or("-".to_owned(), |(is, target)| format!("{is:.3} of {target:.2}")),
        waits[0].p99.as_secs_f64() * 1e3,
        waits[1].p99.as_secs_f64() * 1e3,
    );
}
