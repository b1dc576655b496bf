//! `cargo xtask compile`: measures how long a program that spawns takes to compile, with this crate
//! and with others.
//!
//! Each program spawns 300 closures or futures, every one of its own type. Their packages are built
//! first, so the time is that of the program alone.

use clap::ArgMatches;
use runner::process::Progress;
use runner::table::Table;
use runner::{Result, cargo, folders};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const SPAWNS: usize = 300;
/// Each program is built this many times, and the least time counts.
const BUILDS: usize = 3;

struct Program {
    name: &'static str,
    packages: &'static str,
    before: &'static str,
    /// One spawn. `@` stands for its number, and `s` is a string.
    spawn: &'static str,
}

const FILCH: &str = "filch = { path = \"ROOT\" }";
const POOL: &str = "let pool = filch::ThreadPool::new(1).unwrap();";
const TOKIO: &str = "tokio = { version = \"1\", features = [\"rt-multi-thread\"] }";
const RUNTIME: &str = "let rt = tokio::runtime::Runtime::new().unwrap();";

const PROGRAMS: [Program; 7] = [
    Program {
        name: "filch, spawn and join",
        packages: FILCH,
        before: POOL,
        spawn: "sum += pool.spawn(move || s.len() + @).join().unwrap();",
    },
    Program {
        name: "tokio, spawn_blocking",
        packages: TOKIO,
        before: RUNTIME,
        spawn: "sum += rt.block_on(rt.spawn_blocking(move || s.len() + @)).unwrap();",
    },
    Program {
        name: "filch, spawn_future and join",
        packages: FILCH,
        before: POOL,
        spawn: "sum += pool.spawn_future(async move { s.len() + @ }).join().unwrap();",
    },
    Program {
        name: "tokio, spawn",
        packages: TOKIO,
        before: RUNTIME,
        spawn: "sum += rt.block_on(rt.spawn(async move { s.len() + @ })).unwrap();",
    },
    Program {
        name: "async-executor, spawn",
        packages: "async-executor = \"1\"\nfutures-lite = \"2\"",
        before: "let pool = async_executor::Executor::new();",
        spawn: "sum += futures_lite::future::block_on(pool.run(pool.spawn(async move { s.len() + @ })));",
    },
    Program {
        name: "filch, spawn_detached",
        packages: FILCH,
        before: POOL,
        spawn: "pool.spawn_detached(move || { std::hint::black_box(s.len() + @); }).unwrap();",
    },
    Program {
        name: "rayon, spawn",
        packages: "rayon = \"1\"",
        before: "let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();",
        spawn: "pool.spawn(move || { std::hint::black_box(s.len() + @); });",
    },
];

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("compile").about("Time how long programs that spawn compile, beside rivals'")
}

pub(crate) fn command(_: &ArgMatches) -> Result {
    let mut table = Table::new(&["program", "dev s", "release s", "release KiB"]);
    let progress = Progress::of(PROGRAMS.len());
    for (number, program) in PROGRAMS.iter().enumerate() {
        let folder = folders::folder(folders::reports()?.join(format!("compile/{number}/src")))?;
        let folder = folder.parent().ok_or("a folder has a parent")?;
        program.write(folder)?;
        let [dev, release] = ["dev", "release"].map(|profile| build(folder, profile));
        let size = fs::metadata(folder.join("target/release/program"))?.len() / 1024;
        let seconds = [dev?, release?].map(|it| format!("{it:.1}"));
        progress.step(format!("{}: {} s and {} s", program.name, seconds[0], seconds[1]));
        let [dev, release] = seconds;
        table.row([program.name.to_owned(), dev, release, size.to_string()]);
    }
    table.publish("compile")
}

impl Program {
    fn write(&self, folder: &Path) -> Result {
        let packages = self.packages.replace("ROOT", &env::current_dir()?.to_string_lossy());
        let manifest = format!(
            "[package]\nname = \"program\"\nedition = \"2024\"\n\n[profile.release]\nstrip = true\n\n\
             [workspace]\n\n[dependencies]\n{packages}\n"
        );
        let spawn = |number: usize| {
            let spawn = self.spawn.replace('@', &number.to_string());
            format!("    let s = String::from(\"{number}\");\n    {spawn}\n")
        };
        let spawns: String = (0..SPAWNS).map(spawn).collect();
        let main = format!(
            "fn main() {{\n    let mut sum = 0;\n    {}\n{spawns}    sum += 1;\n    println!(\"{{sum}}\");\n}}\n",
            self.before
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        // The lock file gives the program's packages the versions of this repository.
        fs::copy("Cargo.lock", folder.join("Cargo.lock"))?;
        fs::write(folder.join("src/main.rs"), main)?;
        Ok(())
    }
}

/// Builds the program, and returns the least number of seconds that it took.
fn build(folder: &Path, profile: &str) -> Result<f64> {
    let mut least = f64::INFINITY;
    // The first build also builds the packages, so its time does not count.
    for number in 0..=BUILDS {
        let mut command = cargo::stable();
        command.args(["build", "--quiet", "--profile", profile]).current_dir(folder);
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", folder.join("target"));
        let start = Instant::now();
        succeed(&mut command)?;
        if number > 0 {
            least = least.min(start.elapsed().as_secs_f64());
        }
        let main = fs::File::options().append(true).open(folder.join("src/main.rs"))?;
        main.set_modified(std::time::SystemTime::now())?;
    }
    Ok(least)
}

fn succeed(command: &mut Command) -> Result {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
