//! What the context server keeps and finds, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod memory;
//! What the parts of the context server do together.

mod secrets;
