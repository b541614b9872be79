//! `turnbuckle context forget`.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::ArgGroup;
use turnbuckle_context::transfer::{self, Forget as What, Part};

use super::{Shelf, count};
use crate::arguments::duration;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{plain, style};

/// Forget for good, so that nothing of it is left in the files
///
/// Asks first; --yes forgets without asking.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("what").args(["id", "project", "older_than", "all"]).required(true).multiple(true)))]
pub(super) struct Forget {
    /// One checkpoint, remediation or skill
    #[arg(long, value_name = "ID", conflicts_with_all = ["project", "older_than", "all"])]
    id: Option<String>,

    /// The project in this folder: its memory and its index
    #[arg(long, value_name = "PATH", conflicts_with = "all")]
    project: Option<PathBuf>,

    /// Only what was last saved longer ago than this: 90d, 12h
    #[arg(long, value_name = "AGE", value_parser = duration, conflicts_with = "all")]
    older_than: Option<Duration>,

    /// Everything
    #[arg(long)]
    all: bool,
}

impl Forget {
    pub(super) fn run(&self, shelf: &Shelf, context: &Context) -> Result {
        let what = self.what(shelf, context)?;
        if !context.options.yes {
            self.ask(context)?;
        }
        let forgotten = transfer::forget(&shelf.library, &shelf.owner, &what)?;
        if context.options.json {
            return context.json(&forgotten);
        }
        let items = count(forgotten.items, "thing");
        let mut text = match forgotten.files {
            0 => format!("{items} forgotten"),
            files => format!("{} removed, with everything in it", count(files, "file")),
        };
        if !forgotten.traceless {
            text += "; another process that reads or imports keeps traces in the files: repeat this when it is done";
        }
        context.voice.say(&(text + "\n"));
        Ok(())
    }

    fn what(&self, shelf: &Shelf, context: &Context) -> Result<What> {
        if let Some(id) = &self.id {
            return Ok(What::Item(id.clone()));
        }
        let part: Part = shelf.part(self.project.as_ref(), context)?;
        Ok(match self.older_than {
            Some(age) => What::Items {
                part,
                kind: None,
                before: Some(before(age)),
            },
            None => What::All(part),
        })
    }

    fn ask(&self, context: &Context) -> Result {
        let question = format!("Forget {} for good?", self.subject());
        if !context.environment.terminal.asks {
            return Err(
                Failure::not_asked(format!("there is no terminal to ask: {question}"))
                    .hint("--yes forgets without asking"),
            );
        }
        let mut stdin = std::io::stdin().lock();
        match agrees(&question, &mut stdin, &mut anstream::stderr().lock())? {
            true => Ok(()),
            false => Err(Failure::refused("nothing was forgotten")),
        }
    }

    fn subject(&self) -> String {
        if let Some(id) = &self.id {
            return plain::line(id);
        }
        let project = self
            .project
            .as_ref()
            .map(|path| plain::line(&path.display().to_string()));
        let place = project.map_or_else(String::new, |path| format!(" of {path}"));
        match self.older_than {
            Some(age) => format!(
                "what{place} is older than {}",
                humantime::format_duration(age)
            ),
            None => format!("everything{place}"),
        }
    }
}

fn before(age: Duration) -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = since.unwrap_or_default().saturating_sub(age);
    i64::try_from(then.as_millis()).unwrap_or(i64::MAX)
}

fn agrees(question: &str, reader: &mut dyn BufRead, writer: &mut dyn Write) -> Result<bool> {
    write!(writer, "{} [y/n] ", style::paint(style::NAME, question))?;
    writer.flush()?;
    let mut answer = String::new();
    reader.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            ("n\n", false),
            ("", false),
            ("maybe\n", false),
        ] {
            let agreed = agrees("Forget?", &mut answer.as_bytes(), &mut Vec::new()).unwrap();
            assert_eq!(agreed, expected, "{answer:?}");
        }
    }
}
