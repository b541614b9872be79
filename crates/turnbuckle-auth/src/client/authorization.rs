//! Authorization requests and responses of the code flow.

#[cfg(test)]
mod tests;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use turnbuckle_text::percent::{Form, encode_component, form_pairs};

use super::{oauth_error, registration::ClientRegistration, safe_url};
use crate::{AuthorizationError, AuthorizationServer, AuthorizationStep, Pkce, Scopes, Secret};

/// A started login: the URL for the user, and the values that its response is checked against.
pub struct AuthorizationRequest {
    url: String,
    state: Secret,
    pkce: Pkce,
    issuer: String,
    requires_iss: bool,
    redirect_uri: String,
    resource: String,
    scopes: Option<Scopes>,
}

/// The authorization code of a login, with everything needed to redeem it.
#[derive(Debug)]
pub struct AuthorizationCode {
    pub(super) code: Secret,
    pub(super) verifier: Secret,
    pub(super) issuer: String,
    pub(super) redirect_uri: String,
    pub(super) resource: String,
    pub(super) scopes: Option<Scopes>,
}

impl AuthorizationRequest {
    /// Starts a login: generates `state` and the PKCE verifier, and builds the URL.
    ///
    /// `dpop_jkt` is the thumbprint of the key that the token will be bound to. Fails for a server without PKCE and for
    /// an authorization endpoint that is not safe to open in a browser.
    pub fn new(
        server: &AuthorizationServer,
        client: &ClientRegistration,
        redirect_uri: &str,
        resource: &str,
        scopes: Option<&Scopes>,
        dpop_jkt: Option<&str>,
    ) -> Result<Self, AuthorizationError> {
        let endpoint = endpoint(server)?;
        safe_url::check(
            redirect_uri,
            AuthorizationStep::Authorization,
            "redirect URI",
        )?;
        let no_randomness = |error| {
            AuthorizationError::new(
                AuthorizationStep::Authorization,
                format!("no randomness is available: {error}"),
            )
        };
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
            .with_optional("scope", scope_value(scopes).as_deref())
            .with_optional("dpop_jkt", dpop_jkt)
            .with_optional("prompt", prompt(scopes));
        Ok(Self {
            url: with_query(endpoint, &query.into_string()),
            state,
            pkce,
            issuer: server.issuer.clone(),
            requires_iss: server.authorization_response_iss_parameter_supported,
            redirect_uri: redirect_uri.to_owned(),
            resource: resource.to_owned(),
            scopes: scopes.cloned(),
        })
    }

    /// Returns the URL to open in the browser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the `state`, by which the response names its login.
    pub fn state(&self) -> &Secret {
        &self.state
    }

    /// Parses the authorization response: the URL that the browser was redirected to, or only its query.
    ///
    /// Before anything else is used, `state` must match this login and `iss` must match the server (RFC 9207).
    pub fn parse_response(
        &self,
        url_or_query: &str,
    ) -> Result<AuthorizationCode, AuthorizationError> {
        let code = read_response(self, url_or_query)?;
        Ok(AuthorizationCode {
            code,
            verifier: self.pkce.verifier().clone(),
            issuer: self.issuer.clone(),
            redirect_uri: self.redirect_uri.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
        })
    }
}

/// Shows no secrets of the login.
impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "login at {url}")
    }
}

/// Returns the authorization endpoint if it is safe to use. PKCE is required, because a code could be stolen without
/// it.
pub(super) fn endpoint(server: &AuthorizationServer) -> Result<&str, AuthorizationError> {
    let issuer = &server.issuer;
    let failure =
        |reason: String| AuthorizationError::new(AuthorizationStep::Authorization, reason);
    server.check_pkce().map_err(|_| {
        failure(format!("`{issuer}` does not announce PKCE with S256"))
            .with_hint("ask the operator of the authorization server to add `S256` to `code_challenge_methods_supported` in its metadata")
    })?;
    let Some(endpoint) = server.authorization_endpoint.as_deref() else {
        return Err(failure(format!(
            "`{issuer}` lacks an authorization endpoint, so users cannot log in there"
        ))
        .with_hint("use another grant, such as client credentials"));
    };
    safe_url::check(
        endpoint,
        AuthorizationStep::Authorization,
        "authorization endpoint",
    )?;
    if has_reserved_parameter(endpoint) {
        let reason = "the URL of the authorization endpoint contains parameters that only the client may set";
        return Err(failure(reason.to_owned())
            .with_hint("ask the operator of the authorization server to correct its metadata"));
    }
    Ok(endpoint)
}

