//! Keeps the invariants of the design by test; all of it is in `tests/it`.
