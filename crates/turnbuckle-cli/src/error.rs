//! The error of a command: message, hint and exit code.

use std::{fmt::Write as _, io, process::ExitCode};

use anstyle::Style;
use serde_json::{Value, json};
use turnbuckle_auth::{self as auth, AuthorizationStep};
use turnbuckle_client::{CallError, ConnectError, HttpErrorResponse, SkillError, TransportError};
use turnbuckle_text::error_chain;

use crate::output::{sanitize, style};

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: CliErrorKind,
    message: String,
    hint: Option<String>,
    document: Option<Box<Value>>,
    needs_login: bool,
}

/// The kind of an error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CliErrorKind {
    /// The server returned an error, or the result is negative.
    NegativeResult,
    /// The request could not be made.
    CouldNotRun,
    /// The reader of stdout has closed the pipe, which is not an error.
    PipeClosed,
    /// A program that this process stands in for exited with this code.
    ProgramExited(u8),
}

/// The result of a command.
pub(crate) type Result<T = ()> = std::result::Result<T, CliError>;

impl CliError {
    /// Creates an error for a negative result: exit code 1.
    pub(crate) fn negative_result(message: impl Into<String>) -> Self {
        Self::new(CliErrorKind::NegativeResult, message.into())
    }

    /// Creates an error for a request that could not be made: bad arguments, no connection, timeout. Exit code 2.
    pub(crate) fn could_not_run(message: impl Into<String>) -> Self {
        Self::new(CliErrorKind::CouldNotRun, message.into())
    }

    fn new(kind: CliErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            hint: None,
            document: None,
            needs_login: false,
        }
    }

    /// Creates the error for Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self::new(CliErrorKind::CouldNotRun, "interrupted".to_owned())
    }

    /// Creates the silent error for a program that exited with a code.
    #[allow(dead_code, reason = "used by the optional command `record`")]
    pub(crate) fn program_exited(code: i32) -> Self {
        // Unix has only these bits.
        Self::new(
            CliErrorKind::ProgramExited((code & 0xff) as u8),
            String::new(),
        )
    }

    /// Sets the JSON form of the error, for `--json`.
    pub(crate) fn document(mut self, document: Value) -> Self {
        self.document = Some(Box::new(document));
        self
    }

    /// Returns the JSON form of the error.
    pub(crate) fn as_document(&self) -> Option<&Value> {
        self.document.as_deref()
    }

    /// Marks that the server requires authorization.
    pub(crate) fn needs_login(mut self) -> Self {
        self.needs_login = true;
        self
    }

    /// Adds a hint how to log in, if the server requires authorization.
    pub(crate) fn with_login_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        if !self.needs_login {
            return self;
        }
        let hint = hint();
        let nothing = || Box::new(json!({ "error": { "message": self.message } }));
        let document = self.document.get_or_insert_with(nothing);
        document["error"]["hint"] = hint.clone().into();
        self.hint(hint)
    }

    /// Sets the hint, unless there is one.
    pub(crate) fn or_hint(mut self, hint: impl FnOnce() -> String) -> Self {
        self.hint.get_or_insert_with(hint);
        self
    }

    /// Sets the hint: what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message and the hint in one line.
    #[allow(dead_code, reason = "used by the optional command `bridge`")]
    pub(crate) fn summary(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the exit code: 0 success, 1 negative result, 2 usage or connection error.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            CliErrorKind::PipeClosed => ExitCode::SUCCESS,
            CliErrorKind::NegativeResult => ExitCode::from(1),
            CliErrorKind::CouldNotRun => ExitCode::from(2),
            CliErrorKind::ProgramExited(code) => ExitCode::from(code),
        }
    }

    /// Returns the text for stderr, with styles; empty if there is nothing to report.
    pub(crate) fn render(&self) -> String {
        if let CliErrorKind::PipeClosed | CliErrorKind::ProgramExited(_) = self.kind {
            return String::new();
        }
        let mut text = labeled("error", style::ERROR, &self.message);
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n{}", labeled("hint", style::HINT, hint));
        }
        text
    }
}

