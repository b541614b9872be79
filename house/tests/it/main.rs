//! The invariants of the design, kept by test.

mod deny;
mod rooms;
mod sources;
