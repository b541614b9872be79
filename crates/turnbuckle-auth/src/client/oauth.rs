//! The client that remembers: it gets tokens, keeps them fresh, and asks for more when more is needed.

mod ahead;
mod client;
mod grant;
mod hand;
mod log_in;
mod refresh;
mod renew;
mod scopes;
mod settings;
mod step_up;
mod turn;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use turnbuckle_protocol::guard::BoxFuture;

use super::{
    interact::Interact,
    store::{Login, Store},
};
use crate::{
    Authorize, Challenge, Credentials, Failure, Next, Refused, Scopes, Secret, Sending,
    fetch::Fetch,
};
use hand::Hand;
use settings::Settings;
use turn::Renewals;

pub use grant::Grant;
pub use settings::Dpop;

/// Brings the tokens for one server: gets them when the server asks, refreshes them, asks for more when more is needed.
///
/// Nothing happens before the server refuses a request. Then it is found out who gives tokens for it, the client becomes
/// known there, somebody logs in, and the request is sent again. What came of it is kept in a [`Store`]: clients that share
/// one also share the login, even if they are in different processes.
///
/// Without [`interact`](OAuth::interact) nobody is asked to log in: what the store has is used and refreshed, and if that
/// does not do, the failure says so.
///
/// Clones are the same client.
///
/// ```
/// # fn open_browser(_: &str) -> std::io::Result<()> { Ok(()) }
/// # fn example(fetch: std::sync::Arc<dyn turnbuckle_auth::fetch::Fetch>) -> impl turnbuckle_auth::Authorize {
/// use turnbuckle_auth::client::{FileStore, Loopback, OAuth};
///
/// OAuth::new("https://mcp.example/mcp", fetch)
///     .name("Example")
///     .store(FileStore::new("/home/me/.local/state/example/logins"))
///     .interact(Loopback::new(open_browser))
/// # }
/// ```
#[derive(Clone)]
pub struct OAuth {
    settings: Arc<Settings>,
    hand: Arc<Hand>,
    renewals: Arc<Renewals>,
}

impl OAuth {
    /// Brings tokens for the server at this URL, and speaks to whoever gives them by `fetch`.
    ///
    /// Tokens are kept in memory until [`store`](OAuth::store) says where else.
    pub fn new(server_url: impl Into<String>, fetch: Arc<dyn Fetch>) -> OAuth {
        OAuth {
            settings: Arc::new(Settings::new(server_url.into(), fetch)),
            hand: Arc::default(),
            renewals: Arc::default(),
        }
    }

    /// Is known to the authorization server by this id, instead of registering itself.
    #[must_use]
    pub fn client_id(self, id: impl Into<String>) -> OAuth {
        self.with(|settings| settings.client_id = Some(id.into()))
    }

    /// Shows who it is by this secret, which belongs to its [`client_id`](OAuth::client_id).
    #[must_use]
    pub fn client_secret(self, secret: Secret) -> OAuth {
        self.with(|settings| settings.client_secret = Some(secret))
    }

    /// Shows its [`client_id`](OAuth::client_id) to nobody but this issuer.
    ///
    /// Without it, the first issuer that the server names is the one; if the server names another one later, that is a failure.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<String>) -> OAuth {
        self.with(|settings| settings.issuer = Some(issuer.into()))
    }

    /// Is known by the URL of a document about it, wherever that is understood.
    #[must_use]
    pub fn metadata_document(self, url: impl Into<String>) -> OAuth {
        self.with(|settings| settings.metadata_document = Some(url.into()))
    }

    /// Registers by this name, which people see when they log in.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> OAuth {
        self.with(|settings| settings.name = name.into())
    }

    /// Asks for these scopes from the beginning, besides those that the server wants.
    #[must_use]
    pub fn scopes(self, scopes: Scopes) -> OAuth {
        self.with(|settings| settings.scopes = Some(scopes))
    }

    /// Keeps logins here.
    #[must_use]
    pub fn store(self, store: impl Store) -> OAuth {
        self.with(|settings| settings.store = Arc::new(store))
    }

    /// Asks somebody to log in.
    #[must_use]
    pub fn interact(self, interact: impl Interact) -> OAuth {
        self.with(|settings| settings.interact = Some(Arc::new(interact)))
    }

    /// Gets tokens in this way.
    #[must_use]
    pub fn grant(self, grant: Grant) -> OAuth {
        self.with(|settings| settings.grant = grant)
    }

    /// Says when tokens are bound to a key.
    #[must_use]
    pub fn dpop(self, dpop: Dpop) -> OAuth {
        self.with(|settings| settings.dpop = dpop)
    }

    /// Says in which version of the protocol metadata is asked for.
    #[must_use]
    pub fn protocol_version(self, version: impl Into<String>) -> OAuth {
        self.with(|settings| settings.protocol_version = version.into())
    }

    /// Logs in now, whatever is kept, and returns what is kept from now on.
    ///
    /// `challenges` are those of a refusal; none if the server was not asked yet.
    pub async fn log_in(&self, challenges: &[Challenge]) -> Result<Login, Failure> {
        self.log_in_now(challenges).await
    }

    /// Returns the login that is kept, if there is one.
    pub async fn login(&self) -> Result<Option<Login>, Failure> {
        let settings = &self.settings;
        let login = settings.store.login(&settings.server_url).await?;
        Ok(login.filter(|login| settings.suit(login)))
    }

    /// Forgets the login; says whether there was one.
    pub async fn log_out(&self) -> Result<bool, Failure> {
        self.forget().await
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> OAuth {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl Authorize for OAuth {
    fn credentials<'a>(
        &'a self,
        sending: Sending<'a>,
    ) -> BoxFuture<'a, Result<Credentials, Failure>> {
        Box::pin(async move {
            self.settings.check_origin(sending.url)?;
            self.load().await?;
            self.renew_ahead().await;
            self.hand.credentials(sending)
        })
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(self.renew(refused))
    }

    fn extensions(&self) -> &'static [&'static str] {
        self.settings.grant.extensions()
    }

    fn nonce(&self, nonce: &str) {
        self.hand.nonce.set(nonce);
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("server_url", &self.settings.server_url)
            .finish_non_exhaustive()
    }
}
