//! Tests of the crate that users depend on.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod axum;
mod exports;
mod macros;
