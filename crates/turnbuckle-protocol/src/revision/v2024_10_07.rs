//! 2024-10-07: a draft that early clients still offer, spoken like 2024-11-05.

use super::walk::Differences;

/// Takes nothing more away.
pub(super) struct Lower;

impl Differences for Lower {}

pub(super) use Lower as Raise;
