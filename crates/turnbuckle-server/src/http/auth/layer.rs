//! A tower layer that authenticates requests.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use ::http::{Method, Request, Response};
use bytes::Bytes;
use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_protocol::authenticator::Authenticator;

use crate::http::auth::SharedAuthenticator;

/// Authenticates the requests to any tower service, of this crate or not.
///
/// Authenticated requests reach the inner service with an `Arc<Principal>` in their extensions and without the headers
/// `Authorization` and `DPoP`. All others get the error response of the authenticator. Requests for the documents that it
/// [publishes](Authenticator::metadata_document) are handled here, if the service receives requests for those paths. `OPTIONS` is not
/// authenticated.
///
/// A server of this crate uses the principal as its caller and the authenticator for missing scopes, so the layer is
/// equivalent to [`Http::authenticator`](crate::http::Http::authenticator), except that `Host` and `Origin` are checked
/// after it, not before.
///
/// ```
/// # use std::{collections::BTreeSet, sync::Arc};
/// # use turnbuckle_protocol::{Principal, authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument}};
/// use turnbuckle_server::{Server, http::{AuthLayer, Http}};
/// use tower_layer::Layer;
/// # struct RejectAll;
/// # impl Authenticator for RejectAll {
/// #     fn authenticate<'a>(&'a self, _: AuthRequest<'a>) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
/// #         Box::pin(async { Err(AuthRejection::new(401, "unknown credentials")) })
/// #     }
/// #     fn insufficient_scope(&self, _: &Principal, _: &BTreeSet<String>) -> AuthRejection { AuthRejection::new(403, "") }
/// #     fn metadata_document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> { None }
/// # }
/// # let authenticator = RejectAll;
///
/// let clock = Http::new(Server::new("clock", "1.0.0")).into_service();
/// let protected = AuthLayer::new(authenticator).layer(clock);
/// ```
#[derive(Clone, Debug)]
pub struct AuthLayer {
    authenticator: SharedAuthenticator,
}

impl AuthLayer {
    /// Creates a layer for an authenticator.
    pub fn new(authenticator: impl Authenticator) -> Self {
        Self {
            authenticator: SharedAuthenticator::new(authenticator),
        }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService {
            authenticator: self.authenticator.clone(),
            inner,
        }
    }
}

/// The service that [`AuthLayer`] creates.
#[derive(Clone, Debug)]
pub struct AuthService<S> {
    authenticator: SharedAuthenticator,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for AuthService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Call the clone that was polled ready, and keep the new one.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        let authenticator = self.authenticator.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if parts.method != Method::OPTIONS {
                if let Some(document) = authenticator.document(&parts).await {
                    return Ok(document.map(R::from));
                }
                if let Err(response) = authenticator.authenticate(&mut parts).await {
                    return Ok(response.map(R::from));
                }
            }
            inner.call(Request::from_parts(parts, body)).await
        })
    }
}
