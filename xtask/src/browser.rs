//! Looks for a browser for the page of `examples/service`.

use runner::process::succeeds;
use std::process::Command;

/// The names that `examples/service/tests/browser.rs` looks for.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Returns how to install Chromium if it is missing.
pub(crate) fn missing() -> Option<String> {
    let there = NAMES.iter().any(|name| succeeds(Command::new(name).arg("--version")));
    (!there).then(|| "no Chromium: `apt-get install chromium`".to_owned())
}
