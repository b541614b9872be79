//! What others say, told to people: escaped, short, and never a secret.

use serde_json::Value;

use crate::{
    Failure, Secret, Step,
    fetch::{Fetch, FetchError, Request, Response},
};

use super::form;

/// How much of a text of others is shown.
const MOST_LETTERS: usize = 300;

/// An error that an authorization server names: `error` and `error_description` of RFC 6749.
pub(super) struct Told {
    /// The name of the error, if it is one: `invalid_grant`.
    pub(super) code: Option<String>,
    /// Status, name and description.
    pub(super) text: String,
}

impl Told {
    /// Reads an answer that is no success: JSON, a form, or a page for people.
    pub(super) fn from(response: &Response) -> Told {
        let (code, description) = named(&response.body);
        let mut text = response.status.to_string();
        let more = match (&code, description) {
            (Some(code), Some(description)) => format!(" {code}: {description}"),
            (Some(code), None) => format!(" {code}"),
            (None, Some(description)) => format!(" {description}"),
            (None, None) if response.body.is_empty() => String::new(),
            (None, None) => format!(" with {}", kind(response)),
        };
        text.push_str(&more);
        Told { code, text }
    }

    /// The same, without what was sent in confidence, should the answer repeat it.
    pub(super) fn without(response: &Response, secrets: &[&Secret]) -> Told {
        let mut told = Told::from(response);
        for secret in secrets.iter().map(|secret| secret.expose()) {
            if !secret.is_empty() {
                told.text = told.text.replace(secret, "***");
            }
        }
        told
    }

    /// Puts it into a failure.
    pub(super) fn fill(self, failure: Failure) -> Failure {
        let failure = failure.answer(self.text);
        match self.code {
            Some(code) => failure.code(code),
            None => failure,
        }
    }
}

/// Fetches, and tells a failure to get any answer at this step.
pub(super) async fn fetched(
    fetch: &dyn Fetch,
    request: Request,
    step: Step,
) -> Result<Response, Failure> {
    let described = format!("{request:?}");
    let answer = fetch.fetch(request).await;
    answer.map_err(|error| unanswered(step, &error).request(Described(described)))
}

/// A request of which only the description is left.
pub(super) struct Described(pub(super) String);

impl std::fmt::Debug for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes a text of others fit for a line: what cannot be seen is escaped, what is long is cut.
pub(super) fn shown(text: &str) -> String {
    let is_seen =
        |letter: char| letter == ' ' || letter.is_ascii_graphic() || letter.is_alphanumeric();
    let mut shown = String::new();
    for (at, letter) in text.chars().enumerate() {
        if at == MOST_LETTERS {
            shown.push('…');
            break;
        }
        match is_seen(letter) {
            true => shown.push(letter),
            false => shown.extend(letter.escape_default()),
        }
    }
    shown
}

fn unanswered(step: Step, error: &FetchError) -> Failure {
    let failure = Failure::new(step, error.to_string());
    match error {
        FetchError::Unreachable(_) | FetchError::TimedOut { .. } => {
            failure.cure("check that the server runs and can be reached from here, then try again")
        }
        FetchError::Address { .. } => failure.cure(
            "the server sends clients into a network that is not its own: whoever runs it must correct its metadata",
        ),
        _ => failure,
    }
}

/// The error that a body names, and its description.
fn named(body: &[u8]) -> (Option<String>, Option<String>) {
    let Ok(text) = std::str::from_utf8(body) else {
        return (None, None);
    };
    let (code, description) = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => {
            let field = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            (
                field("error"),
                field("error_description").or_else(|| field("message")),
            )
        }
        Ok(_) => (None, None),
        Err(_) => {
            let field = |wanted: &str| form::pairs(text).find(|(name, _)| name == wanted);
            let value = |wanted: &str| field(wanted).map(|(_, value)| value);
            (value("error"), value("error_description"))
        }
    };
    let code = code.filter(|code| is_code(code));
    (code, description.as_deref().map(shown))
}

/// Whether it looks as the names of errors do, and not like a sentence or something to be kept.
fn is_code(code: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !code.is_empty() && code.len() <= 64 && code.bytes().all(is_allowed)
}

fn kind(response: &Response) -> &'static str {
    match response.header("content-type") {
        Some(kind) if kind.to_ascii_lowercase().contains("html") => "a page for people",
        _ => "a text that names no error",
    }
}