/// Returns the text of a warning for stderr.
pub(crate) fn warning(message: &str) -> String {
    labeled("warning", style::WARNING, message)
}

fn labeled(label: &str, style: Style, message: &str) -> String {
    // Messages quote peers and files, so they have to be sanitized.
    format!("{style}{label}:{style:#} {}\n", sanitize::block(message))
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(CliErrorKind::PipeClosed, String::new()),
            _ => Self::could_not_run(error.to_string()),
        }
    }
}

impl From<auth::AuthorizationError> for CliError {
    fn from(failure: auth::AuthorizationError) -> Self {
        (&failure).into()
    }
}

impl From<&auth::AuthorizationError> for CliError {
    fn from(failure: &auth::AuthorizationError) -> Self {
        let message = message(failure);
        let error = if is_rejection(failure) {
            Self::negative_result(message)
        } else {
            Self::could_not_run(message)
        };
        let error = error.document(json!({
            "error": {
                "message": failure.to_string(),
                "step": step_id(failure.step()),
                "request": failure.request(),
                "response": failure.response(),
                "cause": failure.reason(),
                "hint": failure.hint(),
            }
        }));
        match failure.hint() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// Returns the message, followed by the request and the response.
fn message(failure: &auth::AuthorizationError) -> String {
    let mut text = failure.to_string();
    let rows = [
        ("request", failure.request()),
        ("response", failure.response()),
    ];
    for (at, (label, value)) in rows
        .into_iter()
        .filter_map(|(label, value)| Some((label, value?)))
        .enumerate()
    {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = write!(text, "{gap}\n  {label:<9}{}", sanitize::line(value));
    }
    text
}

/// Returns whether the authorization server rejected the request, rather than being unreachable.
fn is_rejection(failure: &auth::AuthorizationError) -> bool {
    let step = failure.step();
    let is_asked = matches!(
        step,
        AuthorizationStep::Callback | AuthorizationStep::DeviceCode | AuthorizationStep::Token
    );
    is_asked && failure.response().is_some()
}

/// Returns the stable identifier of a step.
fn step_id(step: AuthorizationStep) -> &'static str {
    match step {
        AuthorizationStep::Challenge => "challenge",
        AuthorizationStep::ResourceMetadata => "resource-metadata",
        AuthorizationStep::ServerMetadata => "server-metadata",
        AuthorizationStep::Registration => "registration",
        AuthorizationStep::Authorization => "authorization",
        AuthorizationStep::Callback => "callback",
        AuthorizationStep::DeviceCode => "device-code",
        AuthorizationStep::Assertion => "assertion",
        AuthorizationStep::Token => "token",
        AuthorizationStep::Refresh => "refresh",
        AuthorizationStep::Use => "use",
        AuthorizationStep::Store => "store",
        _ => "other",
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> Self {
        let failure = Self::could_not_run(error_chain(&error));
        match &error {
            ConnectError::Unreachable(TransportError::ErrorResponse(response))
                if is_unauthorized(response) =>
            {
                let status = response.status;
                let message = format!("the server requires authorization: HTTP status {status}");
                Self::could_not_run(message).needs_login()
            }
            ConnectError::Unreachable(source) => with_hint(failure, source),
            ConnectError::Authorization(failure) => failure.into(),
            ConnectError::TimedOut { .. } => failure.hint("increase `--timeout`"),
            ConnectError::NoCommonRevision { .. } => failure.hint("try another `--era`"),
            _ => failure,
        }
    }
}

impl From<CallError> for CliError {
    fn from(error: CallError) -> Self {
        let message = error_chain(&error);
        match &error {
            CallError::Rejected { source, .. } => {
                Self::negative_result(message).document(json!({ "error": source }))
            }
            CallError::CapabilityNotAdvertised { .. }
            | CallError::NotInRevision { .. }
            | CallError::InvalidOutput { .. } => Self::negative_result(message),
            CallError::TimedOut { .. } => Self::could_not_run(message).hint("increase `--timeout`"),
            CallError::Authorization { source, .. } => source.into(),
            CallError::EffectUnknown { .. } => {
                Self::could_not_run(message).hint("check whether it took effect before you retry")
            }
            CallError::Disconnected { source, .. } => {
                with_hint(Self::could_not_run(message), source)
            }
            _ => Self::could_not_run(message),
        }
    }
}

impl From<SkillError> for CliError {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Call(error) => error.into(),
            other => Self::negative_result(error_chain(&other)),
        }
    }
}

