//! `turnbuckle context export`.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use turnbuckle_context::transfer;

use super::{OwnedData, pluralize};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    output::sanitize,
};

/// Export data as JSON Lines
///
/// Writes one line per checkpoint, remediation and skill. Indexes are not exported; they can be rebuilt. `turnbuckle
/// context import` reads the file, on this machine or another.
#[derive(Debug, clap::Args)]
pub(super) struct ExportCommand {
    /// Export only the project in this directory
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,

    /// Write to this file (private) instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportCommand {
    pub(super) fn run(&self, data: &OwnedData, context: &CommandContext) -> Result {
        let part = data.selection(self.project.as_ref(), context)?;
        let Some(file) = &self.output else {
            let mut stdout = BufWriter::new(std::io::stdout().lock());
            let exported = transfer::export(data.location(), &data.owner, &part, &mut stdout)?;
            stdout.flush()?;
            return report_damaged(&exported, context);
        };
        let file = context.environment.cwd.join(file);
        let file_writer = ExportFile::create(&file).map_err(|error| write_error(&file, &error))?;
        let mut writer = BufWriter::new(&file_writer.file);
        let exported = transfer::export(data.location(), &data.owner, &part, &mut writer)?;
        let written = writer.flush();
        drop(writer);
        let committed = written.and_then(|()| file_writer.commit());
        committed.map_err(|error| write_error(&file, &error))?;
        if context.options.json {
            context.print_json(&exported)?;
        } else {
            context.ui.print(&format!(
                "exported {} from {} to {}\n",
                pluralize(exported.items, "item"),
                pluralize(exported.databases, "database"),
                file.display()
            ));
        }
        report_damaged(&exported, context)
    }
}

/// Reports data that could not be read. The export has the rest, and is incomplete.
fn report_damaged(exported: &transfer::ExportReport, context: &CommandContext) -> Result {
    for damaged in &exported.damaged {
        let text = format!("not exported: {}\n", sanitize::line(damaged));
        context.ui.print(&text);
    }
    if exported.damaged.is_empty() {
        Ok(())
    } else {
        Err(CliError::negative_result(
            "the export is incomplete: some data is damaged",
        ))
    }
}

/// The file that is written. A failed export does not change an existing file.
struct ExportFile {
    file: File,
    /// The temporary path and the final path; `None` if the file is written directly.
    rename: Option<(PathBuf, PathBuf)>,
}

impl ExportFile {
    fn create(requested: &Path) -> io::Result<Self> {
        // A link stays a link, and a special file, such as a pipe, is written directly.
        let path = requested
            .canonicalize()
            .unwrap_or_else(|_| requested.to_owned());
        if path.exists() && !path.is_file() {
            let file = OpenOptions::new().write(true).open(&path)?;
            return Ok(Self { file, rename: None });
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self {
            file: options.open(&temporary)?,
            rename: Some((temporary, path)),
        })
    }

    fn commit(mut self) -> io::Result<()> {
        let Some((temporary, path)) = &self.rename else {
            return Ok(());
        };
        self.file.sync_all()?;
        std::fs::rename(temporary, path)?;
        self.rename = None;
        Ok(())
    }
}

impl Drop for ExportFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn write_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::could_not_run(format!("cannot write {}: {error}", path.display()))
}
