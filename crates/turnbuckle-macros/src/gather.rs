//! All mistakes at once, so that nobody has to compile once for each.

use syn::{Error, Result};

/// Mistakes found so far.
#[derive(Default)]
pub(crate) struct Gather {
    found: Option<Error>,
}

impl Gather {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.found {
            Some(found) => found.combine(error),
            None => self.found = Some(error),
        }
    }

    /// Keeps the mistake if there is one.
    pub(crate) fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value if nothing was found.
    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        match self.found {
            Some(found) => Err(found),
            None => Ok(value),
        }
    }
}
