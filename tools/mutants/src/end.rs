//! What became of a mutant.

/// How a mutant ended, and by whom.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// It does not compile.
    Refused,
    ByTest(String),
    ByTime(String),
    ByModel(String),
    /// No test and no model passes it.
    Unreached,
    Missed,
}
