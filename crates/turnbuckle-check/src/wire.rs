//! Sends bytes to a server and records what passes.
//!
//! Nothing is corrected here: a line may be invalid JSON, a response may have any status.

pub(crate) mod http;
pub(crate) mod http_sse;
pub(crate) mod ndjson;
pub(crate) mod pace;
pub(crate) mod pool;
pub(crate) mod prewarm;

use std::sync::atomic::{AtomicUsize, Ordering};

/// An event received from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireEvent {
    /// The head of an HTTP response: its status and its entry.
    Head(u16, usize),
    /// The entry of a message, valid or not.
    Message(usize),
    /// The end of the stream, with the error if there was one.
    End(Option<String>),
}

/// Returns a unique number for a connection, exchange or stream.
pub(crate) fn channel() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
