//! Errors that prevent a measurement.

use std::{fmt, path::Path};

/// The error message for the user.
#[derive(Debug)]
pub(crate) struct EvalError(String);

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn at(path: &Path, error: impl fmt::Display) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for EvalError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
