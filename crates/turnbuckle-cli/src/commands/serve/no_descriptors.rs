//! Where the system sets no limit to what a process may have open.

/// Does nothing.
pub(super) fn raise() {}
