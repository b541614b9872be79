//! Tokens for one server that are exchanged for the tokens of callers, and kept until shortly before they expire.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::url::HttpUrl;

use super::{
    discovery,
    registration::ClientRegistration,
    token::{self, ExchangeRequest, TokenEndpoint, Tokens},
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, CredentialProvider, Credentials,
    RetryDecision, Scopes, Secret, UnauthorizedResponse, UnsignedRequest, fetch::Fetch,
    jwt::SigningKey, sync::lock,
};

/// The revision that is sent in requests for metadata.
const REVISION: &str = "2026-07-28";
/// Lifetime of a token if the authorization server does not name it.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum time before its expiry at which a token is replaced.
const MAX_MARGIN: Duration = Duration::from_secs(30);
/// Time for which a failed exchange of a token is not repeated.
const FAILURE_LIFETIME: Duration = Duration::from_secs(5);
/// Time after a rejected token in which no other one is requested because of a rejection.
const REJECTION_INTERVAL: Duration = Duration::from_secs(30);
/// Lifetime of the metadata of the authorization server.
const METADATA_LIFETIME: Duration = Duration::from_secs(3_600);

/// Exchanges the access tokens of callers for tokens for one server (RFC 8693), at a configured authorization server.
///
/// The token of a caller is sent to that authorization server only, and not kept. The new tokens are kept in memory, for a
/// limited number of callers. Clones share them.
///
/// ```
/// # fn example(fetch: std::sync::Arc<dyn turnbuckle_auth::fetch::Fetch>) -> impl turnbuckle_auth::CredentialProvider {
/// use turnbuckle_auth::{Secret, client::TokenExchange};
///
/// let exchange = TokenExchange::new("https://api.example/mcp", "https://auth.example", "gateway", fetch)
///     .client_secret(Secret::new("sesame"));
/// exchange.caller("ada", || Some(Secret::new("the newest token of ada")))
/// # }
/// ```
#[derive(Clone)]
pub struct TokenExchange {
    settings: Arc<ExchangeSettings>,
    state: Arc<ExchangeState>,
}

#[derive(Clone)]
struct ExchangeSettings {
    server_url: String,
    issuer: String,
    client_id: String,
    client_secret: Option<Secret>,
    client_key: Option<SigningKey>,
    resource: Option<String>,
    audience: Option<String>,
    scopes: Option<Scopes>,
    max_callers: usize,
    fetch: Arc<dyn Fetch>,
}

#[derive(Default)]
struct ExchangeState {
    metadata: tokio::sync::Mutex<Option<(AuthorizationServer, Instant)>>,
    callers: Mutex<HashMap<Arc<str>, CallerSlot>>,
    last_generation: AtomicU64,
}

/// The tokens of a caller, and the time of their last use.
struct CallerSlot {
    tokens: Arc<tokio::sync::Mutex<CallerTokens>>,
    used: Instant,
}

/// Locked during an exchange, so that there is one at a time.
#[derive(Default)]
struct CallerTokens {
    current: Option<ExchangedToken>,
    failure: Option<RecentFailure>,
    /// When the server last rejected a token that was replaced because of it.
    rejected: Option<Instant>,
}

struct ExchangedToken {
    /// The value of the `Authorization` header.
    header: Secret,
    generation: u64,
    renew_at: Instant,
}

/// A failed exchange, and the digest of the token that was exchanged.
struct RecentFailure {
    error: AuthorizationError,
    subject: [u8; 32],
    until: Instant,
}

impl TokenExchange {
    /// Exchanges tokens for ones for the server at this URL. The issuer and the client are those of the exchange; requests
    /// to the authorization server are sent with `fetch`.
    pub fn new(
        server_url: impl Into<String>,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self {
            settings: Arc::new(ExchangeSettings {
                server_url: server_url.into(),
                issuer: issuer.into(),
                client_id: client_id.into(),
                client_secret: None,
                client_key: None,
                resource: None,
                audience: None,
                scopes: None,
                max_callers: 1_024,
                fetch,
            }),
            state: Arc::default(),
        }
    }

    /// Sets the secret of the client.
    #[must_use]
    pub fn client_secret(self, secret: Secret) -> Self {
        self.with(|settings| settings.client_secret = Some(secret))
    }

    /// Sets the key with which the client authenticates (`private_key_jwt`), in place of a secret.
    #[must_use]
    pub fn client_key(self, key: SigningKey) -> Self {
        self.with(|settings| settings.client_key = Some(key))
    }

