//! Measures the time for an item or a notification with filch and with its rivals.
//!
//! Two programs run these scenarios. `cargo bench` gives criterion's statistics. `versus` gives
//! ratios of interleaved rounds, which a noisy machine disturbs less.
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
