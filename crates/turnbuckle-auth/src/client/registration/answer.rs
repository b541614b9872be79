//! The answer to a registration.

use serde::Deserialize;

use crate::{
    AuthorizationServer, Failure, Secret, Step,
    client::told::{self, Told},
    fetch::Response,
};

use super::{ClientAuthentication, Registered, Source};

const STEP: Step = Step::Registration;

/// The longest id or secret that is kept.
const MOST_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<serde_json::Number>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Reads who we are now, or why we are nobody.
pub(super) fn read(
    response: &Response,
    server: &AuthorizationServer,
) -> Result<Registered, Failure> {
    if !response.is_success() {
        return Err(refused(response));
    }
    let wrong = |reason: &str| {
        Failure::new(STEP, format!("the answer to the registration {reason}"))
            .answer(response.status.to_string())
            .cure(
                "get a client id from whoever runs the authorization server, and configure it here",
            )
    };
    let answer: Answer =
        serde_json::from_slice(&response.body).map_err(|_| wrong("cannot be read"))?;
    let secret = answer
        .client_secret
        .filter(|secret| !secret.expose().is_empty());
    if !is_fine(&answer.client_id) || !secret.as_ref().is_none_or(|one| is_fine(one.expose())) {
        return Err(wrong("names no id and no secret that could be used"));
    }
    let method = match answer.token_endpoint_auth_method.as_deref() {
        None => ClientAuthentication::suited(server, secret.is_some()),
        Some("none") => ClientAuthentication::None,
        Some("client_secret_basic") if secret.is_some() => ClientAuthentication::Basic,
        Some("client_secret_post") if secret.is_some() => ClientAuthentication::Post,
        Some("client_secret_basic" | "client_secret_post") => {
            return Err(wrong("wants a secret to be shown, and brings none"));
        }
        Some(other) => {
            let other = told::shown(other);
            return Err(wrong(&format!(
                "wants a way to show who we are that is not ours, `{other}`"
            )));
        }
    };
    let expires = answer.client_secret_expires_at.and_then(|at| at.as_u64());
    Ok(Registered {
        expires: expires.filter(|at| *at != 0 && secret.is_some()),
        ..Registered::new(answer.client_id, secret, method, Source::Dynamic)
    })
}

/// Whether a text can stand in a form and in a header.
fn is_fine(text: &str) -> bool {
    !text.is_empty() && text.len() <= MOST_BYTES && !text.chars().any(char::is_control)
}

fn refused(response: &Response) -> Failure {
    let told = Told::new(response, &[]);
    let (reason, cure) = match told.code.as_deref() {
        Some("invalid_redirect_uri") => (
            "the authorization server does not let logins return to this machine",
            "get a client id from whoever runs it, with a redirect URI that it allows",
        ),
        Some("invalid_client_metadata") => (
            "the authorization server does not take what we say about ourselves",
            "get a client id from whoever runs it, and configure it here",
        ),
        Some("invalid_software_statement" | "unapproved_software_statement") => (
            "the authorization server registers only software that it knows",
            "get a client id from whoever runs it, and configure it here",
        ),
        _ if matches!(response.status, 401 | 403) => (
            "the authorization server does not let strangers register",
            "get a client id from whoever runs it, and configure it here",
        ),
        _ => (
            "the authorization server did not register us",
            "try again later, or get a client id from whoever runs it, and configure it here",
        ),
    };
    told.fill(Failure::new(STEP, reason)).cure(cure)
}