    /// Sets the resource identifier of the server. Its URL by default.
    #[must_use]
    pub fn resource(self, resource: impl Into<String>) -> Self {
        self.with(|settings| settings.resource = Some(resource.into()))
    }

    /// Sets the name of the server at the authorization server, which some require in addition to the resource.
    #[must_use]
    pub fn audience(self, audience: impl Into<String>) -> Self {
        self.with(|settings| settings.audience = Some(audience.into()))
    }

    /// Requests these scopes.
    #[must_use]
    pub fn scopes(self, scopes: Scopes) -> Self {
        self.with(|settings| settings.scopes = Some(scopes))
    }

    /// Sets the maximum number of callers with tokens in memory. 1,024 by default; the tokens of the caller that has not used
    /// them for longest are dropped first.
    #[must_use]
    pub fn max_callers(self, callers: usize) -> Self {
        self.with(|settings| settings.max_callers = callers.max(1))
    }

    /// Returns the credentials of a caller for the server. `key` identifies the caller and what its tokens allow: callers
    /// with equal keys use the same exchanged token. `newest_token` returns the newest access token of the caller.
    pub fn caller(
        &self,
        key: impl Into<Arc<str>>,
        newest_token: impl Fn() -> Option<Secret> + Send + Sync + 'static,
    ) -> CallerCredentials {
        CallerCredentials {
            exchange: self.clone(),
            key: key.into(),
            newest_token: Box::new(newest_token),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut ExchangeSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    fn is_server(&self, url: &str) -> bool {
        let own = HttpUrl::parse(&self.settings.server_url);
        match (own, HttpUrl::parse(url)) {
            (Ok(own), Ok(other)) => own.is_same_origin(&other),
            _ => false,
        }
    }

    /// Returns the tokens of a caller. If there are too many callers, those of another one are dropped.
    fn tokens_of(&self, key: &Arc<str>) -> Arc<tokio::sync::Mutex<CallerTokens>> {
        let mut callers = self.state.callers();
        let used = Instant::now();
        if let Some(slot) = callers.get_mut(key) {
            slot.used = used;
            return Arc::clone(&slot.tokens);
        }
        if callers.len() >= self.settings.max_callers {
            let oldest = callers.iter().min_by_key(|(_, slot)| slot.used);
            if let Some(oldest) = oldest.map(|(key, _)| Arc::clone(key)) {
                callers.remove(&oldest);
            }
        }
        let tokens = Arc::default();
        let slot = CallerSlot {
            tokens: Arc::clone(&tokens),
            used,
        };
        callers.insert(Arc::clone(key), slot);
        tokens
    }

    /// Exchanges a token, unless that has just failed.
    async fn renew(
        &self,
        tokens: &mut CallerTokens,
        subject: Option<Secret>,
    ) -> Result<(), AuthorizationError> {
        let subject = subject.ok_or_else(|| {
            let reason = "the caller lacks a token that can be exchanged";
            AuthorizationError::new(AuthorizationStep::Exchange, reason)
        })?;
        let digest: [u8; 32] = Sha256::digest(subject.expose()).into();
        if let Some(failure) = &tokens.failure
            && failure.subject == digest
            && Instant::now() < failure.until
        {
            return Err(failure.error.clone());
        }
        match self.exchange(&subject).await {
            Ok(exchanged) => {
                tokens.failure = None;
                tokens.current = Some(self.kept_token(&exchanged));
                Ok(())
            }
            Err(error) => {
                tokens.failure = Some(RecentFailure {
                    error: error.clone(),
                    subject: digest,
                    until: Instant::now() + FAILURE_LIFETIME,
                });
                Err(error)
            }
        }
    }

    async fn exchange(&self, subject: &Secret) -> Result<Tokens, AuthorizationError> {
        let settings = &self.settings;
        let server = self.metadata().await?;
        let client = match &settings.client_key {
            Some(_) => ClientRegistration::with_key(&settings.client_id),
            None => ClientRegistration::preregistered(
                &server,
                &settings.client_id,
                settings.client_secret.clone(),
            ),
        };
        let mut endpoint = TokenEndpoint::new(&server, &client);
        endpoint.key = settings.client_key.as_ref();
        let own_url = without_fragment(&settings.server_url);
        let resource = settings.resource.as_deref().unwrap_or(own_url);
        let mut request = ExchangeRequest::new(subject, resource);
        request.audience = settings.audience.as_deref();
        request.scopes = settings.scopes.as_ref();
        token::exchange_token(&*settings.fetch, &endpoint, request).await
    }

    /// Returns the metadata of the configured issuer. What the server names itself is not used: it could name an
    /// authorization server of its own, which would get the tokens of callers.
    async fn metadata(&self) -> Result<AuthorizationServer, AuthorizationError> {
        let mut known = self.state.metadata.lock().await;
        if let Some((server, fetched)) = &*known
            && fetched.elapsed() < METADATA_LIFETIME
        {
            return Ok(server.clone());
        }
        let (fetch, issuer) = (&*self.settings.fetch, &self.settings.issuer);
        let server = discovery::server_metadata(fetch, issuer, REVISION).await?;
        *known = Some((server.clone(), Instant::now()));
        Ok(server)
    }

    fn kept_token(&self, tokens: &Tokens) -> ExchangedToken {
        let lifetime = tokens.remaining_lifetime().unwrap_or(DEFAULT_LIFETIME);
        let margin = MAX_MARGIN.min(lifetime / 10);
        ExchangedToken {
            header: Secret::new(format!("Bearer {}", tokens.access.expose())),
            generation: self.state.last_generation.fetch_add(1, Ordering::Relaxed) + 1,
            renew_at: Instant::now() + (lifetime - margin),
        }
    }
}

impl ExchangeState {
    fn callers(&self) -> MutexGuard<'_, HashMap<Arc<str>, CallerSlot>> {
        lock(&self.callers)
    }
}

impl ExchangedToken {
    fn credentials(&self) -> Credentials {
        let headers = vec![("authorization", self.header.clone())];
        Credentials::new(self.generation, headers)
    }
}

fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange")
            .field("server_url", &self.settings.server_url)
            .field("issuer", &self.settings.issuer)
            .finish_non_exhaustive()
    }
}

