//! `turnbuckle context forget`.

use std::{
    io::{BufRead, Write},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::ArgGroup;
use turnbuckle_context::transfer::{self, DataSelection, DeleteRequest};

use super::{OwnedData, pluralize};
use crate::{
    cli::parse_duration,
    context::CommandContext,
    error::{CliError, Result},
    output::{sanitize, style},
};

/// Delete data permanently, without traces in the files
///
/// Asks for confirmation; --yes skips it.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("what").args(["id", "project", "older_than", "all"]).required(true).multiple(true)))]
pub(super) struct ForgetCommand {
    /// Delete this checkpoint, remediation or skill
    #[arg(long, value_name = "ID", conflicts_with_all = ["project", "older_than", "all"])]
    id: Option<String>,

    /// Delete the project in this directory: memory and index
    #[arg(long, value_name = "PATH", conflicts_with = "all")]
    project: Option<PathBuf>,

    /// Delete only items last saved before this age: 90d, 12h
    #[arg(long, value_name = "AGE", value_parser = parse_duration, conflicts_with = "all")]
    older_than: Option<Duration>,

    /// Delete everything; with --database, all memory in it
    #[arg(long)]
    all: bool,
}

impl ForgetCommand {
    pub(super) fn run(&self, data: &OwnedData, context: &CommandContext) -> Result {
        let selection = self.selection(data, context)?;
        if !context.options.yes {
            self.ask_user(context)?;
        }
        let deleted = transfer::delete(data.location(), &data.owner, &selection)?;
        if context.options.json {
            return context.print_json(&deleted);
        }
        let items = pluralize(deleted.items, "item");
        let mut text = match deleted.files {
            0 => format!("{items} deleted"),
            files => format!("{} deleted, with all items in it", pluralize(files, "file")),
        };
        if !deleted.traceless && data.database.is_some() {
            text += "; the database server keeps old pages until it has vacuumed the tables";
        } else if !deleted.traceless {
            text += "; another process still keeps traces in the files: repeat this when it has finished";
        }
        context.ui.print(&(text + "\n"));
        Ok(())
    }

    fn selection(&self, data: &OwnedData, context: &CommandContext) -> Result<DeleteRequest> {
        if let Some(id) = &self.id {
            return Ok(DeleteRequest::Item(id.clone()));
        }
        let selection: DataSelection = data.selection(self.project.as_ref(), context)?;
        Ok(match self.older_than {
            Some(age) => DeleteRequest::Items {
                selection,
                kind: None,
                before: Some(before(age)),
            },
            None => DeleteRequest::All(selection),
        })
    }

    fn ask_user(&self, context: &CommandContext) -> Result {
        let question = format!("Permanently delete {}?", self.subject());
        if !context.environment.terminal.is_interactive {
            return Err(CliError::could_not_run(format!(
                "confirmation needs a terminal: {question}"
            ))
            .hint("use --yes to delete without asking"));
        }
        let mut stdin = std::io::stdin().lock();
        if confirm(&question, &mut stdin, &mut anstream::stderr().lock())? {
            Ok(())
        } else {
            Err(CliError::negative_result("nothing was deleted"))
        }
    }

    fn subject(&self) -> String {
        if let Some(id) = &self.id {
            return sanitize::line(id);
        }
        let project = self
            .project
            .as_ref()
            .map(|path| sanitize::line(&path.display().to_string()));
        let scope = project.map_or_else(String::new, |path| format!(" of {path}"));
        match self.older_than {
            Some(age) => format!(
                "all items{scope} older than {}",
                humantime::format_duration(age)
            ),
            None => format!("all data{scope}"),
        }
    }
}

fn before(age: Duration) -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = since.unwrap_or_default().saturating_sub(age);
    i64::try_from(then.as_millis()).unwrap_or(i64::MAX)
}

fn confirm(question: &str, reader: &mut dyn BufRead, writer: &mut dyn Write) -> Result<bool> {
    write!(writer, "{} [y/n] ", style::styled(style::NAME, question))?;
    writer.flush()?;
    let mut answer = String::new();
    reader.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_yes_confirms() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            ("n\n", false),
            ("", false),
            ("maybe\n", false),
        ] {
            let confirmed = confirm("Delete?", &mut answer.as_bytes(), &mut Vec::new()).unwrap();
            assert_eq!(confirmed, expected, "{answer:?}");
        }
    }
}
