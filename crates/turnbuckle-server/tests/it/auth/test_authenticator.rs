//! A guard who knows people by their names, and clients that show them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument},
};
use turnbuckle_server::{Server, http::Http};

use crate::http::test_client::Caller;

pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Lets in whoever says `Bearer name` or `Bearer name:scope+scope`, except strangers.
#[derive(Default)]
pub(crate) struct Doorkeeper {
    visits: AtomicUsize,
}

impl Doorkeeper {
    /// How many were asked who they are.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::Relaxed)
    }
}

impl Authenticator for Doorkeeper {
    fn authenticate<'a>(
        &'a self,
        visit: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        self.visits.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::task::yield_now().await;
            match visit.authorization {
                [] => Err(AuthRejection::new(401, "say who you are").challenge(challenge(""))),
                [one] => match one.strip_prefix("Bearer ") {
                    None => Err(AuthRejection::new(400, "that is no badge")),
                    Some("stranger") => Err(AuthRejection::new(401, "nobody knows you")
                        .challenge(challenge(r#"error="invalid_token", "#))
                        .challenge(r#"DPoP algs="ES256""#)
                        .nonce("n-1")),
                    Some("oracle") => Err(AuthRejection::new(503, "nobody can tell")),
                    Some(name) => Ok(Arc::new(who(name))),
                },
                [..] => Err(AuthRejection::new(400, "one badge is enough")),
            }
        })
    }

    fn insufficient_scope(&self, _: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
        let scopes = Vec::from_iter(needed.iter().map(String::as_str)).join(" ");
        let more = format!(r#"error="insufficient_scope", scope="{scopes}", "#);
        AuthRejection::new(403, "more scopes are needed").challenge(challenge(&more))
    }

    fn metadata_document<'a>(&'a self, path: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        let document = MetadataDocument::new(200, br#"{"resource":"http://localhost:8080/mcp"}"#);
        (path == METADATA).then(|| Box::pin(async { document }) as BoxFuture<'a, MetadataDocument>)
    }
}

/// What the guard says to those whom it does not let in.
pub(crate) fn challenge(more: &str) -> String {
    format!(r#"Bearer {more}resource_metadata="http://localhost:8080{METADATA}""#)
}

fn who(name: &str) -> Principal {
    let (name, scopes) = name.split_once(':').unwrap_or((name, ""));
    let mut who = Principal::new("https://issuer.example", name);
    who.scopes = scopes.split_terminator('+').map(str::to_owned).collect();
    who
}

/// A server behind the guard.
pub(crate) fn guarded(server: Server) -> Http {
    Http::new(server).authenticator(Doorkeeper::default())
}

/// A client of a guarded server.
pub(crate) fn caller(server: Server, name: &str) -> Caller {
    Caller::of(guarded(server)).named(name)
}

impl Caller {
    /// The same client in the hands of someone else.
    pub(crate) fn named(&self, name: &str) -> Self {
        let mut caller = self.clone();
        caller.authorization = Some(format!("Bearer {name}"));
        caller
    }

    /// The same client in the hands of nobody in particular.
    pub(crate) fn nameless(&self) -> Self {
        let mut caller = self.clone();
        caller.authorization = None;
        caller
    }
}
