//! A request to a token endpoint, whatever the grant.

use crate::{
    AuthorizationServer, Failure, Scopes, Secret, Step,
    client::{
        form::Form,
        registration::Registered,
        safe_url,
        told::{self, Described},
    },
    fetch::{Fetch, Request, Response},
};

use super::{Tokens, answer, authentication};
use authentication::{Prover, SigningKey};

/// A token endpoint, and who asks there.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Endpoint<'a> {
    /// Whose endpoint it is.
    pub server: &'a AuthorizationServer,
    /// As whom we ask.
    pub client: &'a Registered,
    /// What a client signs with that shows who it is in this way.
    pub key: Option<&'a SigningKey>,
}

/// The key that a token is to be bound to (DPoP), and what the authorization server wants in its proofs.
#[non_exhaustive]
pub struct Binding<'a> {
    /// Makes the proofs.
    pub prover: &'a Prover,
    /// The nonce of the authorization server, as it was last heard.
    pub nonce: Option<String>,
}

/// A request for a token.
pub(in crate::client) struct Grant<'a> {
    pub(in crate::client) step: Step,
    /// What is particular to the grant.
    pub(in crate::client) form: Form,
    /// What in it must not be told, should the server repeat it.
    pub(in crate::client) secrets: Vec<&'a Secret>,
    pub(in crate::client) resource: &'a str,
    pub(in crate::client) scopes: Option<&'a Scopes>,
    /// Whether scopes are chosen by this request, and not by one before it.
    pub(in crate::client) names_scopes: bool,
}

impl<'a> Endpoint<'a> {
    /// Asks as this client.
    pub fn new(server: &'a AuthorizationServer, client: &'a Registered) -> Self {
        Self {
            server,
            client,
            key: None,
        }
    }

    /// Signs with this key.
    #[must_use]
    pub fn key(mut self, key: &'a SigningKey) -> Self {
        self.key = Some(key);
        self
    }
}

impl<'a> Binding<'a> {
    /// Binds tokens to a key.
    pub fn new(prover: &'a Prover) -> Self {
        Self {
            prover,
            nonce: None,
        }
    }
}

impl Grant<'_> {
    /// Asks for tokens.
    pub(in crate::client) async fn ask(
        self,
        fetch: &dyn Fetch,
        endpoint: &Endpoint<'_>,
        mut binding: Option<&mut Binding<'_>>,
    ) -> Result<Tokens, Failure> {
        let Some(url) = endpoint.server.token_endpoint.as_deref() else {
            let reason = format!("`{}` has no token endpoint", endpoint.server.issuer);
            return Err(Failure::new(self.step, reason));
        };
        safe_url::check(url, self.step, "token endpoint")?;
        let scopes = self
            .scopes
            .filter(|scopes| self.names_scopes && !scopes.is_empty());
        let scopes = scopes.map(ToString::to_string);
        let form = self
            .form
            .with("resource", self.resource)
            .with_some("scope", scopes.as_deref());
        let is_bound = binding.is_some();
        let (form, authorization) = authentication::apply(form, endpoint, self.step)?;
        let body = form.into_string();
        let request = || {
            let request = Request::post(url, Form::CONTENT_TYPE, body.clone());
            match &authorization {
                Some(value) => request.header("authorization", value.expose()),
                None => request,
            }
        };
        let described = format!("{:?}", request());
        let response = send(fetch, request, url, self.step, binding.as_deref_mut()).await?;
        let secrets: Vec<_> = self
            .secrets
            .into_iter()
            .chain(&endpoint.client.secret)
            .collect();
        answer::read(&response, self.step, self.scopes, is_bound, &secrets)
            .map_err(|failure| failure.request(Described(described)))
    }
}

/// Sends a request, with a proof if tokens are to be bound; once more if the server wants a nonce in it.
async fn send(
    fetch: &dyn Fetch,
    request: impl Fn() -> Request,
    url: &str,
    step: Step,
    binding: Option<&mut Binding<'_>>,
) -> Result<Response, Failure> {
    let Some(binding) = binding else {
        return told::fetched(fetch, request(), step).await;
    };
    let mut has_asked = false;
    loop {
        let proof = binding.proof(url, step)?;
        let response = told::fetched(fetch, request().header("dpop", proof), step).await?;
        let nonce = response
            .header("dpop-nonce")
            .filter(|nonce| is_nonce(nonce));
        let nonce = nonce.map(str::to_owned);
        let is_new = nonce.is_some() && nonce != binding.nonce;
        binding.nonce = nonce.or_else(|| binding.nonce.take());
        let wants_nonce = told::Told::from(&response).code.as_deref() == Some("use_dpop_nonce");
        if has_asked || !is_new || response.is_success() || !wants_nonce {
            return Ok(response);
        }
        has_asked = true;
    }
}

impl Binding<'_> {
    fn proof(&self, url: &str, step: Step) -> Result<String, Failure> {
        let proof = self.prover.proof("POST", url, None, self.nonce.as_deref());
        proof.map_err(|error| Failure::new(step, format!("no proof could be made: {error}")))
    }
}

/// Whether it may stand in a JWT: what RFC 9449 lets a nonce be, and not without end.
fn is_nonce(nonce: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !nonce.is_empty() && nonce.len() <= 1024 && nonce.bytes().all(is_allowed)
}
