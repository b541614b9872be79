//! Logging in on another device (RFC 8628).

mod answer;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{
    Failure, Scopes, Secret, Step,
    fetch::{Fetch, Request},
};

use super::{
    form::Form,
    safe_url,
    token::{Binding, Endpoint, Tokens, authentication, request::Grant},
    told::{self, Described},
};

const STEP: Step = Step::DeviceCode;

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
    safe_url::check(url, STEP, "device authorization endpoint")?;
    let asked = scopes
        .filter(|scopes| !scopes.is_empty())
        .map(ToString::to_string);
    let form = Form::default()
        .with("resource", resource)
        .with_some("scope", asked.as_deref());
    let (form, authorization) = authentication::apply(form, endpoint, STEP)?;
    let mut request = Request::post(url, Form::CONTENT_TYPE, form.into_string());
    if let Some(value) = authorization {
        request = request.header("authorization", value.expose());
    }
    let described = Described(format!("{request:?}"));
    let response = told::fetched(fetch, request, STEP).await?;
    let secrets: Vec<_> = endpoint.client.secret.iter().collect();
    let code = answer::read(&response, resource, scopes, &secrets);
    code.map_err(|failure| failure.request(described))
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
    while begun.elapsed() + interval <= code.expires_in {
        tokio::time::sleep(interval).await;
        let answer = ask(fetch, endpoint, code, binding.as_deref_mut()).await;
        let failure = match answer {
            Ok(tokens) => return Ok(tokens),
            Err(failure) => failure,
        };
        match failure.error_code() {
            Some("authorization_pending") => {}
            Some("slow_down") => interval += Duration::from_secs(5),
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
        names_scopes: false,
    };
    grant.ask(fetch, endpoint, binding).await
}
