//! The file of a recording.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use turnbuckle_protocol::recording::RecordingHeader;

use crate::{
    context::CommandContext,
    error::{CliError, Result},
    state_files,
};

/// The number of recordings with the same name.
const MAX_SAME_NAME: u32 = 10_000;

/// The file that a recording is written to, and its header.
#[derive(Debug)]
pub(crate) struct RecordingFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) header: RecordingHeader,
}

impl RecordingFile {
    /// Creates the file; only the user can read it.
    ///
    /// Without `output`, and if it is a directory, the name is made of the name of the server, the time and the process.
    pub(crate) fn create(
        output: Option<&Path>,
        name: &str,
        transport: &str,
        context: &CommandContext,
    ) -> Result<Self> {
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let folder = &context.environment.cwd;
        let path = match output.map(|output| folder.join(output)) {
            Some(path) if !path.is_dir() => path,
            folder_path => {
                let folder = folder_path.as_ref().unwrap_or(folder);
                folder.join(file_name(name, &started))
            }
        };
        let (path, file) = create_private(path)?;
        let by = concat!("turnbuckle ", env!("CARGO_PKG_VERSION"));
        let header = RecordingHeader::new(started, by).target(name, transport);
        Ok(Self { path, file, header })
    }
}

/// Returns a name such as `notes-20261118T020000Z-4711.mcp.jsonl`.
fn file_name(name: &str, started: &str) -> String {
    let is_plain = |ch: char| ch.is_ascii_alphanumeric() || "-_.".contains(ch);
    let name: String = name
        .chars()
        .map(|ch| if is_plain(ch) { ch } else { '-' })
        .take(64)
        .collect();
    let time = started.replace(['-', ':'], "");
    format!("{name}-{time}-{}.mcp.jsonl", std::process::id())
}

/// Creates a file. If a regular file has the name, a number is added to it. Anything else that exists, such as a pipe, is
/// opened if it belongs to the user or to root.
fn create_private(path: PathBuf) -> Result<(PathBuf, File)> {
    let failed = |path: &Path, error: io::Error| {
        CliError::could_not_run(format!("cannot write {}: {error}", path.display()))
    };
    if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        let opened = open_special(&path);
        return match opened {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(failed(&path, error)),
        };
    }
    for number in 1..=MAX_SAME_NAME {
        let candidate = numbered(&path, number);
        match state_files::create_private(&candidate) {
            Ok(file) => return Ok((candidate, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&candidate, error)),
        }
    }
    Err(failed(&path, io::ErrorKind::AlreadyExists.into()))
}

/// Returns a name such as `notes-2.mcp.jsonl`, or the name itself for the number 1.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if number == 1 || name.is_empty() {
        return path.to_owned();
    }
    let dot = name.char_indices().skip(1).find(|(_, ch)| *ch == '.');
    let (stem, extension) = name.split_at(dot.map_or(name.len(), |(at, _)| at));
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

/// Opens a pipe or a device. Its owner is checked before, because opening may block, and after, because the path may have
/// changed.
fn open_special(path: &Path) -> io::Result<File> {
    check_owner(&fs::metadata(path)?)?;
    let file = File::options().write(true).open(path)?;
    check_owner(&file.metadata()?)?;
    Ok(file)
}

#[cfg(unix)]
fn check_owner(metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    if is_trusted_owner(metadata.uid(), user) {
        return Ok(());
    }
    let text = "it belongs to another user";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(unix)]
fn is_trusted_owner(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

#[cfg(not(unix))]
fn check_owner(_: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_gets_a_new_name_if_its_name_is_taken() {
        for (name, expected) in [
            ("a/notes.mcp.jsonl", "a/notes-2.mcp.jsonl"),
            ("notes", "notes-2"),
            (".notes", ".notes-2"),
        ] {
            assert_eq!(numbered(Path::new(name), 2), Path::new(expected));
            assert_eq!(numbered(Path::new(name), 1), Path::new(name));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_recording_is_not_written_to_a_pipe_of_another_user() {
        assert!(is_trusted_owner(1000, 1000) && is_trusted_owner(0, 1000));
        assert!(!is_trusted_owner(1001, 1000) && !is_trusted_owner(1000, 0));
    }
}
