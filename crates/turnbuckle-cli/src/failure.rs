//! What went wrong, how to go on, and the exit code that says so.

mod of_auth;
mod of_client;
mod of_context;

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use anstyle::Style;
use serde_json::{Value, json};

use crate::output::{plain, style};

/// Why the command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    document: Option<Box<Value>>,
    wants_login: bool,
}

/// Who has the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The server answered, and the answer is no.
    Refused,
    /// The server could not be asked.
    NotAsked,
    /// Nobody reads our output any more, which is their right.
    PipeClosed,
}

/// What a command returns.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// The server answered, and the answer is no.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message.into())
    }

    /// The server could not be asked: bad arguments, no connection, no time left.
    pub(crate) fn not_asked(message: impl Into<String>) -> Self {
        Self::new(Kind::NotAsked, message.into())
    }

    fn new(kind: Kind, message: String) -> Self {
        Self {
            kind,
            message,
            hint: None,
            document: None,
            wants_login: false,
        }
    }

    /// The user pressed Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self::new(Kind::NotAsked, "interrupted".to_owned())
    }

    /// Adds what the server said, for programs.
    pub(crate) fn document(mut self, document: Value) -> Self {
        self.document = Some(Box::new(document));
        self
    }

    /// Returns what the server said, for programs.
    pub(crate) fn as_document(&self) -> Option<&Value> {
        self.document.as_deref()
    }

    /// Notes that the server wants to know who asks.
    pub(crate) fn wanting_login(mut self) -> Self {
        self.wants_login = true;
        self
    }

    /// Says how to log in, if that is what is missing.
    pub(crate) fn or_login(mut self, hint: impl FnOnce() -> String) -> Self {
        if !self.wants_login {
            return self;
        }
        let hint = hint();
        let nothing = || Box::new(json!({ "error": { "message": self.message } }));
        let document = self.document.get_or_insert_with(nothing);
        document["error"]["cure"] = hint.clone().into();
        self.hint(hint)
    }

    /// Says how to go on, unless that is said already.
    pub(crate) fn or_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        self.hint.get_or_insert_with(hint);
        self
    }

    /// Says how to go on.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the exit code: 0 done, 1 the answer is no, 2 it could not be asked.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::PipeClosed => ExitCode::SUCCESS,
            Kind::Refused => ExitCode::from(1),
            Kind::NotAsked => ExitCode::from(2),
        }
    }

    /// Returns what goes to stderr, with colours; empty if there is nothing to say.
    pub(crate) fn render(&self) -> String {
        if self.kind == Kind::PipeClosed {
            return String::new();
        }
        let mut text = labelled("error", style::ERROR, &self.message);
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n{}", labelled("hint", style::HINT, hint));
        }
        text
    }
}

/// Returns a remark for stderr about something that does not stop us.
pub(crate) fn warning(message: &str) -> String {
    labelled("warning", style::WARNING, message)
}

fn labelled(label: &str, colour: Style, message: &str) -> String {
    // Messages quote peers and files, so they are never trusted to be harmless.
    format!("{colour}{label}:{colour:#} {}\n", plain::block(message))
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Kind::PipeClosed, String::new()),
            _ => Self::not_asked(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_and_how_to_go_on() {
        let failure = Failure::refused("`forecast` failed: `days` must be between 1 and 7")
            .hint("show its arguments with `turnbuckle tools weather forecast`");

        insta::assert_snapshot!(style::without(&failure.render()), @r"
        error: `forecast` failed: `days` must be between 1 and 7

        hint: show its arguments with `turnbuckle tools weather forecast`
        ");
        assert_eq!(failure.exit_code(), ExitCode::from(1));
    }

    #[test]
    fn a_closed_pipe_is_success_and_silent() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));

        assert_eq!(failure.render(), "");
        assert_eq!(failure.exit_code(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_quoted_peer_cannot_colour_the_message() {
        let failure = Failure::refused("it said \u{1b}[31mred");

        assert_eq!(
            style::without(&failure.render()),
            "error: it said \\u{1b}[31mred\n"
        );
    }
}
