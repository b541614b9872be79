//! Opening a file by a path without links in it, and never one that lies elsewhere.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file by its canonical path. A link that takes the place of any part of the path is not followed, and
/// a pipe is not waited for.
pub(super) fn file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::path::Component;

    use rustix::fs::{Mode, OFlags, openat};

    // A folder need not be readable to be passed through.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const SEARCH: OFlags = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const SEARCH: OFlags = OFlags::RDONLY;
    let always = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open("/", SEARCH | OFlags::DIRECTORY | always, Mode::empty())?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        if parts.peek().is_none() {
            let flags = OFlags::NONBLOCK | OFlags::NOCTTY | always;
            return Ok(openat(&folder, name, flags, Mode::empty())?.into());
        }
        let flags = SEARCH | OFlags::DIRECTORY | always;
        folder = openat(&folder, name, flags, Mode::empty())?;
    }
    Err(io::ErrorKind::InvalidInput.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    // Without links in it a path is its own canonical form.
    match path.canonicalize()? == path {
        true => File::open(path),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests;
