//! Tests of what all structures have: what they print, and promises that mutants showed to be
//! untested.
#![cfg(not(any(loom, shuttle)))]

mod arguments;
mod debug_and_display;
mod found_by_mutants;
