//! The server that a command uses: a URL, `unix:PATH`, a configured name, or `-- command args…`.

pub(crate) mod config_files;
mod entry;
mod expand;
pub(crate) mod file_text;
mod read;
pub(crate) mod resolve;
pub(crate) mod trust;
mod trust_prompt;

use std::{collections::VecDeque, path::PathBuf};

use turnbuckle_text::shell;

use crate::error::{CliError, Result};

/// The server that a command uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CliTarget {
    /// A server on HTTP.
    Url(String),
    /// A server on a Unix socket.
    Unix(PathBuf),
    /// A program that is started for this command.
    Command(Vec<String>),
    /// A configured server.
    Named(String),
}

impl CliTarget {
    /// Returns the name that the user knows the server by.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Url(url) => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Self::Unix(path) => format!("unix:{}", path.display()),
            Self::Command(words) => words.first().cloned().unwrap_or_default(),
            Self::Named(name) => name.clone(),
        }
    }

    /// Returns a command line of this program for the same server.
    pub(crate) fn command_line(&self, command: &str, words: &str) -> String {
        let separator = if words.is_empty() { "" } else { " " };
        match self {
            Self::Command(program) => {
                let program: Vec<_> = program.iter().map(|word| shell::quote(word)).collect();
                format!(
                    "turnbuckle {command}{separator}{words} -- {}",
                    program.join(" ")
                )
            }
            other => {
                let label = other.label();
                let target = shell::quote(&label);
                format!("turnbuckle {command} {target}{separator}{words}")
            }
        }
    }

    /// Parses a target that is one word.
    pub(crate) fn parse(word: &str) -> Result<Self> {
        if let Some(path) = word.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        match word.split_once("://") {
            Some(("http" | "https", _)) => Ok(Self::Url(word.to_owned())),
            Some((scheme, _)) => Err(CliError::could_not_run(format!(
                "unsupported scheme `{scheme}:`"
            ))
            .hint("use http://, https:// or unix:PATH")),
            None => Ok(Self::Named(word.to_owned())),
        }
    }
}

/// The positional arguments of a command after the target.
///
/// With `-- command args…` the target is not among them: all words belong to the command.
#[derive(Debug)]
pub(crate) struct PositionalArgs {
    command: &'static str,
    left: VecDeque<String>,
}

impl PositionalArgs {
    /// Splits the target from the arguments of a command.
    pub(crate) fn split(
        command: &'static str,
        words: impl IntoIterator<Item = String>,
        program: &[String],
    ) -> Result<(CliTarget, Self)> {
        let mut words = Self {
            command,
            left: words.into_iter().collect(),
        };
        let target = if program.is_empty() {
            CliTarget::parse(&words.required("TARGET")?)?
        } else {
            CliTarget::Command(program.to_vec())
        };
        Ok((target, words))
    }

    /// Returns the next argument, or an error if there is none.
    pub(crate) fn required(&mut self, name: &str) -> Result<String> {
        let word = self.left.pop_front();
        word.ok_or_else(|| self.usage(format!("missing argument {name}")))
    }

    /// Returns the next argument, if there is one.
    pub(crate) fn optional(&mut self) -> Option<String> {
        self.left.pop_front()
    }

    /// Returns all remaining arguments.
    pub(crate) fn rest(self) -> Vec<String> {
        self.left.into()
    }

    /// Returns an error if an argument is left.
    pub(crate) fn finish(mut self) -> Result {
        match self.left.pop_front() {
            Some(word) => Err(self.usage(format!("unexpected argument `{word}`"))),
            None => Ok(()),
        }
    }

    fn usage(&self, message: String) -> CliError {
        CliError::could_not_run(message).hint(format!("see `turnbuckle {} --help`", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    fn split(words: &[&str], program: &[&str]) -> Result<(CliTarget, Vec<String>)> {
        let own = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let (target, words) = PositionalArgs::split("call", own(words), &own(program))?;
        Ok((target, words.rest()))
    }

    fn error_text(words: &[&str]) -> String {
        style::strip(&split(words, &[]).unwrap_err().render())
    }

    #[test]
    fn the_first_word_is_the_target() {
        let target = |word| split(&[word, "echo"], &[]).unwrap().0;

        assert_eq!(
            target("https://a.example/mcp"),
            CliTarget::Url("https://a.example/mcp".into())
        );
        assert_eq!(
            target("unix:/run/a.sock"),
            CliTarget::Unix("/run/a.sock".into())
        );
        assert_eq!(
            target("weather@codex"),
            CliTarget::Named("weather@codex".into())
        );
        assert_eq!(split(&["weather", "echo"], &[]).unwrap().1, ["echo"]);
    }

    #[test]
    fn after_dashes_the_target_is_a_program() {
        let (target, words) = split(&["echo", "a=1"], &["npx", "-y", "server"]).unwrap();

        assert_eq!(
            target,
            CliTarget::Command(vec!["npx".into(), "-y".into(), "server".into()])
        );
        assert_eq!(words, ["echo", "a=1"]);
    }

    #[test]
    fn hints_name_the_same_server() {
        let named = CliTarget::Named("weather".into());
        let program = CliTarget::Command(vec!["npx".into(), "my server".into()]);

        assert_eq!(
            named.command_line("tools", "echo"),
            "turnbuckle tools weather echo"
        );
        assert_eq!(
            program.command_line("tools", "echo"),
            "turnbuckle tools echo -- npx 'my server'"
        );
        assert_eq!(
            program.command_line("tools", ""),
            "turnbuckle tools -- npx 'my server'"
        );
    }

    #[test]
    fn missing_and_unsupported_targets_are_named() {
        insta::assert_snapshot!(error_text(&[]), @r"
        error: missing argument TARGET

        hint: see `turnbuckle call --help`
        ");
        insta::assert_snapshot!(error_text(&["ftp://a"]), @r"
        error: unsupported scheme `ftp:`

        hint: use http://, https:// or unix:PATH
        ");
    }
}
