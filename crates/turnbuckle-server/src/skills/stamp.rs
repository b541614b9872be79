//! Whether a file is the one that was read before, without reading it again.

use std::{
    fs::Metadata,
    time::{Duration, SystemTime},
};

/// What the file system says about a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    changed: Option<SystemTime>,
}

/// Clocks of file systems are coarse: what changes twice within this time may bear the same stamp.
const COARSE: Duration = Duration::from_secs(2);

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            changed: changed(metadata),
        }
    }

    /// Says whether a later change is bound to show, for a file that is read now.
    pub(super) fn is_settled(&self) -> bool {
        let last = self.changed.or(self.modified);
        last.and_then(|last| SystemTime::now().duration_since(last).ok())
            .is_some_and(|age| age > COARSE)
    }
}

/// When anything about the file changed, which nobody can set back.
#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let seconds = Duration::from_secs(metadata.ctime().try_into().ok()?);
    let nanos = Duration::from_nanos(metadata.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(seconds + nanos)
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> Option<SystemTime> {
    None
}
