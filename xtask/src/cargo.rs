//! Running cargo, and finding what it built.

use crate::{Result, process};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the repository's root the current folder, wherever the command was typed.
pub(crate) fn enter_repository() -> Result {
    // Cargo names the folder when it runs us. Compiled in, it may be that of another clone which
    // shares the target folder.
    let ours = env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&ours).parent().ok_or("the root folder cannot be this package")?;
    env::set_current_dir(root).map_err(|error| format!("{}: {error}", root.display()).into())
}

/// Where cargo builds: `target`, unless the environment says otherwise.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(std::path::absolute(target)?)
}

/// Where tables and logs go.
pub(crate) fn reports() -> Result<PathBuf> {
    folder(target_dir()?.join("filch"))
}

/// The folder of that path, which is made if need be.
pub(crate) fn folder(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// A path as a person would type it.
pub(crate) fn relative(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// The cargo that runs us.
pub(crate) fn stable() -> Command {
    let mut command = Command::new("cargo");
    isolate(&mut command);
    command
}

/// A command of cargo's that is not there: how to get it.
pub(crate) fn missing(command: &str) -> Option<String> {
    let there = process::succeeds(stable().args([command, "--version"]));
    (!there).then(|| format!("no cargo-{command}: `cargo install cargo-{command} --locked`"))
}

/// What we run must depend on our flags alone, and must not install a toolchain on the way.
pub(crate) fn isolate(command: &mut Command) {
    for flags in [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_ENCODED_RUSTDOCFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_RUSTDOCFLAGS",
    ] {
        command.env_remove(flags);
    }
    command.env("RUSTUP_AUTO_INSTALL", "0");
}

/// The files in a folder and those below it that have this extension, by name.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
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

/// A test target, as built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestBinary {
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

/// Builds tests with a `cargo test` command, without running them.
pub(crate) fn build_tests(mut command: Command) -> Result<Vec<TestBinary>> {
    command.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the build failed".into());
    }
    test_binaries(&String::from_utf8_lossy(&output.stdout))
}

/// The test executables among cargo's messages, sorted by target.
fn test_binaries(messages: &str) -> Result<Vec<TestBinary>> {
    let mut found = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let test = message["profile"]["test"].as_bool() == Some(true);
        let names = (message["target"]["name"].as_str(), message["executable"].as_str());
        if let (true, (Some(target), Some(path))) = (test, names) {
            found.push(TestBinary { target: target.to_owned(), path: path.into() });
        }
    }
    found.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(found)
}

impl TestBinary {
    /// The names of its tests, ignored ones included.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let output = Command::new(&self.path).args(["--list", "--format", "terse"]).output()?;
        if !output.status.success() {
            return Err(format!("{} cannot list its tests", self.target).into());
        }
        Ok(listed(&String::from_utf8_lossy(&output.stdout)))
    }

    /// A process that runs all of its tests.
    pub(crate) fn all(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env("RUST_BACKTRACE", "0").env("FILCH_STRESS", "0.3").env("PROPTEST_CASES", "500");
        command
    }

    /// A process that runs one test, even an ignored one.
    pub(crate) fn test(&self, name: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--exact", name, "--include-ignored", "--test-threads=1"]);
        // Set, it would keep models from running.
        command.env("RUST_BACKTRACE", "0").env_remove("FILCH_DECLARE_TO");
        command
    }
}

fn listed(terse: &str) -> Vec<String> {
    terse.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect()
}

/// A test's own name, without the modules around it.
pub(crate) fn plain_name(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::{TestBinary, listed, plain_name, test_binaries};

    #[test]
    fn test_executables_are_found_among_other_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"filch"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","target":{"name":"tour"},"profile":{"test":false},"executable":"/t/tour"}
{"reason":"compiler-artifact","target":{"name":"loom_b"},"profile":{"test":true},"executable":"/t/loom_b-1"}
{"reason":"compiler-artifact","target":{"name":"loom_a"},"profile":{"test":true},"executable":"/t/loom_a-1"}
{"reason":"build-finished","success":true}"#;
        let binary = |target: &str| TestBinary {
            target: target.into(),
            path: format!("/t/{target}-1").into(),
        };
        assert_eq!(test_binaries(messages).unwrap(), [binary("loom_a"), binary("loom_b")]);
    }

    #[test]
    fn benchmarks_are_not_listed_as_tests() {
        let terse = "an_item_is_taken_once: test\nbatch::two: test\nspeed: benchmark\n";
        assert_eq!(listed(terse), ["an_item_is_taken_once", "batch::two"]);
        assert_eq!(plain_name("batch::two"), "two");
    }
}
