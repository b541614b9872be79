//! `turnbuckle context import`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use turnbuckle_context::Redactor;
use turnbuckle_context::transfer::{self, ImportOptions, Imported};

use super::{Shelf, count};
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Read what an export wrote
///
/// What is there already is not kept twice, and secrets are taken out again. A line that cannot be used stops it before
/// anything is kept.
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// The file; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Keep everything with the project in this folder, wherever it came from
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,

    /// Leave out lines that cannot be used
    #[arg(long)]
    skip_bad_lines: bool,
}

impl Import {
    pub(super) fn run(&self, shelf: &Shelf, context: &Context) -> Result {
        let mut options = ImportOptions::default();
        options.skip_bad_lines = self.skip_bad_lines;
        if let Some(path) = &self.project {
            let path = context.environment.cwd.join(path);
            options.into = Some(path.to_string_lossy().into_owned());
        }
        let mut reader = self.open(context)?;
        let imported = transfer::import(
            &shelf.library,
            &shelf.owner,
            Redactor::standard(),
            &options,
            &mut reader,
        )?;
        if context.options.json {
            context.json(&imported)?;
        }
        if imported.bad > 0 && !self.skip_bad_lines {
            return Err(Failure::refused(complaint(&imported))
                .hint("nothing was kept; --skip-bad-lines keeps the others"));
        }
        if !context.options.json {
            context.voice.say(&summary(&imported));
        }
        Ok(())
    }

    fn open(&self, context: &Context) -> Result<Box<dyn BufRead>> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(std::io::stdin().lock()));
        }
        let path = context.environment.cwd.join(&self.file);
        let file = File::open(&path).map_err(|error| {
            Failure::not_asked(format!("{} cannot be read: {error}", path.display()))
        })?;
        Ok(Box::new(BufReader::new(file)))
    }
}

fn complaint(imported: &Imported) -> String {
    let lines = imported.bad_lines.iter().take(10);
    let lines = lines.map(|bad| format!("\n  line {}: {}", bad.line, bad.reason));
    let all = count(imported.bad, "line");
    format!("{all} cannot be used:{}", lines.collect::<String>())
}

fn summary(imported: &Imported) -> String {
    let mut text = format!("{} kept", count(imported.new, "new thing"));
    if imported.known > 0 {
        text += &format!(", {} known already", imported.known);
    }
    let secrets = imported
        .redacted
        .values()
        .map(|count| u64::from(*count))
        .sum();
    if secrets > 0 {
        text += &format!(", {} taken out", count(secrets, "secret"));
    }
    if imported.bad > 0 {
        text += &format!(", {} left out", count(imported.bad, "line"));
    }
    text + "\n"
}
