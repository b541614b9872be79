//! An endpoint with a guard before it.

use std::sync::Arc;

use ::http::{Method, Response, request::Parts};
use turnbuckle_protocol::guard::Guard;

use super::{
    Http,
    body::Body,
    endpoint::{Endpoint, Head, allowed},
    keeper::{DOCUMENT_METHODS, Keeper},
    link::Link,
};

impl Http {
    /// Lets in only whom a guard knows, on every request.
    ///
    /// The guard is asked before a body is read, on the endpoint and, where it is offered, on both paths of
    /// [`HttpSse`](super::HttpSse). Whom it lets in is the caller that handlers see, and to whom sessions, streams and
    /// tasks belong; others get what it says. `turnbuckle_auth::server::ResourceServer` is a guard that verifies tokens.
    ///
    /// Everybody may read what the guard [publishes](Guard::document), as where tokens are to be had; as a tower
    /// service, mount the server where it is asked for those paths. The health path and what browsers ask before
    /// they send something are open too.
    ///
    /// Handlers do not see the headers `Authorization` and `DPoP`: a token is for this server, and for nobody behind it.
    ///
    /// ```
    /// use std::{collections::BTreeSet, sync::Arc};
    /// use turnbuckle_protocol::{Principal, guard::{BoxFuture, Document, Guard, Refusal, Visit}};
    /// use turnbuckle_server::{Server, http::Http};
    ///
    /// /// Knows one password.
    /// struct Password(String);
    ///
    /// impl Guard for Password {
    ///     fn admit<'a>(&'a self, visit: Visit<'a>) -> BoxFuture<'a, Result<Arc<Principal>, Refusal>> {
    ///         Box::pin(async move {
    ///             match visit.authorization {
    ///                 [given] if *given == self.0 => Ok(Arc::new(Principal::new("here", "ada"))),
    ///                 _ => Err(Refusal::new(401, "who are you?").challenge("Basic realm=\"here\"")),
    ///             }
    ///         })
    ///     }
    ///
    ///     fn lacking(&self, _: &Principal, needed: &BTreeSet<String>) -> Refusal {
    ///         Refusal::new(403, format!("this takes {needed:?}"))
    ///     }
    ///
    ///     fn document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, Document>> {
    ///         None
    ///     }
    /// }
    ///
    /// let http = Http::new(Server::new("clock", "1.0.0")).guard(Password("Basic YWRhOjEyMw==".into()));
    /// ```
    #[must_use]
    pub fn guard(mut self, guard: impl Guard) -> Self {
        self.options.guard = Some(Keeper::new(guard));
        self
    }
}

/// Answers a request, if the guard lets it in or nobody needs to be asked.
pub(super) async fn respond<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    keeper: &Keeper,
    mut parts: Parts,
    body: B,
    link: Link,
) -> Response<Body> {
    let is_ours = endpoint.is_ours(&parts);
    if !is_ours && endpoint.is_health(&parts) {
        return endpoint.route(parts, body, link).await;
    }
    // Whoever is not known yet counts too: a guard may have to ask others.
    let permit = match endpoint.admit() {
        Ok(permit) => permit,
        Err(refusal) => return refusal,
    };
    if is_ours {
        // A browser asks before it has anything to show.
        if parts.method != Method::OPTIONS
            && let Err(refusal) = keeper.admit(&mut parts).await
        {
            drop(permit);
            return refusal.map(Body::full);
        }
    } else if let Some(document) = keeper.document(&parts).await {
        if parts.method == Method::OPTIONS {
            return allowed(&Head::new(parts, link), DOCUMENT_METHODS);
        }
        return document.map(Body::full);
    }
    drop(permit);
    endpoint.route(parts, body, link).await
}
