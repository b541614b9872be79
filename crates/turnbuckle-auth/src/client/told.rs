//! What others say, told to people: escaped, short, and without what was sent to them in confidence.

use std::fmt;

use serde_json::Value;

use crate::{
    Failure, Secret, Step,
    fetch::{Fetch, FetchError, Request, Response},
};

use super::form;

/// How much of a text of others is shown.
const MOST_LETTERS: usize = 300;

/// What an answer that is no success says: the `error` and `error_description` of RFC 6749, in JSON or in a form, or a page.
pub(super) struct Told {
    /// The name of the error, if it is one: `invalid_grant`.
    pub(super) code: Option<String>,
    /// Status, name and description.
    pub(super) text: String,
}

/// A request of which only the description is left.
pub(super) struct Described(pub(super) String);

impl Told {
    /// Reads an answer. `secrets` is what was sent and must not be told, should the answer repeat it.
    pub(super) fn new(response: &Response, secrets: &[&Secret]) -> Told {
        let text = without(&String::from_utf8_lossy(&response.body), secrets);
        let (code, description) = named(&text);
        let code = code.filter(|code| is_code(code));
        let description = description.as_deref().map(shown);
        let more = match (&code, description) {
            (Some(code), Some(description)) => format!(" {code}: {description}"),
            (Some(code), None) => format!(" {code}"),
            (None, Some(description)) => format!(": {description}"),
            (None, None) => unnamed(&text),
        };
        let text = format!("{}{more}", response.status);
        Told { code, text }
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

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fetches, and tells a failure to get any answer at this step.
pub(super) async fn fetched(
    fetch: &dyn Fetch,
    request: Request,
    step: Step,
) -> Result<Response, Failure> {
    let described = Described(format!("{request:?}"));
    let answer = fetch.fetch(request).await;
    answer.map_err(|error| unanswered(step, &error).request(described))
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

/// Whether it looks as the names of errors do, and not like a sentence.
pub(super) fn is_code(code: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !code.is_empty() && code.len() <= 64 && code.bytes().all(is_allowed)
}

fn unanswered(step: Step, error: &FetchError) -> Failure {
    let failure = Failure::new(step, error.to_string());
    match error {
        FetchError::Unreachable(_) | FetchError::TimedOut { .. } => {
            failure.cure("check that the server runs and can be reached from here, then try again")
        }
        FetchError::Address { .. } | FetchError::Redirect { .. } | FetchError::Url { .. } => {
            failure.cure("whoever runs the server must correct the URLs that it names")
        }
        _ => failure,
    }
}

fn without(text: &str, secrets: &[&Secret]) -> String {
    let secrets = secrets.iter().map(|secret| secret.expose());
    let secrets = secrets.filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

/// The error that a body names, and its description.
fn named(body: &str) -> (Option<String>, Option<String>) {
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
            let field = |wanted: &str| form::pairs(body).find(|(name, _)| name == wanted);
            let value = |wanted: &str| field(wanted).map(|(_, value)| value);
            (value("error"), value("error_description"))
        }
    }
}

/// What can be said of a body that names no error.
fn unnamed(body: &str) -> String {
    match (body.trim().is_empty(), title(body)) {
        (true, _) => String::new(),
        (_, Some(title)) => format!(" with a page titled `{}`", shown(title)),
        _ => " with a text that names no error".to_owned(),
    }
}

/// The title of a page.
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

    fn told(status: u16, body: &str) -> (Option<String>, String) {
        let told = Told::new(&Response::new(status, Vec::new(), body), &[]);
        (told.code, told.text)
    }

    #[test]
    fn an_error_is_told_in_whatever_form_it_is_named() {
        let code = Some("invalid_grant".to_owned());
        let text = "400 invalid_grant: too late".to_owned();
        for body in [
            r#"{"error":"invalid_grant","error_description":"too late"}"#,
            "error=invalid_grant&error_description=too+late",
        ] {
            assert_eq!(told(400, body), (code.clone(), text.clone()), "{body}");
        }
        assert_eq!(
            told(400, r#"{"error":"invalid_grant"}"#).1,
            "400 invalid_grant"
        );
    }

    #[test]
    fn an_answer_that_names_no_error_is_told_as_far_as_it_goes() {
        for (body, text) in [
            ("", "502"),
            ("  \n", "502"),
            ("oops", "502 with a text that names no error"),
            ("[1]", "502 with a text that names no error"),
            (
                "<html><title> Bad Gateway </title>",
                "502 with a page titled `Bad Gateway`",
            ),
            (r#"{"message":"down"}"#, "502: down"),
            (r#"{"error":{"code":1,"message":"down"}}"#, "502: down"),
            (
                r#"{"error":"not a name\n"}"#,
                "502 with a text that names no error",
            ),
        ] {
            assert_eq!(told(502, body), (None, text.to_owned()), "{body}");
        }
    }

    #[test]
    fn what_would_move_the_cursor_or_fill_the_screen_is_not_shown() {
        assert_eq!(shown("a\u{1b}[2J\n\u{202e}b ä"), r"a\u{1b}[2J\n\u{202e}b ä");
        assert_eq!(shown(&"x".repeat(10_000)).chars().count(), MOST_LETTERS + 1);
    }

    #[test]
    fn what_was_sent_in_confidence_is_not_told_even_where_it_would_be_cut() {
        let secret = Secret::new("s".repeat(200));
        let body = format!(
            r#"{{"error":"x","error_description":"{}{}"}}"#,
            "a".repeat(200),
            secret.expose()
        );

        let told = Told::new(&Response::new(400, Vec::new(), body), &[&secret]);

        assert!(told.text.ends_with("a***"), "{}", told.text);
    }
}
