//! A server that computes for tenants, each in a fair queue, and its load generator.
//!
//! `main.rs` says how to run the server. The tests and the load generator start it inside their own
//! process.

mod connections;
mod engine;
pub mod load;
mod metrics;
mod problem;
mod server;
mod tenants;
mod work;

pub use engine::Mode;
pub use server::{MOST_BYTES, Running, Settings, Sums, start};
pub use tenants::Tenant;
