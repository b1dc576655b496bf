//! The error of building a pool.

use std::error::Error;
use std::{fmt, io};

/// Why a pool could not be built.
#[derive(Debug)]
pub struct ThreadPoolBuildError(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    GlobalPoolAlreadyInitialized,
    CurrentThreadAlreadyInPool,
    Io(io::Error),
}

impl From<io::Error> for ThreadPoolBuildError {
    fn from(error: io::Error) -> Self {
        ThreadPoolBuildError(Kind::Io(error))
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::GlobalPoolAlreadyInitialized => {
                f.write_str("The global thread pool has already been initialized.")
            }
            Kind::CurrentThreadAlreadyInPool => {
                f.write_str("The current thread is already part of another thread pool.")
            }
            Kind::Io(error) => error.fmt(f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::Io(error) => Some(error),
            _ => None,
        }
    }
}
