//! Which mutant this process is. Goes with a woven source, see `weave.rs`.

extern crate std;

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

/// No mutant: what is asked for is written down.
const RECORDS: usize = usize::MAX - 1;

static CHOSEN: AtomicUsize = AtomicUsize::new(usize::MAX);
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static RECORD: OnceLock<File> = OnceLock::new();

/// Before `main`, so that the first question finds an answer even where nothing may be allocated.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = {
    extern "C" fn choose() {
        if let Some(path) = std::env::var_os("FILCH_MUTANTS_REACHED") {
            let file = File::options().create(true).append(true).open(path);
            RECORD.get_or_init(|| file.expect("FILCH_MUTANTS_REACHED names a file"));
            CHOSEN.store(RECORDS, Relaxed);
        }
        if let Ok(number) = std::env::var("FILCH_MUTANT") {
            CHOSEN.store(number.parse().expect("FILCH_MUTANT is a number"), Relaxed);
        }
    }
    choose
};

#[inline]
pub fn is(number: usize) -> bool {
    let chosen = CHOSEN.load(Relaxed);
    if chosen == RECORDS {
        record(number);
    }
    chosen == number
}

#[cold]
fn record(number: usize) {
    if !REACHED[number].swap(true, Relaxed) {
        // One write for each line, so that lines of several threads are whole.
        let mut line = [b'\n'; 21];
        let mut rest = number;
        let mut at = line.len() - 1;
        loop {
            at -= 1;
            line[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let _ = RECORD.get().map(|mut file| file.write_all(&line[at..]));
    }
}