/// Returns the value of the `scope` parameter; `None` without scopes.
pub(super) fn scope_value(scopes: Option<&Scopes>) -> Option<String> {
    let scopes = scopes.filter(|scopes| !scopes.is_empty())?;
    Some(scopes.to_string())
}

/// Returns 256 random bits; 128 would be enough.
fn random_state() -> std::io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Appends to the query that the endpoint may already have.
///
/// Characters with a meaning in a shell are escaped, in case the browser is started through one.
fn with_query(endpoint: &str, query: &str) -> String {
    let joint = match endpoint.split_once('?') {
        None => "?",
        Some((_, own)) if own.is_empty() || own.ends_with('&') => "",
        Some(_) => "&",
    };
    let is_special = |character| matches!(character, '$' | '\'' | '(' | ')' | ';' | '!' | '*');
    let pieces = endpoint.split_inclusive(is_special).map(|piece| {
        let plain = piece.trim_end_matches(is_special);
        format!("{plain}{}", encode_component(&piece[plain.len()..]))
    });
    pieces.chain([joint.to_owned(), query.to_owned()]).collect()
}

/// Returns whether the endpoint contains a parameter that only the client may set. Duplicates would be ambiguous.
fn has_reserved_parameter(endpoint: &str) -> bool {
    const RESERVED: [&str; 11] = [
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
    form_pairs(query).any(|(name, _)| RESERVED.contains(&name.as_str()))
}

const CALLBACK: AuthorizationStep = AuthorizationStep::Callback;

/// Maximum length of an authorization response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The parameters of an authorization response, each at most once.
#[derive(Default)]
struct AuthorizationResponse {
    state: Option<Secret>,
    iss: Option<String>,
    code: Option<Secret>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Checks `state`, then `iss`, and returns the code or the error.
fn read_response(
    request: &AuthorizationRequest,
    url_or_query: &str,
) -> Result<Secret, AuthorizationError> {
    let response = AuthorizationResponse::parse(url_or_query)?;
    check_state(request, &response)?;
    check_issuer(request, &response)?;
    if let Some(error) = &response.error {
        return Err(login_rejected(error, response.error_description.as_deref()));
    }
    response
        .code
        .filter(|code| !code.expose().is_empty())
        .ok_or_else(|| {
            AuthorizationError::new(CALLBACK, "the response has neither a code nor an error")
                .with_hint("log in again")
        })
}

impl AuthorizationResponse {
    fn parse(url_or_query: &str) -> Result<AuthorizationResponse, AuthorizationError> {
        let invalid =
            |reason: &str| AuthorizationError::new(CALLBACK, reason).with_hint("log in again");
        if url_or_query.len() > MAX_RESPONSE_BYTES {
            return Err(invalid("the response is too long"));
        }
        let query = match url_or_query.split_once('?') {
            // A question mark after the first `=` is part of a value.
            Some((before, query)) if !before.contains('=') => query,
            _ => url_or_query,
        };
        let (query, _) = query.split_once('#').unwrap_or((query, ""));
        let mut response = AuthorizationResponse::default();
        for (name, value) in form_pairs(query) {
            let is_second = match name.as_str() {
                "state" => response.state.replace(Secret::new(value)).is_some(),
                "iss" => response.iss.replace(value).is_some(),
                "code" => response.code.replace(Secret::new(value)).is_some(),
                "error" => response.error.replace(value).is_some(),
                "error_description" => response.error_description.replace(value).is_some(),
                _ => false,
            };
            // With two codes or two issuers, parsers would disagree on the one to use.
            if is_second {
                return Err(invalid("the response has a parameter twice"));
            }
        }
        Ok(response)
    }
}

fn check_state(
    request: &AuthorizationRequest,
    response: &AuthorizationResponse,
) -> Result<(), AuthorizationError> {
    match &response.state {
        Some(state) if state.constant_time_eq(&request.state) => Ok(()),
        _ => Err(AuthorizationError::new(CALLBACK, "the response does not belong to this login: its `state` is different")
            .with_hint("log in again, in the browser window that was opened last; if it happens again, an attacker may be trying to log you in to another account")),
    }
}

/// Checks `iss` (RFC 9207, section 2.4) by string comparison. Nothing of a response from another server is shown.
fn check_issuer(
    request: &AuthorizationRequest,
    response: &AuthorizationResponse,
) -> Result<(), AuthorizationError> {
    let refuse = |reason: String| {
        Err(AuthorizationError::new(CALLBACK, reason)
            .with_hint("the response was not used, because it may come from another server; log in again, and tell the operator of the authorization server if it happens again"))
    };
    match &response.iss {
        Some(iss) if *iss == request.issuer => Ok(()),
        Some(iss) => refuse(format!(
            "the login was started at `{}`, but the response names the issuer `{}`",
            request.issuer,
            oauth_error::sanitize(iss)
        )),
        None if request.requires_iss => refuse(format!(
            "`{}` announces `iss` in its responses, but the response has none",
            request.issuer
        )),
        None => Ok(()),
    }
}

fn login_rejected(error: &str, description: Option<&str>) -> AuthorizationError {
    let (reason, hint) = match error {
        "access_denied" => ("access was denied", "log in again and allow it"),
        "invalid_scope" => (
            "the authorization server does not support the requested scopes",
            "request other scopes",
        ),
        "invalid_target" => (
            "the authorization server does not issue tokens for this server",
            "check the URL of the server; its operator must register it with the authorization server",
        ),
        "unauthorized_client" | "invalid_client" => (
            "the authorization server does not allow this client to log in",
            "log out, so that the client registers again, or configure another client id",
        ),
        "server_error" | "temporarily_unavailable" => {
            ("the authorization server failed", "try again later")
        }
        _ => (
            "the authorization server rejected the login",
            "log in again",
        ),
    };
    let error_response = match description {
        Some(description) => format!(
            "{}: {}",
            oauth_error::sanitize(error),
            oauth_error::sanitize(description)
        ),
        None => oauth_error::sanitize(error),
    };
    let failure = AuthorizationError::new(CALLBACK, reason)
        .with_response(error_response)
        .with_hint(hint);
    if oauth_error::is_error_code(error) {
        failure.with_error_code(error)
    } else {
        failure
    }
}

const OFFLINE_ACCESS: &str = "offline_access";

/// Adds `offline_access`, which may be required for a refresh token, if the server supports it.
///
/// Adds nothing if no scopes are requested, because then it would be the only one.
pub fn with_offline_access(scopes: Option<Scopes>, server: &AuthorizationServer) -> Option<Scopes> {
    let is_known = server
        .scopes_supported
        .iter()
        .any(|scope| scope == OFFLINE_ACCESS);
    let offline = Scopes::from_iter([OFFLINE_ACCESS.to_owned()]);
    if is_known {
        scopes.map(|scopes| scopes.union(&offline))
    } else {
        scopes
    }
}

/// Returns the `prompt` parameter. OpenID Connect grants `offline_access` only with consent.
fn prompt(scopes: Option<&Scopes>) -> Option<&'static str> {
    let is_offline = scopes.is_some_and(|scopes| scopes.contains(OFFLINE_ACCESS));
    is_offline.then_some("consent")
}
