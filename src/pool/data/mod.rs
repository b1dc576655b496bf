//! The data of a pool, which its workers and its handles use.

pub(crate) mod counters;
pub(crate) mod helping;
pub(crate) mod idle;
pub(crate) mod pool;
pub(crate) mod registry;
pub(crate) mod settings;
pub(crate) mod shelf;
