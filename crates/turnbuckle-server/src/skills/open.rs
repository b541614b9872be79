//! Opens files by a path without symbolic links.

use std::{fs::File, io, path::Path};

/// Opens a regular file by its canonical path. Does not follow a link in any part of the path, and does not block on a
/// pipe.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(file)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::path::Component;

    use rustix::fs::{Mode, OFlags, openat};

    // A folder needs only search permission.
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
    // A path without links is its own canonical form.
    if path.canonicalize()? != path {
        return Err(io::ErrorKind::NotFound.into());
    }
    File::open(path)
}

#[cfg(test)]
mod tests;
