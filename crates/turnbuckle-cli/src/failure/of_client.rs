//! What went wrong between us and a server, in words.

use std::error::Error;

use serde_json::json;
use turnbuckle_client::{CallError, ConnectError, HttpRefusal, SkillError, TransportError};

use super::Failure;

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let failure = Self::not_asked(chain(&error));
        match &error {
            ConnectError::Unreachable(TransportError::Refused(refusal)) if is_denied(refusal) => {
                let status = refusal.status;
                let message = format!("the server wants to know who asks: HTTP status {status}");
                Self::not_asked(message).wanting_login()
            }
            ConnectError::Unreachable(source) => with_hint(failure, source),
            ConnectError::Authorization(failure) => failure.into(),
            ConnectError::TimedOut { .. } => failure.hint("wait longer with `--timeout`"),
            ConnectError::NoCommonRevision { .. } => failure.hint("try another `--era`"),
            _ => failure,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = chain(&error);
        match &error {
            CallError::Refused { source, .. } => {
                Self::refused(message).document(json!({ "error": source }))
            }
            CallError::NotOffered { .. }
            | CallError::NotInRevision { .. }
            | CallError::InvalidOutput { .. } => Self::refused(message),
            CallError::TimedOut { .. } => {
                Self::not_asked(message).hint("wait longer with `--timeout`")
            }
            CallError::Authorization { source, .. } => source.into(),
            CallError::EffectUnknown { .. } => {
                Self::not_asked(message).hint("see whether it took effect before you call it again")
            }
            CallError::Disconnected { source, .. } => with_hint(Self::not_asked(message), source),
            _ => Self::not_asked(message),
        }
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Call(error) => error.into(),
            other => Self::refused(chain(&other)),
        }
    }
}

fn with_hint(failure: Failure, error: &TransportError) -> Failure {
    match error {
        TransportError::Refused(refusal) if is_denied(refusal) => failure.wanting_login(),
        TransportError::Refused(refusal) => match refusal.status.as_u16() {
            404 | 405 => failure.hint("see whether the URL is the one of the MCP endpoint"),
            _ => failure,
        },
        TransportError::Closed | TransportError::Died(_) => {
            failure.hint("see what happened with `--verbose`")
        }
        _ => failure,
    }
}

/// Whether a server would answer somebody else.
fn is_denied(refusal: &HttpRefusal) -> bool {
    matches!(refusal.status.as_u16(), 401 | 403)
}

/// Returns what an error says, and what is below it.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let said = error.to_string();
        // Some errors repeat what is below them.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        below = error.source();
    }
    text
}
