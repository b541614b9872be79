//! The keys of an issuer.

use std::sync::Arc;

use super::{
    clock::Clock,
    discovery::{discover, get},
    flaw::NotVerified,
    kept::Kept,
};
use crate::{fetch::Fetch, jwt::Jwks};

/// Where the keys come from.
pub(super) enum Keys {
    /// They were given, and stay.
    Given(Arc<Jwks>),
    /// They are fetched: from this URL, or from where the metadata of the issuer says.
    Fetched {
        from: Option<String>,
        kept: Arc<Kept<Jwks>>,
    },
}

impl Keys {
    pub(super) fn fetched(from: Option<String>) -> Self {
        let kept = Kept::new();
        Self::Fetched { from, kept }
    }

    /// Returns the keys, with the one of this name if the issuer has it.
    pub(super) async fn with(
        &self,
        id: Option<&str>,
        issuer: &str,
        fetch: &Arc<dyn Fetch>,
        clock: &Clock,
    ) -> Result<Arc<Jwks>, NotVerified> {
        let (from, kept) = match self {
            Self::Given(keys) => return Ok(Arc::clone(keys)),
            Self::Fetched { from, kept } => (from, kept),
        };
        let has = |keys: &Jwks| id.is_none_or(|id| keys.has(id));
        let load = || {
            let (fetch, issuer, from) = (Arc::clone(fetch), issuer.to_owned(), from.clone());
            async move {
                let keys = load(&*fetch, &issuer, from).await;
                keys.inspect_err(|reason| tracing::warn!(issuer, reason, "no keys"))
                    .ok()
            }
        };
        let keys = kept.get(clock, has, load).await;
        keys.ok_or(NotVerified::Unreachable)
    }
}

async fn load(fetch: &dyn Fetch, issuer: &str, from: Option<String>) -> Result<Jwks, String> {
    let url = match from {
        Some(url) => url,
        None => {
            let (_, metadata) = discover(fetch, issuer).await?;
            metadata.jwks_uri.ok_or("the issuer names no `jwks_uri`")?
        }
    };
    let keys = get(fetch, &url).await?;
    Jwks::parse(&keys).map_err(|error| format!("{url}: {error}"))
}
