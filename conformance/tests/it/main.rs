//! Tests with whole processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod two_processes;
