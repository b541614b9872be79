//! Reads text files, and finds places in them.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    path::Path,
};

/// Reads a regular file of limited size, and returns its metadata.
pub(crate) fn regular_file(file: &Path, max_bytes: u64) -> io::Result<(String, Metadata)> {
    // Opening a pipe or device would block.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let open = File::open(file)?;
    let metadata = open.metadata()?;
    let mut text = String::new();
    let too_large = if metadata.len() > max_bytes {
        true
    } else {
        open.take(max_bytes + 1).read_to_string(&mut text)? as u64 > max_bytes
    };
    if too_large {
        Err(io::Error::other(format!("larger than {max_bytes} bytes")))
    } else {
        Ok((text, metadata))
    }
}

/// Returns whether other users can read a file.
#[cfg(unix)]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) fn is_readable_by_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;

    metadata.is_file() && metadata.permissions().mode() & 0o077 != 0
}

/// Returns `false`: this system has no such permissions.
#[cfg(not(unix))]
#[allow(dead_code, reason = "used by the optional command `bridge`")]
pub(crate) fn is_readable_by_others(_: &Metadata) -> bool {
    false
}

/// Returns the line and the column of a byte of a text, from 1.
pub(crate) fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&ch| ch != '\n').count() + 1;
    (line, column)
}