/// The credentials of one caller for the server of a [`TokenExchange`].
///
/// A token that the server rejects with 401 is replaced once.
pub struct CallerCredentials {
    exchange: TokenExchange,
    key: Arc<str>,
    newest_token: Box<dyn Fn() -> Option<Secret> + Send + Sync>,
}

impl CallerCredentials {
    async fn current(&self, url: &str) -> Result<Credentials, AuthorizationError> {
        if !self.exchange.is_server(url) {
            let reason = "the token is not for the origin that the request goes to";
            return Err(AuthorizationError::new(AuthorizationStep::Use, reason));
        }
        let tokens = self.exchange.tokens_of(&self.key);
        let mut tokens = tokens.lock().await;
        let is_usable = |token: &&ExchangedToken| Instant::now() < token.renew_at;
        if let Some(token) = tokens.current.as_ref().filter(is_usable) {
            return Ok(token.credentials());
        }
        tokens.current = None;
        let subject = (self.newest_token)();
        self.exchange.renew(&mut tokens, subject).await?;
        let current = tokens.current.as_ref();
        Ok(current.map_or_else(Credentials::default, ExchangedToken::credentials))
    }

    async fn replace_rejected(
        &self,
        response: UnauthorizedResponse<'_>,
    ) -> Result<RetryDecision, AuthorizationError> {
        if response.status != 401 || !self.exchange.is_server(response.request.url) {
            return Ok(RetryDecision::GiveUp);
        }
        let tokens = self.exchange.tokens_of(&self.key);
        let mut tokens = tokens.lock().await;
        let generation = tokens.current.as_ref().map(|token| token.generation);
        if generation != Some(response.generation) {
            // Another request has replaced the token.
            return Ok(match response.attempts {
                1 => RetryDecision::Retry,
                _ => RetryDecision::GiveUp,
            });
        }
        let is_recent = |rejected: Instant| rejected.elapsed() < REJECTION_INTERVAL;
        if tokens.rejected.is_some_and(is_recent) {
            return Ok(RetryDecision::GiveUp);
        }
        tokens.rejected = Some(Instant::now());
        tokens.current = None;
        let subject = (self.newest_token)();
        self.exchange.renew(&mut tokens, subject).await?;
        Ok(RetryDecision::Retry)
    }
}

impl CredentialProvider for CallerCredentials {
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
        Box::pin(self.current(request.url))
    }

    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
        Box::pin(self.replace_rejected(response))
    }
}

impl fmt::Debug for CallerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerCredentials")
            .field("exchange", &self.exchange)
            .finish_non_exhaustive()
    }
}
