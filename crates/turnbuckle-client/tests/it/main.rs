//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

mod authorization;
mod callbacks;
mod calls;
mod http;
mod relay;
mod servers;
mod spec;
mod stdio;
