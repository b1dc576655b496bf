//! `cargo xtask reclaim`: the ways to break the contract of epoch-based reclamation, planted in the real source.
//!
//! In models the reclaimer frees as early as the contract permits. That shows something only if every breach of the
//! contract makes a model fail: so each is written into a copy of the source, and the models run on that.

use clap::ArgMatches;
use runner::process::{self, End, Progress};
use runner::table::Table;
use runner::{Result, all_well, cargo, folders};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The breaches, as text.
const BREACHES: &str = "proofs/breaches.txt";

/// A breach: where, what is there, what is put there instead.
#[derive(Debug, PartialEq)]
struct Plant {
    structure: String,
    breach: String,
    models: String,
    file: String,
    edits: Vec<(String, String)>,
}

fn plants(text: &str) -> Result<Vec<Plant>> {
    let mut plants: Vec<Plant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let edits = plants.last_mut().map(|it| &mut it.edits);
        if let Some(there) = line.strip_prefix("- ") {
            edits.ok_or("an edit of nothing")?.push((there.to_owned(), String::new()));
        } else if let Some(instead) = line.strip_prefix("+ ") {
            edits.and_then(|it| it.last_mut()).ok_or("an edit of nothing")?.1 = instead.to_owned();
        } else {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [structure, breach, models, file] = cells[..] else {
                return Err(format!("{BREACHES}: `{line}` has not four cells").into());
            };
            let [structure, breach, models, file] =
                [structure, breach, models, file].map(str::to_owned);
            plants.push(Plant { structure, breach, models, file, edits: Vec::new() });
        }
    }
    Ok(plants)
}

/// What a copy needs to be built.
const PARTS: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "build.rs",
    "docs",
    // The manifest names them.
    "examples/blocking_queue.rs",
    "examples/pool_from_parts.rs",
    "loom-tests",
    "src",
];

/// A planted breach that takes longer than this to show has not been found.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn usage() -> clap::Command {
    clap::Command::new("reclaim")
        .about("Plant breaches of epoch's contract in a copy of the source: do the models notice?")
}

pub(crate) fn command(_: &ArgMatches) -> Result {
    let tree = folders::folder(folders::reports()?.join("reclaim"))?;
    let _ = fs::remove_dir_all(&tree);
    for part in PARTS {
        copy(Path::new(part), &tree.join(part))?;
    }
    alone(&tree.join("Cargo.toml"))?;
    let mut table = Table::new(&["structure", "planted", "seconds", "verdict"]);
    let plants = plants(&fs::read_to_string(BREACHES)?)?;
    let progress = Progress::of(plants.len() + 2);
    let (mut caught, mut failures) = (0, Vec::new());
    for models in ["loom_deque::buffers", "loom_pool::snapshot"] {
        let (end, seconds) = run(&tree, models)?;
        let verdict = if end.is_success() { "holds" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {models}, nothing planted"));
        table.row([models.to_owned(), "-".to_owned(), format!("{seconds:.1}"), verdict.to_owned()]);
        if verdict != "holds" {
            failures.push(format!("{models} fails with nothing planted"));
        }
    }
    for plant in plants {
        let path = tree.join(&plant.file);
        let text = fs::read_to_string(&path)?;
        let mut planted = text.clone();
        for (there, instead) in &plant.edits {
            if !planted.contains(there.as_str()) {
                return Err(format!("{}: `{there}` is not there any more", plant.file).into());
            }
            planted = planted.replace(there.as_str(), instead);
        }
        fs::write(&path, planted)?;
        let (end, seconds) = run(&tree, &plant.models)?;
        fs::write(&path, text)?;
        let verdict = match end {
            End::Exited(status) if status.success() => "MISSED",
            End::Hung => "HUNG",
            // What does not compile shows nothing.
            End::Exited(status) if status.code() == Some(101) && !was_built(&tree)? => "UNBUILT",
            _ => "caught",
        };
        caught += usize::from(verdict == "caught");
        progress.step(format!("{verdict:<6} {}: {}", plant.structure, plant.breach));
        if verdict != "caught" {
            failures.push(format!("{}: {}: {verdict}", plant.structure, plant.breach));
        }
        table.row([plant.structure, plant.breach, format!("{seconds:.1}"), verdict.to_owned()]);
    }
    table.publish("reclaim")?;
    println!("\n{caught} breaches of the contract caught, in 2 structures");
    all_well(failures)
}

/// Runs the models of a copy that are in one file, `binary::module`. What they print is in `run.log` there.
fn run(tree: &Path, models: &str) -> Result<(End, f64)> {
    let (binary, module) = models.split_once("::").ok_or_else(|| {
        format!("{BREACHES}: `{models}` is not a binary of models and a module of it")
    })?;
    let mut command = cargo::stable();
    command.env("RUSTFLAGS", "--cfg loom").env("FILCH_PREEMPTIONS_AT_MOST", "2");
    command.env("RUST_BACKTRACE", "0").current_dir(tree);
    command.args(["test", "--profile", "models", "--test", binary, "--target-dir"]);
    command.arg(fs::canonicalize(folders::target_dir()?)?.join("reclaim"));
    command.args(["--", &format!("{module}::")]);
    let log = tree.join("run.log");
    let ran = process::run(process::log_to(&mut command, &log)?, Some(LIMIT))?;
    // A filter that fits nothing succeeds.
    if fs::read_to_string(&log)?.contains("\nrunning 0 tests") {
        return Err(format!("there are no models in `{models}`").into());
    }
    Ok(ran)
}

fn was_built(tree: &Path) -> Result<bool> {
    Ok(fs::read_to_string(tree.join("run.log"))?.contains("Running loom-tests/"))
}

fn copy(from: &Path, to: &Path) -> Result {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().ok_or("a file is in a folder")?)?;
        fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Makes the copy a workspace of its own, with nothing else in it.
fn alone(manifest: &Path) -> Result {
    let text = fs::read_to_string(manifest)?;
    let kept = text.lines().map(|line| {
        let is_list = line.starts_with("members =") || line.starts_with("default-members =");
        if is_list { "" } else { line }
    });
    let kept: Vec<&str> = kept.collect();
    fs::write(manifest, kept.join("\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plants;

    #[test]
    fn plants_are_read() {
        let text = "# remark\n\na | b | c | d\n- x\n+ y\n- z\n+ ;\n";
        let plants = plants(text).unwrap();
        assert_eq!((plants.len(), plants[0].edits.len()), (1, 2));
        assert_eq!(plants[0].edits[0], ("x".to_owned(), "y".to_owned()));
    }

    #[test]
    fn an_edit_stands_under_its_breach() {
        assert!(plants("- x\n").is_err() && plants("a | b\n").is_err());
    }
}
