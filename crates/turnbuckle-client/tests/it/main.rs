//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod fake_lines;
mod listening;
mod own_server;
