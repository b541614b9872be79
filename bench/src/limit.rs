//! The limit: a server and a client that do the least for the same bytes, without an MCP library.
//!
//! They are not in the crate of the measured programs. There they would share functions of hyper and serde with those programs,
//! and the compiler inlines a function less if it has more callers: the limit would cost up to 2 % more.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

pub mod bare;
pub mod bare_bridge;
pub mod bare_client;
