//! Which server is meant: `URL`, `unix:PATH`, a name of a configuration, or `-- command args…`.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::trust;

/// The server that a command speaks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A server on HTTP.
    Url(String),
    /// A server on a Unix socket.
    Unix(PathBuf),
    /// A program that is started for this command.
    Command(Vec<String>),
    /// A server of a configuration.
    Named(String),
}

impl Target {
    /// Returns the name that the user knows the server by.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Url(url) => url.split(['?', '#']).next().unwrap_or(url).to_owned(),
            Self::Unix(path) => format!("unix:{}", path.display()),
            Self::Command(words) => words.first().cloned().unwrap_or_default(),
            Self::Named(name) => name.clone(),
        }
    }

    /// Returns a command line of ours that speaks to the same server.
    pub(crate) fn command_line(&self, command: &str, words: &str) -> String {
        let separator = if words.is_empty() { "" } else { " " };
        match self {
            Self::Command(program) => {
                let program: Vec<_> = program.iter().map(|word| trust::quoted(word)).collect();
                format!(
                    "turnbuckle {command}{separator}{words} -- {}",
                    program.join(" ")
                )
            }
            other => {
                let target = trust::quoted(&other.label());
                format!("turnbuckle {command} {target}{separator}{words}")
            }
        }
    }

    /// Reads a target that is one word.
    fn parse(word: &str) -> Result<Self> {
        if let Some(path) = word.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        match word.split_once("://") {
            Some(("http" | "https", _)) => Ok(Self::Url(word.to_owned())),
            Some((scheme, _)) => Err(Failure::not_asked(format!(
                "a server cannot be reached by `{scheme}:`"
            ))
            .hint("use http://, https:// or unix:PATH")),
            None => Ok(Self::Named(word.to_owned())),
        }
    }
}

/// The words of a command after the target is taken from them.
///
/// With `-- command args…` there is no word for the target, and all words are the command's own.
#[derive(Debug)]
pub(crate) struct Words {
    command: &'static str,
    left: VecDeque<String>,
}

impl Words {
    /// Takes the target from the words of a command.
    pub(crate) fn split(
        command: &'static str,
        words: impl IntoIterator<Item = String>,
        program: &[String],
    ) -> Result<(Target, Self)> {
        let mut words = Self {
            command,
            left: words.into_iter().collect(),
        };
        let target = match program.is_empty() {
            true => Target::parse(&words.required("TARGET")?)?,
            false => Target::Command(program.to_vec()),
        };
        Ok((target, words))
    }

    /// Returns the next word, which has to be there.
    pub(crate) fn required(&mut self, name: &str) -> Result<String> {
        let word = self.left.pop_front();
        word.ok_or_else(|| self.usage(format!("{name} is missing")))
    }

    /// Returns the next word, if there is one.
    pub(crate) fn optional(&mut self) -> Option<String> {
        self.left.pop_front()
    }

    /// Returns all words that are left.
    pub(crate) fn rest(self) -> Vec<String> {
        self.left.into()
    }

    /// Makes sure that no word is left.
    pub(crate) fn end(mut self) -> Result {
        match self.left.pop_front() {
            Some(word) => Err(self.usage(format!("`{word}` is one word too many"))),
            None => Ok(()),
        }
    }

    fn usage(&self, message: String) -> Failure {
        Failure::not_asked(message).hint(format!("see `turnbuckle {} --help`", self.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::style;

    fn split(words: &[&str], program: &[&str]) -> Result<(Target, Vec<String>)> {
        let own = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let (target, words) = Words::split("call", own(words), &own(program))?;
        Ok((target, words.rest()))
    }

    fn failure(words: &[&str]) -> String {
        style::without(&split(words, &[]).unwrap_err().render())
    }

    #[test]
    fn the_first_word_is_the_target() {
        let target = |word| split(&[word, "echo"], &[]).unwrap().0;

        assert_eq!(
            target("https://a.example/mcp"),
            Target::Url("https://a.example/mcp".into())
        );
        assert_eq!(
            target("unix:/run/a.sock"),
            Target::Unix("/run/a.sock".into())
        );
        assert_eq!(
            target("weather@codex"),
            Target::Named("weather@codex".into())
        );
        assert_eq!(split(&["weather", "echo"], &[]).unwrap().1, ["echo"]);
    }

    #[test]
    fn after_dashes_the_target_is_a_program() {
        let (target, words) = split(&["echo", "a=1"], &["npx", "-y", "server"]).unwrap();

        assert_eq!(
            target,
            Target::Command(vec!["npx".into(), "-y".into(), "server".into()])
        );
        assert_eq!(words, ["echo", "a=1"]);
    }

    #[test]
    fn hints_speak_to_the_same_server() {
        let named = Target::Named("weather".into());
        let program = Target::Command(vec!["npx".into(), "my server".into()]);

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
    fn what_is_missing_or_strange_is_named() {
        insta::assert_snapshot!(failure(&[]), @r"
        error: TARGET is missing

        hint: see `turnbuckle call --help`
        ");
        insta::assert_snapshot!(failure(&["ftp://a"]), @r"
        error: a server cannot be reached by `ftp:`

        hint: use http://, https:// or unix:PATH
        ");
    }
}
