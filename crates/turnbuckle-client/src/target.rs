//! Where a server is.

use crate::lines::Lines;

/// Where a server is, and how to reach it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// At the other end of a pair of byte streams.
    Lines(Lines),
}

impl From<Lines> for Target {
    fn from(lines: Lines) -> Self {
        Self::Lines(lines)
    }
}
