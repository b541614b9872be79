//! Folders as file descriptors.

use std::{
    ffi::{OsStr, OsString},
    fs,
    fs::File,
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, open, openat, statat},
    io::Errno,
};

use super::{DirEntry, DirEntryKind, FileStat, link_error};

/// Opening a subfolder does not require read permission; where the system supports it, only search permission is requested.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SEARCH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEARCH_ONLY: OFlags = OFlags::RDONLY;

const OPEN_DIR: OFlags = SEARCH_ONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const LIST_DIR: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const OPEN_FILE: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The descriptor of a folder.
#[derive(Debug)]
pub(super) struct DirDescriptor(OwnedFd);

/// The representation of a folder on this system.
pub(super) type SystemDir = DirDescriptor;

/// Device and inode.
pub(super) type DirIdentity = (u64, u64);

impl DirDescriptor {
    /// Opens the root folder.
    pub(super) fn open_top(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self(open("/", OPEN_DIR, Mode::empty())?))
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(super) fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        let opened = openat(&self.0, name, OPEN_DIR, Mode::empty());
        opened.map(Self).map_err(error)
    }

    pub(super) fn entries(&self, most: usize) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        // Open the same folder again, to read it from the start.
        let listed = openat(&self.0, ".", LIST_DIR, Mode::empty())?;
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => match self.stat(name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    found => found?.kind,
                },
                known => kind(known),
            };
            let name = OsString::from(name);
            entries.push(DirEntry { name, kind });
        }
        Ok(entries)
    }

    pub(super) fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let nanoseconds =
            i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
        let clamped = nanoseconds.clamp(i64::MIN.into(), i64::MAX.into());
        Ok(FileStat {
            kind: kind(FileType::from_raw_mode(stat.st_mode)),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: i64::try_from(clamped).unwrap_or(0),
        })
    }

    pub(super) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let opened = openat(&self.0, name, OPEN_FILE, Mode::empty());
        opened.map(File::from).map_err(error)
    }

    pub(super) fn identity(&self) -> io::Result<DirIdentity> {
        // The types differ between systems.
        let stat = File::from(self.0.try_clone()?).metadata()?;
        Ok((stat.dev(), stat.ino()))
    }

    pub(super) fn is_removed(&self) -> bool {
        fstat(&self.0).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

/// Returns the identity of the file that a path leads to, with links followed.
pub(super) fn identity(path: &Path) -> io::Result<DirIdentity> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn kind(of: FileType) -> DirEntryKind {
    match of {
        FileType::RegularFile => DirEntryKind::File,
        FileType::Directory => DirEntryKind::Dir,
        _ => DirEntryKind::Other,
    }
}

fn error(number: Errno) -> io::Error {
    match number {
        // A link causes one of these, depending on the system and the flags.
        Errno::LOOP | Errno::NOTDIR | Errno::MLINK => link_error(),
        number => number.into(),
    }
}
