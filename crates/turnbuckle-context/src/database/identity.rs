//! The identity of a file behind a path, to detect that it was removed or replaced.

use std::path::Path;

/// Identifies a file as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at the path, if it exists. Does not open the file: closing it would release
    /// SQLite's locks.
    #[cfg(unix)]
    pub(super) fn read(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns the identity of the file at the path, if it exists. An open file cannot be removed on this platform.
    #[cfg(not(unix))]
    pub(super) fn read(path: &Path) -> Option<Self> {
        path.exists().then_some(Self {})
    }
}
