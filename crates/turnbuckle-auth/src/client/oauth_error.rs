//! Error responses and other text of servers, made safe to show: sanitized, shortened and without secrets.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use turnbuckle_protocol::json;
use turnbuckle_text::{percent::form_pairs, sanitize::escape_line};

use crate::{
    AuthorizationError, AuthorizationStep, Secret,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};

/// Maximum number of characters of foreign text that are shown.
const MAX_TEXT_CHARS: usize = 300;

/// An error response: `error` and `error_description` of RFC 6749, in JSON or form encoding, or an HTML page.
pub(super) struct OAuthErrorResponse {
    /// The error code, such as `invalid_grant`.
    pub(super) code: Option<String>,
    /// Status, code and description.
    pub(super) text: String,
}

/// The description of a request, for errors.
pub(super) struct RequestDescription(pub(super) String);

impl OAuthErrorResponse {
    /// Parses a response. `secrets` were sent in the request and are redacted.
    pub(super) fn new(response: &FetchResponse, secrets: &[&Secret]) -> OAuthErrorResponse {
        let text = redact(&String::from_utf8_lossy(&response.body), secrets);
        let (code, description) = parse_error(&text);
        let code = code.filter(|code| is_error_code(code));
        let description = description.as_deref().map(sanitize);
        let more = match (&code, description) {
            (Some(code), Some(description)) => format!(" {code}: {description}"),
            (Some(code), None) => format!(" {code}"),
            (None, Some(description)) => format!(": {description}"),
            (None, None) => describe_body(&text),
        };
        let text = format!("{}{more}", response.status);
        OAuthErrorResponse { code, text }
    }

    /// Adds code and text to an error.
    pub(super) fn add_to(self, failure: AuthorizationError) -> AuthorizationError {
        let failure = failure.with_response(self.text);
        match self.code {
            Some(code) => failure.with_error_code(code),
            None => failure,
        }
    }
}

impl fmt::Debug for RequestDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sends a request; a missing response becomes an error of this step.
pub(super) async fn send_request(
    fetch: &dyn Fetch,
    request: FetchRequest,
    step: AuthorizationStep,
) -> Result<FetchResponse, AuthorizationError> {
    let description = RequestDescription(format!("{request:?}"));
    let response = fetch.fetch(request).await;
    response.map_err(|error| fetch_error(step, &error).with_request(description))
}

/// Makes text of a server safe for one line of a terminal: escapes unsafe characters and truncates.
pub(super) fn sanitize(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => escape_line(&text[..end]) + "…",
        None => escape_line(text),
    }
}

/// Returns whether the text looks like an OAuth error code.
pub(super) fn is_error_code(code: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !code.is_empty() && code.len() <= 64 && code.bytes().all(is_allowed)
}

fn fetch_error(step: AuthorizationStep, error: &FetchError) -> AuthorizationError {
    let failure = AuthorizationError::new(step, error.to_string());
    match error {
        FetchError::Unreachable(_) | FetchError::TimedOut { .. } => {
            failure.with_hint("check that the server is running and reachable, then try again")
        }
        FetchError::Address { .. } | FetchError::Redirect { .. } | FetchError::Url { .. } => {
            failure.with_hint("ask the operator of the server to correct its URLs")
        }
        _ => failure,
    }
}

