//! What an item, or a notification, costs with filch and with its rivals.
//!
//! The scenarios are written once, here, and run by two programs: `cargo bench` for criterion's
//! statistics, and `versus` for ratios taken in interleaved rounds, which a noisy machine does not
//! disturb as much. One number is always the time for one item, in nanoseconds.

pub mod contenders;
pub mod fair;
pub mod fairness;
pub mod floor;
pub mod forks;
pub mod futures;
pub mod idle;
pub mod injector;
pub mod items;
pub mod pool;
pub mod pools;
pub mod queues;
pub mod scenarios;
pub mod sizes;
pub mod statistics;
pub mod threads;
pub mod waits;
