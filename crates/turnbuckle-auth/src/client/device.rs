//! Logging in on another device (RFC 8628).

mod answer;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{Failure, Scopes, Secret, Step, fetch::Fetch};

use super::{
    form::{self, Form},
    token::{Binding, Endpoint, Tokens, post::Post, request::Grant},
};

const STEP: Step = Step::DeviceCode;

/// How much longer to wait when told to slow down (RFC 8628, section 3.5).
const SLOWER: Duration = Duration::from_secs(5);

/// How many questions in a row may get no answer.
const MOST_UNANSWERED: u32 = 3;

/// A code that a person types on another device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceCode {
    /// What to type.
    pub user_code: String,
    /// Where to type it.
    pub verification_uri: String,
    /// Where nothing has to be typed, if there is such a place: for a link or a picture.
    pub verification_uri_complete: Option<String>,
    /// How long there is to do it.
    pub expires_in: Duration,
    /// How long to wait between two questions.
    pub(super) interval: Duration,
    pub(super) code: Secret,
    pub(super) resource: String,
    pub(super) scopes: Option<Scopes>,
}

/// Begins a login on another device.
pub async fn begin(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    resource: &str,
    scopes: Option<&Scopes>,
) -> Result<DeviceCode, Failure> {
    let issuer = &endpoint.server.issuer;
    let Some(url) = endpoint.server.device_authorization_endpoint.as_deref() else {
        return Err(
            Failure::new(STEP, format!("`{issuer}` knows no login on another device"))
                .cure("log in with a browser on this machine"),
        );
    };
    let form = Form::default()
        .with("resource", resource)
        .with_some("scope", form::scope(scopes).as_deref());
    let post = Post {
        url,
        what: "device authorization endpoint",
        step: STEP,
        form,
        endpoint,
    };
    let response = post.send(fetch, None).await?;
    let secrets: Vec<_> = endpoint.client.secret.iter().collect();
    answer::read(&response, resource, scopes, &secrets)
        .map_err(|failure| failure.request(post.described()))
}

/// Waits until the person has logged in, and returns the tokens.
///
/// Asks no more often than the server lets it; ends when the code does.
pub async fn poll(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    code: &DeviceCode,
    mut binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    let begun = tokio::time::Instant::now();
    let mut interval = code.interval;
    let mut unanswered = 0;
    while begun.elapsed() + interval <= code.expires_in {
        tokio::time::sleep(interval).await;
        let answer = ask(fetch, endpoint, code, binding.as_deref_mut()).await;
        let failure = match answer {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => failure,
        };
        let is_unanswered = failure.answered().is_none();
        unanswered = if is_unanswered { unanswered + 1 } else { 0 };
        match failure.error_code() {
            Some("authorization_pending") => {}
            Some("slow_down") => interval += SLOWER,
            // The person is still at it: a broken connection ends nothing, but is no reason to ask as often as before.
            None if is_unanswered && unanswered < MOST_UNANSWERED => interval *= 2,
            _ => return Err(failure),
        }
    }
    Err(Failure::new(STEP, "nobody logged in in time")
        .code("expired_token")
        .cure("begin the login again, and enter the code before it ends"))
}

async fn ask(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    code: &DeviceCode,
    binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    let form = Form::default()
        .with("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
        .with("device_code", code.code.expose());
    let grant = Grant {
        step: STEP,
        form,
        secrets: vec![&code.code],
        resource: &code.resource,
        scopes: code.scopes.as_ref(),
    };
    grant.ask(fetch, endpoint, binding).await
}
