//! Two tenants query the same texts with rayon's iterators, at the same time, on the same threads:
//! without queues, and in queues with weights 3 and 1.
//!
//! ```text
//! cargo run --release --example query [-- SECONDS [FOLDER]]
//! ```
//!
//! It prints each tenant's share of the answers, and the median and the worst time of its queries.
//! A chart of them goes to `target/filch/query.svg`. `cargo xtask versus query` has rayon's own
//! threads beside it.

mod chart;
#[allow(dead_code)]
#[path = "../../../../examples/pictures/svg.rs"]
mod svg;
#[path = "../../../../benches/src/bin/query.rs"]
mod without;

use filch::fair::{FairScheduler, Queue};
use rayon_core::ThreadPoolBuilder;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};
use without::{Load, Outcome, TENANTS};

fn main() -> ExitCode {
    match query() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("query: {error}");
            ExitCode::FAILURE
        }
    }
}

fn query() -> Result<(), Box<dyn Error>> {
    let load = Load::new()?;
    let pool = ThreadPoolBuilder::new().build()?;
    let found = pool.install(|| load.frequent_words());
    let found: Vec<_> = found.iter().map(|(word, times)| format!("{word} {times}")).collect();
    println!("most frequent: {}", found.join(", "));

    let without = load.run_on(&pool, "filch's");
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queues: Vec<Queue> = TENANTS
        .iter()
        .map(|(name, weight, _)| fair.queue(name).weight(*weight).build())
        .collect::<Result<_, _>>()?;
    let setting = "on filch's threads, in queues with weights 3 and 1";
    let within = load.run(setting, |tenant| queues[tenant].install(|| drop(load.frequent_words())));
    for queue in &queues {
        let metrics = queue.metrics();
        let name = metrics.name.as_deref().unwrap_or("");
        println!("  {name}: {:.2?} of thread time", metrics.service);
    }
    draw([without, within])
}

/// Draws the outcomes, and above them those of the program that `cargo xtask versus` has run.
fn draw(ours: [Outcome; 2]) -> Result<(), Box<dyn Error>> {
    let (mut outcomes, mut svg) = (Vec::new(), PathBuf::from("target/filch/query.svg"));
    if let Some(theirs) = env::var_os("FILCH_TSV").map(PathBuf::from) {
        outcomes.extend(fs::read_to_string(&theirs)?.lines().filter_map(chart::outcome));
        svg = theirs.with_extension("svg");
    }
    outcomes.extend(ours);
    svg.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(&svg, chart::draw(&outcomes))?;
    println!("\na chart in {}", svg.display());
    Ok(())
}
