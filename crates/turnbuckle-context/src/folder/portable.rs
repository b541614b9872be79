//! Folders by their paths, which are checked before each use.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::{Entry, EntryKind, Stat, in_the_way};
use crate::index::modified;

/// The canonical path of a folder.
#[derive(Debug)]
pub(super) struct Handle(PathBuf);

/// What stands for a folder where the system's own number is not at hand.
pub(super) type Identity = PathBuf;

impl Handle {
    pub(super) fn top(path: &Path) -> io::Result<Self> {
        match path.ancestors().last() {
            Some(top) if path.is_absolute() => Ok(Self(top.to_owned())),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    pub(super) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => Ok(Self(path)),
            false => Err(in_the_way()),
        }
    }

    pub(super) fn entries(&self, most: usize) -> io::Result<Vec<Entry>> {
        self.check()?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entries.len() == most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            entries.push(Entry {
                name: entry.file_name(),
                kind: kind(entry.file_type()?),
            });
        }
        Ok(entries)
    }

    pub(super) fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        let metadata: Metadata = fs::symlink_metadata(self.0.join(name))?;
        Ok(Stat {
            kind: kind(metadata.file_type()),
            size: metadata.len(),
            modified: modified(&metadata),
        })
    }

    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.check()?;
        let path = self.0.join(name);
        match fs::symlink_metadata(&path)?.is_file() {
            true => File::open(path),
            false => Err(in_the_way()),
        }
    }

    pub(super) fn identity(&self) -> io::Result<Identity> {
        Ok(self.0.clone())
    }

    pub(super) fn is_removed(&self) -> bool {
        !self.0.exists()
    }

    /// Sees that there is no link in the path: without one a path is its own canonical form.
    fn check(&self) -> io::Result<()> {
        match self.0.canonicalize()? == self.0 {
            true => Ok(()),
            false => Err(in_the_way()),
        }
    }
}

/// The canonical form of a path.
pub(super) fn identity(path: &Path) -> io::Result<Identity> {
    path.canonicalize()
}

fn kind(of: FileType) -> EntryKind {
    if of.is_file() {
        EntryKind::File
    } else if of.is_dir() {
        EntryKind::Folder
    } else {
        EntryKind::Other
    }
}
