//! What callers may use of a server: patterns, scopes, rates and the tool lock.
//!
//! [`GatewayState::authorize`] applies the policy, once per request and on the name that the server uses. Every request
//! that names a tool, prompt, template or resource passes it, also the retry of a suspended call.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::json;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{
    middleware::RateTable,
    relay::{RelayedRequest, is_scope},
};

use crate::{
    StartError,
    convert::ListKind,
    gateway::GatewayState,
    observation::{Outcome, observe},
    upstream::{Upstream, UpstreamServer},
    uri_spellings::{UriSpellings, can_match_uri, canonical_patterns},
};

/// The reason that a request is refused.
#[derive(Debug)]
pub(crate) enum AccessError {
    /// The item is hidden: the response is that for an unknown one.
    Denied,
    /// The response.
    Error(RpcError),
}

impl GatewayState {
    /// Applies the policy to a request for an item of a server. `original` is the name or URI that the server uses.
    pub(crate) async fn authorize(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        original: &str,
        request: &RelayedRequest,
    ) -> Result<(), AccessError> {
        observe(request, |record| {
            record.set_server(server);
            record.set_target(original);
        });
        if !server.policy.permits(kind, original) {
            observe(request, |record| record.set_refusal(Outcome::Denied));
            return Err(AccessError::Denied);
        }
        let scopes = server.policy.required_scopes(kind, original);
        if !scopes.is_empty() {
            request.require_scopes(scopes).map_err(|error| {
                observe(request, |record| record.set_refusal(Outcome::Denied));
                AccessError::Error(error)
            })?;
        }
        self.limit_rate(server, request)
            .map_err(AccessError::Error)?;
        let locked = self.check_lock(server, kind, original, request);
        locked.await.map_err(AccessError::Error)
    }

    /// Counts a request of a caller to a server.
    pub(crate) fn limit_rate(
        &self,
        server: &Arc<UpstreamServer>,
        request: &RelayedRequest,
    ) -> Result<(), RpcError> {
        observe(request, |record| record.set_server(server));
        let caller = ServerCaller {
            server: server.id,
            request,
        };
        let Err(wait) = self.rates.acquire(&caller) else {
            return Ok(());
        };
        observe(request, |record| record.set_refusal(Outcome::RateLimited));
        Err(request.retry_later(
            rate_error(server.name()),
            wait.max(Duration::from_millis(1)),
        ))
    }
}

/// The rates of callers, which can be changed while the gateway runs.
pub(crate) struct RateLimits(ArcSwapOption<RateCounter>);

struct RateCounter {
    limit: (u32, Duration),
    table: RateTable,
}

impl RateLimits {
    pub(crate) fn new(limit: Option<(u32, Duration)>) -> Self {
        Self(ArcSwapOption::new(limit.map(RateCounter::new)))
    }

    /// Sets another limit. Returns whether it was another one.
    pub(crate) fn set(&self, limit: Option<(u32, Duration)>) -> bool {
        let current = self.0.load();
        let is_other = current.as_ref().map(|counter| counter.limit) != limit;
        if is_other {
            self.0.store(limit.map(RateCounter::new));
        }
        is_other
    }

    /// Counts an operation, or returns how long to wait for it.
    fn acquire(&self, key: &impl Hash) -> Result<(), Duration> {
        let counter = self.0.load();
        let counter = counter.as_ref();
        counter.map_or(Ok(()), |counter| counter.table.acquire(key))
    }
}

impl RateCounter {
    fn new(limit: (u32, Duration)) -> Arc<Self> {
        let (calls, per) = limit;
        Arc::new(Self {
            limit,
            table: RateTable::new(calls, per),
        })
    }
}

fn rate_error(server: &str) -> RpcError {
    RpcError::internal(format!(
        "too many calls of server `{server}`; try again later"
    ))
    .with_data(json!({ "server": server, "kind": "rate", "effect": "none" }))
}

/// The key of a rate: a caller at a server.
struct ServerCaller<'a> {
    server: usize,
    request: &'a RelayedRequest,
}

impl Hash for ServerCaller<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.server.hash(state);
        self.request.hash_caller(state);
    }
}

