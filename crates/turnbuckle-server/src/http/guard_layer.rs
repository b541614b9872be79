//! A guard before any tower service.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use ::http::{Method, Request, Response};
use bytes::Bytes;
use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_protocol::guard::Guard;

use super::keeper::Keeper;

/// Puts a guard before a tower service of your own, be it one of this crate or not.
///
/// Requests that the guard lets in go on, with an `Arc<Principal>` in their extensions and without the headers
/// `Authorization` and `DPoP`; all others are answered with what it says. Requests for what it
/// [publishes](Guard::document) are answered here, if the service is asked for those paths at all. `OPTIONS` passes.
///
/// A server of this crate takes the principal for its caller and the guard's word for missing scopes, so this does what
/// [`Http::guard`](super::Http::guard) does; but `Host` and `Origin` are checked behind it, not before.
///
/// ```
/// # use std::{collections::BTreeSet, sync::Arc};
/// # use turnbuckle_protocol::{Principal, guard::{BoxFuture, Document, Guard, Refusal, Visit}};
/// use turnbuckle_server::{Server, http::{GuardLayer, Http}};
/// use tower_layer::Layer;
/// # struct Nobody;
/// # impl Guard for Nobody {
/// #     fn admit<'a>(&'a self, _: Visit<'a>) -> BoxFuture<'a, Result<Arc<Principal>, Refusal>> {
/// #         Box::pin(async { Err(Refusal::new(401, "nobody is known")) })
/// #     }
/// #     fn lacking(&self, _: &Principal, _: &BTreeSet<String>) -> Refusal { Refusal::new(403, "") }
/// #     fn document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, Document>> { None }
/// # }
/// # let guard = Nobody;
///
/// let clock = Http::new(Server::new("clock", "1.0.0")).into_service();
/// let protected = GuardLayer::new(guard).layer(clock);
/// ```
#[derive(Clone, Debug)]
pub struct GuardLayer {
    keeper: Keeper,
}

impl GuardLayer {
    /// Asks this guard.
    pub fn new(guard: impl Guard) -> Self {
        Self {
            keeper: Keeper::new(guard),
        }
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            keeper: self.keeper.clone(),
            inner,
        }
    }
}

/// A service with a guard before it: what [`GuardLayer`] makes.
#[derive(Clone, Debug)]
pub struct Guarded<S> {
    keeper: Keeper,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Guarded<S>
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
        // The one that was asked whether it is ready is the one to call.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        let keeper = self.keeper.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if parts.method != Method::OPTIONS {
                if let Some(document) = keeper.document(&parts).await {
                    return Ok(document.map(R::from));
                }
                if let Err(refusal) = keeper.admit(&mut parts).await {
                    return Ok(refusal.map(R::from));
                }
            }
            inner.call(Request::from_parts(parts, body)).await
        })
    }
}
