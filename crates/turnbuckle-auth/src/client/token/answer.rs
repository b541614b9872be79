//! What a token endpoint answers.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use crate::{Failure, Scopes, Secret, Step, client::told::Told, fetch::Response};

use super::{TokenKind, Tokens};

/// The largest answer that is read, and so the longest token that is kept.
const MOST_BYTES: usize = 256 * 1024;

/// No token is kept for longer than this, whatever is promised: ten years.
const MOST_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) access_token: Option<Secret>,
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
    pub(super) issued_token_type: Option<String>,
}

/// Which tokens are of use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    Bearer,
    Bound,
    Any,
}

/// Reads tokens, or why there are none. `secrets` is what was sent and must not be told.
pub(super) fn read(
    response: &Response,
    step: Step,
    asked: Option<&Scopes>,
    kinds: Kinds,
    secrets: &[&Secret],
) -> Result<Tokens, Failure> {
    let answer = parse(response, step, secrets)?;
    let wrong = |reason: &str| wrong(response, step, reason);
    let kind = kind(answer.token_type.as_deref(), kinds).map_err(wrong)?;
    let access = answer.access_token.filter(is_token);
    let Some(access) = access else {
        return Err(wrong("has no token that could be sent"));
    };
    let granted = answer.scope.and_then(|scope| scope.parse::<Scopes>().ok());
    Ok(Tokens {
        access,
        kind,
        refresh: answer
            .refresh_token
            .filter(|token| !token.expose().is_empty()),
        expires: seconds(&answer.expires_in).map(|seconds| now() + seconds),
        scopes: granted
            .filter(|scopes| !scopes.is_empty())
            .or_else(|| asked.cloned()),
        id_token: answer.id_token,
    })
}

/// Reads an answer of whatever kind of token.
pub(super) fn parse(
    response: &Response,
    step: Step,
    secrets: &[&Secret],
) -> Result<Answer, Failure> {
    if !response.is_success() {
        return Err(refused(response, step, secrets));
    }
    if response.body.len() > MOST_BYTES {
        return Err(wrong(response, step, "is too large"));
    }
    // Some answer 200 and name an error nevertheless.
    let told = Told::new(response, secrets);
    if told.code.is_some() {
        return Err(refused(response, step, secrets));
    }
    // What was wrong is not told: the text could be a part of a token.
    serde_json::from_slice(&response.body).map_err(|_| wrong(response, step, "cannot be read"))
}

pub(in crate::client) fn wrong(response: &Response, step: Step, reason: &str) -> Failure {
    Failure::new(step, format!("the answer of the token endpoint {reason}"))
        .answer(response.status.to_string())
        .cure("whoever runs the authorization server must correct it")
}

/// Says why there is no token, and what to do about it.
pub(in crate::client) fn refused(response: &Response, step: Step, secrets: &[&Secret]) -> Failure {
    let told = Told::new(response, secrets);
    let (reason, cure) = match told.code.as_deref() {
        Some("invalid_grant") if step == Step::Refresh => {
            ("the refresh token is not valid any more", "log in again")
        }
        Some("invalid_grant") => (
            "what was shown for the token is not valid, or not any more",
            "log in again; if it stays so, check the clock of this machine",
        ),
        Some("invalid_client") => (
            "the authorization server does not know this client, or its secret is wrong",
            "check the client id and its secret, or log out so that the client registers anew",
        ),
        Some("unauthorized_client") => (
            "the authorization server does not let this client ask in this way",
            "whoever runs it must allow this client the grant",
        ),
        Some("unsupported_grant_type") => (
            "the authorization server does not know this way to get a token",
            "use another grant",
        ),
        Some("invalid_scope") => (
            "the authorization server does not give the scopes that were asked for",
            "ask for other scopes",
        ),
        Some("invalid_target") => (
            "the authorization server gives no tokens for this server",
            "check the URL of the server; whoever runs it must make it known to the authorization server",
        ),
        Some("invalid_dpop_proof" | "use_dpop_nonce") => (
            "the authorization server does not take the proof of the key",
            "check the clock of this machine, then try again",
        ),
        Some("access_denied") => ("access was denied", "log in again and allow it"),
        Some("expired_token") => ("nobody logged in in time", "log in again"),
        Some("invalid_request") => (
            "the authorization server finds something wrong with the request",
            "its answer says what; it may be the client id, or a parameter that it does not take",
        ),
        _ if response.status >= 500 => {
            ("the authorization server is in trouble", "try again later")
        }
        _ if response.status == 429 => (
            "the authorization server has been asked too often",
            "try again later",
        ),
        _ => (
            "the authorization server gave no token",
            "check with whoever runs it; it did not say why",
        ),
    };
    told.fill(Failure::new(step, reason)).cure(cure)
}

/// How the token is to be sent, or what is wrong with it.
fn kind(name: Option<&str>, kinds: Kinds) -> Result<TokenKind, &'static str> {
    // Left out by some; then it can only be the one that all know.
    let name = name.unwrap_or("bearer");
    let is = |kind: &str| name.eq_ignore_ascii_case(kind);
    match kinds {
        Kinds::Bearer | Kinds::Any if is("bearer") => Ok(TokenKind::Bearer),
        Kinds::Bound | Kinds::Any if is("dpop") => Ok(TokenKind::Dpop),
        Kinds::Bound if is("bearer") => {
            Err("has a token that is not bound to our key, as it must be")
        }
        _ => Err("has a token of a kind that we cannot send"),
    }
}

/// Whether it can be sent in a header.
pub(super) fn is_token(token: &Secret) -> bool {
    let token = token.expose();
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A number of seconds, also as a text.
fn seconds(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float stops at the bounds"
    )]
    let seconds = seconds as u64;
    Some(seconds.min(MOST_SECONDS))
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