/// The patterns and scopes of a server.
pub(crate) struct Policy {
    allow: Option<GlobSet>,
    deny: GlobSet,
    scopes: Vec<ScopePattern>,
    /// Whether a pattern can match URIs.
    has_uri_patterns: bool,
}

/// A scope that is required for what a pattern matches.
struct ScopePattern {
    patterns: GlobSet,
    scope: Arc<str>,
}

impl Policy {
    /// Compiles the settings of a server.
    pub(crate) fn new(settings: &Upstream) -> Result<Self, StartError> {
        let invalid = |error: globset::Error| StartError::Pattern {
            server: settings.name.to_string(),
            source: error.into(),
        };
        let mut scopes = Vec::new();
        for (pattern, scope) in &settings.scopes {
            if !is_scope(scope) {
                return Err(StartError::Scope {
                    server: settings.name.to_string(),
                    scope: scope.clone(),
                });
            }
            scopes.push(ScopePattern {
                patterns: compile([pattern]).map_err(invalid)?,
                scope: Arc::from(&**scope),
            });
        }
        let of_scopes = settings.scopes.iter().map(|(pattern, _)| pattern);
        let mut patterns = of_scopes.chain(&settings.allow).chain(&settings.deny);
        Ok(Self {
            allow: (!settings.allow.is_empty())
                .then(|| compile(&settings.allow))
                .transpose()
                .map_err(invalid)?,
            deny: compile(&settings.deny).map_err(invalid)?,
            has_uri_patterns: patterns.any(|pattern| can_match_uri(pattern)),
            scopes,
        })
    }

    /// Returns whether clients see an item and may use it. A URI without a canonical form is hidden if a pattern can
    /// match URIs, because it could be another spelling of one that is hidden.
    pub(crate) fn permits(&self, kind: ListKind, name: &str) -> bool {
        let allowed = |name: &str| self.allow.as_ref().is_none_or(|allow| allow.is_match(name));
        // Without patterns, the name is not prepared for a comparison.
        let is_denied = |name: &str| !self.deny.is_empty() && self.deny.is_match(name);
        let is_permitted = |name: &str| allowed(name) && !is_denied(name);
        if !is_permitted(name) {
            return false;
        }
        if !self.has_uri_patterns || !has_uri(kind) {
            return true;
        }
        UriSpellings::new(name).is_some_and(|spellings| {
            let (equal, other) = (&spellings.equal, &spellings.without_parts);
            equal.iter().all(|name| is_permitted(name)) && !other.iter().any(|name| is_denied(name))
        })
    }

    /// Returns the scopes that the caller of an item needs.
    fn required_scopes(&self, kind: ListKind, name: &str) -> Vec<Arc<str>> {
        if self.scopes.is_empty() {
            return Vec::new();
        }
        let spellings = has_uri(kind).then(|| UriSpellings::new(name));
        let spellings = spellings.flatten().unwrap_or_default();
        let mut names = vec![name];
        names.extend(spellings.equal.iter().map(String::as_str));
        names.extend(spellings.without_parts.iter().map(String::as_str));
        let is_required =
            |scope: &&ScopePattern| names.iter().any(|name| scope.patterns.is_match(name));
        let required = self.scopes.iter().filter(is_required);
        required.map(|scope| Arc::clone(&scope.scope)).collect()
    }
}

fn has_uri(kind: ListKind) -> bool {
    matches!(kind, ListKind::Resources | ListKind::Templates)
}

fn compile<'a>(patterns: impl IntoIterator<Item = &'a String>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
        for canonical in canonical_patterns(pattern) {
            set.add(glob(&canonical)?);
        }
    }
    set.build()
}

fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(false).build()
}

#[cfg(test)]
mod tests {
    use turnbuckle_client::stdio::ServerCommand;

    use super::*;

    fn policy(change: impl FnOnce(Upstream) -> Upstream) -> Policy {
        let upstream = Upstream::new("a", || ServerCommand::new("unused").into());
        Policy::new(&change(upstream)).unwrap()
    }

