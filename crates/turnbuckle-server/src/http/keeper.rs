//! Asking the guard: who is let in, what is answered to all others, and what everybody may read.
//!
//! How a guard knows whom to let in is its own business. Here is only what its answers mean in HTTP.

use std::{fmt, sync::Arc};

use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use bytes::Bytes;
use turnbuckle_protocol::{
    Principal, RpcError,
    guard::{Document, Guard, Refusal, Visit},
    jsonrpc,
};

pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The guard of a server. In the extensions of a request it says who let it in.
#[derive(Clone)]
pub(crate) struct Keeper(Arc<dyn Guard>);

impl Keeper {
    pub(super) fn new(guard: impl Guard) -> Self {
        Self(Arc::new(guard))
    }

    /// Refuses what a caller lacks the scopes for.
    pub(crate) fn guard(&self) -> &dyn Guard {
        &*self.0
    }

    /// Lets a request in, or returns what is answered instead.
    ///
    /// What it says about its sender is the guard's word alone, and the credentials end here: what runs behind cannot
    /// hand them on to others.
    pub(super) async fn admit(&self, parts: &mut Parts) -> Result<(), Response<Bytes>> {
        let principal = self.judge(parts).await.map_err(|refusal| {
            tracing::debug!(status = refusal.status, "not let in: {}", refusal.message);
            refused(&refusal)
        })?;
        parts.headers.remove(AUTHORIZATION);
        parts.headers.remove(DPOP);
        parts.extensions.remove::<Principal>();
        parts.extensions.insert(principal);
        parts.extensions.insert(self.clone());
        Ok(())
    }

    async fn judge(&self, parts: &Parts) -> Result<Arc<Principal>, Refusal> {
        let authorization = texts(&parts.headers, &AUTHORIZATION);
        let dpop = texts(&parts.headers, &DPOP);
        let visit = Visit::new(
            parts.method.as_str(),
            parts.uri.path(),
            &authorization,
            &dpop,
        );
        self.0.admit(visit).await
    }

    /// Returns what everybody may read at the path of a request, if there is something.
    pub(super) async fn document(&self, parts: &Parts) -> Option<Response<Bytes>> {
        let document = self.0.document(parts.uri.path())?;
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Some(other_method());
        }
        Some(published(document.await))
    }
}

/// All values of a header; what is no text is empty.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| value.to_str().unwrap_or_default())
        .collect()
}

/// The answer to somebody who is not let in.
fn refused(refusal: &Refusal) -> Response<Bytes> {
    let mut body = Vec::with_capacity(256);
    let error = RpcError::invalid_request(&*refusal.message);
    jsonrpc::write_error(&mut body, None, &error);
    let mut response = json(status(refusal), body);
    challenge(response.headers_mut(), refusal);
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        let seconds = HeaderValue::from_static("5");
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// The status of a refusal, which is one of an error whatever the guard says.
pub(super) fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status)
        .ok()
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Says how to do better.
pub(super) fn challenge(headers: &mut HeaderMap, refusal: &Refusal) {
    let challenges = refusal.challenges.iter();
    let challenges = challenges.map(|challenge| (WWW_AUTHENTICATE, challenge));
    let nonce = refusal.nonce.iter().map(|nonce| (DPOP_NONCE, nonce));
    for (name, value) in challenges.chain(nonce) {
        match HeaderValue::try_from(value) {
            Ok(value) => {
                headers.append(name, value);
            }
            Err(_) => tracing::error!(%name, "the guard gave a value that no header can have"),
        }
    }
}

fn published(document: Document) -> Response<Bytes> {
    let status = StatusCode::from_u16(document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, document.body);
    // Long enough for the several requests of one login, short enough for a change of mind.
    let cache = if status.is_success() {
        "public, max-age=300"
    } else {
        "no-store"
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

fn other_method() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let methods = HeaderValue::from_static(DOCUMENT_METHODS);
    response.headers_mut().insert(ALLOW, methods);
    response
}

/// What may be done with a document.
pub(super) const DOCUMENT_METHODS: &str = "GET, HEAD";

fn json(status: StatusCode, body: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}
