//! Open folders, and access to the files below them without following symlinks.
//!
//! A path can change its meaning at any time: a user who may write to a folder can replace a subfolder by a symlink between
//! two system calls. An open folder stays the same. Files are opened and folders are listed relative to it, one component
//! at a time, and symlinks are rejected. The standard library lacks such calls for systems other than Unix; there paths are
//! checked before use.

#[cfg(not(unix))]
#[path = "dir_handle/portable.rs"]
mod system;
#[cfg(unix)]
#[path = "dir_handle/unix.rs"]
mod system;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    io::Read as _,
    path::{Component, Path},
};

/// Maximum number of components of a path: each needs a file descriptor.
const MAX_COMPONENTS: usize = 256;

/// An open folder.
#[derive(Debug)]
pub(crate) struct DirHandle(system::SystemDir);

/// An entry of a folder.
#[derive(Debug)]
pub(crate) struct DirEntry {
    pub(crate) name: OsString,
    pub(crate) kind: DirEntryKind,
}

/// The kind of an entry. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirEntryKind {
    File,
    Dir,
    /// A symlink, a pipe, a socket or a device.
    Other,
}

/// Metadata of a file that was not opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileStat {
    pub(crate) kind: DirEntryKind,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
}

impl DirHandle {
    /// Opens a folder by its canonical path, which is absolute and without links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut folder = Self(system::SystemDir::open_top(path)?);
        for name in components(path)? {
            folder = folder.open_dir(name)?;
        }
        Ok(folder)
    }

    /// Opens a folder like [`open`](Self::open), with all its parents. The outermost comes first.
    pub(crate) fn open_with_parents(path: &Path) -> io::Result<Vec<Self>> {
        let mut folders = vec![Self(system::SystemDir::open_top(path)?)];
        for name in components(path)? {
            let within = &folders[folders.len() - 1];
            let folder = within.open_dir(name)?;
            folders.push(folder);
        }
        Ok(folders)
    }

    /// Opens a folder below this one by a relative path.
    pub(crate) fn open_relative(&self, path: &Path) -> io::Result<Self> {
        let mut folder = Self(self.0.try_clone()?);
        for name in components(path)? {
            folder = folder.open_dir(name)?;
        }
        Ok(folder)
    }

    /// Opens a folder in this one.
    pub(crate) fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        self.0.open_dir(single_component(name)?).map(Self)
    }

    /// Returns the entries, ordered by name. Fails with [`FileTooLarge`](io::ErrorKind::FileTooLarge) if there are more than
    /// `most`.
    pub(crate) fn entries(&self, most: usize) -> io::Result<Vec<DirEntry>> {
        let mut entries = self.0.entries(most)?;
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Returns the metadata of an entry.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        self.0.stat(single_component(name)?)
    }

    /// Opens a regular file by its path below the folder, with `/`. Fails with
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if a component is a symlink or the file is not regular; does not wait
    /// for a pipe.
    pub(crate) fn open_file(&self, path: &str) -> io::Result<File> {
        let mut folder = None;
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in parents.split('/').filter(|part| !part.is_empty()) {
            folder = Some(folder.as_ref().unwrap_or(self).open_dir(OsStr::new(part))?);
        }
        let within = folder.as_ref().unwrap_or(self);
        let file = within.0.open_file(single_component(OsStr::new(name))?)?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(link_error())
        }
    }

    /// Reads a file of at most `most` bytes.
    pub(crate) fn read_small(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open_file(name)?;
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            Ok(bytes)
        } else {
            Err(io::ErrorKind::FileTooLarge.into())
        }
    }

    /// Returns whether both are the same folder: the same device and inode.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (self.0.identity(), other.0.identity());
        matches!((one, other), (Ok(one), Ok(other)) if one == other)
    }

    /// Returns whether a path, with its links followed, leads to this folder.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let (here, there) = (self.0.identity(), system::identity(path));
        matches!((here, there), (Ok(here), Ok(there)) if here == there)
    }

    /// Returns whether the folder was removed after it was opened.
    pub(crate) fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

/// Returns the components of a path, without the root.
fn components(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => {}
            Component::Normal(name) if names.len() < MAX_COMPONENTS => names.push(name),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(names)
}

/// Returns the name if it is a single normal component.
fn single_component(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Returns the error for a path with a link, or for a file of another kind.
fn link_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a link or another kind of file",
    )
}

#[cfg(test)]
mod tests;
