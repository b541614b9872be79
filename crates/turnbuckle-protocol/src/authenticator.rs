//! Authentication of HTTP requests: the interface between a server and the code that verifies credentials.
//!
//! A server calls its [`Authenticator`] for every request before it processes anything else. How credentials are
//! verified, by tokens, certificates or passwords, is up to the implementation: the server gets a [`Principal`] or a
//! rejection to respond with.

use std::{collections::BTreeSet, fmt, pin::Pin, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The future that methods of an [`Authenticator`] return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Authenticates HTTP requests.
pub trait Authenticator: Send + Sync + 'static {
    /// Authenticates a request. Returns the caller, or the rejection to respond with.
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>>;

    /// Returns the rejection of an operation that needs scopes which the caller lacks.
    fn insufficient_scope(&self, caller: &Principal, needed: &BTreeSet<String>) -> AuthRejection;

    /// Returns a public document at a path outside of the endpoint, such as the OAuth protected resource metadata.
    ///
    /// Returns `None` if there is nothing at that path.
    fn metadata_document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, MetadataDocument>>;

    /// Returns the access token of a request that was authenticated as `caller`, if handlers may exchange it for tokens
    /// for other servers (RFC 8693). It must not be sent to those servers itself.
    ///
    /// `None` by default: no token outlives the authentication of its request.
    fn exchangeable_token<'a>(
        &self,
        request: AuthRequest<'a>,
        caller: &Principal,
    ) -> Option<&'a str> {
        let _ = (request, caller);
        None
    }
}

impl<G: Authenticator + ?Sized> Authenticator for Arc<G> {
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        (**self).authenticate(request)
    }

    fn insufficient_scope(&self, caller: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
        (**self).insufficient_scope(caller, needed)
    }

    fn metadata_document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        (**self).metadata_document(path)
    }

    fn exchangeable_token<'a>(
        &self,
        request: AuthRequest<'a>,
        caller: &Principal,
    ) -> Option<&'a str> {
        (**self).exchangeable_token(request, caller)
    }
}

/// The parts of an HTTP request that an authenticator needs.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct AuthRequest<'a> {
    /// The method, for example `POST`.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// Every `Authorization` header; a value that is not text is empty.
    pub authorization: &'a [&'a str],
    /// Every `DPoP` header; a value that is not text is empty.
    pub dpop: &'a [&'a str],
}

/// The error response to a request that is not authenticated or not authorized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthRejection {
    /// The status: 400, 401, 403, or 503 if the credentials could not be verified.
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// The value of `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// A message for people.
    pub message: String,
}

/// A public JSON document, for example OAuth protected resource metadata (RFC 9728).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataDocument {
    /// The status.
    pub status: u16,
    /// The JSON text.
    pub body: Vec<u8>,
}

impl<'a> AuthRequest<'a> {
    /// Creates a request description.
    pub fn new(
        method: &'a str,
        path: &'a str,
        authorization: &'a [&'a str],
        dpop: &'a [&'a str],
    ) -> Self {
        Self {
            method,
            path,
            authorization,
            dpop,
        }
    }
}

impl AuthRejection {
    /// Creates a rejection with a status and a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            challenges: Vec::new(),
            nonce: None,
            message: message.into(),
        }
    }

    /// Adds a `WWW-Authenticate` challenge.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers pass text or a challenge by value"
    )]
    pub fn challenge(mut self, challenge: impl ToString) -> Self {
        self.challenges.push(challenge.to_string());
        self
    }

    /// Sets the `DPoP-Nonce` that the next proof must contain.
    #[must_use]
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.nonce = Some(nonce.into());
        self
    }
}

impl MetadataDocument {
    /// Creates a document with a status and a JSON body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            body: body.into(),
        }
    }
}

/// Omits the credentials.
impl fmt::Debug for AuthRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The authenticated caller of a request.
///
/// The code that verified the credentials fills it in. Sessions, subscriptions, tasks and sealed request state are
/// bound to it. Two principals are the same caller if issuer, subject and client are equal; scopes and claims may
/// differ between two tokens of one caller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// The issuer, for example the `iss` claim of a token.
    pub issuer: String,
    /// The subject, as the issuer names it.
    pub subject: String,
    /// The client program that acts for the caller, if known.
    pub client: Option<String>,
    /// The granted scopes.
    pub scopes: BTreeSet<String>,
    /// All other claims.
    pub claims: Map<String, Value>,
    /// Unix time in seconds from which the credentials of this request are not accepted any more, if known.
    ///
    /// Streams that the request opened end then. It belongs to the request, not to the caller, so it is not serialized.
    #[serde(skip)]
    pub expires_at: Option<u64>,
}

impl Principal {
    /// Creates a principal from issuer and subject.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            subject: subject.into(),
            ..Self::default()
        }
    }

    /// Returns whether both are the same caller, regardless of scopes and claims.
    pub fn is_same_caller(&self, other: &Self) -> bool {
        (&self.issuer, &self.subject, &self.client)
            == (&other.issuer, &other.subject, &other.client)
    }
}
