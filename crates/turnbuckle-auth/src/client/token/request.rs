//! Requests to a token endpoint: client authentication, DPoP proofs, and the POST itself.

use serde_json::{Map, json};
use turnbuckle_text::percent::{FORM_CONTENT_TYPE, Form};

use super::{AcceptedTokenKinds, Tokens, read_tokens};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Scopes, Secret,
    basic_auth::basic_auth_header,
    client::{
        oauth_error::{self, OAuthErrorResponse, RequestDescription},
        registration::{ClientAuthentication, ClientRegistration},
        safe_url,
    },
    dpop::DpopProver,
    fetch::{Fetch, FetchMethod, FetchRequest, FetchResponse},
    jwt::{SigningError, SigningKey, encode},
    unix_time,
};

/// A token endpoint, and the client that uses it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenEndpoint<'a> {
    /// The authorization server.
    pub server: &'a AuthorizationServer,
    /// The client registration.
    pub client: &'a ClientRegistration,
    /// The key of a client that authenticates with `private_key_jwt`.
    pub key: Option<&'a SigningKey>,
}

/// The key that a token will be bound to (DPoP), and the nonce for its proofs.
#[derive(Debug)]
#[non_exhaustive]
pub struct DpopBinding<'a> {
    /// Creates the proofs.
    pub prover: &'a DpopProver,
    /// The latest nonce of the authorization server; keep it for the next request.
    pub nonce: Option<String>,
    /// Treat an unbound token as an error.
    pub required: bool,
}

/// A token request.
pub(in crate::client) struct TokenRequest<'a> {
    pub(in crate::client) step: AuthorizationStep,
    /// The parameters of the grant.
    pub(in crate::client) form: Form,
    /// Secrets of the request, which are redacted from errors.
    pub(in crate::client) secrets: Vec<&'a Secret>,
    pub(in crate::client) resource: &'a str,
    /// The scopes requested now or at the start of the login.
    pub(in crate::client) scopes: Option<&'a Scopes>,
}

impl<'a> TokenEndpoint<'a> {
    /// Creates an endpoint for a client.
    pub fn new(server: &'a AuthorizationServer, client: &'a ClientRegistration) -> Self {
        Self {
            server,
            client,
            key: None,
        }
    }

    /// Sets the key for `private_key_jwt`.
    #[must_use]
    pub fn key(mut self, key: &'a SigningKey) -> Self {
        self.key = Some(key);
        self
    }
}

impl<'a> DpopBinding<'a> {
    /// Binds tokens to a key.
    pub fn new(prover: &'a DpopProver) -> Self {
        Self {
            prover,
            nonce: None,
            required: false,
        }
    }

    /// Sets whether an unbound token is an error.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }
}

impl TokenRequest<'_> {
    /// Sends the request and reads the tokens.
    pub(in crate::client) async fn send(
        self,
        fetch: &dyn Fetch,
        endpoint: &TokenEndpoint<'_>,
        binding: Option<&mut DpopBinding<'_>>,
    ) -> Result<Tokens, AuthorizationError> {
        let Some(url) = endpoint.server.token_endpoint.as_deref() else {
            let reason = format!("`{}` lacks a token endpoint", endpoint.server.issuer);
            return Err(AuthorizationError::new(self.step, reason));
        };
        let post = TokenPost {
            url,
            what: "token endpoint",
            step: self.step,
            form: self.form.with("resource", self.resource),
            endpoint,
        };
        let accepted = match &binding {
            None => AcceptedTokenKinds::Bearer,
            Some(binding) if binding.required => AcceptedTokenKinds::Bound,
            Some(_) => AcceptedTokenKinds::Any,
        };
        let response = post.send(fetch, binding).await?;
        let secrets = self.secrets.into_iter().chain(&endpoint.client.secret);
        let secrets: Vec<_> = secrets.collect();
        read_tokens(&response, self.step, self.scopes, accepted, &secrets)
            .map_err(|failure| failure.with_request(post.description()))
    }
}

/// A form and its destination.
pub(in crate::client) struct TokenPost<'a> {
    pub(in crate::client) url: &'a str,
    /// Name of the endpoint, for errors.
    pub(in crate::client) what: &'a str,
    pub(in crate::client) step: AuthorizationStep,
    pub(in crate::client) form: Form,
    pub(in crate::client) endpoint: &'a TokenEndpoint<'a>,
}

