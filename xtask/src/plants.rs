//! Plants defects in a copy of the source, and checks that the tests which are to notice them do.
//!
//! `proofs/defects.txt` lists the defects, each as a replacement of text in one file.

use crate::usage::flag;
use runner::{Result, all_well, folders};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// A defect as text: the file, its present lines, and the lines that replace them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plant {
    /// The number of the defect, or the part of the crate.
    pub(crate) subject: String,
    pub(crate) defect: String,
    /// The test that must fail.
    pub(crate) witness: String,
    file: String,
    edits: Vec<(String, String)>,
}

/// Reads a list of plants. Each is a line with four cells, followed by its edits.
pub(crate) fn read(list: &str) -> Result<Vec<Plant>> {
    let text = fs::read_to_string(list).map_err(|error| format!("{list}: {error}"))?;
    parse(&text).map_err(|error| format!("{list}: {error}").into())
}

fn parse(text: &str) -> Result<Vec<Plant>> {
    let mut plants: Vec<Plant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let edits = plants.last_mut().map(|it| &mut it.edits);
        if let Some(there) = line.strip_prefix("- ") {
            edits.ok_or("an edit of nothing")?.push((there.to_owned(), String::new()));
        } else if let Some(instead) = line.strip_prefix("+ ") {
            let edit = edits.and_then(|it| it.last_mut()).ok_or("an edit of nothing")?;
            edit.1.push_str(instead);
            edit.1.push('\n');
        } else {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [subject, defect, witness, file] = cells[..] else {
                return Err(format!("`{line}` has not four cells").into());
            };
            let [subject, defect, witness, file] =
                [subject, defect, witness, file].map(str::to_owned);
            plants.push(Plant { subject, defect, witness, file, edits: Vec::new() });
        }
    }
    match plants.iter().find(|it| it.edits.is_empty()) {
        Some(plant) => Err(format!("`{}` has no edit", plant.defect).into()),
        None => Ok(plants),
    }
}

/// Returns the option `--fit`, which only checks that the plants fit the source.
pub(crate) fn fit() -> clap::Arg {
    flag("fit", "Plant nothing, and check that each still fits the source")
}

/// Fails, and names the plants, if some plants no longer fit the source.
pub(crate) fn all_fit(plants: &[Plant]) -> Result {
    let planted = |plant: &Plant| plant.planted(&fs::read_to_string(&plant.file)?);
    all_well(plants.iter().filter_map(|it| Some(planted(it).err()?.to_string())).collect())?;
    println!("{} plants fit the source", plants.len());
    Ok(())
}

impl Plant {
    /// Returns the text of the file with the defect in it. `text` is the file without it.
    fn planted(&self, text: &str) -> Result<String> {
        let mut planted = text.to_owned();
        for (there, instead) in &self.edits {
            let count = text.matches(there.as_str()).count();
            if count != 1 {
                let (Plant { subject, defect, file, .. }, name) = (self, there);
                return Err(format!(
                    "{subject}: {defect}: `{name}` is {count} times in {file}, and must be there \
                     once: has the code changed?"
                )
                .into());
            }
            planted = planted.replace(there.as_str(), instead);
        }
        Ok(planted)
    }
}

/// The parts of the repository that every copy needs to build.
const PARTS: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "build.rs",
    "docs",
    // The manifest names these two examples.
    "examples/blocking_queue.rs",
    "examples/pool_from_parts.rs",
    "loom-tests",
    "src",
    "tests",
];

/// One copy of the package for each core, since a build of a plant mostly uses one core.
pub(crate) struct Trees {
    trees: Mutex<Vec<Tree>>,
    /// Locked until the trees are dropped. A second run would plant in the same copies.
    _lock: fs::File,
}

impl Trees {
    /// Makes the copies in folders of the reports. Fails, and names the plants, if some plants no
    /// longer fit the source.
    pub(crate) fn copy(plants: &[Plant]) -> Result<Self> {
        all_fit(plants)?;
        let lock = fs::File::create(folders::reports()?.join("defects.lock"))?;
        lock.try_lock().map_err(|error| format!("does another run plant defects? {error}"))?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let trees = (0..cores).map(Tree::copy);
        let trees = Mutex::new(trees.collect::<Result<_>>()?);
        Ok(Trees { trees, _lock: lock })
    }

