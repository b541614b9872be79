//! Device flow: logging in on another device (RFC 8628).

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;
use turnbuckle_text::percent::Form;

use super::{
    oauth_error, safe_url,
    token::{
        self, DpopBinding, TokenEndpoint, Tokens,
        request::{TokenPost, TokenRequest},
    },
};
use crate::{
    AuthorizationError, AuthorizationStep, Scopes, Secret,
    client::authorization::scope_value,
    fetch::{Fetch, FetchResponse},
};

const STEP: AuthorizationStep = AuthorizationStep::DeviceCode;

/// Increment of the polling interval after `slow_down` (RFC 8628, section 3.5).
const SLOW_DOWN_INCREMENT: Duration = Duration::from_secs(5);

/// Maximum number of consecutive polls without a response.
const MAX_FAILED_POLLS: u32 = 3;

/// A code that the user enters on another device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceCode {
    /// The code to enter.
    pub user_code: String,
    /// The page where the code is entered.
    pub verification_uri: String,
    /// The same page with the code included, for a link or a QR code.
    pub verification_uri_complete: Option<String>,
    /// Lifetime of the code.
    pub expires_in: Duration,
    /// Time to wait between two polls.
    pub(super) interval: Duration,
    pub(super) code: Secret,
    pub(super) resource: String,
    pub(super) scopes: Option<Scopes>,
}

/// Requests a device code.
pub async fn request_code(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    resource: &str,
    scopes: Option<&Scopes>,
) -> Result<DeviceCode, AuthorizationError> {
    let issuer = &endpoint.server.issuer;
    let Some(url) = endpoint.server.device_authorization_endpoint.as_deref() else {
        return Err(AuthorizationError::new(
            STEP,
            format!("`{issuer}` does not support the device flow"),
        )
        .with_hint("log in with a browser on this machine"));
    };
    let form = Form::default()
        .with("resource", resource)
        .with_optional("scope", scope_value(scopes).as_deref());
    let post = TokenPost {
        url,
        what: "device authorization endpoint",
        step: STEP,
        form,
        endpoint,
    };
    let response = post.send(fetch, None).await?;
    let secrets: Vec<_> = endpoint.client.secret.iter().collect();
    read_device_code(&response, resource, scopes, &secrets)
        .map_err(|failure| failure.with_request(post.description()))
}

/// Waits until the user has logged in, and returns the tokens.
///
/// Polls no more often than the server allows; ends when the code expires.
pub async fn poll(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    code: &DeviceCode,
    mut binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    let started = tokio::time::Instant::now();
    let mut interval = code.interval;
    let mut failed_polls = 0;
    while started.elapsed() + interval <= code.expires_in {
        tokio::time::sleep(interval).await;
        let polled = poll_once(fetch, endpoint, code, binding.as_deref_mut()).await;
        let failure = match polled {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => failure,
        };
        let has_no_response = failure.response().is_none();
        failed_polls = if has_no_response { failed_polls + 1 } else { 0 };
        match failure.error_code() {
            Some("authorization_pending") => {}
            Some("slow_down") => interval += SLOW_DOWN_INCREMENT,
            // The user may still be logging in: a broken connection does not end the flow, but slows it down.
            None if has_no_response && failed_polls < MAX_FAILED_POLLS => interval *= 2,
            _ => return Err(failure),
        }
    }
    Err(
        AuthorizationError::new(STEP, "the login was not finished in time")
            .with_error_code("expired_token")
            .with_hint("start the login again, and enter the code before it expires"),
    )
}

async fn poll_once(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    code: &DeviceCode,
    binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    let form = Form::default()
        .with("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
        .with("device_code", code.code.expose());
    let request = TokenRequest {
        step: STEP,
        form,
        secrets: vec![&code.code],
        resource: &code.resource,
        scopes: code.scopes.as_ref(),
    };
    request.send(fetch, endpoint, binding).await
}

/// Maximum length of a user code, in characters.
const MAX_USER_CODE_CHARS: usize = 64;

#[derive(Deserialize)]
struct DeviceAuthorizationResponse {
    device_code: Secret,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
    #[serde(default)]
    interval: Option<u64>,
}

/// Reads the device code, or the error.
fn read_device_code(
    response: &FetchResponse,
    resource: &str,
    scopes: Option<&Scopes>,
    secrets: &[&Secret],
) -> Result<DeviceCode, AuthorizationError> {
    if !response.is_success() {
        return Err(token::token_error(response, STEP, secrets));
    }
    let invalid = |reason: &str| token::invalid_response(response, STEP, reason);
    let parsed: DeviceAuthorizationResponse =
        oauth_error::parse_json(&response.body).map_err(|why| invalid(&why))?;
    let is_code =
        |code: &str| code.len() <= MAX_USER_CODE_CHARS && !code.chars().any(char::is_control);
    if parsed.user_code.is_empty() || !is_code(&parsed.user_code) {
        return Err(invalid("lacks a usable user code"));
    }
    let pages = [
        Some(&parsed.verification_uri),
        parsed.verification_uri_complete.as_ref(),
    ];
    for page in pages.into_iter().flatten() {
        safe_url::check(page, STEP, "verification page")?;
    }
    Ok(DeviceCode {
        user_code: parsed.user_code,
        verification_uri: parsed.verification_uri,
        verification_uri_complete: parsed.verification_uri_complete,
        expires_in: Duration::from_secs(parsed.expires_in.unwrap_or(600).min(3600)),
        interval: Duration::from_secs(parsed.interval.unwrap_or(5).clamp(1, 60)),
        code: parsed.device_code,
        resource: resource.to_owned(),
        scopes: scopes.cloned(),
    })
}
