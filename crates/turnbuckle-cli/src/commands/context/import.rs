//! `turnbuckle context import`.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::PathBuf,
};

use turnbuckle_context::{
    Redactor,
    transfer::{self, ImportOptions, ImportReport},
};

use super::{OwnedData, pluralize, project_path};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
};

/// Import an exported file
///
/// Existing items are not duplicated, and secrets are redacted again. An invalid line stops the import before
/// anything is stored.
#[derive(Debug, clap::Args)]
pub(super) struct ImportCommand {
    /// The file; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Import everything into the project in this directory
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,

    /// Skip invalid lines
    #[arg(long)]
    skip_bad_lines: bool,
}

impl ImportCommand {
    pub(super) fn run(&self, data: &OwnedData, context: &CommandContext) -> Result {
        let mut options = ImportOptions::default();
        options.skip_bad_lines = self.skip_bad_lines;
        if let Some(path) = &self.project {
            options.into = Some(project_path(path, context));
        }
        let mut reader = self.open(context)?;
        let imported = transfer::import(
            data.location(),
            &data.owner,
            Redactor::standard(),
            &options,
            &mut reader,
        )?;
        if context.options.json {
            context.print_json(&imported)?;
        }
        if imported.bad_line_count > 0 && !self.skip_bad_lines {
            return Err(CliError::negative_result(bad_lines_text(&imported))
                .hint("nothing was imported; use --skip-bad-lines to import the other lines"));
        }
        if !context.options.json {
            context.ui.print(&summary(&imported));
        }
        Ok(())
    }

    fn open(&self, context: &CommandContext) -> Result<Box<dyn BufRead>> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(std::io::stdin().lock()));
        }
        let path = context.environment.cwd.join(&self.file);
        let file = File::open(&path).map_err(|error| {
            CliError::could_not_run(format!("cannot read {}: {error}", path.display()))
        })?;
        Ok(Box::new(BufReader::new(file)))
    }
}

fn bad_lines_text(imported: &ImportReport) -> String {
    let lines = imported.bad_lines.iter().take(10);
    let lines = lines.map(|bad| format!("\n  line {}: {}", bad.line, bad.reason));
    let all = pluralize(imported.bad_line_count, "line");
    format!("{all} cannot be imported:{}", lines.collect::<String>())
}

fn summary(imported: &ImportReport) -> String {
    let mut text = format!("imported {}", pluralize(imported.new, "new item"));
    if imported.unchanged > 0 {
        text += &format!(", {} already present", imported.unchanged);
    }
    let secrets = imported
        .redacted
        .values()
        .map(|count| u64::from(*count))
        .sum();
    if secrets > 0 {
        text += &format!(", {} redacted", pluralize(secrets, "secret"));
    }
    if imported.bad_line_count > 0 {
        text += &format!(", {} skipped", pluralize(imported.bad_line_count, "line"));
    }
    text + "\n"
}
