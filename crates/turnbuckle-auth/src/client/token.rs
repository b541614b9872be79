//! Token requests, one function per grant, and token responses.

mod identity_assertion;
pub(super) mod request;
#[cfg(test)]
mod tests;
mod token_exchange;

use std::time::Duration;

pub use identity_assertion::{IdentityProvider, request_id_jag};
pub use request::{DpopBinding, TokenEndpoint};
use request::{TokenPost, TokenRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use token_exchange::{ExchangeRequest, exchange_token};
use turnbuckle_text::percent::Form;

use super::{
    authorization::AuthorizationCode,
    oauth_error::{self, OAuthErrorResponse},
};
use crate::{
    AuthorizationError, AuthorizationStep, Scopes, Secret,
    client::authorization::scope_value,
    fetch::{Fetch, FetchResponse},
    unix_time,
};

/// The tokens of a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// The access token.
    pub access: Secret,
    /// The token type.
    pub kind: TokenKind,
    /// The refresh token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Secret>,
    /// Unix time in seconds when the access token expires, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The granted scopes, or the requested ones if the server did not name any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// The ID token, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token: Option<Secret>,
}

impl Tokens {
    /// Returns how long the access token is still valid, if known.
    pub(super) fn remaining_lifetime(&self) -> Option<Duration> {
        let seconds = self.expires?.saturating_sub(unix_time::now());
        Some(Duration::from_secs(seconds))
    }
}

/// The type of an access token, which determines the way it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenKind {
    /// As a bearer token.
    Bearer,
    /// With a proof of the key that it is bound to.
    Dpop,
}

/// Redeems an authorization code.
pub async fn exchange_code(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    code: &AuthorizationCode,
    binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    if code.issuer != endpoint.server.issuer {
        // Sending the code to another server would leak it.
        let reason = format!(
            "the code was issued by `{}`, not by `{}`",
            code.issuer, endpoint.server.issuer
        );
        return Err(
            AuthorizationError::new(AuthorizationStep::Token, reason).with_hint("log in again")
        );
    }
    let form = Form::default()
        .with("grant_type", "authorization_code")
        .with("code", code.code.expose())
        .with("redirect_uri", &code.redirect_uri)
        .with("code_verifier", code.verifier.expose());
    let request = TokenRequest {
        step: AuthorizationStep::Token,
        form,
        secrets: vec![&code.code, &code.verifier],
        resource: &code.resource,
        scopes: code.scopes.as_ref(),
    };
    request.send(fetch, endpoint, binding).await
}

/// Redeems a refresh token.
///
/// If the response lacks a new refresh token, the result contains the old one. `scopes` are the scopes of the old
/// tokens.
pub async fn refresh(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    refresh: &Secret,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    let form = Form::default()
        .with("grant_type", "refresh_token")
        .with("refresh_token", refresh.expose());
    let request = TokenRequest {
        step: AuthorizationStep::Refresh,
        form,
        secrets: vec![refresh],
        resource,
        scopes,
    };
    let tokens = request.send(fetch, endpoint, binding).await?;
    Ok(Tokens {
        refresh: tokens.refresh.or_else(|| Some(refresh.clone())),
        ..tokens
    })
}

/// Requests a token for the client itself, without a user.
pub async fn client_credentials(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    let request = TokenRequest {
        step: AuthorizationStep::Token,
        form: Form::default()
            .with("grant_type", "client_credentials")
            .with_optional("scope", scope_value(scopes).as_deref()),
        secrets: Vec::new(),
        resource,
        scopes,
    };
    request.send(fetch, endpoint, binding).await
}

