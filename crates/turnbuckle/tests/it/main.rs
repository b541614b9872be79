//! Tests of the crate that users depend on.

mod axum;
mod exports;
