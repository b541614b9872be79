//! The resource server: who is let in with which token.
//!
//! [`ResourceServer`] is the [`Guard`](turnbuckle_protocol::guard::Guard) of an MCP server whose callers come with tokens of an
//! authorization server. It issues no tokens itself, and passes none on.

mod admit;
mod cache;
mod claims;
mod clock;
mod discovery;
mod documents;
mod flaw;
mod hierarchy;
mod introspection;
mod issuer;
mod kept;
mod keys;
mod presented;
mod refusal;
#[cfg(test)]
mod tests;
mod verify;

pub use issuer::Issuer;

use std::{
    fmt, io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use turnbuckle_protocol::Principal;

use self::{cache::Cache, claims::Policy, clock::Clock, documents::Documents};
use crate::{Scopes, Secret, dpop::Proofs, fetch::Fetch, jwt::Algorithm, place::Place};

/// Lets in whoever brings a token that was issued for this very server.
///
/// A token is verified by the keys of its issuer, by asking its issuer, or by being one of a few that are simply known:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use turnbuckle_auth::{Secret, fetch::*};
/// # struct Offline;
/// # impl Fetch for Offline {
/// #     fn fetch(&self, _: Request) -> turnbuckle_protocol::guard::BoxFuture<'_, Result<Response, FetchError>> {
/// #         Box::pin(async { Err(FetchError::Unreachable("offline".into())) })
/// #     }
/// # }
/// # let fetch = Arc::new(Offline);
/// use turnbuckle_auth::server::{Issuer, ResourceServer};
/// use turnbuckle_protocol::Principal;
///
/// let guard = ResourceServer::new("https://api.example.com/mcp", fetch)?
///     .issuer(Issuer::jwt("https://auth.example.com"))
///     .require("mcp".parse()?)
///     .offer("mcp files:read files:write".parse()?)
///     .implies("files:write", ["files:read"])
///     .token(Secret::new("a long random text"), Principal::new("local", "monitoring"));
/// # Ok(())
/// # }
/// ```
///
/// What is verified is remembered for a short while, so that most requests cost a hash and a look-up. If neither the keys nor the
/// answer of an issuer can be had, its tokens are refused with 503: nobody is let in on trust.
pub struct ResourceServer {
    resource: String,
    policy: Policy,
    issuers: Vec<Issuer>,
    tokens: Vec<(Secret, Arc<Principal>)>,
    required: Scopes,
    offered: Scopes,
    algorithms: Vec<Algorithm>,
    dpop: DpopPolicy,
    proofs: Proofs,
    documents: Documents,
    verified: Cache<claims::Verified>,
    rejected: Cache<flaw::Flaw>,
    fetch: Arc<dyn Fetch>,
    clock: Clock,
}

/// Which tokens are taken: those that anybody can use, or those that are bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpopPolicy {
    /// Both; one that is bound only together with a proof that its key is there.
    #[default]
    Accept,
    /// Only those that are bound. Tokens that are known from the start never are.
    Require,
    /// Only those that are not.
    Refuse,
}

/// A text that is no URL of a server: not `http` or `https`, or with a user or a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no URL that tokens could be issued for", .0.escape_default())]
pub struct InvalidResource(pub String);

impl ResourceServer {
    /// Protects the server at this URL: tokens name it as their audience, and metadata as the resource.
    ///
    /// Everything that is asked of issuers is asked through `fetch`.
    pub fn new(
        resource: impl Into<String>,
        fetch: Arc<dyn Fetch>,
    ) -> Result<Self, InvalidResource> {
        let resource = resource.into();
        if Place::parse(&resource).is_none() {
            return Err(InvalidResource(resource));
        }
        Ok(Self {
            policy: Policy::new(&resource),
            resource,
            issuers: Vec::new(),
            tokens: Vec::new(),
            required: Scopes::default(),
            offered: Scopes::default(),
            algorithms: Algorithm::ALL.to_vec(),
            dpop: DpopPolicy::default(),
            proofs: Proofs::default(),
            documents: Documents::default(),
            verified: Cache::new(4_096),
            rejected: Cache::new(4_096),
            fetch,
            clock: Clock::default(),
        })
    }

    /// Takes the tokens of an issuer; may be called for several.
    #[must_use]
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Takes one token, and knows whose it is.
    #[must_use]
    pub fn token(mut self, token: Secret, principal: Principal) -> Self {
        self.tokens.push((token, Arc::new(principal)));
        self.with_implied()
    }

    /// Takes tokens for this audience too, byte for byte; for issuers that name a server otherwise than by its URL.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.policy.audiences.push(audience.into());
        self
    }

    /// Requires these scopes of every request.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so it reads with `parse`")]
    pub fn require(mut self, scopes: Scopes) -> Self {
        self.required = self.required.union(&scopes);
        self
    }

    /// Tells clients that these scopes can be asked for.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so it reads with `parse`")]
    pub fn offer(mut self, scopes: Scopes) -> Self {
        self.offered = self.offered.union(&scopes);
        self
    }

    /// Says that whoever has a scope has others with it.
    #[must_use]
    pub fn implies(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.policy.hierarchy.add(scope.into(), implied);
        self.with_implied()
    }

    fn with_implied(mut self) -> Self {
        for (_, principal) in &mut self.tokens {
            let principal = Arc::make_mut(principal);
            self.policy.hierarchy.expand(&mut principal.scopes);
        }
        self
    }

    /// Says whether tokens may or must be bound to a key; if nothing is said, they may.
    #[must_use]
    pub fn dpop(mut self, policy: DpopPolicy) -> Self {
        self.dpop = policy;
        self
    }

    /// Wants every proof to repeat a nonce that this server gave out at most five minutes ago.
    ///
    /// Nonces of one process mean nothing to another: with several behind one URL, clients ask twice when they change places.
    /// Fails where the operating system has no randomness to give.
    pub fn require_dpop_nonce(mut self) -> io::Result<Self> {
        self.proofs = self.proofs.require_nonce()?;
        Ok(self)
    }

    /// Bears with clocks that differ by this much; a minute if nothing is said.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.policy.leeway = leeway.as_secs();
        self
    }

    /// Takes only tokens and proofs that are signed in one of these ways; all of [`Algorithm::ALL`] if nothing is said.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self.proofs = self.proofs.algorithms(self.algorithms.iter().copied());
        self
    }

    /// Says in the metadata what to call the server in front of people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.documents.name = Some(name.into());
        self
    }

    /// Says in the metadata where people can read about the server.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documents.documentation = Some(url.into());
        self
    }

    /// Serves the metadata of the first issuer as well, for clients of the revision that looks for it here (2025-03-26).
    ///
    /// It is fetched from the issuer, and passed on only if it is the issuer's own.
    #[must_use]
    pub fn republish_issuer_metadata(mut self) -> Self {
        self.documents.republish = true;
        self
    }

    /// Tells the time by another clock.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }
}

/// Shows whom it trusts, and no token.
impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer")
            .field("resource", &self.resource)
            .field("issuers", &self.issuers)
            .field("required", &self.required)
            .field("dpop", &self.dpop)
            .finish_non_exhaustive()
    }
}
