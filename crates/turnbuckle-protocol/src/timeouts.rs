//! Timeouts of a request.

use std::time::Duration;

/// The time limits of a request that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The maximum time without a message about the request; a progress notification restarts it.
    pub idle: Duration,
    /// The maximum time in total, regardless of progress.
    pub total: Duration,
}

impl Default for Timeouts {
    /// One minute idle, ten minutes in total.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}
