//! The context of a command: the environment, the options and the output streams.
//!
//! stdout is data, stderr is for messages.

use std::{io::Write as _, path::Path, sync::Arc};

use serde::Serialize;

use crate::{
    cli::GlobalOptions,
    environment::Environment,
    error::{CliError, Result},
    output::json,
    supervisor::Supervisor,
    ui::Ui,
};

/// The context of a command.
#[derive(Debug)]
pub(crate) struct CommandContext {
    /// The environment of the process.
    pub(crate) environment: Environment,
    /// The options of all commands.
    pub(crate) options: GlobalOptions,
    /// Prints to stderr.
    pub(crate) ui: Ui,
    /// Ends child programs if this process is killed.
    pub(crate) supervisor: Arc<Supervisor>,
}

impl CommandContext {
    /// Writes text to stdout, with styles only if stdout supports them.
    pub(crate) fn print(&self, text: &str) -> Result {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Writes a list to stdout. An empty list is reported on stderr.
    pub(crate) fn print_list(&self, kind: &str, text: &str) -> Result {
        if text.is_empty() {
            self.ui.print(&format!("the server lists no {kind}\n"));
        }
        self.print(text)
    }

    /// Writes raw bytes to stdout.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Writes raw bytes to a file.
    pub(crate) fn write_file(&self, file: &Path, bytes: &[u8]) -> Result {
        let file = self.environment.cwd.join(file);
        std::fs::write(&file, bytes).map_err(|error| {
            CliError::could_not_run(format!("cannot write {}: {error}", file.display()))
        })
    }

    /// Writes a JSON document to stdout.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result {
        self.write_bytes(json::document(value).as_bytes())
    }

    /// Returns the number of columns of the terminal.
    pub(crate) fn width(&self) -> usize {
        self.environment.terminal.width
    }
}
