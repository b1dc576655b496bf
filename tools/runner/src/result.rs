//! The end of a command: a success, or a reason to read.

/// A command's result. Its reason is written for the person who typed the command.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns an error that tells all of these, unless there are none.
pub fn all_well(failures: Vec<String>) -> Result {
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n").into()),
    }
}
