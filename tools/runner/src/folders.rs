//! The folders of the repository: its root, the target folder, the reports in that.

use crate::result::Result;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes the repository's root the current folder, wherever the command was typed.
pub fn enter_repository() -> Result {
    // Cargo names the folder when it runs us. Compiled in, it may be that of another clone which
    // shares the target folder.
    let ours = env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    let mut above = Path::new(&ours).ancestors();
    let root =
        above.find(|it| it.join("Cargo.lock").exists()).ok_or("no folder has a Cargo.lock")?;
    env::set_current_dir(root).map_err(|error| format!("{}: {error}", root.display()).into())
}

/// Returns where cargo builds: `target`, unless the environment says otherwise.
pub fn target_dir() -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(std::path::absolute(target)?)
}

/// Returns the folder of tables and logs, `target/filch`.
pub fn reports() -> Result<PathBuf> {
    folder(target_dir()?.join("filch"))
}

/// Returns the folder of that path, and makes it if need be.
pub fn folder(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Writes a path as a person would type it.
pub fn relative(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Lists the files in a folder and those below it that have this extension, by name.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path, extension)?);
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
