//! A checker of litmus tests: small programs of atomic accesses, under the axioms of C11.
//!
//! A test is C as herd7 reads it. An ordering in it that carries the name of a site of the audit is
//! weakened as the audit would, alone and together with each other one, and what then becomes
//! possible is compared with what the test claims. `proofs/litmus/known` holds programs of which
//! the answer is in the literature: they judge the judge. `README.md` describes the format.

mod examine;
mod model;
mod parser;
mod program;
mod relation;
mod result;
mod syntax;
mod trace;

pub use examine::{Findings, examine};
pub use result::Result;
