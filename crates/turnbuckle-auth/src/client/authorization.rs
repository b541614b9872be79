//! Sending the user to log in, and reading the answer.

mod answer;
mod offline;

#[cfg(test)]
mod tests;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{AuthorizationServer, Failure, Pkce, Scopes, Secret, Step};

use super::{
    form::{self, Form},
    registration::Registered,
    safe_url,
};

pub use offline::with_offline_access;

/// A login that was begun: the URL to send the user to, and what its answer is held against.
pub struct AuthorizationRequest {
    url: String,
    state: Secret,
    pkce: Pkce,
    issuer: String,
    names_issuer: bool,
    redirect_uri: String,
    resource: String,
    scopes: Option<Scopes>,
}

/// The code that a login ended with, and all that belongs to it.
#[derive(Debug)]
pub struct Code {
    pub(super) code: Secret,
    pub(super) verifier: Secret,
    pub(super) issuer: String,
    pub(super) redirect_uri: String,
    pub(super) resource: String,
    pub(super) scopes: Option<Scopes>,
}

impl AuthorizationRequest {
    /// Begins a login: makes the secrets that tie its answer to it, and the URL.
    ///
    /// `dpop_jkt` is the thumbprint of the key that the token will be bound to. Refused are a server without PKCE, and an
    /// endpoint that no browser should be sent to.
    pub fn new(
        server: &AuthorizationServer,
        client: &Registered,
        redirect_uri: &str,
        resource: &str,
        scopes: Option<&Scopes>,
        dpop_jkt: Option<&str>,
    ) -> Result<Self, Failure> {
        let endpoint = endpoint(server)?;
        safe_url::check(redirect_uri, Step::Authorization, "redirect URI")?;
        let no_randomness =
            |error| Failure::new(Step::Authorization, format!("no randomness: {error}"));
        let pkce = Pkce::random().map_err(no_randomness)?;
        let state = random_state().map_err(no_randomness)?;
        let query = Form::default()
            .with("response_type", "code")
            .with("client_id", &client.id)
            .with("redirect_uri", redirect_uri)
            .with("state", state.expose())
            .with("code_challenge", &pkce.challenge())
            .with("code_challenge_method", "S256")
            .with("resource", resource)
            .with_some("scope", form::scope(scopes).as_deref())
            .with_some("dpop_jkt", dpop_jkt)
            .with_some("prompt", offline::prompt(scopes));
        Ok(Self {
            url: with_query(endpoint, &query.into_string()),
            state,
            pkce,
            issuer: server.issuer.clone(),
            names_issuer: server.authorization_response_iss_parameter_supported,
            redirect_uri: redirect_uri.to_owned(),
            resource: resource.to_owned(),
            scopes: scopes.cloned(),
        })
    }

    /// Returns where to send the user.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Reads what came back: the URL that the user was sent to, or its query alone.
    ///
    /// Nothing of it is used before it is known to be the answer to this login, by `state`, and to come from the server that
    /// was asked, by `iss` (RFC 9207).
    pub fn answer(&self, url_or_query: &str) -> Result<Code, Failure> {
        let code = answer::read(self, url_or_query)?;
        Ok(Code {
            code,
            verifier: self.pkce.verifier().clone(),
            issuer: self.issuer.clone(),
            redirect_uri: self.redirect_uri.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
        })
    }
}

/// Shows nothing that an answer could be made of.
impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "login at {url}")
    }
}

/// Returns where people log in, unless it is unsafe to send them there: without PKCE a code could be stolen.
pub(super) fn endpoint(server: &AuthorizationServer) -> Result<&str, Failure> {
    let issuer = &server.issuer;
    let failure = |reason: String| Failure::new(Step::Authorization, reason);
    server.check_pkce().map_err(|_| {
        failure(format!("`{issuer}` does not say that it protects logins by PKCE with S256"))
            .cure("whoever runs it must offer `code_challenge_methods_supported` with `S256` in its metadata")
    })?;
    let Some(endpoint) = server.authorization_endpoint.as_deref() else {
        return Err(failure(format!(
            "nobody can log in at `{issuer}`: it has no authorization endpoint"
        ))
        .cure("use another grant, such as client credentials"));
    };
    safe_url::check(endpoint, Step::Authorization, "authorization endpoint")?;
    if speaks_for_us(endpoint) {
        let reason = "the authorization endpoint says in its URL what only a client may say";
        return Err(failure(reason.to_owned())
            .cure("whoever runs the authorization server must correct its metadata"));
    }
    Ok(endpoint)
}

/// 256 bits, though 128 would do.
fn random_state() -> std::io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Adds to the query that an endpoint has of its own.
///
/// What a shell could find a meaning in is escaped on the way: whoever opens the browser might use one.
fn with_query(endpoint: &str, query: &str) -> String {
    let joint = match endpoint.split_once('?') {
        None => "?",
        Some((_, own)) if own.is_empty() || own.ends_with('&') => "",
        Some(_) => "&",
    };
    let is_special = |letter| matches!(letter, '$' | '\'' | '(' | ')' | ';' | '!' | '*');
    let pieces = endpoint.split_inclusive(is_special).map(|piece| {
        let plain = piece.trim_end_matches(is_special);
        format!("{plain}{}", form::encode(&piece[plain.len()..]))
    });
    pieces.chain([joint.to_owned(), query.to_owned()]).collect()
}

/// Whether an endpoint says of its own what only we say: then each reader of the URL would take what it likes.
fn speaks_for_us(endpoint: &str) -> bool {
    const OURS: [&str; 11] = [
        "response_type",
        "client_id",
        "redirect_uri",
        "state",
        "code_challenge",
        "code_challenge_method",
        "resource",
        "scope",
        "request",
        "request_uri",
        "response_mode",
    ];
    let (_, query) = endpoint.split_once('?').unwrap_or_default();
    form::pairs(query).any(|(name, _)| OURS.contains(&name.as_str()))
}
