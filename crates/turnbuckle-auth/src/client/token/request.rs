//! A request to a token endpoint, whatever the grant.

use crate::{
    AuthorizationServer, Failure, Scopes, Secret, Step,
    client::{form::Form, registration::Registered},
    dpop::Prover,
    fetch::Fetch,
    jwt::SigningKey,
};

use super::{
    Tokens,
    answer::{self, Kinds},
    post::Post,
};

/// A token endpoint, and who asks there.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Endpoint<'a> {
    /// Whose endpoint it is.
    pub server: &'a AuthorizationServer,
    /// As whom we ask.
    pub client: &'a Registered,
    /// What a client signs with that shows who it is by a signature.
    pub key: Option<&'a SigningKey>,
}

/// The key that a token is to be bound to (DPoP), and what the authorization server wants in its proofs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Binding<'a> {
    /// Makes the proofs.
    pub prover: &'a Prover,
    /// The nonce of the authorization server, as it was last heard; to be kept for the next request.
    pub nonce: Option<String>,
    /// Whether a token that is not bound is of no use.
    pub required: bool,
}

/// A request for tokens.
pub(in crate::client) struct Grant<'a> {
    pub(in crate::client) step: Step,
    /// What is particular to the grant.
    pub(in crate::client) form: Form,
    /// What in it must not be told, should the server repeat it.
    pub(in crate::client) secrets: Vec<&'a Secret>,
    pub(in crate::client) resource: &'a str,
    /// What is asked for, now or when the login was begun.
    pub(in crate::client) scopes: Option<&'a Scopes>,
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
            required: false,
        }
    }

    /// Says whether a token that is not bound is of no use.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }
}

impl Grant<'_> {
    /// Asks for tokens.
    pub(in crate::client) async fn ask(
        self,
        fetch: &dyn Fetch,
        endpoint: &Endpoint<'_>,
        binding: Option<&mut Binding<'_>>,
    ) -> Result<Tokens, Failure> {
        let Some(url) = endpoint.server.token_endpoint.as_deref() else {
            let reason = format!("`{}` has no token endpoint", endpoint.server.issuer);
            return Err(Failure::new(self.step, reason));
        };
        let post = Post {
            url,
            what: "token endpoint",
            step: self.step,
            form: self.form.with("resource", self.resource),
            endpoint,
        };
        let kinds = match &binding {
            None => Kinds::Bearer,
            Some(binding) if binding.required => Kinds::Bound,
            Some(_) => Kinds::Any,
        };
        let response = post.send(fetch, binding).await?;
        let secrets = self.secrets.into_iter().chain(&endpoint.client.secret);
        let secrets: Vec<_> = secrets.collect();
        answer::read(&response, self.step, self.scopes, kinds, &secrets)
            .map_err(|failure| failure.request(post.described()))
    }
}
