//! Folders that are held open, and everything below them reached without following a link.
//!
//! A path can lead elsewhere from one moment to the next: a user who may write in a folder can exchange one of its folders
//! for a symlink between two system calls. An open folder stays what it is. Files are opened and folders are listed
//! relative to it, one name at a time, and a symlink at any place is refused. Other systems than Unix have no such
//! calls in the standard library; there paths are checked before they are used.

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

/// Folders of a path that are opened; a longer path would take too many descriptors.
const MAX_COMPONENTS: usize = 256;

/// An open folder.
#[derive(Debug)]
pub(crate) struct DirHandle(system::SystemDir);

/// What is in a folder under one name.
#[derive(Debug)]
pub(crate) struct DirEntry {
    pub(crate) name: OsString,
    pub(crate) kind: DirEntryKind,
}

/// What kind of file it is. Links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirEntryKind {
    File,
    Dir,
    /// A symlink, a pipe, a socket or a device.
    Other,
}

/// What the system says of a file without opening it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileStat {
    pub(crate) kind: DirEntryKind,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
}

impl DirHandle {
    /// Opens a folder by its absolute path, which has no link in it: a canonical one.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut folder = Self(system::SystemDir::open_top(path)?);
        for name in components(path)? {
            folder = folder.open_dir(name)?;
        }
        Ok(folder)
    }

    /// Opens a folder like [`open`](Self::open), and all folders that it is in. The outermost comes first.
    pub(crate) fn open_with_parents(path: &Path) -> io::Result<Vec<Self>> {
        let mut folders = vec![Self(system::SystemDir::open_top(path)?)];
        for name in components(path)? {
            let within = &folders[folders.len() - 1];
            let folder = within.open_dir(name)?;
            folders.push(folder);
        }
        Ok(folders)
    }

    /// Opens a folder below this one by its relative path.
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

    /// Lists what is in it, in the order of the names. More than `most` entries are
    /// [`FileTooLarge`](io::ErrorKind::FileTooLarge).
    pub(crate) fn entries(&self, most: usize) -> io::Result<Vec<DirEntry>> {
        let mut entries = self.0.entries(most)?;
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Says what is in it under a name.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        self.0.stat(single_component(name)?)
    }

    /// Opens a regular file by its path below the folder, with `/`. What a symlink leads to, at any place of the path,
    /// and what is no regular file is [`InvalidInput`](io::ErrorKind::InvalidInput); a pipe is not waited for.
    pub(crate) fn open_file(&self, path: &str) -> io::Result<File> {
        let mut folder = None;
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in parents.split('/').filter(|part| !part.is_empty()) {
            folder = Some(folder.as_ref().unwrap_or(self).open_dir(OsStr::new(part))?);
        }
        let within = folder.as_ref().unwrap_or(self);
        let file = within.0.open_file(single_component(OsStr::new(name))?)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(link_error()),
        }
    }

    /// Reads a file that should be small. A larger one is an error.
    pub(crate) fn read_small(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open_file(name)?;
        file.take(most + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 <= most {
            true => Ok(bytes),
            false => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// Says whether both are the same folder: on the same device, with the same number.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (self.0.identity(), other.0.identity());
        matches!((one, other), (Ok(one), Ok(other)) if one == other)
    }

    /// Says whether this is the folder that a path leads to, links included.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let (here, there) = (self.0.identity(), system::identity(path));
        matches!((here, there), (Ok(here), Ok(there)) if here == there)
    }

    /// Says whether the folder was removed since it was opened.
    pub(crate) fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

/// The names of the folders of a path, without its beginning.
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

/// A name that leads to nothing but an entry of the folder itself.
fn single_component(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The error of a path that leads over a link, or to something of another kind.
fn link_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "a link or another kind of file",
    )
}

#[cfg(test)]
mod tests;
