//! Runs a test in a process of its own.

use std::process::Command;
use std::{env, thread};

/// Runs the body of a test in a process where no other test runs meanwhile. Starts a process for
/// it, unless libtest runs the tests of this process one after another.
pub(crate) fn alone(body: impl FnOnce()) {
    let thread = thread::current();
    // libtest names a thread by its test. It uses its first thread if tests run one after another.
    let test = thread.name().expect("libtest names its threads");
    if test == "main" || env::var_os("FILCH_ALONE").is_some() {
        return body();
    }
    let mut child = Command::new(env::current_exe().unwrap());
    let output = child.args(["--exact", test]).env("FILCH_ALONE", "1").output().unwrap();
    let [out, err] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success() && out.contains(" 1 passed"), "{test}, alone:\n{out}\n{err}");
}
