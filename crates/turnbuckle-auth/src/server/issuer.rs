//! Whose tokens are taken, and how they are verified.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::{
    clock::Clock,
    flaw::{Flaw, NotVerified},
    introspection::Introspection,
    keys::Keys,
};
use crate::{
    Secret,
    fetch::Fetch,
    jwt::{Algorithm, Jwks, Token},
};

/// An authorization server whose tokens are taken.
pub struct Issuer {
    name: String,
    way: Way,
}

/// How its tokens are verified.
enum Way {
    Keys(Keys),
    Introspection(Introspection),
}

impl Issuer {
    /// Verifies tokens by the issuer's keys, which are where its metadata says.
    ///
    /// The name is the `iss` of its tokens, byte for byte.
    pub fn jwt(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            way: Way::Keys(Keys::fetched(None)),
        }
    }

    /// Asks the issuer about every token that is not known already.
    ///
    /// An answer counts for at most a minute. The issuer has to say whom a token is for.
    pub fn introspection(
        name: impl Into<String>,
        endpoint: impl Into<String>,
        client_id: &str,
        client_secret: &Secret,
    ) -> Self {
        let introspection = Introspection::new(endpoint.into(), client_id, client_secret);
        Self {
            name: name.into(),
            way: Way::Introspection(introspection),
        }
    }

    /// Verifies tokens by the keys at this URL.
    #[must_use]
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Self {
        self.way = Way::Keys(Keys::fetched(Some(url.into())));
        self
    }

    /// Verifies tokens by these keys, and never by others.
    #[must_use]
    pub fn jwks(mut self, keys: Jwks) -> Self {
        self.way = Way::Keys(Keys::Given(Arc::new(keys)));
        self
    }

    /// Returns its name, as in the `iss` of its tokens.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says whether tokens that nobody else can read may be its own.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.way, Way::Introspection(_))
    }

    /// Returns what a token says that is signed by this issuer.
    pub(super) async fn verify(
        &self,
        token: Token<'_>,
        algorithms: &[Algorithm],
        fetch: &Arc<dyn Fetch>,
        clock: &Clock,
    ) -> Result<Map<String, Value>, NotVerified> {
        let Way::Keys(keys) = &self.way else {
            return Err(Flaw::Unknown.into());
        };
        if !algorithms.contains(&token.algorithm()) {
            return Err(Flaw::Algorithm.into());
        }
        if !token.kind().is_none_or(is_access_token) {
            return Err(Flaw::Kind.into());
        }
        let id = token.key_id().map(str::to_owned);
        let keys = keys.with(id.as_deref(), &self.name, fetch, clock).await?;
        let candidates = keys.candidates(id.as_deref(), token.algorithm());
        token.verify(candidates).ok_or(Flaw::Signature.into())
    }

    /// Returns what the issuer says about a token.
    pub(super) async fn ask(
        &self,
        token: &str,
        fetch: &Arc<dyn Fetch>,
    ) -> Result<Map<String, Value>, NotVerified> {
        match &self.way {
            Way::Introspection(introspection) => {
                introspection.ask(token, &self.name, &**fetch).await
            }
            Way::Keys(_) => Err(Flaw::Unknown.into()),
        }
    }
}

/// Many issuers give their access tokens the type of any JWT; what they must not be is something else (RFC 9068, RFC 8725).
fn is_access_token(kind: &str) -> bool {
    let kinds = ["at+jwt", "application/at+jwt", "JWT"];
    kinds.iter().any(|known| known.eq_ignore_ascii_case(kind))
}

/// Shows no secret.
impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.name).finish()
    }
}
