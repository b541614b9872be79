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
        let file = create_private(&path).map_err(|error| {
            CliError::could_not_run(format!("cannot write {}: {error}", path.display()))
        })?;
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

/// Creates a file, or replaces a regular one. Anything else that exists, such as a pipe, is opened.
fn create_private(path: &Path) -> io::Result<File> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return File::options().write(true).open(path),
        // Not truncated: the old file may have other permissions, or another reader.
        Ok(_) => fs::remove_file(path)?,
        Err(_) => {}
    }
    state_files::create_private(path)
}