    #[test]
    fn another_spelling_of_a_uri_does_not_avoid_a_pattern() {
        let scoped = policy(|upstream| upstream.scope("file:///secret/*", "read"));
        let policy = policy(|upstream| upstream.deny(["file:///secret/*"]));
        for uri in [
            "file:///secret/key",
            "FILE:///secret/key",
            "file:///%73ecret/key",
            "file:///public/../secret/key",
            "file:///public/%2e%2e/secret/key",
            "file:///./secret//key",
            "file:///%73ecret/key?%zz",
            "file:///%2573ecret/key",
            "file:///secret/%zz",
            "file:/secret/key",
            "file:secret/key",
            "file:////secret/key",
            "file://localhost/secret/key",
            "file://LOCALHOST/%73ecret/key",
            "file://host/secret/key",
            r"file:///public\..\secret\key",
            "file:///public/?/../../secret/key",
            "file:///sec\tret/key",
            "file:///sec%09ret/key",
            "file:///public/key%00",
            " file:///secret/key",
            "file:///public/%ff",
            "file:///public/%2525252573ecret",
        ] {
            assert!(!policy.permits(ListKind::Resources, uri), "{uri}");
            let scopes = scoped.required_scopes(ListKind::Resources, uri);
            let is_refused = !scoped.permits(ListKind::Resources, uri);
            assert!(is_refused || !scopes.is_empty(), "{uri}");
        }
        for uri in [
            "file:///public/key",
            "file:///secretly",
            "file:///public/100%25",
            "urn:a:b",
            "%",
            "",
        ] {
            assert!(policy.permits(ListKind::Resources, uri), "{uri}");
            assert!(scoped.permits(ListKind::Resources, uri), "{uri}");
            let scopes = scoped.required_scopes(ListKind::Resources, uri);
            assert!(scopes.is_empty(), "{uri}");
        }
    }

    #[test]
    fn another_spelling_of_a_host_does_not_avoid_a_pattern() {
        let policy = policy(|upstream| upstream.deny(["https://secret.example/*"]));
        for uri in [
            "https://SECRET.example/x",
            "https://user@secret.example/x",
            "https://secret.example:443/x",
            "https://secret.example./x",
            "https:/secret.example/x",
            r"https:\\secret.example\x",
            "https://secret.example",
        ] {
            assert!(!policy.permits(ListKind::Resources, uri), "{uri}");
        }
        let other = "https://open.example/x?of=secret.example";
        assert!(policy.permits(ListKind::Resources, other));
    }

    #[test]
    fn a_uri_is_not_hidden_because_of_patterns_for_names() {
        let policy = policy(|upstream| upstream.deny(["delete_*"]));
        assert!(policy.permits(ListKind::Resources, "file:///a%ff%00"));
        assert!(!policy.permits(ListKind::Tools, "delete_all"));
    }

    #[test]
    fn every_spelling_of_a_uri_has_to_be_allowed() {
        let policy = policy(|upstream| {
            upstream.allow([
                "file:///public/*",
                "file:/My%20Files/*",
                "https://H.example",
            ])
        });
        for uri in [
            "file:///public/a%20b",
            "file:///public/a?b//c",
            "file:/My%20Files/x",
            "file:///My%20Files/x",
            "https://H.example",
        ] {
            assert!(policy.permits(ListKind::Resources, uri), "{uri}");
        }
        for uri in [
            "file:///public/../secret",
            r"file:///public\..\secret",
            "file:///public/%2e%2e/secret",
            "file:///public/?/../../secret",
            "file:///public/a%2fb/../../secret",
            "file:///public/a%252fb/../../secret",
            "https://h.example/x",
        ] {
            assert!(!policy.permits(ListKind::Resources, uri), "{uri}");
        }
    }

    #[test]
    fn all_matching_scopes_are_required() {
        let policy = policy(|upstream| {
            let upstream = upstream.scope("create_*", "write");
            upstream.scope("*_user", "admin").scope("list_*", "read")
        });
        let scopes = |name| policy.required_scopes(ListKind::Tools, name);
        assert_eq!(scopes("create_user"), ["write".into(), "admin".into()]);
        assert_eq!(scopes("show"), []);
    }

    #[test]
    fn an_invalid_scope_is_an_error() {
        let upstream = Upstream::new("a", || ServerCommand::new("unused").into());
        let invalid = Policy::new(&upstream.scope("*", "two words"));
        assert!(matches!(invalid, Err(StartError::Scope { .. })));
    }
}
