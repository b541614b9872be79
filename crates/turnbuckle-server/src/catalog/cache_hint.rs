//! Cache hints: lifetime and scope of cached results.

use turnbuckle_protocol::types::CacheScope;

/// The lifetime and scope of a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// The result must not be cached.
    pub const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// Only the requesting client may cache the result, for `ttl`.
    pub fn private(ttl: std::time::Duration) -> Self {
        Self {
            ttl_ms: millis(ttl),
            scope: CacheScope::Private,
        }
    }

    /// Any cache may share the result, for `ttl`: it is the same for every client.
    pub fn public(ttl: std::time::Duration) -> Self {
        Self {
            ttl_ms: millis(ttl),
            scope: CacheScope::Public,
        }
    }

    /// Returns the same hint, limited to the requesting client.
    pub(crate) fn into_private(self) -> Self {
        Self {
            scope: CacheScope::Private,
            ..self
        }
    }
}

impl CacheHint {
    pub(crate) fn scope_name(self) -> &'static str {
        match self.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        }
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
