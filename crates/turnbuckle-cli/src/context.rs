//! What every command has at hand: its surroundings, the options, and the two streams.
//!
//! stdout is data, stderr is talk.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::arguments::Options;
use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::output::json;
use crate::supervisor::Supervisor;
use crate::voice::Voice;

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct Context {
    /// The surroundings.
    pub(crate) environment: Environment,
    /// What holds for every command.
    pub(crate) options: Options,
    /// How to speak on stderr.
    pub(crate) voice: Voice,
    /// Ends the programs that we start, should we be killed.
    pub(crate) supervisor: Arc<Supervisor>,
}

impl Context {
    /// Writes text to stdout; its colours only where they are wanted.
    pub(crate) fn print(&self, text: &str) -> Result {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Writes a list to stdout; that there is nothing in it is said on stderr, so that silence is no riddle.
    pub(crate) fn print_list(&self, of: &str, text: &str) -> Result {
        if text.is_empty() {
            self.voice.say(&format!("the server has no {of}\n"));
        }
        self.print(text)
    }

    /// Writes exact bytes to stdout.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Writes exact bytes to a file.
    pub(crate) fn save(&self, file: &Path, bytes: &[u8]) -> Result {
        let file = self.environment.cwd.join(file);
        std::fs::write(&file, bytes).map_err(|error| {
            Failure::not_asked(format!("{} cannot be written: {error}", file.display()))
        })
    }

    /// Writes a JSON document to stdout.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result {
        self.bytes(json::document(value).as_bytes())
    }

    /// Returns how many columns the terminal has.
    pub(crate) fn width(&self) -> usize {
        self.environment.terminal.width
    }
}
