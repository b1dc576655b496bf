//! The parts that the commands share: folders, test binaries, children under a limit, progress,
//! tables.

pub mod cargo;
pub mod folders;
pub mod process;
mod result;
pub mod table;

pub use result::{Result, all_well};
