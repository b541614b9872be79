//! 2024-10-07: a draft that early clients still request, handled like 2024-11-05.

use super::adapter::RevisionAdapter;

/// Changes nothing more.
pub(super) struct DowngradeTo2024_10_07;

impl RevisionAdapter for DowngradeTo2024_10_07 {}

pub(super) use DowngradeTo2024_10_07 as UpgradeFrom2024_10_07;
