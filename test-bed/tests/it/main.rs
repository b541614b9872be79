//! Tests with the real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fault_proxy;
mod servers;
