//! Tests of the context server as a whole.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod delete_killed;
#[cfg(target_os = "linux")]
mod escape;
mod index;
mod index_killed;
mod memory;
mod secrets;
mod surface;
mod transfer;
