//! How bytes reach the other side, and are taken down as they pass.
//!
//! Nothing here mends what the other side says: a line may be no JSON, and a response may have any status.

pub(crate) mod http;
pub(crate) mod http_sse;
pub(crate) mod line;
pub(crate) mod pool;
pub(crate) mod starter;

use std::sync::atomic::{AtomicUsize, Ordering};

/// What was heard from the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The head of a response: its status, and its entry on the tape.
    Head(u16, usize),
    /// A message, or what stands in its place: its entry on the tape.
    Message(usize),
    /// Nothing more will come; and why, if it is not in order.
    End(Option<String>),
}

/// Returns a number for a connection, an exchange or a stream that none had before.
pub(crate) fn channel() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
