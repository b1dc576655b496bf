//! Tests of the source and of the texts: they read files, and run none of the code.
#![cfg(not(any(loom, shuttle)))]

mod circles;
mod indexes;
mod rules;
mod sentences;
mod source;
mod texts;
