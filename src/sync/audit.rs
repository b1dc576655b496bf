//! Weakens one named ordering, to see whether a model notices. Compiled for models only.
//!
//! A *site* is one use of a named ordering. `FILCH_SITES_TO=<file>` collects the sites that a model
//! passes through. `FILCH_WEAKEN=<site>` makes one of them a step weaker. `cargo xtask orderings`
//! drives both.

use core::panic::Location;
use core::sync::atomic::Ordering::{self, AcqRel, Relaxed, SeqCst};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::string::String;
use std::sync::{LazyLock, Mutex};
use std::{borrow::ToOwned, env, format};

static SITES_TO: LazyLock<Option<String>> = LazyLock::new(|| env::var("FILCH_SITES_TO").ok());
static WEAKEN: LazyLock<Option<String>> = LazyLock::new(|| env::var("FILCH_WEAKEN").ok());

/// Returns the ordering to use at the calling line: as written, or weakened.
#[track_caller]
pub(super) fn at(name: &str, half: &str, written: Ordering) -> Ordering {
    if SITES_TO.is_none() && WEAKEN.is_none() {
        return written;
    }
    let line = Location::caller();
    let site = format!("{name}.{half} at {}:{}", line.file(), line.line());
    record(&site);

    match written {
        _ if WEAKEN.as_deref() != Some(&site) => written,
        SeqCst => AcqRel,
        _ => Relaxed,
    }
}

/// Writes a site to the file of `FILCH_SITES_TO` when the process first passes it.
fn record(site: &str) {
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

    if let Some(path) = SITES_TO.as_deref() {
        if SEEN.lock().unwrap().insert(site.to_owned()) {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{site}").unwrap();
        }
    }
}
