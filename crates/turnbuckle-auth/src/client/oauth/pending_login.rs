//! Logins in two steps, for programs that receive the authorization response at a page of their own web server.

use std::fmt;

use sha2::{Digest as _, Sha256};
use turnbuckle_protocol::authenticator::BoxFuture;

use super::{
    OAuth, client_identity::OAuthClientIdentity, current_login::LoginOrigin,
    login::challenge_scopes, renewal_lock::run_to_completion,
};
use crate::{
    AuthorizationError, AuthorizationStep, Challenge, Scopes, Secret,
    client::{
        authorization::{self, AuthorizationCode, AuthorizationRequest},
        device::DeviceCode,
        discovery::DiscoveryResult,
        store::StoredLogin,
        token::{self, Tokens},
        user_agent::UserAgent,
    },
    dpop::DpopProver,
};

/// A started login: the user has to open [`url`](Self::url), and [`OAuth::complete_login`] gets the response.
pub struct PendingLogin {
    discovery: DiscoveryResult,
    client: OAuthClientIdentity,
    request: AuthorizationRequest,
    scopes: Option<Scopes>,
    prover: Option<DpopProver>,
}

impl PendingLogin {
    /// Returns the URL to open in the browser of the user.
    pub fn url(&self) -> &str {
        self.request.url()
    }

    /// Returns the `state`, by which the authorization response names its login.
    pub fn state(&self) -> &Secret {
        self.request.state()
    }

    /// Returns the redirect URI of this login. A response that arrived at another URL does not belong to it.
    pub fn redirect_uri(&self) -> &str {
        &self.client.redirect_uri
    }

    /// Returns the issuer where the user logs in.
    pub fn issuer(&self) -> &str {
        &self.discovery.server.issuer
    }
}

/// Shows no secrets of the login.
impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl OAuth {
    /// Starts a login. Its response arrives at a page of this program below `callback_url`.
    ///
    /// The redirect URI is `callback_url`, `/`, and the first 16 hexadecimal digits of the SHA-256 digest of the issuer
    /// identifier, so that each authorization server has one of its own. An authorization server that names the
    /// authorization endpoint of another one in its metadata then gets no code (RFC 9700, section 4.4). The program has
    /// to refuse responses at another URL than [`PendingLogin::redirect_uri`].
    ///
    /// Nothing is locked until [`complete_login`](Self::complete_login), so the login can also be dropped. The program has
    /// to make sure that the response comes from the browser in which it has opened the URL, for example by a cookie.
    /// `challenges` are those of a 401 or 403; empty before the first request.
    pub async fn begin_login(
        &self,
        challenges: &[Challenge],
        callback_url: &str,
    ) -> Result<PendingLogin, AuthorizationError> {
        let lock = self.renewals.lock().await;
        let store_lock = self.settings.store.lock(&self.settings.server_url).await?;
        let _lock = lock.with_store_lock(store_lock);
        let stored = self.stored_login().await?;
        let discovery = self.discover(challenges).await?;
        // Checked first, to avoid a registration for a login that would fail.
        authorization::endpoint(&discovery.server)?;
        let page = RedirectPage::new(callback_url, &discovery.server.issuer);
        let client = self
            .settings
            .client_for_browser_login(&discovery.server, stored.as_ref(), &page)
            .await?;
        let challenged = challenge_scopes(challenges);
        let scopes = self.scopes_to_request(&discovery, challenged.as_ref(), stored.as_ref());
        let prover = self.prover(&discovery)?;
        let thumbprint = prover.as_ref().map(DpopProver::thumbprint);
        let request = AuthorizationRequest::new(
            &discovery.server,
            &client.registered,
            &client.redirect_uri,
            &discovery.resource,
            scopes.as_ref(),
            thumbprint.as_deref(),
        )?;
        Ok(PendingLogin {
            discovery,
            client,
            request,
            scopes,
            prover,
        })
    }

    /// Completes a login with the authorization response: the URL of the request at the redirect URI, or only its query.
    ///
    /// `state` and `iss` are checked first. Redeeming the code runs to completion even if the future is dropped, because a
    /// code can be used only once.
    pub async fn complete_login(
        &self,
        login: PendingLogin,
        url_or_query: &str,
    ) -> Result<StoredLogin, AuthorizationError> {
        let code = login.request.parse_response(url_or_query)?;
        let this = self.clone();
        run_to_completion(async move { this.redeem(login, code).await }).await
    }

    async fn redeem(
        &self,
        login: PendingLogin,
        code: AuthorizationCode,
    ) -> Result<StoredLogin, AuthorizationError> {
        let tokens = match self.tokens_for(&login, &code).await {
            Ok(tokens) => tokens,
            Err(failure) => {
                self.forget_unknown_client(&login, &failure).await?;
                return Err(failure);
            }
        };
        let client = login.client.registered;
        let stored =
            self.new_login(&login.discovery, client, tokens, login.scopes, login.prover)?;
        let lock = self.renewals.lock().await;
        let store_lock = self.settings.store.lock(&self.settings.server_url).await?;
        let _lock = lock.with_store_lock(store_lock);
        self.save_and_use(stored.clone(), LoginOrigin::Login)
            .await?;
        let _ = self.renewals.loaded.set(());
        Ok(stored)
    }

    async fn tokens_for(
        &self,
        login: &PendingLogin,
        code: &AuthorizationCode,
    ) -> Result<Tokens, AuthorizationError> {
        let endpoint = self.endpoint(&login.discovery.server, &login.client.registered);
        let mut binding = login.prover.as_ref().map(|prover| self.binding(prover));
        let fetch = &*self.settings.fetch;
        let tokens = token::exchange_code(fetch, &endpoint, code, binding.as_mut()).await;
        self.store_issuer_nonce(binding);
        tokens
    }

    /// Deletes a stored registration that the token endpoint does not know any more, so that the next login registers
    /// again. The error of an authorization response is not enough: the user can write it.
    async fn forget_unknown_client(
        &self,
        login: &PendingLogin,
        failure: &AuthorizationError,
    ) -> Result<(), AuthorizationError> {
        let is_unknown = matches!(
            failure.error_code(),
            Some("invalid_client" | "unauthorized_client")
        );
        if !login.client.is_reused || !is_unknown {
            return Ok(());
        }
        let store = &self.settings.store;
        store.save_registration(login.issuer(), None).await
    }
}

/// Names the redirect URI of a login; the response arrives elsewhere.
struct RedirectPage(String);

impl RedirectPage {
    fn new(callback_url: &str, issuer: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(issuer).into();
        let digits = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
        Self(format!("{callback_url}/{}", digits.collect::<String>()))
    }
}

impl UserAgent for RedirectPage {
    fn redirect_uri<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        let uri = self.0.clone();
        Box::pin(std::future::ready(Ok(uri)))
    }

    fn open_url<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(std::future::ready(Err(no_browser())))
    }

    fn show_device_code<'a>(
        &'a self,
        _: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        Box::pin(std::future::ready(Err(no_browser())))
    }
}

fn no_browser() -> AuthorizationError {
    let reason = "the browser is opened elsewhere";
    AuthorizationError::new(AuthorizationStep::Authorization, reason)
}
