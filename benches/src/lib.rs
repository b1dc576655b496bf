//! Measures the time for an item or a notification with filch and with its rivals.
//!
//! The scenarios are written once, here, and two programs run them: `cargo bench` for criterion's
//! statistics, and `versus` for ratios of interleaved rounds, which a noisy machine disturbs less.
//! A number is always the time for one item, in nanoseconds.

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
