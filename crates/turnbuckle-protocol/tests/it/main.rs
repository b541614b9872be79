//! The wire, seen from outside the crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says which checks it left out"
)]

mod data;
mod json_suite;
mod wire_properties;