/// Requests a token with a JWT assertion (RFC 7523): the result of [`request_id_jag`], or a workload identity.
pub async fn jwt_bearer(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    assertion: &Secret,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut DpopBinding<'_>>,
) -> Result<Tokens, AuthorizationError> {
    let form = Form::default()
        .with("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
        .with("assertion", assertion.expose())
        .with_optional("scope", scope_value(scopes).as_deref());
    let request = TokenRequest {
        step: AuthorizationStep::Token,
        form,
        secrets: vec![assertion],
        resource,
        scopes,
    };
    request.send(fetch, endpoint, binding).await
}

/// Revokes the tokens of a login (RFC 7009): the refresh token, and the access token.
///
/// Returns `false` if the authorization server does not support revocation.
pub async fn revoke(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    tokens: &Tokens,
) -> Result<bool, AuthorizationError> {
    let Some(url) = endpoint.server.revocation_endpoint.as_deref() else {
        return Ok(false);
    };
    if let Some(refresh) = &tokens.refresh {
        revoke_one(fetch, endpoint, url, refresh, "refresh_token").await?;
    }
    match revoke_one(fetch, endpoint, url, &tokens.access, "access_token").await {
        // Some servers revoke only refresh tokens, because they do not look up access tokens.
        Err(failure)
            if tokens.refresh.is_some()
                && failure.error_code() == Some("unsupported_token_type") => {}
        done => done?,
    }
    Ok(true)
}

async fn revoke_one(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    url: &str,
    token: &Secret,
    hint: &str,
) -> Result<(), AuthorizationError> {
    let step = AuthorizationStep::Revocation;
    let post = TokenPost {
        url,
        what: "revocation endpoint",
        step,
        form: Form::default()
            .with("token", token.expose())
            .with("token_type_hint", hint),
        endpoint,
    };
    let response = post.send(fetch, None).await?;
    // An unknown token is not an error: it is invalid in any case (RFC 7009, section 2.2).
    if response.is_success() {
        return Ok(());
    }
    let secrets = [Some(token), endpoint.client.secret.as_ref()];
    let secrets: Vec<_> = secrets.into_iter().flatten().collect();
    Err(token_error(&response, step, &secrets).with_request(post.description()))
}

/// Maximum size of a token response, and so of a token, in bytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Upper limit for the lifetime of a token: ten years.
const MAX_LIFETIME_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Option<Secret>,
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Value,
    #[serde(default)]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    id_token: Option<Secret>,
    #[serde(default)]
    issued_token_type: Option<String>,
}

/// The kinds of tokens that the client can use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AcceptedTokenKinds {
    Bearer,
    Bound,
    Any,
}

/// Reads the tokens, or the error. `secrets` were sent in the request and are redacted.
fn read_tokens(
    response: &FetchResponse,
    step: AuthorizationStep,
    requested: Option<&Scopes>,
    accepted: AcceptedTokenKinds,
    secrets: &[&Secret],
) -> Result<Tokens, AuthorizationError> {
    let parsed = parse_token_response(response, step, secrets)?;
    let invalid = |reason: &str| invalid_response(response, step, reason);
    let token_kind = token_kind(parsed.token_type.as_deref(), accepted).map_err(invalid)?;
    let access = parsed.access_token.filter(is_token);
    let Some(access) = access else {
        return Err(invalid("lacks a usable token"));
    };
    let granted = parsed.scope.and_then(|scope| scope.parse::<Scopes>().ok());
    Ok(Tokens {
        access,
        kind: token_kind,
        refresh: parsed
            .refresh_token
            .filter(|token| !token.expose().is_empty()),
        expires: seconds(&parsed.expires_in).map(|seconds| unix_time::now() + seconds),
        scopes: granted
            .filter(|scopes| !scopes.is_empty())
            .or_else(|| requested.cloned()),
        id_token: parsed.id_token,
    })
}

/// Parses a token response, whatever the kind of token.
fn parse_token_response(
    response: &FetchResponse,
    step: AuthorizationStep,
    secrets: &[&Secret],
) -> Result<TokenResponse, AuthorizationError> {
    if !response.is_success() {
        return Err(token_error(response, step, secrets));
    }
    if response.body.len() > MAX_RESPONSE_BYTES {
        return Err(invalid_response(response, step, "is too large"));
    }
    // Some servers send errors with status 200.
    let error_response = OAuthErrorResponse::new(response, secrets);
    if error_response.code.is_some() {
        return Err(token_error(response, step, secrets));
    }
    oauth_error::parse_json(&response.body).map_err(|why| invalid_response(response, step, &why))
}

