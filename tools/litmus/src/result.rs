//! The result of reading a test: its reason says what cannot be read.

/// A result whose reason is written for the person who wrote the test.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
