//! Integration tests of the protocol crate.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says which checks it left out"
)]

mod data;
mod json_suite;
mod meta;
mod method;
mod objects;
mod reading;
mod recorded;
mod recording;
mod revision;
mod samples;
mod schema;
mod skills;
mod wire_properties;
