//! What callers may use of a server: patterns, scopes, rates and the tool lock.
//!
//! [`GatewayState::authorize`] applies the policy, once per request and on the name that the server uses. Every request
//! that names a tool, prompt, template or resource passes it, also the retry of a suspended call.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use serde_json::json;
use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::{RelayedRequest, is_scope};
use turnbuckle_text::percent::decode_strict;

use crate::{
    StartError,
    convert::ListKind,
    gateway::GatewayState,
    observation::{Outcome, observe},
    upstream::{Upstream, UpstreamServer},
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
        let Some(Err(wait)) = self.rates.as_ref().map(|rates| rates.acquire(&caller)) else {
            return Ok(());
        };
        observe(request, |record| record.set_refusal(Outcome::RateLimited));
        Err(request.retry_later(
            rate_error(server.name()),
            wait.max(Duration::from_millis(1)),
        ))
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
    scopes: Vec<(GlobMatcher, Arc<str>)>,
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
            let glob = glob(pattern).map_err(invalid)?;
            scopes.push((glob.compile_matcher(), Arc::from(&**scope)));
        }
        Ok(Self {
            allow: (!settings.allow.is_empty())
                .then(|| compile(&settings.allow))
                .transpose()
                .map_err(invalid)?,
            deny: compile(&settings.deny).map_err(invalid)?,
            scopes,
        })
    }

    /// Returns whether clients see an item and may use it.
    pub(crate) fn permits(&self, kind: ListKind, name: &str) -> bool {
        let allowed = |name: &str| self.allow.as_ref().is_none_or(|allow| allow.is_match(name));
        let is_permitted = |name: &str| allowed(name) && !self.deny.is_match(name);
        is_permitted(name) && spellings(kind, name).iter().all(|name| is_permitted(name))
    }

    /// Returns the scopes that the caller of an item needs.
    fn required_scopes(&self, kind: ListKind, name: &str) -> Vec<Arc<str>> {
        if self.scopes.is_empty() {
            return Vec::new();
        }
        let spellings = spellings(kind, name);
        let matches = |glob: &GlobMatcher| {
            glob.is_match(name) || spellings.iter().any(|name| glob.is_match(&**name))
        };
        let scopes = self.scopes.iter().filter(|(glob, _)| matches(glob));
        scopes.map(|(_, scope)| Arc::clone(scope)).collect()
    }
}

/// Returns other spellings of a URI that a server may take for the same one: decoded, without dot segments, with a
/// scheme in lower case. A pattern applies to all of them, so that none of them avoids it.
fn spellings(kind: ListKind, name: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = Vec::new();
    if !matches!(kind, ListKind::Resources | ListKind::Templates) {
        return spellings;
    }
    let mut last = Cow::Borrowed(name);
    let steps: [fn(&str) -> Option<String>; 3] = [lower_scheme, decoded, without_dot_segments];
    for step in steps {
        if let Some(changed) = step(&last) {
            last = Cow::Owned(changed);
            spellings.push(last.clone());
        }
    }
    spellings
}

fn lower_scheme(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let has_upper = scheme.bytes().any(|byte| byte.is_ascii_uppercase());
    has_upper.then(|| format!("{}:{rest}", scheme.to_ascii_lowercase()))
}

fn decoded(uri: &str) -> Option<String> {
    if !uri.contains('%') {
        return None;
    }
    String::from_utf8(decode_strict(uri)?).ok()
}

fn without_dot_segments(uri: &str) -> Option<String> {
    let is_dots = |segment: &str| segment == "." || segment == "..";
    if !uri.split('/').any(is_dots) && !uri.trim_start_matches("file:///").contains("//") {
        return None;
    }
    let (start, path) = match uri.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            (format!("{scheme}://{authority}"), path)
        }
        None => (String::new(), uri),
    };
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    Some(format!("{start}/{}", segments.join("/")))
}

fn compile(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
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
        let policy = policy(|upstream| upstream.deny(["file:///secret/*"]));
        for uri in [
            "file:///secret/key",
            "FILE:///secret/key",
            "file:///%73ecret/key",
            "file:///public/../secret/key",
            "file:///public/%2e%2e/secret/key",
            "file:///./secret//key",
        ] {
            assert!(!policy.permits(ListKind::Resources, uri), "{uri}");
        }
        for uri in ["file:///public/key", "file:///secretly", "urn:a:b", "%", ""] {
            assert!(policy.permits(ListKind::Resources, uri), "{uri}");
        }
    }

    #[test]
    fn every_spelling_of_a_uri_has_to_be_allowed() {
        let policy = policy(|upstream| upstream.allow(["file:///public/*"]));
        assert!(policy.permits(ListKind::Resources, "file:///public/a%20b"));
        assert!(!policy.permits(ListKind::Resources, "file:///public/../secret"));
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
