//! Shared parts of the tests: sizes, seeds, random numbers, counted items and closures, histories.

#![allow(dead_code)] // each test binary uses its own part of this

pub(crate) mod alone;
pub(crate) mod bomb;
pub(crate) mod closures;
pub(crate) mod contexts;
pub(crate) mod history;
pub(crate) mod on_drop;
pub(crate) mod simulated;
pub(crate) mod tally;
pub(crate) mod users;
pub(crate) mod waiting;
pub(crate) mod yields;

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};

/// Whether the tests are built with a sanitizer, which makes them slower.
pub(crate) const SANITIZED: bool = contains(option_env!("RUSTFLAGS"), "-Zsanitizer");

/// Whether the tests are built with ThreadSanitizer.
pub(crate) const THREAD_SANITIZED: bool = contains(option_env!("RUSTFLAGS"), "-Zsanitizer=thread");

/// Whether copies of a moved item may remain on the stack: with a sanitizer, or without
/// optimization. Such copies make large items use several times their size.
pub(crate) const COPIED: bool = SANITIZED || cfg!(debug_assertions);

/// Returns how many rounds a test runs: `normal`, times `FILCH_STRESS` if that is set. A sanitizer
/// halves the number, and Miri divides it by 200.
pub(crate) fn scaled(normal: usize) -> usize {
    let factor = match env::var("FILCH_STRESS") {
        Ok(factor) => factor.parse::<f64>().expect("FILCH_STRESS is a number"),
        Err(_) => 1.0,
    };
    let normal = if SANITIZED { normal / 2 } else { normal };
    // Miri takes a thousand times as long.
    let normal = if cfg!(miri) { normal / 200 } else { normal };
    ((normal as f64 * factor) as usize).max(1)
}

/// Returns the seed of a test, from `FILCH_SEED` or at random. Prints it, so that a failure can be
/// repeated.
pub(crate) fn seed() -> u64 {
    let seed = match env::var("FILCH_SEED") {
        Ok(seed) => seed.parse().expect("FILCH_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    };
    println!("to repeat this: FILCH_SEED={seed}");
    seed
}

/// A generator of random numbers (splitmix64), the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

const fn contains(text: Option<&str>, part: &str) -> bool {
    let (text, part) = match text {
        Some(text) => (text.as_bytes(), part.as_bytes()),
        None => return false,
    };
    let mut start = 0;
    while start + part.len() <= text.len() {
        let mut matching = 0;
        while matching < part.len() && text[start + matching] == part[matching] {
            matching += 1;
        }
        if matching == part.len() {
            return true;
        }
        start += 1;
    }
    false
}
