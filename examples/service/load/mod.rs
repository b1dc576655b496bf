//! The load generator: a light tenant beside a heavy one, on the loopback interface.
//!
//! The light tenant has one connection, and asks for a scaled image every few milliseconds. The
//! heavy tenant has many connections. On each, it sends the next file to compress when the last
//! answer has come. Each mode is measured with the light tenant alone, and beside the heavy tenant.
//! At the end, with queues, the heavy tenant sends more requests than its queue holds. Some clients
//! leave before the answer, and some deadlines are missed. Then every accepted request must be
//! counted as completed, cancelled or expired.

mod chart;
mod client;
mod measure;

use crate::{Mode, Sums};
use measure::{Latencies, Measured, Rough};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a load test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The length of each measurement: a mode has two, each in `ROUNDS` parts.
    pub length: Duration,
    /// Connections of the heavy tenant.
    pub connections: usize,
    /// Threads that compute.
    pub threads: usize,
    /// Where the chart goes.
    pub svg: PathBuf,
}

/// The goal: beside the flood, the light tenant's p99 grows by at most this factor.
const GOAL: f64 = 2.0;
/// How often each mode is measured. The table has the medians.
const ROUNDS: u32 = 3;

/// Measures all modes, prints a table and draws a chart.
///
/// # Errors
///
/// Returns an error if a server cannot be started, or the chart cannot be written. Returns an error
/// also if a request got a wrong answer, or accepted requests are unaccounted for.
pub fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let measurements = 2 * Mode::ALL.len() + 1;
    let bar = measure::progress(plan.length * measurements as u32);
    // The modes take turns, so that other work of the machine meets all of them.
    let mut rounds = Mode::ALL.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (mode, rounds) in Mode::ALL.into_iter().zip(&mut rounds) {
            rounds.push(measure::mode(plan, mode, plan.length / ROUNDS, &bar)?);
        }
    }
    let rows: Vec<Measured> = rounds.iter().map(|it| Measured::median(it)).collect();
    let rough = measure::rough(plan, &bar)?;
    bar.finish_and_clear();
    print(plan, &rows);
    print_verdicts(&rows);
    if let Some(folder) = plan.svg.parent() {
        fs::create_dir_all(folder)?;
    }
    chart::draw(&plan.svg, &rows)?;
    println!("\nthe chart: {}", plan.svg.display());
    print_rough(&rough);
    check(&rows, &rough)
}

fn print(plan: &Plan, rows: &[Measured]) {
    println!(
        "a light tenant (1 connection) beside a heavy one ({}), equal weights, {} threads, {} s each, \
         medians of {ROUNDS} rounds\n",
        plan.connections,
        plan.threads,
        plan.length.as_secs()
    );
    println!(
        "{:<16}{:>22}{:>24}{:>9}{:>10}{:>10}{:>13}",
        "computed by",
        "light alone, p50 p99",
        "beside heavy, p50 p99",
        "p99 x",
        "light /s",
        "heavy /s",
        "light share"
    );
    for row in rows {
        let pair = |it: &Latencies| format!("{:.1} {:.1} ms", it.p50 * 1e3, it.p99 * 1e3);
        println!(
            "{:<16}{:>22}{:>24}{:>9.2}{:>10.0}{:>10.0}{:>13}",
            row.mode.name(),
            pair(&row.alone),
            pair(&row.beside),
            row.beside.p99 / row.alone.p99,
            row.light_rate,
            row.heavy_rate,
            format!("{:.2}", row.light_share)
        );
    }
}

/// Prints whether each mode reaches `GOAL`.
fn print_verdicts(rows: &[Measured]) {
    println!("\nlight tenant's p99, alone -> beside the flood; the goal is at most {GOAL:.1} x");
    for row in rows {
        let (alone, beside) = (row.alone.p99, row.beside.p99);
        let verdict = if beside <= GOAL * alone { "reached" } else { "missed" };
        println!(
            "{:<16}{:.1} -> {:.1} ms: {:.1} x, {verdict}",
            row.mode.name(),
            alone * 1e3,
            beside * 1e3,
            beside / alone
        );
    }
}

fn print_rough(rough: &Rough) {
    let Sums { accepted, completed, cancelled, expired, refused, .. } = rough.sums;
    println!(
        "\nin queues, beyond the capacity, with clients that leave and deadlines that are missed:\n\
         clients: {} results, {} refused, {} expired, {} left before the answer\n\
         server: {accepted} accepted = {completed} completed + {cancelled} cancelled \
         + {expired} expired; {refused} refused",
        rough.results, rough.refused, rough.expired, rough.left
    );
    if let Some(memory) = rough.memory {
        println!("memory at its peak, with the clients: {memory} MB");
    }
}

fn check(rows: &[Measured], rough: &Rough) -> Result<(), Box<dyn Error>> {
    if let Some(row) = rows.iter().find(|it| it.wrong > 0) {
        return Err(format!("{} wrong answers with {}", row.wrong, row.mode.name()).into());
    }
    if rough.wrong > 0 {
        return Err(format!("{} wrong answers beyond the capacity", rough.wrong).into());
    }
    let Sums { accepted, completed, cancelled, expired, .. } = rough.sums;
    if accepted != completed + cancelled + expired {
        return Err("accepted requests are unaccounted for".into());
    }
    Ok(())
}
