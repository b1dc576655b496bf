//! Fork and join: closures that borrow from the thread that waits for them.

pub(crate) mod cut_short;
pub(crate) mod join;
pub(crate) mod scope;
pub(crate) mod scoped;
