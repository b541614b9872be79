//! Collects errors, so that all are reported in one compilation.

use syn::{Error, Result};

/// The errors found so far.
#[derive(Default)]
pub(crate) struct ErrorCollector {
    found: Option<Error>,
}

impl ErrorCollector {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.found {
            Some(found) => found.combine(error),
            None => self.found = Some(error),
        }
    }

    /// Records the error, if any.
    pub(crate) fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value, or the collected errors.
    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        match self.found {
            Some(found) => Err(found),
            None => Ok(value),
        }
    }
}
