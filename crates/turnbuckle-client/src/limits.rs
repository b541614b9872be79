//! How much a server may make us hold.

use std::time::Duration;

/// Bounds on what a client takes from a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest message, in bytes. 64 MiB by default.
    pub message: usize,
    /// The most entries that a list is followed for. 100,000 by default.
    pub entries: usize,
    /// The most pages that a list is followed for. 10,000 by default.
    pub pages: usize,
    /// The most requests of the server's that are answered at a time. 64 by default.
    pub asked: usize,
    /// The most answers that are kept, as far as the server allows it. 256 by default; 0 keeps none.
    pub kept_answers: usize,
    /// The most bytes of answers that are kept. 16 MiB by default.
    pub kept_bytes: usize,
    /// How long to wait for the answer to the first question, before it is put in the words of older revisions. Ten
    /// seconds by default. Where silence is no sign of an older server, as on HTTP, patience counts instead.
    pub probe: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 64 * 1024 * 1024,
            entries: 100_000,
            pages: 10_000,
            asked: 64,
            kept_answers: 256,
            kept_bytes: 16 * 1024 * 1024,
            probe: Duration::from_secs(10),
        }
    }
}
