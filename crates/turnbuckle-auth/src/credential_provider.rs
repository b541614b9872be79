//! The interface between an HTTP client and the source of its credentials.

use std::{fmt, sync::Arc};

use turnbuckle_protocol::authenticator::BoxFuture;

use crate::{AuthorizationError, Challenge, Secret};

/// Provides credentials for the requests of one client to one server.
///
/// The client calls [`credentials`](Self::credentials) before every request and
/// [`on_unauthorized`](Self::on_unauthorized) after a 401 or 403. Requests run concurrently: one that was sent with
/// older credentials than the current ones is simply retried.
pub trait CredentialProvider: Send + Sync + 'static {
    /// Returns the headers for a request; empty before the first login.
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>>;

    /// Handles a 401 or 403, and obtains new credentials if possible: by a refresh, a login, more scopes or a new
    /// nonce.
    ///
    /// May take minutes if the user has to log in.
    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>>;

    /// Returns the protocol extensions that the grant uses; the client advertises them.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Stores the nonce that the server requires in the next DPoP proof.
    fn set_dpop_nonce(&self, nonce: &str) {
        let _ = nonce;
    }
}

/// Lets several clients share one provider.
impl<A: CredentialProvider + ?Sized> CredentialProvider for Arc<A> {
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
        (**self).credentials(request)
    }

    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
        (**self).on_unauthorized(response)
    }

    fn extensions(&self) -> &'static [&'static str] {
        (**self).extensions()
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        (**self).set_dpop_nonce(nonce);
    }
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UnsignedRequest<'a> {
    /// The HTTP method, such as `POST`.
    pub method: &'a str,
    /// The URL, exactly as it is sent.
    pub url: &'a str,
}

/// Credentials for one request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Credentials {
    /// The headers; names are lower case.
    pub headers: Vec<(&'static str, Secret)>,
    /// Number of these credentials; changes whenever the credentials change.
    pub generation: u64,
}

/// A 401 or 403 response.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct UnauthorizedResponse<'a> {
    /// The request it answers.
    pub request: UnsignedRequest<'a>,
    /// The HTTP status.
    pub status: u16,
    /// The challenges of `WWW-Authenticate`; empty if there are none or they are malformed.
    pub challenges: &'a [Challenge],
    /// Generation of the credentials that the request was sent with.
    pub generation: u64,
    /// Number of times the request has been sent, including this one.
    pub attempts: u32,
}

/// The next step after a 401 or 403.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Send the request again; the credentials have changed.
    Retry,
    /// Return the response to the caller.
    GiveUp,
}

impl<'a> UnsignedRequest<'a> {
    /// Describes a request.
    pub fn new(method: &'a str, url: &'a str) -> Self {
        Self { method, url }
    }
}

impl Credentials {
    /// Creates credentials from headers.
    pub fn new(generation: u64, headers: Vec<(&'static str, Secret)>) -> Self {
        Self {
            headers,
            generation,
        }
    }
}

impl<'a> UnauthorizedResponse<'a> {
    /// Describes a response.
    pub fn new(
        request: UnsignedRequest<'a>,
        status: u16,
        challenges: &'a [Challenge],
        generation: u64,
        attempts: u32,
    ) -> Self {
        Self {
            request,
            status,
            challenges,
            generation,
            attempts,
        }
    }
}

impl fmt::Debug for UnauthorizedResponse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.request.method)
    }
}
