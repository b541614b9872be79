//! What the parts of the context server do together.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(target_os = "linux")]
mod escape;
mod forget_killed;
mod index;
mod index_killed;
mod memory;
mod secrets;
mod surface;
mod transfer;
