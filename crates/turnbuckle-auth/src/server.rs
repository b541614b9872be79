//! The resource server: verifies access tokens.
//!
//! [`ResourceServer`] is the [`Authenticator`](turnbuckle_protocol::authenticator::Authenticator) of an MCP server that accepts tokens of
//! authorization servers. It neither issues nor forwards tokens.

mod authenticate;
mod cached_document;
mod claims;
mod issuer;
mod metadata_documents;
mod rejection;
#[cfg(test)]
mod tests;
mod token_cache;

use std::{
    fmt, io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use claims::ClaimsPolicy;
pub use issuer::TrustedIssuer;
use metadata_documents::MetadataSettings;
use token_cache::TokenCache;
use turnbuckle_protocol::Principal;
use turnbuckle_text::url::HttpUrl;

use crate::{
    Scopes, Secret, dpop::ProofVerifier, fetch::Fetch, jwt::SignatureAlgorithm, unix_time,
};

/// Authenticates requests by access tokens issued for this server.
///
/// A token is verified with the keys of its issuer, by introspection, or by comparison with a few static tokens:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use turnbuckle_auth::{Secret, fetch::*};
/// # struct Offline;
/// # impl Fetch for Offline {
/// #     fn fetch(&self, _: FetchRequest) -> turnbuckle_protocol::authenticator::BoxFuture<'_, Result<FetchResponse, FetchError>> {
/// #         Box::pin(async { Err(FetchError::Unreachable("offline".into())) })
/// #     }
/// # }
/// # let fetch = Arc::new(Offline);
/// use turnbuckle_auth::server::{ResourceServer, TrustedIssuer};
/// use turnbuckle_protocol::Principal;
///
/// let server = ResourceServer::new("https://api.example.com/mcp", fetch)?
///     .issuer(TrustedIssuer::jwt("https://auth.example.com"))
///     .require_scopes("mcp".parse()?)
///     .advertise_scopes("mcp files:read files:write".parse()?)
///     .scope_implies("files:write", ["files:read"])
///     .static_token(Secret::new("a long random text"), Principal::new("local", "monitoring"));
/// # Ok(())
/// # }
/// ```
///
/// Results are cached for a short time, so that most requests cost a hash and a lookup. If an issuer cannot be reached,
/// its tokens are rejected with 503.
pub struct ResourceServer {
    resource: String,
    policy: ClaimsPolicy,
    issuers: Vec<TrustedIssuer>,
    static_tokens: Vec<(Secret, Arc<Principal>)>,
    required_scopes: Scopes,
    advertised_scopes: Scopes,
    algorithms: Vec<SignatureAlgorithm>,
    dpop: DpopPolicy,
    proof_verifier: ProofVerifier,
    metadata_settings: MetadataSettings,
    allows_token_exchange: bool,
    verified: TokenCache<claims::VerifiedToken>,
    rejected: TokenCache<rejection::TokenError>,
    fetch: Arc<dyn Fetch>,
    clock: Clock,
}

/// The kinds of tokens that are accepted: bearer tokens, or tokens bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DpopPolicy {
    /// Both; a bound token requires a proof.
    #[default]
    Accept,
    /// Only bound tokens, which excludes static tokens.
    Require,
    /// Only bearer tokens.
    Reject,
}

/// The text is not a valid resource URL: not `http` or `https`, or with a user or a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a valid resource URL", .0.escape_default())]
pub struct InvalidResourceUrl(pub String);

impl ResourceServer {
    /// Protects the server at this URL, which is the audience of tokens and the resource of the metadata.
    ///
    /// Requests to issuers are sent with `fetch`.
    pub fn new(
        resource: impl Into<String>,
        fetch: Arc<dyn Fetch>,
    ) -> Result<Self, InvalidResourceUrl> {
        let resource = resource.into();
        if HttpUrl::parse(&resource).is_err() {
            return Err(InvalidResourceUrl(resource));
        }
        Ok(Self {
            policy: ClaimsPolicy::new(&resource),
            resource,
            issuers: Vec::new(),
            static_tokens: Vec::new(),
            required_scopes: Scopes::default(),
            advertised_scopes: Scopes::default(),
            algorithms: SignatureAlgorithm::ALL.to_vec(),
            dpop: DpopPolicy::default(),
            proof_verifier: ProofVerifier::default(),
            metadata_settings: MetadataSettings::default(),
            allows_token_exchange: false,
            verified: TokenCache::new(4_096),
            rejected: TokenCache::new(4_096),
            fetch,
            clock: Clock::default(),
        })
    }

