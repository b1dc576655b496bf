//! Two tenants query the same texts with rayon's iterators, at the same time, on the same threads:
//! without queues, and in queues with weights 3 and 1.
//!
//! `cargo run --release --example query -- [SECONDS] [FOLDER]`; `cargo xtask versus query` has
//! rayon's own threads beside it.

#[path = "../../../benches/src/bin/query.rs"]
mod without;

use filch::fair::{FairScheduler, Queue};
use rayon_core::ThreadPoolBuilder;
use std::error::Error;
use without::{Load, TENANTS};

fn main() -> Result<(), Box<dyn Error>> {
    let load = Load::new()?;
    let pool = ThreadPoolBuilder::new().build()?;
    let found = pool.install(|| load.frequent_words());
    let found: Vec<_> = found.iter().map(|(word, times)| format!("{word} {times}")).collect();
    println!("most frequent: {}", found.join(", "));

    load.run_on(&pool, "filch's");
    let fair = FairScheduler::over(pool.as_filch().clone());
    let queues: Vec<Queue> = TENANTS
        .iter()
        .map(|(name, weight, _)| fair.queue(name).weight(*weight).build())
        .collect::<Result<_, _>>()?;
    let title = "on filch's threads, in queues with weights 3 and 1";
    load.run(title, |tenant| queues[tenant].install(|| drop(load.frequent_words())));
    for queue in &queues {
        let metrics = queue.metrics();
        let name = metrics.name.as_deref().unwrap_or("");
        println!("  {name}: {:.2?} of thread time", metrics.service);
    }
    Ok(())
}
