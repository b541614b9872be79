//! What the context server does, seen from the other end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod surface;
