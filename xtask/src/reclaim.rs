//! `cargo xtask reclaim`: the ways to break the contract of epoch-based reclamation, planted in the real source.
//!
//! In models the reclaimer frees as early as the contract permits. That shows something only if every breach of the
//! contract makes a model fail: so each is written into a copy of the source, and the models run on that.

use crate::process::{self, End, Progress};
use crate::table::Table;
use crate::{cargo, Arguments, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A breach: where, what is there, what is put there instead.
struct Plant {
    structure: &'static str,
    breach: &'static str,
    models: &'static str,
    file: &'static str,
    edits: &'static [(&'static str, &'static str)],
}

const MISSING: &str = "a missing pin";
const UNPINNED: &str = "a use after the unpin";
/// And the guard goes before the unlinking: one that stays until then the reclaimer of the models takes for enough,
/// which the real one's epochs would not.
const EARLY: &str = "a retirement before the unlinking";
const AT_ONCE: &str = "a free at once";
const TWICE: &str = "a retirement twice";

const RETIRES: &str = "unsafe { domain.pin().retire(old) };";
const UNLINKS: &str = "self.shared.rarely_written.buffer.store(new, GROWN.release());";
const REPLACES: &str = "unsafe { guard.retire(old) };";
const PUBLISHES: &str = "self.current.store(Box::into_raw(Box::new(new)), SNAPSHOT.release());";

const fn deque(
    breach: &'static str,
    file: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> Plant {
    Plant { structure: "deque", breach, models: "loom_buffers", file, edits }
}

const fn snapshot(breach: &'static str, edits: &'static [(&'static str, &'static str)]) -> Plant {
    let file = "src/sync/snapshot.rs";
    Plant { structure: "snapshot", breach, models: "loom_snapshot", file, edits }
}

const PLANTS: [Plant; 10] = [
    deque(MISSING, "src/deque/thief.rs", &[("let _guard = domain.pin();", "let _ = domain;")]),
    deque(UNPINNED, "src/deque/thief.rs", &[("let _guard = domain.pin();", "drop(domain.pin());")]),
    deque(
        EARLY,
        "src/deque/room.rs",
        &[
            (RETIRES, "let _ = domain;"),
            (UNLINKS, "if let Some(domain) = domain { unsafe { domain.pin().retire(old) }; } self.shared.rarely_written.buffer.store(new, GROWN.release());"),
        ],
    ),
    deque(AT_ONCE, "src/deque/room.rs", &[(RETIRES, "unsafe { (*old).poison() }; let _ = domain;")]),
    deque(
        TWICE,
        "src/deque/room.rs",
        &[(RETIRES, "unsafe { domain.pin().retire(old) }; unsafe { domain.pin().retire(old) };")],
    ),
    snapshot(MISSING, &[("let _guard = self.domain.pin();", "")]),
    snapshot(UNPINNED, &[("let _guard = self.domain.pin();", "drop(self.domain.pin());")]),
    snapshot(
        EARLY,
        &[
            (REPLACES, ""),
            (PUBLISHES, "unsafe { guard.retire(old) }; drop(guard); self.current.store(Box::into_raw(Box::new(new)), SNAPSHOT.release());"),
        ],
    ),
    snapshot(AT_ONCE, &[(REPLACES, "unsafe { (*old).poison() }; drop(guard);")]),
    snapshot(TWICE, &[(REPLACES, "unsafe { guard.retire(old) }; unsafe { guard.retire(old) };")]),
];

/// What a copy needs to be built.
const PARTS: [&str; 6] = ["Cargo.toml", "Cargo.lock", "build.rs", "src", "loom-tests", "README.md"];

/// A planted breach that takes longer than this to show has not been found.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn command(arguments: Arguments) -> Result {
    if let Some(extra) = arguments.last()? {
        return Err(format!("unexpected argument `{extra}`").into());
    }
    let tree = cargo::folder(cargo::reports()?.join("reclaim"))?;
    let _ = fs::remove_dir_all(&tree);
    for part in PARTS {
        copy(Path::new(part), &tree.join(part))?;
    }
    alone(&tree.join("Cargo.toml"))?;
    let mut table = Table::new(&["structure", "planted", "seconds", "verdict"]);
    let progress = Progress::of(PLANTS.len() + 2);
    let (mut caught, mut failures) = (0, Vec::new());
    for models in ["loom_buffers", "loom_snapshot"] {
        let (end, seconds) = run(&tree, models)?;
        let verdict = if end.is_success() { "holds" } else { "FAILED" };
        progress.step(format!("{verdict:<6} {models}, nothing planted"));
        table.row([models.to_owned(), "-".to_owned(), format!("{seconds:.1}"), verdict.to_owned()]);
        if verdict != "holds" {
            failures.push(format!("{models} fails with nothing planted"));
        }
    }
    for plant in PLANTS {
        let path = tree.join(plant.file);
        let text = fs::read_to_string(&path)?;
        let mut planted = text.clone();
        for (there, instead) in plant.edits {
            if !planted.contains(there) {
                return Err(format!("{}: `{there}` is not there any more", plant.file).into());
            }
            planted = planted.replace(there, instead);
        }
        fs::write(&path, planted)?;
        let (end, seconds) = run(&tree, plant.models)?;
        fs::write(&path, text)?;
        let verdict = match end {
            End::Exited(status) if status.success() => "MISSED",
            // What does not compile shows nothing.
            End::Exited(status) if status.code() == Some(101) && !was_built(&tree)? => "UNBUILT",
            _ => "caught",
        };
        caught += usize::from(verdict == "caught");
        progress.step(format!("{verdict:<6} {}: {}", plant.structure, plant.breach));
        if verdict != "caught" {
            failures.push(format!("{}: {}: {verdict}", plant.structure, plant.breach));
        }
        let [structure, breach] = [plant.structure, plant.breach].map(str::to_owned);
        table.row([structure, breach, format!("{seconds:.1}"), verdict.to_owned()]);
    }
    table.publish("reclaim")?;
    println!("\n{caught} breaches of the contract caught, in 2 structures");
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n").into()),
    }
}

/// Runs the models of a copy. What it prints is in `run.log` there.
fn run(tree: &Path, models: &str) -> Result<(End, f64)> {
    let mut command = cargo::stable();
    command.env("RUSTFLAGS", "--cfg loom").env("FILCH_PREEMPTIONS_AT_MOST", "2");
    command.env("RUST_BACKTRACE", "0").current_dir(tree);
    command.args(["test", "--release", "--test", models, "--target-dir"]);
    command.arg(fs::canonicalize(cargo::target_dir()?)?.join("reclaim"));
    process::run(process::log_to(&mut command, &tree.join("run.log"))?, Some(LIMIT))
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
        if is_list {
            ""
        } else {
            line
        }
    });
    let kept: Vec<&str> = kept.collect();
    fs::write(manifest, kept.join("\n"))?;
    Ok(())
}
