//! `turnbuckle context export`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use turnbuckle_context::transfer;

use super::{Shelf, count};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::plain;

/// Write what is remembered as JSON Lines
///
/// A line for each checkpoint, remediation and skill; indexes are not in it, they are made again. `turnbuckle context
/// import` reads it, on this machine or another.
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    /// Only of the project in this folder
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,

    /// Write to this file and not to stdout; only the user may read it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) fn run(&self, shelf: &Shelf, context: &Context) -> Result {
        let part = shelf.part(self.project.as_ref(), context)?;
        let Some(file) = &self.output else {
            let mut stdout = BufWriter::new(std::io::stdout().lock());
            let exported = transfer::export(&shelf.library, &shelf.owner, &part, &mut stdout)?;
            stdout.flush()?;
            return tell_damaged(&exported, context);
        };
        let file = context.environment.cwd.join(file);
        let target = Target::new(&file).map_err(|error| unwritable(&file, &error))?;
        let mut writer = BufWriter::new(&target.file);
        let exported = transfer::export(&shelf.library, &shelf.owner, &part, &mut writer)?;
        let written = writer.flush();
        drop(writer);
        let kept = written.and_then(|()| target.keep());
        kept.map_err(|error| unwritable(&file, &error))?;
        if context.options.json {
            context.json(&exported)?;
        } else {
            context.voice.say(&format!(
                "{} of {} written to {}\n",
                count(exported.items, "thing"),
                count(exported.places, "place"),
                file.display()
            ));
        }
        tell_damaged(&exported, context)
    }
}

/// Says what could not be read. The export has the rest, and is not complete.
fn tell_damaged(exported: &transfer::Exported, context: &Context) -> Result {
    for damaged in &exported.damaged {
        let text = format!("not exported: {}\n", plain::line(damaged));
        context.voice.say(&text);
    }
    match exported.damaged.is_empty() {
        true => Ok(()),
        false => Err(Failure::refused(
            "the export is not complete: some of the data is damaged",
        )),
    }
}

/// The file that is written. An export that fails half-way leaves the one before it as it was.
struct Target {
    file: File,
    /// Where it is written, and where it belongs; absent if it is written in its place.
    moves: Option<(PathBuf, PathBuf)>,
}

impl Target {
    fn new(path: &Path) -> io::Result<Self> {
        // A link stays a link, and what is no plain file, such as a pipe, is written to.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if place.exists() && !place.is_file() {
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self { file, moves: None });
        }
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let draft = place.with_file_name(hidden);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self {
            file: options.open(&draft)?,
            moves: Some((draft, place)),
        })
    }

    fn keep(mut self) -> io::Result<()> {
        let Some((draft, place)) = &self.moves else {
            return Ok(());
        };
        self.file.sync_all()?;
        std::fs::rename(draft, place)?;
        self.moves = None;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.moves {
            let _ = std::fs::remove_file(draft);
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::not_asked(format!("{} cannot be written: {error}", path.display()))
}
