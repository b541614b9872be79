//! An authenticator that accepts names as tokens, and clients that send them.

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

use crate::http::test_client::HttpTestClient;

pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Accepts `Bearer name` and `Bearer name:scope+scope`, except for the name `unknown`.
#[derive(Default)]
pub(crate) struct NameAuthenticator {
    request_count: AtomicUsize,
}

impl NameAuthenticator {
    /// The number of authenticated requests.
    pub(crate) fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }
}

impl Authenticator for NameAuthenticator {
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        self.request_count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::task::yield_now().await;
            match request.authorization {
                [] => Err(AuthRejection::new(401, "a token is required").challenge(challenge(""))),
                [one] => match one.strip_prefix("Bearer ") {
                    None => Err(AuthRejection::new(400, "expected a bearer token")),
                    Some("unknown") => Err(AuthRejection::new(401, "unknown caller")
                        .challenge(challenge(r#"error="invalid_token", "#))
                        .challenge(r#"DPoP algs="ES256""#)
                        .nonce("n-1")),
                    Some("oracle") => {
                        Err(AuthRejection::new(503, "the authenticator is unavailable"))
                    }
                    Some(name) => Ok(Arc::new(who(name))),
                },
                [..] => Err(AuthRejection::new(400, "expected one token")),
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

/// The challenge of a rejection.
pub(crate) fn challenge(more: &str) -> String {
    format!(r#"Bearer {more}resource_metadata="http://localhost:8080{METADATA}""#)
}

fn who(name: &str) -> Principal {
    let (name, scopes) = name.split_once(':').unwrap_or((name, ""));
    let mut who = Principal::new("https://issuer.example", name);
    who.scopes = scopes.split_terminator('+').map(str::to_owned).collect();
    who
}

/// HTTP options with the authenticator.
pub(crate) fn with_authenticator(server: Server) -> Http {
    Http::new(server).authenticator(NameAuthenticator::default())
}

/// A client with a token.
pub(crate) fn caller(server: Server, name: &str) -> HttpTestClient {
    HttpTestClient::with_options(with_authenticator(server)).named(name)
}

impl HttpTestClient {
    /// Returns the same client with the token of another caller.
    pub(crate) fn named(&self, name: &str) -> Self {
        let mut caller = self.clone();
        caller.authorization = Some(format!("Bearer {name}"));
        caller
    }

    /// Returns the same client without credentials.
    pub(crate) fn without_credentials(&self) -> Self {
        let mut caller = self.clone();
        caller.authorization = None;
        caller
    }
}
