//! What comes back from a login.

use crate::{
    Failure, Secret, Step,
    client::{form, told},
};

use super::AuthorizationRequest;

const STEP: Step = Step::Callback;

/// The longest answer that is read.
const MOST_BYTES: usize = 64 * 1024;

/// The parameters that count, each there once at most.
#[derive(Default)]
struct Answer {
    state: Option<Secret>,
    iss: Option<String>,
    code: Option<Secret>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Reads an answer and returns its code: first whose answer it is, then from whom, then what it says.
pub(super) fn read(request: &AuthorizationRequest, url_or_query: &str) -> Result<Secret, Failure> {
    let answer = Answer::parse(url_or_query)?;
    check_state(request, &answer)?;
    check_issuer(request, &answer)?;
    if let Some(error) = &answer.error {
        return Err(refused(error, answer.error_description.as_deref()));
    }
    answer
        .code
        .filter(|code| !code.expose().is_empty())
        .ok_or_else(|| {
            Failure::new(STEP, "the answer has neither a code nor an error").cure("log in again")
        })
}

impl Answer {
    fn parse(url_or_query: &str) -> Result<Answer, Failure> {
        let wrong = |reason: &str| Failure::new(STEP, reason).cure("log in again");
        if url_or_query.len() > MOST_BYTES {
            return Err(wrong("the answer is too long"));
        }
        let query = match url_or_query.split_once('?') {
            // A question mark behind the first name is a part of its value.
            Some((before, query)) if !before.contains('=') => query,
            _ => url_or_query,
        };
        let (query, _) = query.split_once('#').unwrap_or((query, ""));
        let mut answer = Answer::default();
        for (name, value) in form::pairs(query) {
            let is_second = match name.as_str() {
                "state" => answer.state.replace(Secret::new(value)).is_some(),
                "iss" => answer.iss.replace(value).is_some(),
                "code" => answer.code.replace(Secret::new(value)).is_some(),
                "error" => answer.error.replace(value).is_some(),
                "error_description" => answer.error_description.replace(value).is_some(),
                _ => false,
            };
            // Of two codes, or two issuers, each reader would take the one it likes.
            if is_second {
                return Err(wrong("the answer says something twice"));
            }
        }
        Ok(answer)
    }
}

fn check_state(request: &AuthorizationRequest, answer: &Answer) -> Result<(), Failure> {
    match &answer.state {
        Some(state) if state.is_same(&request.state) => Ok(()),
        _ => Err(Failure::new(STEP, "what came back is not the answer to this login: its `state` is another")
            .cure("log in again, in the browser window that was opened last; if it happens again, somebody may be trying to log you in as somebody else")),
    }
}

/// The four cases of RFC 9207; issuers are compared as they stand, and of an answer from somebody else nothing is told.
fn check_issuer(request: &AuthorizationRequest, answer: &Answer) -> Result<(), Failure> {
    let refuse = |reason: String| {
        Err(Failure::new(STEP, reason)
            .cure("the answer is not used, since another server may have given it; log in again, and tell whoever runs the authorization server if it stays so"))
    };
    match &answer.iss {
        Some(iss) if *iss == request.issuer => Ok(()),
        Some(iss) => refuse(format!(
            "the login was begun at `{}`, and the answer says that it comes from `{}`",
            request.issuer,
            told::shown(iss)
        )),
        None if request.names_issuer => refuse(format!(
            "`{}` promises to say who answers a login, and the answer does not",
            request.issuer
        )),
        None => Ok(()),
    }
}

fn refused(error: &str, description: Option<&str>) -> Failure {
    let (reason, cure) = match error {
        "access_denied" => ("access was denied", "log in again and allow it"),
        "invalid_scope" => (
            "the authorization server does not know the scopes that were asked for",
            "ask for other scopes",
        ),
        "invalid_target" => (
            "the authorization server gives no tokens for this server",
            "check the URL of the server; whoever runs it must make it known to the authorization server",
        ),
        "unauthorized_client" | "invalid_client" => (
            "the authorization server does not let this client log in",
            "log out so that the client registers anew, or configure another client id",
        ),
        "server_error" | "temporarily_unavailable" => {
            ("the authorization server is in trouble", "try again later")
        }
        _ => ("the authorization server refused the login", "log in again"),
    };
    let told = match description {
        Some(description) => format!("{}: {}", told::shown(error), told::shown(description)),
        None => told::shown(error),
    };
    let failure = Failure::new(STEP, reason).answer(told).cure(cure);
    match told::is_code(error) {
        true => failure.code(error),
        false => failure,
    }
}