    /// Accepts tokens of an issuer; may be called several times.
    #[must_use]
    pub fn issuer(mut self, issuer: TrustedIssuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Accepts one fixed token for a principal.
    #[must_use]
    pub fn static_token(mut self, token: Secret, principal: Principal) -> Self {
        self.static_tokens.push((token, Arc::new(principal)));
        self.expand_static_tokens()
    }

    /// Also accepts tokens for this audience, compared byte for byte; for issuers that do not use the URL of the
    /// server.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.policy.audiences.push(audience.into());
        self
    }

    /// Requires these scopes for every request.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "allows passing the result of `parse`"
    )]
    pub fn require_scopes(mut self, scopes: Scopes) -> Self {
        self.required_scopes = self.required_scopes.union(&scopes);
        self
    }

    /// Lists these scopes in the metadata, so that clients can request them.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "allows passing the result of `parse`"
    )]
    pub fn advertise_scopes(mut self, scopes: Scopes) -> Self {
        self.advertised_scopes = self.advertised_scopes.union(&scopes);
        self
    }

    /// Declares that a scope includes other scopes.
    #[must_use]
    pub fn scope_implies(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.policy.hierarchy.add(scope.into(), implied);
        self.expand_static_tokens()
    }

    fn expand_static_tokens(mut self) -> Self {
        for (_, principal) in &mut self.static_tokens {
            let principal = Arc::make_mut(principal);
            self.policy.hierarchy.expand(&mut principal.scopes);
        }
        self
    }

    /// Sets whether tokens may or must be bound to a key; they may by default.
    #[must_use]
    pub fn dpop(mut self, policy: DpopPolicy) -> Self {
        self.dpop = policy;
        self
    }

    /// Requires every proof to contain a nonce that this server issued at most five minutes ago.
    ///
    /// Processes do not recognize the nonces of other processes: with several behind one URL, clients have to retry
    /// when they reach another one. Fails if the operating system cannot provide randomness.
    pub fn require_dpop_nonce(mut self) -> io::Result<Self> {
        self.proof_verifier = self.proof_verifier.require_nonce()?;
        Ok(self)
    }

    /// Sets the tolerated clock difference; one minute by default.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.policy.leeway = leeway.as_secs();
        self
    }

    /// Accepts only tokens and proofs with one of these algorithms; by default all of [`SignatureAlgorithm::ALL`].
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = SignatureAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self.proof_verifier = self
            .proof_verifier
            .algorithms(self.algorithms.iter().copied());
        self
    }

    /// Sets the display name in the metadata.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata_settings.name = Some(name.into());
        self
    }

    /// Sets the documentation URL in the metadata.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.metadata_settings.documentation = Some(url.into());
        self
    }

    /// Also serves the metadata of the first issuer, for clients of 2025-03-26, which look for it at the MCP server.
    ///
    /// The document is fetched from the issuer, and served only if its issuer is correct.
    #[must_use]
    pub fn republish_issuer_metadata(mut self) -> Self {
        self.metadata_settings.republish = true;
        self
    }

    /// Lets handlers exchange the tokens of callers for tokens for other servers (RFC 8693); see
    /// [`exchangeable_token`](turnbuckle_protocol::authenticator::Authenticator::exchangeable_token). `false` by default.
    ///
    /// Static tokens and tokens that are bound to a key are never exchanged: no authorization server knows the former, and
    /// the latter need proofs of the caller.
    #[must_use]
    pub fn allow_token_exchange(mut self, allowed: bool) -> Self {
        self.allows_token_exchange = allowed;
        self
    }

    /// Replaces the system clock.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }
}

/// Shows no tokens.
impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer")
            .field("resource", &self.resource)
            .field("issuers", &self.issuers)
            .field("required_scopes", &self.required_scopes)
            .field("dpop", &self.dpop)
            .finish_non_exhaustive()
    }
}

/// Returns the current time; tests can replace it.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn time(&self) -> SystemTime {
        (self.0)()
    }

    /// Returns the Unix time in seconds.
    fn now(&self) -> u64 {
        unix_time::seconds(self.time())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}
