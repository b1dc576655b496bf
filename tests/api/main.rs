//! Tests that concern all structures: their texts, their arguments, and promises that a surviving
//! mutant showed to be untested.
#![cfg(not(any(loom, shuttle)))]

mod arguments;
mod debug_and_display;
mod found_by_mutants;