impl TokenPost<'_> {
    /// Sends the form, with a proof if tokens are to be bound. Sends it again if the server requires a nonce in the
    /// proof.
    pub(in crate::client) async fn send(
        &self,
        fetch: &dyn Fetch,
        binding: Option<&mut DpopBinding<'_>>,
    ) -> Result<FetchResponse, AuthorizationError> {
        safe_url::check(self.url, self.step, self.what)?;
        let Some(binding) = binding else {
            return oauth_error::send_request(fetch, self.request()?, self.step).await;
        };
        let (response, has_new_nonce) = self.send_with_proof(fetch, binding).await?;
        let wants_nonce =
            OAuthErrorResponse::new(&response, &[]).code.as_deref() == Some("use_dpop_nonce");
        if !(wants_nonce && has_new_nonce) {
            return Ok(response);
        }
        let (response, _) = self.send_with_proof(fetch, binding).await?;
        Ok(response)
    }

    /// Describes the request, for errors.
    pub(in crate::client) fn description(&self) -> RequestDescription {
        RequestDescription(format!("{} {}", FetchMethod::Post, without_query(self.url)))
    }

    /// Sends the form once. Returns the response, and whether it contained a new nonce.
    async fn send_with_proof(
        &self,
        fetch: &dyn Fetch,
        binding: &mut DpopBinding<'_>,
    ) -> Result<(FetchResponse, bool), AuthorizationError> {
        let nonce = binding.nonce.as_deref();
        let proof = binding.prover.proof("POST", self.url, None, nonce);
        let proof =
            proof.map_err(|error| self.fail(format!("cannot create a DPoP proof: {error}")))?;
        let request = self.request()?.header("dpop", proof);
        let response = oauth_error::send_request(fetch, request, self.step).await?;
        let received = response
            .header("dpop-nonce")
            .filter(|nonce| is_valid_nonce(nonce));
        let is_new = received.is_some() && received != nonce;
        if let Some(received) = received {
            binding.nonce = Some(received.to_owned());
        }
        Ok((response, is_new))
    }

    /// Builds the request. Called for each attempt, because client assertions must not be reused.
    fn request(&self) -> Result<FetchRequest, AuthorizationError> {
        let shown = authenticate(self.form.clone(), self.endpoint);
        let (form, header) = shown.map_err(|error| match error.hint() {
            Some(hint) => self.fail(error.to_string()).with_hint(hint),
            None => self.fail(error.to_string()),
        })?;
        let request = FetchRequest::post(self.url, FORM_CONTENT_TYPE, form.into_string());
        Ok(match header {
            Some(value) => request.header("authorization", value.expose()),
            None => request,
        })
    }

    fn fail(&self, reason: String) -> AuthorizationError {
        AuthorizationError::new(self.step, reason).with_request(self.description())
    }
}

/// Returns the URL without its query.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// Returns whether the nonce has the syntax of RFC 9449 and a reasonable length.
fn is_valid_nonce(nonce: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !nonce.is_empty() && nonce.len() <= 1024 && nonce.bytes().all(is_allowed)
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Lifetime of a client assertion, in seconds: enough for one request and a small clock difference.
const ASSERTION_LIFETIME_SECONDS: u64 = 60;

/// Reason why a client cannot authenticate.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientAuthError {
    #[error("the client lacks a secret, but the authorization server requires one")]
    NoSecret,
    #[error("the client lacks a key, but the authorization server requires a signature")]
    NoKey,
    #[error("the client assertion could not be signed: {0}")]
    Signing(#[from] SigningError),
}

/// Adds the client authentication: to the form, or as the returned `Authorization` header.
pub(super) fn authenticate(
    form: Form,
    endpoint: &TokenEndpoint<'_>,
) -> Result<(Form, Option<Secret>), ClientAuthError> {
    let client = endpoint.client;
    let secret = client.secret.as_ref().ok_or(ClientAuthError::NoSecret);
    let with_client_id = |form: Form| form.with("client_id", &client.id);
    Ok(match client.method {
        ClientAuthentication::None => (with_client_id(form), None),
        ClientAuthentication::Basic => (form, Some(basic_auth_header(&client.id, secret?))),
        ClientAuthentication::Post => {
            let form = with_client_id(form).with("client_secret", secret?.expose());
            (form, None)
        }
        ClientAuthentication::PrivateKeyJwt => {
            let key = endpoint.key.ok_or(ClientAuthError::NoKey)?;
            let assertion = assertion(key, &client.id, &endpoint.server.issuer)?;
            let form = with_client_id(form).with("client_assertion_type", JWT_BEARER);
            (form.with("client_assertion", &assertion), None)
        }
    })
}

impl ClientAuthError {
    /// Returns what the user can do.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoSecret => Some("configure the secret of the client id"),
            Self::NoKey => Some("configure the key of the client id"),
            Self::Signing(_) => None,
        }
    }
}

/// Creates the client assertion (RFC 7523, section 3). Its audience is the issuer: one for the endpoint could be used
/// at another server that names the same endpoint.
fn assertion(key: &SigningKey, id: &str, issuer: &str) -> Result<String, SigningError> {
    let mut unique = [0; 16];
    getrandom::fill(&mut unique).map_err(|_| SigningError::Randomness)?;
    let now = unix_time::now();
    let claims = json!({
        "iss": id,
        "sub": id,
        "aud": issuer,
        "jti": encode(unique),
        "iat": now,
        "exp": now + ASSERTION_LIFETIME_SECONDS,
    });
    let header = Map::from_iter([("typ".to_owned(), json!("JWT"))]);
    key.sign(header, &claims)
}
