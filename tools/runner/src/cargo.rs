//! Running cargo, and finding what it built.

use crate::process;
use crate::result::Result;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the cargo that runs us.
pub fn stable() -> Command {
    let mut command = Command::new("cargo");
    isolate(&mut command);
    command
}

/// Tells how to get a command of cargo's, if it is not there.
pub fn missing(command: &str) -> Option<String> {
    let there = process::succeeds(stable().args([command, "--version"]));
    (!there).then(|| format!("no cargo-{command}: `cargo install cargo-{command} --locked`"))
}

/// Makes a child depend on our flags alone, and keeps it from installing a toolchain on the way.
pub fn isolate(command: &mut Command) {
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

/// A test target, as built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestBinary {
    /// The name of the target.
    pub target: String,
    /// The executable.
    pub path: PathBuf,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
}

/// Builds tests with a `cargo test` command, without running them.
pub fn build_tests(mut command: Command) -> Result<Vec<TestBinary>> {
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
            let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().map(PathBuf::from).unwrap_or_default();
            found.push(TestBinary { target: target.to_owned(), path: path.into(), folder });
        }
    }
    found.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(found)
}

impl TestBinary {
    /// Lists the names of its tests, ignored ones included.
    pub fn names(&self) -> Result<Vec<String>> {
        let output = Command::new(&self.path).args(["--list", "--format", "terse"]).output()?;
        if !output.status.success() {
            return Err(format!("{} cannot list its tests", self.target).into());
        }
        Ok(listed(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Makes a process that runs all of its tests.
    pub fn all(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env("RUST_BACKTRACE", "0").env("FILCH_STRESS", "0.3").env("PROPTEST_CASES", "500");
        command
    }

    /// Makes a process that runs one test, even an ignored one.
    pub fn test(&self, name: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--exact", name, "--include-ignored", "--test-threads=1"]);
        // Set, it would keep models from running.
        command.env("RUST_BACKTRACE", "0").env_remove("FILCH_DECLARE_TO");
        command
    }
}

/// One test of a test binary.
#[derive(Clone, Debug)]
pub struct Test {
    /// The binary that holds it.
    pub binary: TestBinary,
    /// Its name, with the modules around it.
    pub name: String,
}

impl Test {
    /// Returns its name with its binary in front.
    pub fn full_name(&self) -> String {
        format!("{}::{}", self.binary.target, self.name)
    }

    /// Returns the file that it is in, as the binary and its module.
    pub fn file(&self) -> String {
        let full = self.full_name();
        full.rsplit_once("::").map_or(full.clone(), |(file, _)| file.to_owned())
    }

    /// Tells whether it explores a structure, rather than checking that the harness would notice.
    pub fn is_model(&self) -> bool {
        let name = plain_name(&self.name);
        let is_checks = name.starts_with("canary_") || name.starts_with("harness_");
        // What one thread does step by step has one execution.
        !is_checks && !self.name.starts_with("steps::")
    }

    /// Returns its name as part of a file's.
    pub fn file_stem(&self) -> String {
        format!("{}-{}", self.binary.target, self.name.replace("::", "-"))
    }

    /// Makes a process that runs it, even if it is ignored.
    pub fn command(&self) -> Command {
        self.binary.test(&self.name)
    }
}

/// Lists the tests of these binaries.
pub fn tests(binaries: impl IntoIterator<Item = TestBinary>) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for binary in binaries {
        let names = binary.names()?.into_iter();
        tests.extend(names.map(|name| Test { binary: binary.clone(), name }));
    }
    Ok(tests)
}

fn listed(terse: &str) -> Vec<String> {
    terse.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect()
}

/// Returns a test's own name, without the modules around it.
pub fn plain_name(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::{Test, TestBinary, listed, plain_name, test_binaries};

    #[test]
    fn test_executables_are_found_among_other_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"filch"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","target":{"name":"tour"},"profile":{"test":false},"executable":"/t/tour"}
{"reason":"compiler-artifact","target":{"name":"loom_b"},"profile":{"test":true},"executable":"/t/loom_b-1","manifest_path":"/p/Cargo.toml"}
{"reason":"compiler-artifact","target":{"name":"loom_a"},"profile":{"test":true},"executable":"/t/loom_a-1","manifest_path":"/p/Cargo.toml"}
{"reason":"build-finished","success":true}"#;
        let binary = |target: &str| TestBinary {
            target: target.into(),
            path: format!("/t/{target}-1").into(),
            folder: "/p".into(),
        };
        assert_eq!(test_binaries(messages).unwrap(), [binary("loom_a"), binary("loom_b")]);
    }

    #[test]
    fn benchmarks_are_not_listed_as_tests() {
        let terse = "an_item_is_taken_once: test\nbatch::two: test\nspeed: benchmark\n";
        assert_eq!(listed(terse), ["an_item_is_taken_once", "batch::two"]);
        assert_eq!(plain_name("batch::two"), "two");
    }

    #[test]
    fn checks_of_the_harness_are_no_models() {
        let binary = TestBinary { target: "loom_deque".into(), ..TestBinary::default() };
        let test = |name: &str| Test { binary: binary.clone(), name: name.into() };
        assert!(test("inner::an_item_is_taken_once").is_model());
        assert!(!test("canary_missing_pin").is_model());
        assert!(!test("inner::harness_x").is_model());
        assert_eq!(test("inner::harness_x").file(), "loom_deque::inner");
        assert_eq!(test("two").file(), "loom_deque");
        assert_eq!(test("inner::harness_x").file_stem(), "loom_deque-inner-harness_x");
    }
}