fn redact(text: &str, secrets: &[&Secret]) -> String {
    let secrets = secrets.iter().map(|secret| secret.expose());
    let secrets = secrets.filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

/// Deserializes a successful response. The error says what is expected, but not what was found, which could be a part of a token.
pub(super) fn parse_json<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, String> {
    json::from_slice(body).map_err(|error| {
        let reason = error.reason();
        let expected = reason.rsplit_once(", expected ").map(|(_, text)| text);
        let missing = reason.strip_prefix("missing field ");
        match (error.path(), expected, missing) {
            ("", Some(expected), _) => format!("is not valid: expected {expected}"),
            (path, Some(expected), _) => format!("is not valid: `{path}`: expected {expected}"),
            (_, None, Some(field)) => format!("is not valid: {field} is missing"),
            _ => "is not valid".to_owned(),
        }
    })
}

/// Returns the error code of a body and its description.
fn parse_error(body: &str) -> (Option<String>, Option<String>) {
    match serde_json::from_str(body) {
        Ok(Value::Object(fields)) => {
            let field = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
            let nested = || {
                fields
                    .get("error")?
                    .get("message")?
                    .as_str()
                    .map(str::to_owned)
            };
            let description = field("error_description").or_else(|| field("message"));
            (field("error"), description.or_else(nested))
        }
        Ok(_) => (None, None),
        Err(_) => {
            let field = |requested: &str| form_pairs(body).find(|(name, _)| name == requested);
            let value = |requested: &str| field(requested).map(|(_, value)| value);
            (value("error"), value("error_description"))
        }
    }
}

/// Describes a body without an error code.
fn describe_body(body: &str) -> String {
    match (body.trim().is_empty(), title(body)) {
        (true, _) => String::new(),
        (_, Some(title)) => format!(" with an HTML page titled `{}`", sanitize(title)),
        _ => " without an error code".to_owned(),
    }
}

/// Returns the title of an HTML page.
fn title(page: &str) -> Option<&str> {
    let (_, rest) = page
        .split_once("<title>")
        .or_else(|| page.split_once("<TITLE>"))?;
    let title = rest.split('<').next()?.trim();
    Some(title).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_response(status: u16, body: &str) -> (Option<String>, String) {
        let error_response =
            OAuthErrorResponse::new(&FetchResponse::new(status, Vec::new(), body), &[]);
        (error_response.code, error_response.text)
    }

    #[test]
    fn an_error_is_read_from_json_and_forms() {
        let code = Some("invalid_grant".to_owned());
        let text = "400 invalid_grant: too late".to_owned();
        for body in [
            r#"{"error":"invalid_grant","error_description":"too late"}"#,
            "error=invalid_grant&error_description=too+late",
        ] {
            assert_eq!(
                error_response(400, body),
                (code.clone(), text.clone()),
                "{body}"
            );
        }
        assert_eq!(
            error_response(400, r#"{"error":"invalid_grant"}"#).1,
            "400 invalid_grant"
        );
    }

    #[test]
    fn a_response_without_error_code_is_described() {
        for (body, text) in [
            ("", "502"),
            ("  \n", "502"),
            ("oops", "502 without an error code"),
            ("[1]", "502 without an error code"),
            (
                "<html><title> Bad Gateway </title>",
                "502 with an HTML page titled `Bad Gateway`",
            ),
            (r#"{"message":"down"}"#, "502: down"),
            (r#"{"error":{"code":1,"message":"down"}}"#, "502: down"),
            (r#"{"error":"not a name\n"}"#, "502 without an error code"),
        ] {
            assert_eq!(error_response(502, body), (None, text.to_owned()), "{body}");
        }
    }

    #[test]
    fn control_characters_are_escaped_and_long_text_is_truncated() {
        assert_eq!(
            sanitize("a\u{1b}[2J\n\u{202e}b ä"),
            r"a\u{1b}[2J\n\u{202e}b ä"
        );
        assert_eq!(
            sanitize(&"x".repeat(10_000)).chars().count(),
            MAX_TEXT_CHARS + 1
        );
    }

    #[test]
    fn secrets_are_redacted_before_truncation() {
        let secret = Secret::new("s".repeat(200));
        let body = format!(
            r#"{{"error":"x","error_description":"{}{}"}}"#,
            "a".repeat(200),
            secret.expose()
        );

        let error_response =
            OAuthErrorResponse::new(&FetchResponse::new(400, Vec::new(), body), &[&secret]);

        assert!(
            error_response.text.ends_with("a***"),
            "{}",
            error_response.text
        );
    }
}
