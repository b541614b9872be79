//! Runs the conformance tests against the memory store.

mod memory;
