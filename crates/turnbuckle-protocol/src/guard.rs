//! Who is let in: the seam between a server on HTTP and whoever verifies credentials.
//!
//! A server asks its [`Guard`] about every request, before anything else of it is looked at. How the guard knows, by tokens,
//! certificates or a list of passwords, is its own business: the server learns who is asking, or what to answer instead.

use std::{collections::BTreeSet, fmt, pin::Pin, sync::Arc};

use crate::Principal;

/// A future of a [`Guard`].
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Verifies who is asking.
pub trait Guard: Send + Sync + 'static {
    /// Lets a request in, as sent by somebody, or says why not.
    fn admit<'a>(&'a self, visit: Visit<'a>) -> BoxFuture<'a, Result<Arc<Principal>, Refusal>>;

    /// Refuses an operation that needs more than the caller may do, and says what it needs.
    fn lacking(&self, caller: &Principal, needed: &BTreeSet<String>) -> Refusal;

    /// Returns what everybody may read at a path outside of the endpoint, such as where tokens are to be had.
    ///
    /// Nothing if there is nothing at that path.
    fn document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, Document>>;
}

impl<G: Guard + ?Sized> Guard for Arc<G> {
    fn admit<'a>(&'a self, visit: Visit<'a>) -> BoxFuture<'a, Result<Arc<Principal>, Refusal>> {
        (**self).admit(visit)
    }

    fn lacking(&self, caller: &Principal, needed: &BTreeSet<String>) -> Refusal {
        (**self).lacking(caller, needed)
    }

    fn document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, Document>> {
        (**self).document(path)
    }
}

/// A request, as far as a guard needs to know it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Visit<'a> {
    /// The method, as `POST`.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// Every `Authorization` header; what is no text is empty.
    pub authorization: &'a [&'a str],
    /// Every `DPoP` header; what is no text is empty.
    pub dpop: &'a [&'a str],
}

/// What is answered to somebody who is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The status: 400, 401, 403, or 503 where nobody could tell.
    pub status: u16,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// The value of `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// What is wrong, for people.
    pub message: String,
}

/// A document of JSON that everybody may read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// The status.
    pub status: u16,
    /// The JSON.
    pub body: Vec<u8>,
}

impl<'a> Visit<'a> {
    /// Describes a request.
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

impl Refusal {
    /// Refuses with a status and for a reason.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            challenges: Vec::new(),
            nonce: None,
            message: message.into(),
        }
    }

    /// Says how to do better.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a text and a challenge read best as they are"
    )]
    pub fn challenge(mut self, challenge: impl ToString) -> Self {
        self.challenges.push(challenge.to_string());
        self
    }

    /// Says what the next proof has to repeat.
    #[must_use]
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.nonce = Some(nonce.into());
        self
    }
}

impl Document {
    /// Answers with a status and JSON.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            body: body.into(),
        }
    }
}

/// Shows no credentials.
impl fmt::Debug for Visit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