pub(super) fn invalid_response(
    response: &FetchResponse,
    step: AuthorizationStep,
    reason: &str,
) -> AuthorizationError {
    AuthorizationError::new(step, format!("the response of the token endpoint {reason}"))
        .with_response(response.status.to_string())
        .with_hint("ask the operator of the authorization server to correct it")
}

/// Converts an error response to an error with a hint.
pub(super) fn token_error(
    response: &FetchResponse,
    step: AuthorizationStep,
    secrets: &[&Secret],
) -> AuthorizationError {
    let error_response = OAuthErrorResponse::new(response, secrets);
    let (reason, hint) = match error_response.code.as_deref() {
        Some("invalid_grant") if step == AuthorizationStep::Refresh => (
            "the refresh token has expired or was revoked",
            "log in again",
        ),
        Some("invalid_grant" | "invalid_request") if step == AuthorizationStep::Exchange => (
            "the authorization server does not accept the token of the caller",
            "see its response; the token may have expired, or be from an issuer that the authorization server does not trust",
        ),
        Some("invalid_grant") => (
            "the code or assertion is invalid or expired",
            "log in again; if it fails again, check the clock of this machine",
        ),
        Some("unsupported_token_type") => (
            "the authorization server does not revoke tokens of this type",
            "the token stays valid until it expires",
        ),
        Some("invalid_client") => (
            "the authorization server does not know this client, or its secret is wrong",
            "check the client id and its secret, or log out so that the client registers again",
        ),
        Some("unauthorized_client") => (
            "the authorization server does not allow this grant for this client",
            "ask the operator of the authorization server to allow the grant",
        ),
        Some("unsupported_grant_type") => (
            "the authorization server does not support this grant",
            "use another grant",
        ),
        Some("invalid_scope") => (
            "the authorization server does not grant the requested scopes",
            "request other scopes",
        ),
        Some("invalid_target") => (
            "the authorization server does not issue tokens for this server",
            "check the URL of the server; its operator must register it with the authorization server",
        ),
        Some("invalid_dpop_proof" | "use_dpop_nonce") => (
            "the authorization server does not accept the DPoP proof",
            "check the clock of this machine, then try again",
        ),
        Some("access_denied") => ("access was denied", "log in again and allow it"),
        Some("expired_token") => ("the login was not finished in time", "log in again"),
        Some("invalid_request") => (
            "the authorization server considers the request invalid",
            "see its response; the client id or a parameter may be wrong",
        ),
        _ if response.status >= 500 => ("the authorization server failed", "try again later"),
        _ if response.status == 429 => (
            "the authorization server received too many requests",
            "try again later",
        ),
        _ if step == AuthorizationStep::Revocation => (
            "the authorization server did not revoke the token",
            "the token may stay valid until it expires; the authorization server may have a page to revoke it",
        ),
        _ => (
            "the authorization server did not issue a token",
            "ask the operator of the authorization server; its response contains no reason",
        ),
    };
    error_response
        .add_to(AuthorizationError::new(step, reason))
        .with_hint(hint)
}

/// Returns the kind of the token, or the reason why it cannot be used.
fn token_kind(name: Option<&str>, accepted: AcceptedTokenKinds) -> Result<TokenKind, &'static str> {
    // Some servers omit it; then it can only be a bearer token.
    let name = name.unwrap_or("bearer");
    let is = |token_kind: &str| name.eq_ignore_ascii_case(token_kind);
    match accepted {
        AcceptedTokenKinds::Bearer | AcceptedTokenKinds::Any if is("bearer") => {
            Ok(TokenKind::Bearer)
        }
        AcceptedTokenKinds::Bound | AcceptedTokenKinds::Any if is("dpop") => Ok(TokenKind::Dpop),
        AcceptedTokenKinds::Bound if is("bearer") => {
            Err("has a token that is not bound to the client's key")
        }
        _ => Err("has a token of an unsupported kind"),
    }
}

/// Returns whether the token can be sent in a header.
fn is_token(token: &Secret) -> bool {
    let token = token.expose();
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a number of seconds, which may be a string.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float saturates"
    )]
    let seconds = seconds as u64;
    Some(seconds.min(MAX_LIFETIME_SECONDS))
}
