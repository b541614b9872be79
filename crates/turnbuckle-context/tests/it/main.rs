//! What the context server keeps, finds and shows, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod memory;
mod secrets;
mod surface;
