//! Authentication and protection against cross-site requests: the authenticator of an endpoint, a tower layer, the
//! `Host` and `Origin` checks, and CORS.

pub(super) mod authenticator;
pub(super) mod cors;
mod host_origin;
mod layer;

use std::{future::poll_fn, net::SocketAddr, pin::pin, sync::Arc, task::Poll};

use ::http::{Method, Response, request::Parts};
pub use authenticator::CallerToken;
use authenticator::DOCUMENT_METHODS;
pub(crate) use authenticator::SharedAuthenticator;
use bytes::Bytes;
pub(super) use host_origin::{HostOriginCheck, WebOrigin};
pub use layer::{AuthLayer, AuthService};
use turnbuckle_protocol::authenticator::Authenticator;

use crate::http::{
    Http,
    body::ResponseBody,
    connection::ConnectionHandle,
    endpoint::{Endpoint, InFlightPermit, RequestHead, options_response},
    session::limits::owner_for_address,
};

impl Http {
    /// Authenticates every request.
    ///
    /// The authenticator runs before the body is read, on the endpoint and, if enabled, on both paths of
    /// [`HttpSse`](super::HttpSse). The principal that it returns is the caller that handlers see, and the owner of sessions,
    /// streams and tasks. Other requests get the error response that it returns. `turnbuckle_auth::server::ResourceServer` is
    /// an authenticator that verifies access tokens.
    ///
    /// The documents that the authenticator [publishes](Authenticator::metadata_document), such as protected resource metadata, are public. If
    /// you use the tower service, mount it where it receives requests for those paths. The health path and CORS
    /// preflight requests need no credentials either.
    ///
    /// Handlers do not see the headers `Authorization` and `DPoP`: a token is only for this server and must not be passed on.
    /// A [`CallerToken`] can be exchanged, if the authenticator allows it.
    ///
    /// ```
    /// use std::{collections::BTreeSet, sync::Arc};
    /// use turnbuckle_protocol::{Principal, authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument}};
    /// use turnbuckle_server::{Server, http::Http};
    ///
    /// /// Accepts one password.
    /// struct Password(String);
    ///
    /// impl Authenticator for Password {
    ///     fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
    ///         Box::pin(async move {
    ///             match request.authorization {
    ///                 [given] if *given == self.0 => Ok(Arc::new(Principal::new("here", "ada"))),
    ///                 _ => Err(AuthRejection::new(401, "credentials are required").challenge("Basic realm=\"here\"")),
    ///             }
    ///         })
    ///     }
    ///
    ///     fn insufficient_scope(&self, _: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
    ///         AuthRejection::new(403, format!("missing scopes: {needed:?}"))
    ///     }
    ///
    ///     fn metadata_document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
    ///         None
    ///     }
    /// }
    ///
    /// let http = Http::new(Server::new("clock", "1.0.0")).authenticator(Password("Basic YWRhOjEyMw==".into()));
    /// ```
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.options.authenticator = Some(SharedAuthenticator::new(authenticator));
        self
    }
}

/// Authenticates a request if its path requires it, and responds.
pub(super) async fn respond<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    authenticator: &SharedAuthenticator,
    mut parts: Parts,
    body: B,
    connection: ConnectionHandle,
) -> Response<ResponseBody> {
    let is_mcp_path = endpoint.is_mcp_path(&parts);
    if !is_mcp_path && endpoint.is_health_path(&parts) {
        return endpoint.dispatch(parts, body, connection).await;
    }
    // Unauthenticated requests count as in flight too, since the authenticator may send requests of its own.
    let forwarded = parts.extensions.get::<SocketAddr>().copied();
    let peer = forwarded.or_else(|| connection.peer());
    let mut permit = match endpoint.acquire_permit(|| owner_for_address(peer)) {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    if is_mcp_path {
        // Browsers send CORS preflight requests without credentials.
        if parts.method != Method::OPTIONS
            && let Err(response) = authenticate(authenticator, &mut parts, peer, &mut permit).await
        {
            drop(permit);
            return response.map(ResponseBody::full);
        }
    } else if let Some(document) = authenticator.document(&parts).await {
        if parts.method == Method::OPTIONS {
            return options_response(&RequestHead::new(parts, connection), DOCUMENT_METHODS);
        }
        return document.map(ResponseBody::full);
    }
    drop(permit);
    endpoint.dispatch(parts, body, connection).await
}

/// Authenticates a request. If that takes a while, the request counts for the address that it comes from.
async fn authenticate(
    authenticator: &SharedAuthenticator,
    parts: &mut Parts,
    peer: Option<SocketAddr>,
    permit: &mut InFlightPermit,
) -> Result<(), Response<Bytes>> {
    let mut authenticating = pin!(authenticator.authenticate(parts));
    match poll_fn(|cx| Poll::Ready(authenticating.as_mut().poll(cx))).await {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => {
            permit.count_for_owner(owner_for_address(peer));
            authenticating.await
        }
    }
}