    /// Gives each copy without builds those of the copy that was used last. So each dependency is
    /// built once. The files keep their times, since cargo rebuilds a crate that seems to be old.
    pub(crate) fn share_builds(&self) -> Result {
        let trees = self.trees.lock().unwrap();
        let Some((built, others)) = trees.split_last() else { return Ok(()) };
        for other in others {
            if fs::read_dir(&other.target)?.next().is_none() {
                copy_built(&built.target, &other.target)?;
            }
        }
        Ok(())
    }

    /// Calls `work` with a copy that no other thread uses meanwhile. At most as many threads as
    /// cores may call this, as in [`each`](runner::process::each).
    pub(crate) fn with<R>(&self, work: impl FnOnce(&Tree) -> R) -> R {
        let tree = self.trees.lock().unwrap().pop().expect("there is a copy for each core");
        let result = work(&tree);
        self.trees.lock().unwrap().push(tree);
        result
    }
}

/// A copy of the package, in which to plant.
pub(crate) struct Tree {
    path: PathBuf,
    /// The target folder of its builds.
    target: PathBuf,
}

impl Tree {
    fn copy(number: usize) -> Result<Self> {
        let name = format!("defects/{number}");
        let path = folders::folder(folders::reports()?.join(&name))?;
        let _ = fs::remove_dir_all(&path);
        for part in PARTS {
            copy(Path::new(part), &path.join(part))?;
        }
        alone(&path.join("Cargo.toml"))?;
        let target = fs::canonicalize(folders::folder(folders::target_dir()?.join(name))?)?;
        Ok(Tree { path, target })
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `work` while the plant is in the copy's source.
    pub(crate) fn with<R>(&self, plant: &Plant, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let (path, [text, planted]) = (self.path.join(&plant.file), self.texts(plant)?);
        fs::write(&path, planted)?;
        let result = work();
        fs::write(&path, text)?;
        result
    }

    /// Returns the file of a plant, without the plant and with it.
    fn texts(&self, plant: &Plant) -> Result<[String; 2]> {
        let path = self.path.join(&plant.file);
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", plant.file))?;
        let planted = plant.planted(&text)?;
        Ok([text, planted])
    }
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

/// Copies a folder of builds, without the state of incremental builds. That state is of no use to
/// another copy of the package.
fn copy_built(from: &Path, to: &Path) -> Result {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if !from.is_dir() {
            fs::copy(&from, &to)?;
            fs::File::options()
                .write(true)
                .open(&to)?
                .set_modified(entry.metadata()?.modified()?)?;
        } else if entry.file_name() != "incremental" {
            fs::create_dir_all(&to)?;
            copy_built(&from, &to)?;
        }
    }
    Ok(())
}

/// Makes the copy a workspace of its own, without other members.
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
    use super::parse;

    #[test]
    fn plants_are_read() {
        let text = "# remark\n\na | b | c | d\n- x\n+ y\n- z\n+ ;\n";
        let plants = parse(text).unwrap();
        assert_eq!((plants.len(), plants[0].edits.len()), (1, 2));
        assert_eq!(plants[0].planted("axbz").unwrap(), "ay\nb;\n");
    }

    #[test]
    fn an_edit_stands_under_its_plant() {
        assert!(parse("- x\n").is_err() && parse("a | b\n").is_err());
        assert!(parse("a | b | c | d\n").is_err());
    }

    #[test]
    fn an_edit_names_one_place() {
        let plant = &parse("a | b | c | d\n- x\n+ y\n").unwrap()[0];
        assert!(plant.planted("z").unwrap_err().to_string().contains("is 0 times in d"));
        assert!(plant.planted("xx").unwrap_err().to_string().contains("is 2 times in d"));
    }
}
