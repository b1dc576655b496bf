//! Runs a *canary*, a test whose planted bug a detector must report, in a process of its own.

use std::env;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

const CHILD: &str = "FILCH_CANARY";

/// Runs a test that must fail, in a process of its own, because a failing model may abort.
///
/// `test` is the name of the calling test without its module. The file of the call gives the
/// module. `complaints` are parts of the messages with which the test may fail.
///
/// # Panics
///
/// Panics if the planted bug is not reported, or if something else is reported.
#[track_caller]
pub fn must_fail(test: &str, complaints: &[&str], planted: impl FnOnce()) {
    if env::var(CHILD).is_ok_and(|it| it == test) {
        planted();
        return;
    }
    if env::var_os("FILCH_DECLARE_TO").is_some() {
        return;
    }
    let module = Path::new(Location::caller().file()).file_stem().unwrap().to_str().unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env_remove("FILCH_MODELS_TO")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{test}: the planted bug went unnoticed");
    let as_expected = complaints.iter().any(|it| said.contains(it));
    assert!(as_expected, "{test}: noticed, but not as one of {complaints:?}:\n{said}");
}
