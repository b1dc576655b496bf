//! A server whose tenants share the threads fairly, and a load test that shows it.
//!
//! ```text
//! cargo run --release -p filch-service [-- --address ADDRESS] [--tenants FILE] [--mode MODE] [--threads N]
//! cargo run --release -p filch-service -- load [--seconds N] [--connections N] [--svg FILE] [--quick]
//! ```
//!
//! The server computes hashes, compresses files and scales images. axum and tokio do the I/O. Each
//! request runs in the queue of its tenant, by the layer of `filch-tower`.
//!
//! ```text
//! curl -H 'x-tenant: gold' --data-binary @Cargo.lock 'http://localhost:3000/hash?rounds=1000'
//! curl -H 'x-tenant: free' --data-binary @Cargo.lock 'http://localhost:3000/compress?level=9' -o Cargo.lock.gz
//! curl -H 'x-tenant: gold' -H 'x-deadline-ms: 250' --data-binary @photo.jpg \
//!     'http://localhost:3000/resize?width=320&height=320' -o small.png
//! curl http://localhost:3000/metrics
//! ```
//!
//! <http://localhost:3000/> shows shares and waits while requests run. `load` starts servers on the
//! loopback interface, and sends requests of a light and of a heavy tenant. It measures
//! `spawn_blocking`, rayon, and queues. It takes a minute, prints a table, and draws a chart.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use filch_service::{Mode, Settings, Tenant, load, start};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, thread};

/// The tenants, unless a file is given.
const TENANTS: &str = include_str!("tenants.toml");

fn main() -> ExitCode {
    let given = usage().get_matches();
    let result = match given.subcommand() {
        Some(("load", given)) => loads(given),
        _ => serve(&given),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("filch-service: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let load = Command::new("load")
        .about("Measure a light tenant's latency alone and beside a heavy tenant, in each mode")
        .arg(
            option("seconds", "N", "Seconds for each of a mode's two measurements")
                .value_parser(value_parser!(u64).range(1..=600))
                .default_value("9"),
        )
        .arg(
            option("connections", "N", "Connections of the heavy tenant")
                .value_parser(value_parser!(u64).range(1..=60))
                .default_value("48"),
        )
        .arg(
            option("svg", "FILE", "Where the chart goes")
                .value_parser(value_parser!(PathBuf))
                .default_value("target/filch/service.svg"),
        )
        .arg(
            Arg::new("quick")
                .long("quick")
                .action(ArgAction::SetTrue)
                .help("Measure for one second instead of --seconds"),
        );
    Command::new("filch-service")
        .about("A server whose tenants share the threads fairly")
        .arg(
            option("address", "ADDRESS", "Where to listen")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:3000"),
        )
        .arg(
            option("tenants", "FILE", "The tenants (default: examples/service/tenants.toml)")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            option("mode", "MODE", "Where requests are computed")
                .value_parser(Mode::ALL.map(Mode::name))
                .default_value(Mode::Queues.name()),
        )
        .arg(
            option("threads", "N", "Threads that compute (default: one for each processor)")
                .value_parser(value_parser!(u64).range(1..=1024)),
        )
        .subcommand(load)
}

fn threads() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

fn serve(given: &ArgMatches) -> Result<(), Box<dyn Error>> {
    let text = match given.get_one::<PathBuf>("tenants") {
        Some(file) => {
            fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => TENANTS.to_owned(),
    };
    let tenants = Tenant::read(&text)?;
    let names: Vec<String> =
        tenants.iter().map(|it| format!("{} (weight {})", it.name, it.weight)).collect();
    let mode = given.get_one::<String>("mode").expect("it has a default");
    let address = *given.get_one::<SocketAddr>("address").expect("it has a default");
    let threads = given.get_one("threads").map_or_else(threads, |it: &u64| *it as usize);
    let mode = Mode::ALL.into_iter().find(|it| it.name() == mode).expect("clap has checked it");
    let settings = Settings { mode, ..Settings::new(address, tenants, threads) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = start(settings).await.map_err(|error| format!("{address}: {error}"))?;
        println!("http://{}/ shows the tenants: {}", running.address, names.join(", "));
        asked_to_stop().await?;
        println!("stopping: the requests that were accepted end first");
        running.stop().await?;
        println!("stopped");
        Ok(())
    })
}

/// Waits for ctrl-c, or for the signal by which a supervisor ends a service.
async fn asked_to_stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

fn loads(given: &ArgMatches) -> Result<(), Box<dyn Error>> {
    let seconds = *given.get_one::<u64>("seconds").expect("it has a default");
    let connections = *given.get_one::<u64>("connections").expect("it has a default") as usize;
    load::run(&load::Plan {
        length: Duration::from_secs(if given.get_flag("quick") { 1 } else { seconds }),
        connections,
        threads: threads(),
        svg: given.get_one::<PathBuf>("svg").expect("it has a default").clone(),
    })
}
