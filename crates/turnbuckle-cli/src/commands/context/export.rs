//! `turnbuckle context export`.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
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
            tell_damaged(&exported, context);
            return Ok(());
        };
        let file = context.environment.cwd.join(file);
        let mut writer = BufWriter::new(create(&file)?);
        let exported = transfer::export(&shelf.library, &shelf.owner, &part, &mut writer)?;
        let written = writer.flush().and_then(|()| writer.get_ref().sync_all());
        written.map_err(|error| unwritable(&file, &error))?;
        tell_damaged(&exported, context);
        if context.options.json {
            return context.json(&exported);
        }
        context.voice.say(&format!(
            "{} of {} written to {}\n",
            count(exported.items, "thing"),
            count(exported.places, "place"),
            file.display()
        ));
        Ok(())
    }
}

/// A file that could not be read is not in the export, and nobody shall think it is.
fn tell_damaged(exported: &transfer::Exported, context: &Context) {
    for damaged in &exported.damaged {
        let text = format!("not exported: {}\n", plain::line(damaged));
        context.voice.say(&text);
    }
}

fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::not_asked(format!("{} cannot be written: {error}", path.display()))
}
