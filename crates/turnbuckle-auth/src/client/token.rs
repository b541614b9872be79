//! Getting tokens, by each of the grants.

pub(super) mod answer;
mod authentication;
mod enterprise;
pub(super) mod post;
pub(super) mod request;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use enterprise::{IdentityProvider, identity_grant};
pub use request::{Binding, Endpoint};

use crate::{Failure, Scopes, Secret, Step, fetch::Fetch};

use super::{
    authorization::Code,
    form::{self, Form},
};
use request::Grant;

/// Tokens as they were given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// The access token.
    pub access: Secret,
    /// How it is sent.
    pub kind: TokenKind,
    /// What gets the next one, if there is such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Secret>,
    /// When the access token ends, in seconds since 1970, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// What it is good for: what was granted, or what was asked for if the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Scopes>,
    /// Who logged in, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token: Option<Secret>,
}

/// How an access token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenKind {
    /// By whoever bears it.
    Bearer,
    /// With a proof by the key that it is bound to.
    Dpop,
}

/// Gets tokens for the code of a login.
pub async fn exchange_code(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    code: &Code,
    binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    if code.issuer != endpoint.server.issuer {
        // A code shown to another server is a code given away.
        let reason = format!(
            "the code is from `{}`, not from `{}`",
            code.issuer, endpoint.server.issuer
        );
        return Err(Failure::new(Step::Token, reason).cure("log in again"));
    }
    let form = Form::default()
        .with("grant_type", "authorization_code")
        .with("code", code.code.expose())
        .with("redirect_uri", &code.redirect_uri)
        .with("code_verifier", code.verifier.expose());
    let grant = Grant {
        step: Step::Token,
        form,
        secrets: vec![&code.code, &code.verifier],
        resource: &code.resource,
        scopes: code.scopes.as_ref(),
    };
    grant.ask(fetch, endpoint, binding).await
}

/// Gets new tokens for a refresh token.
///
/// Where the answer brings no new refresh token, the old one stays: it is in what is returned. `scopes` is what the tokens were
/// good for; they stay so.
pub async fn refresh(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    refresh: &Secret,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    let form = Form::default()
        .with("grant_type", "refresh_token")
        .with("refresh_token", refresh.expose());
    let grant = Grant {
        step: Step::Refresh,
        form,
        secrets: vec![refresh],
        resource,
        scopes,
    };
    let tokens = grant.ask(fetch, endpoint, binding).await?;
    Ok(Tokens {
        refresh: tokens.refresh.or_else(|| Some(refresh.clone())),
        ..tokens
    })
}

/// Gets a token for the client itself, without any user.
pub async fn client_credentials(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    let grant = Grant {
        step: Step::Token,
        form: Form::default()
            .with("grant_type", "client_credentials")
            .with_some("scope", form::scope(scopes).as_deref()),
        secrets: Vec::new(),
        resource,
        scopes,
    };
    grant.ask(fetch, endpoint, binding).await
}

/// Gets a token for what somebody else asserts in a JWT (RFC 7523): an [`identity_grant`], or the identity of a workload.
pub async fn jwt_bearer(
    fetch: &dyn Fetch,
    endpoint: &Endpoint<'_>,
    assertion: &Secret,
    resource: &str,
    scopes: Option<&Scopes>,
    binding: Option<&mut Binding<'_>>,
) -> Result<Tokens, Failure> {
    let form = Form::default()
        .with("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
        .with("assertion", assertion.expose())
        .with_some("scope", form::scope(scopes).as_deref());
    let grant = Grant {
        step: Step::Token,
        form,
        secrets: vec![assertion],
        resource,
        scopes,
    };
    grant.ask(fetch, endpoint, binding).await
}
