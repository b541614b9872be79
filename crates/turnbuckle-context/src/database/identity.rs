//! Which file a path leads to: somebody may remove it, and make another one of the same name.

use std::path::Path;

/// A file, told apart from every other one as long as somebody has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Identity {
    /// The file that is there now, if there is one. It is not opened: to close it would give up the locks of SQLite.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// The file that is there now, if there is one. A file that is open cannot be removed here.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.exists().then_some(Self {})
    }
}
