//! Folders as paths, which are checked before each use.

use std::{
    ffi::OsStr,
    fs,
    fs::{File, FileType, Metadata},
    io,
    path::{Path, PathBuf},
};

use super::{DirEntry, DirEntryKind, FileStat, link_error};
use crate::code_index::modified_nanos;

/// The canonical path of a folder.
#[derive(Debug)]
pub(super) struct DirPath(PathBuf);

/// The representation of a folder on this system.
pub(super) type SystemDir = DirPath;

/// Identifies a folder where the standard library does not provide inode numbers.
pub(super) type DirIdentity = PathBuf;

impl DirPath {
    pub(super) fn open_top(path: &Path) -> io::Result<Self> {
        match path.ancestors().last() {
            Some(top) if path.is_absolute() => Ok(Self(top.to_owned())),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    pub(super) fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => Ok(Self(path)),
            false => Err(link_error()),
        }
    }

    pub(super) fn entries(&self, most: usize) -> io::Result<Vec<DirEntry>> {
        self.check()?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entries.len() == most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            entries.push(DirEntry {
                name: entry.file_name(),
                kind: kind(entry.file_type()?),
            });
        }
        Ok(entries)
    }

    pub(super) fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        let metadata: Metadata = fs::symlink_metadata(self.0.join(name))?;
        Ok(FileStat {
            kind: kind(metadata.file_type()),
            size: metadata.len(),
            modified: modified_nanos(&metadata),
        })
    }

    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.check()?;
        let path = self.0.join(name);
        match fs::symlink_metadata(&path)?.is_file() {
            true => File::open(path),
            false => Err(link_error()),
        }
    }

    pub(super) fn identity(&self) -> io::Result<DirIdentity> {
        Ok(self.0.clone())
    }

    pub(super) fn is_removed(&self) -> bool {
        !self.0.exists()
    }

    /// Checks that the path is without links: then it equals its canonical form.
    fn check(&self) -> io::Result<()> {
        match self.0.canonicalize()? == self.0 {
            true => Ok(()),
            false => Err(link_error()),
        }
    }
}

/// Returns the canonical form of a path.
pub(super) fn identity(path: &Path) -> io::Result<DirIdentity> {
    path.canonicalize()
}

fn kind(of: FileType) -> DirEntryKind {
    if of.is_file() {
        DirEntryKind::File
    } else if of.is_dir() {
        DirEntryKind::Dir
    } else {
        DirEntryKind::Other
    }
}
