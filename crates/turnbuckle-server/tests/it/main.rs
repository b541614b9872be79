//! Tests of the server through its transports.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod auth;
mod catalog;
mod http;
mod http_sse;
mod instances;
#[cfg(target_os = "linux")]
mod memory_limits;
mod middleware;
mod ndjson;
#[cfg(feature = "skills")]
mod relay;
mod skills;
mod spec;
mod tasks;
mod testing;
mod tools;
