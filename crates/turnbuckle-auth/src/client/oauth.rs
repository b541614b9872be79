//! The stateful OAuth client: obtains tokens, refreshes them, and requests more scopes when needed.

mod client_identity;
mod current_login;
mod login;
mod pending_login;
mod renewal;
mod renewal_lock;
mod settings;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use current_login::LoginSlot;
pub use pending_login::PendingLogin;
use renewal_lock::RenewalState;
use settings::OAuthSettings;
pub use settings::{DpopMode, GrantType};
use turnbuckle_protocol::authenticator::BoxFuture;

use super::{
    store::{StoredLogin, TokenStore},
    user_agent::UserAgent,
    user_logins::UserStore,
};
use crate::{
    AuthorizationError, Challenge, CredentialProvider, Credentials, RetryDecision, Scopes, Secret,
    UnauthorizedResponse, UnsignedRequest, fetch::Fetch,
};

/// Provides the tokens for one server: obtains them after a 401, refreshes them, and requests more scopes after a 403.
///
/// Nothing happens before the server responds with 401 or 403. Then the client discovers the authorization server,
/// registers there, lets the user log in, and has the request retried. The login is stored in a [`TokenStore`]; clients
/// that share a store also share the login, even across processes.
///
/// Without [`user_agent`](OAuth::user_agent), users are not prompted to log in: a stored login is used and refreshed,
/// and anything else is an error.
///
/// Clones share their state.
///
/// ```
/// # fn open_browser(_: &str) -> std::io::Result<()> { Ok(()) }
/// # fn example(fetch: std::sync::Arc<dyn turnbuckle_auth::fetch::Fetch>) -> impl turnbuckle_auth::CredentialProvider {
/// use turnbuckle_auth::client::{FileStore, LoopbackUserAgent, OAuth};
///
/// OAuth::new("https://mcp.example/mcp", fetch)
///     .client_name("Example")
///     .store(FileStore::new("/home/me/.local/state/example/logins"))
///     .user_agent(LoopbackUserAgent::new(open_browser))
/// # }
/// ```
#[derive(Clone)]
pub struct OAuth {
    settings: Arc<OAuthSettings>,
    slot: Arc<LoginSlot>,
    renewals: Arc<RenewalState>,
}

impl OAuth {
    /// Creates a client for the server at this URL; requests to authorization servers are sent with `fetch`.
    ///
    /// Logins stay in memory unless a [`store`](OAuth::store) is set.
    pub fn new(server_url: impl Into<String>, fetch: Arc<dyn Fetch>) -> OAuth {
        OAuth {
            settings: Arc::new(OAuthSettings::new(server_url.into(), fetch)),
            slot: Arc::default(),
            renewals: Arc::default(),
        }
    }

    /// Sets the client id, instead of registering dynamically.
    #[must_use]
    pub fn client_id(self, id: impl Into<String>) -> OAuth {
        self.with(|settings| settings.client_id = Some(id.into()))
    }

    /// Sets the secret of the [`client_id`](OAuth::client_id).
    #[must_use]
    pub fn client_secret(self, secret: Secret) -> OAuth {
        self.with(|settings| settings.client_secret = Some(secret))
    }

    /// Uses the [`client_id`](OAuth::client_id) only with this issuer.
    ///
    /// Without it, the client id is bound to the first issuer that the server names; another one later is an error.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<String>) -> OAuth {
        self.with(|settings| settings.issuer = Some(issuer.into()))
    }

    /// Sets the URL of the client metadata document, which is the client id where the server supports it.
    #[must_use]
    pub fn client_metadata_url(self, url: impl Into<String>) -> OAuth {
        self.with(|settings| settings.client_metadata_url = Some(url.into()))
    }

    /// Sets the name for dynamic registration, which users see when they log in.
    #[must_use]
    pub fn client_name(self, name: impl Into<String>) -> OAuth {
        self.with(|settings| settings.client_name = name.into())
    }

    /// Requests these scopes in addition to those of the challenge.
    #[must_use]
    pub fn scopes(self, scopes: Scopes) -> OAuth {
        self.with(|settings| settings.scopes = Some(scopes))
    }

    /// Sets the store for logins.
    #[must_use]
    pub fn store(self, store: impl TokenStore) -> OAuth {
        self.with(|settings| settings.store = Arc::new(store))
    }

    /// Sets the user agent for logins.
    #[must_use]
    pub fn user_agent(self, user_agent: impl UserAgent) -> OAuth {
        self.with(|settings| settings.user_agent = Some(Arc::new(user_agent)))
    }

    /// Sets the grant.
    #[must_use]
    pub fn grant(self, grant: GrantType) -> OAuth {
        self.with(|settings| settings.grant = grant)
    }

    /// Sets when tokens are bound to a key.
    #[must_use]
    pub fn dpop(self, dpop: DpopMode) -> OAuth {
        self.with(|settings| settings.dpop = dpop)
    }

    /// Sets the protocol version that is sent in metadata requests.
    #[must_use]
    pub fn protocol_version(self, version: impl Into<String>) -> OAuth {
        self.with(|settings| settings.protocol_version = version.into())
    }

    /// Logs in now, even if there is a stored login, and returns the new one.
    ///
    /// `challenges` are those of a 401 or 403; empty before the first request.
    pub async fn log_in(
        &self,
        challenges: &[Challenge],
    ) -> Result<StoredLogin, AuthorizationError> {
        self.log_in_now(challenges).await
    }

    /// Returns the stored login, if there is one.
    pub async fn stored_login(&self) -> Result<Option<StoredLogin>, AuthorizationError> {
        let settings = &self.settings;
        let login = settings.store.login(&settings.server_url).await?;
        Ok(login.filter(|login| settings.is_compatible(login)))
    }

    /// Deletes the login, and revokes its tokens if the authorization server supports that (RFC 7009).
    ///
    /// Returns `None` without a login. The login is deleted even if its tokens cannot be revoked.
    pub async fn log_out(&self) -> Result<Option<Revocation>, AuthorizationError> {
        self.delete_login().await
    }

    /// Returns a client with the same settings for another user of this program. Logins of this user are stored separately.
    pub(super) fn for_user(&self, user: &str) -> OAuth {
        let store = UserStore::new(Arc::clone(&self.settings.store), user);
        OAuth {
            slot: Arc::default(),
            renewals: Arc::default(),
            ..self.clone()
        }
        .store(store)
    }

    fn with(mut self, change: impl FnOnce(&mut OAuthSettings)) -> OAuth {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

/// The revocation of the tokens of a deleted login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Revocation {
    /// The authorization server has revoked the tokens.
    Revoked,
    /// The authorization server does not announce a revocation endpoint. Access tokens stay valid until they expire.
    Unsupported,
    /// The tokens could not be revoked, and may stay valid.
    Failed(AuthorizationError),
}

impl CredentialProvider for OAuth {
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, Result<Credentials, AuthorizationError>> {
        Box::pin(async move {
            self.settings.check_origin(request.url)?;
            self.load().await?;
            self.refresh_if_expiring().await;
            self.slot.credentials(request)
        })
    }

    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, Result<RetryDecision, AuthorizationError>> {
        Box::pin(self.renew(response))
    }

    fn extensions(&self) -> &'static [&'static str] {
        self.settings.grant.extensions()
    }

    fn set_dpop_nonce(&self, nonce: &str) {
        self.slot.nonce.set(nonce);
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("server_url", &self.settings.server_url)
            .finish_non_exhaustive()
    }
}