fn with_hint(failure: CliError, error: &TransportError) -> CliError {
    match error {
        TransportError::ErrorResponse(response) if is_unauthorized(response) => {
            failure.needs_login()
        }
        TransportError::ErrorResponse(response) => match response.status.as_u16() {
            404 | 405 => failure.hint("check that the URL is the MCP endpoint"),
            _ => failure,
        },
        TransportError::Closed | TransportError::ProcessExited(_) => {
            failure.hint("run again with `--verbose` for details")
        }
        _ => failure,
    }
}

/// Returns whether credentials could change the response.
fn is_unauthorized(response: &HttpErrorResponse) -> bool {
    matches!(response.status.as_u16(), 401 | 403)
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use turnbuckle_auth::fetch::FetchRequest;

    use super::*;
    use crate::output::style;

    #[test]
    fn an_error_has_a_message_and_a_hint() {
        let failure =
            CliError::negative_result("`forecast` failed: `days` must be between 1 and 7")
                .hint("show its arguments with `turnbuckle tools weather forecast`");

        insta::assert_snapshot!(style::strip(&failure.render()), @r"
    error: `forecast` failed: `days` must be between 1 and 7

    hint: show its arguments with `turnbuckle tools weather forecast`
    ");
        assert_eq!(failure.exit_code(), ExitCode::from(1));
    }

    #[test]
    fn a_closed_pipe_is_success_and_silent() {
        let failure = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));

        assert_eq!(failure.render(), "");
        assert_eq!(failure.exit_code(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_quoted_peer_cannot_color_the_message() {
        let failure = CliError::negative_result("the server sent \u{1b}[31mred");

        assert_eq!(
            style::strip(&failure.render()),
            "error: the server sent \\u{1b}[31mred\n"
        );
    }

    fn rejected_code() -> CliError {
        let request = FetchRequest::get("https://a.example/token?code=sesame");
        let failure =
            auth::AuthorizationError::new(AuthorizationStep::Token, "the code was used before")
                .with_request(&request)
                .with_response("400 invalid_grant\u{1b}[2J")
                .with_hint("log in again");
        failure.into()
    }

    #[test]
    fn an_authorization_error_has_step_request_response_and_hint() {
        insta::assert_snapshot!(style::strip(&rejected_code().render()), @r"
        error: authorization failed while requesting a token: the code was used before

          request  GET https://a.example/token
          response 400 invalid_grant\u{1b}[2J

        hint: log in again
        ");
        assert_eq!(rejected_code().exit_code(), ExitCode::from(1));
    }

    #[test]
    fn the_json_document_has_the_same_fields() {
        let document = rejected_code().as_document().cloned().unwrap();

        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap(), @r#"
    {
      "error": {
        "message": "authorization failed while requesting a token: the code was used before",
        "step": "token",
        "request": "GET https://a.example/token",
        "response": "400 invalid_grant\u001b[2J",
        "cause": "the code was used before",
        "hint": "log in again"
      }
    }
    "#);
    }

    #[test]
    fn absent_fields_are_left_out() {
        let failure = auth::AuthorizationError::new(AuthorizationStep::Store, "the disk is full");

        let failure = CliError::from(failure);

        insta::assert_snapshot!(style::strip(&failure.render()), @"error: authorization failed while storing the token: the disk is full");
        assert_eq!(failure.exit_code(), ExitCode::from(2));
    }
}
