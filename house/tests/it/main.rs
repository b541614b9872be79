//! The invariants of the design, kept by test.

mod deny;
mod hostile_input;
mod rooms;
mod sources;
