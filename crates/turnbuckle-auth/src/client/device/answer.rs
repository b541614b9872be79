//! The code that a person is to type.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    Failure, Scopes, Secret,
    client::{safe_url, token::answer},
    fetch::Response,
};

use super::{DeviceCode, STEP};

/// The longest code that a person could type.
const MOST_LETTERS: usize = 64;

#[derive(Deserialize)]
struct Answer {
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

/// Reads the code, or why there is none.
pub(super) fn read(
    response: &Response,
    resource: &str,
    scopes: Option<&Scopes>,
    secrets: &[&Secret],
) -> Result<DeviceCode, Failure> {
    if !response.is_success() {
        return Err(answer::refused(response, STEP, secrets));
    }
    let wrong = |reason: &str| answer::wrong(response, STEP, reason);
    let answer: Answer =
        serde_json::from_slice(&response.body).map_err(|_| wrong("cannot be read"))?;
    let is_code = |code: &str| code.len() <= MOST_LETTERS && !code.chars().any(char::is_control);
    if answer.user_code.is_empty() || !is_code(&answer.user_code) {
        return Err(wrong("has no code that a person could type"));
    }
    let pages = [
        Some(&answer.verification_uri),
        answer.verification_uri_complete.as_ref(),
    ];
    for page in pages.into_iter().flatten() {
        safe_url::check(page, STEP, "page to enter the code")?;
    }
    Ok(DeviceCode {
        user_code: answer.user_code,
        verification_uri: answer.verification_uri,
        verification_uri_complete: answer.verification_uri_complete,
        expires_in: Duration::from_secs(answer.expires_in.unwrap_or(600).min(3600)),
        interval: Duration::from_secs(answer.interval.unwrap_or(5).clamp(1, 60)),
        code: answer.device_code,
        resource: resource.to_owned(),
        scopes: scopes.cloned(),
    })
}
