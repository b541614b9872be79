//! The invariants of the design, kept by test.
