//! Runs the authenticator of a server and translates its results into HTTP.
//!
//! The authenticator decides how credentials are verified.

use std::{fmt, sync::Arc};

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use bytes::Bytes;
use turnbuckle_protocol::{
    Principal, RpcError,
    authenticator::{AuthRejection, AuthRequest, Authenticator, MetadataDocument},
    jsonrpc,
};
use turnbuckle_text::Secret;

pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The access token of an authenticated request, which may be exchanged for tokens for other servers (RFC 8693).
///
/// [`Context::get`](crate::Context::get) returns it if the authenticator
/// [allows the exchange](Authenticator::exchangeable_token); no authenticator does by default. The token is only for this
/// server and the authorization server: sending it to another server would let that server act as the caller here.
#[derive(Clone, Debug)]
pub struct CallerToken(Secret);

impl CallerToken {
    /// Returns the token, without its scheme.
    pub fn secret(&self) -> &Secret {
        &self.0
    }
}

/// The authenticator of a server. It is also put into the extensions of the requests that it authenticated.
#[derive(Clone)]
pub(crate) struct SharedAuthenticator(Arc<dyn Authenticator>);

impl SharedAuthenticator {
    pub(crate) fn new(authenticator: impl Authenticator) -> Self {
        Self(Arc::new(authenticator))
    }

    /// Returns the authenticator, which describes missing scopes.
    pub(crate) fn inner(&self) -> &dyn Authenticator {
        &*self.0
    }

    /// Authenticates a request, or returns the error response.
    ///
    /// The principal in the extensions is replaced by that of the authenticator. The credentials are removed, so that
    /// handlers cannot pass them on.
    pub(crate) async fn authenticate(&self, parts: &mut Parts) -> Result<(), Response<Bytes>> {
        let checked = self.check_credentials(parts).await;
        let (principal, token) = checked.map_err(|rejection| {
            tracing::debug!(
                status = rejection.status,
                "authentication failed: {}",
                rejection.message
            );
            rejection_response(&rejection)
        })?;
        parts.headers.remove(AUTHORIZATION);
        parts.headers.remove(DPOP);
        parts.extensions.remove::<Principal>();
        parts.extensions.insert(principal);
        parts.extensions.remove::<CallerToken>();
        if let Some(token) = token {
            parts.extensions.insert(token);
        }
        parts.extensions.insert(self.clone());
        Ok(())
    }

    async fn check_credentials(
        &self,
        parts: &Parts,
    ) -> Result<(Arc<Principal>, Option<CallerToken>), AuthRejection> {
        let authorization = header_values(&parts.headers, &AUTHORIZATION);
        let dpop = header_values(&parts.headers, &DPOP);
        let visit = AuthRequest::new(
            parts.method.as_str(),
            parts.uri.path(),
            &authorization,
            &dpop,
        );
        let principal = self.0.authenticate(visit).await?;
        let token = self.0.exchangeable_token(visit, &principal);
        Ok((
            principal,
            token.map(|token| CallerToken(Secret::new(token))),
        ))
    }

    /// Returns whether there is a public document at a path.
    pub(crate) fn has_document(&self, path: &str) -> bool {
        self.0.metadata_document(path).is_some()
    }

    /// Returns the public document at the path of a request, if there is one.
    pub(crate) async fn document(&self, parts: &Parts) -> Option<Response<Bytes>> {
        let document = self.0.metadata_document(parts.uri.path())?;
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Some(method_not_allowed());
        }
        Some(document_response(document.await))
    }
}

/// Returns all values of a header. A value that is not text becomes empty.
fn header_values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| value.to_str().unwrap_or_default())
        .collect()
}

/// Returns the error response for a rejected request.
fn rejection_response(rejection: &AuthRejection) -> Response<Bytes> {
    let mut body = Vec::with_capacity(256);
    let error = RpcError::invalid_request(&*rejection.message);
    jsonrpc::write_error(&mut body, None, &error);
    let mut response = json_response(rejection_status(rejection), body);
    add_challenges(response.headers_mut(), rejection);
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        let seconds = HeaderValue::from_static("5");
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// Returns the status of a rejection; 500 if the authenticator gave one that is not an error.
pub(crate) fn rejection_status(rejection: &AuthRejection) -> StatusCode {
    StatusCode::from_u16(rejection.status)
        .ok()
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Adds the challenges and the DPoP nonce of a rejection to the response headers.
pub(crate) fn add_challenges(headers: &mut HeaderMap, rejection: &AuthRejection) {
    let challenges = rejection.challenges.iter();
    let challenges = challenges.map(|value| (WWW_AUTHENTICATE, value));
    let nonce = rejection.nonce.iter().map(|nonce| (DPOP_NONCE, nonce));
    for (name, value) in challenges.chain(nonce) {
        match HeaderValue::try_from(value) {
            Ok(value) => {
                headers.append(name, value);
            }
            Err(_) => tracing::error!(%name, "the authenticator returned an invalid header value"),
        }
    }
}

fn document_response(document: MetadataDocument) -> Response<Bytes> {
    let status = StatusCode::from_u16(document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, document.body);
    // Long enough for the requests of one login, short enough for configuration changes.
    let cache = if status.is_success() {
        "public, max-age=300"
    } else {
        "no-store"
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

fn method_not_allowed() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let methods = HeaderValue::from_static(DOCUMENT_METHODS);
    response.headers_mut().insert(ALLOW, methods);
    response
}

/// The methods that are allowed on a document.
pub(crate) const DOCUMENT_METHODS: &str = "GET, HEAD";

fn json_response(status: StatusCode, body: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

impl fmt::Debug for SharedAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedAuthenticator")
    }
}
