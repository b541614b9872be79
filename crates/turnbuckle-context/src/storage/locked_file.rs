//! Files that belong to the process that holds their lock.
//!
//! The operating system releases the lock when the process ends for any reason, so a file that can be locked is a leftover.

use std::{
    fs,
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use fs4::{FileExt, TryLockError};

/// A file locked by this process.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: File,
    path: PathBuf,
}

impl LockedFile {
    /// Creates a file that only this user can read, and locks it.
    ///
    /// Returns `None` if it exists, or if another process removed it as a leftover before it was locked.
    pub(crate) fn create(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            opened => Self::lock(opened?, path),
        }
    }

    /// Opens an existing file and locks it. Returns `None` if it does not exist, or if another process has locked it.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        match OpenOptions::new().read(true).append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Self::lock(opened?, path),
        }
    }

    fn lock(file: File, path: &Path) -> io::Result<Option<Self>> {
        match FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let path = path.to_owned();
        let locked = Self { file, path };
        Ok(locked.is_current().then_some(locked))
    }

    /// Returns the file. On some systems the lock blocks all other handles, so read through this one.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Removes the file while it is locked.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Returns whether the path still leads to this file: the previous lock holder may have removed it.
    #[cfg(unix)]
    fn is_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let (ours, named) = (self.file.metadata(), fs::metadata(&self.path));
        ours.is_ok_and(|ours| named.is_ok_and(|named| id(ours) == id(named)))
    }

    #[cfg(not(unix))]
    fn is_current(&self) -> bool {
        self.path.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_locked_after_its_owner_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(LockedFile::open(&path).unwrap().is_none());
        let owner = LockedFile::create(&path).unwrap().unwrap();
        assert!(LockedFile::create(&path).unwrap().is_none());
        assert!(LockedFile::open(&path).unwrap().is_none());
        drop(owner);
        LockedFile::open(&path).unwrap().unwrap().remove().unwrap();
        assert!(!path.exists());
    }
}
