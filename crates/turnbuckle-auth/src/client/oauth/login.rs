//! Logging in, with each of the grants, and the scopes to request.

use std::sync::Arc;

use super::{
    DpopMode, GrantType, OAuth, Revocation, client_identity::OAuthClientIdentity,
    current_login::LoginOrigin, renewal::matches_discovery, renewal_lock::RenewalLock,
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Challenge, Scopes,
    client::{
        authorization::{self, AuthorizationRequest, with_offline_access},
        device,
        discovery::DiscoveryResult,
        registration::ClientRegistration,
        store::StoredLogin,
        token::{self, IdentityProvider, TokenKind, Tokens},
        user_agent::UserAgent,
    },
    dpop::DpopProver,
    jwt::SigningKey,
    unix_time::now,
};

/// The parameters of a login.
struct LoginAttempt<'a> {
    discovery: &'a DiscoveryResult,
    scopes: Option<Scopes>,
    prover: Option<DpopProver>,
    stored: Option<&'a StoredLogin>,
}

impl OAuth {
    /// Logs in at the discovered authorization server; stores and uses the result.
    pub(super) async fn log_in_at(
        &self,
        discovery: &DiscoveryResult,
        challenged: Option<&Scopes>,
        stored: Option<&StoredLogin>,
        _: &RenewalLock,
    ) -> Result<(), AuthorizationError> {
        let attempt = LoginAttempt {
            discovery,
            scopes: self.scopes_to_request(discovery, challenged, stored),
            prover: self.prover(discovery)?,
            stored,
        };
        let (client, tokens) = self.get_tokens(&attempt).await?;
        let LoginAttempt { scopes, prover, .. } = attempt;
        let login = self.new_login(discovery, client, tokens, scopes, prover)?;
        self.save_and_use(login, LoginOrigin::Login).await
    }

    /// Returns the scopes of a login; those of the stored one stay requested.
    pub(super) fn scopes_to_request(
        &self,
        discovery: &DiscoveryResult,
        challenged: Option<&Scopes>,
        stored: Option<&StoredLogin>,
    ) -> Option<Scopes> {
        let previous = stored.filter(|login| matches_discovery(login, discovery));
        let sources = ScopeSources {
            challenged,
            advertised: discovery.scopes.as_ref(),
            configured: self.settings.scopes.as_ref(),
            previous: previous
                .and_then(|it| it.requested_scopes.as_ref().or(it.tokens.scopes.as_ref())),
        };
        sources.to_request(&discovery.server)
    }

    /// Returns the login with tokens that were issued now.
    pub(super) fn new_login(
        &self,
        discovery: &DiscoveryResult,
        client: ClientRegistration,
        tokens: Tokens,
        requested_scopes: Option<Scopes>,
        prover: Option<DpopProver>,
    ) -> Result<StoredLogin, AuthorizationError> {
        if prover.is_some() && tokens.kind != TokenKind::Dpop {
            return Err(token_not_bound(discovery));
        }
        Ok(StoredLogin {
            server_url: self.settings.server_url.clone(),
            resource: discovery.resource.clone(),
            server: discovery.server.clone(),
            client,
            tokens,
            obtained: now(),
            requested_scopes,
            dpop_key: prover.map(|prover| prover.key().to_secret()),
        })
    }

    /// Logs in now, even if there is a stored login.
    pub(super) async fn log_in_now(
        &self,
        challenges: &[Challenge],
    ) -> Result<StoredLogin, AuthorizationError> {
        let lock = self.renewals.lock().await;
        let store_lock = self.settings.store.lock(&self.settings.server_url).await?;
        let lock = lock.with_store_lock(store_lock);
        let stored = self.stored_login().await?;
        let discovery = self.discover(challenges).await?;
        let challenged = challenge_scopes(challenges);
        self.log_in_at(&discovery, challenged.as_ref(), stored.as_ref(), &lock)
            .await?;
        // The store contains nothing that is not loaded.
        let _ = self.renewals.loaded.set(());
        let login = self.slot.current().login;
        login.map(Arc::unwrap_or_clone).ok_or_else(|| {
            // The user has logged out at the same time.
            AuthorizationError::new(
                AuthorizationStep::Store,
                "the login was deleted in the meantime",
            )
            .with_hint("log in again")
        })
    }

    /// Deletes the login from the store and from memory, then revokes its tokens.
    pub(super) async fn delete_login(&self) -> Result<Option<Revocation>, AuthorizationError> {
        let settings = &self.settings;
        let lock = self.renewals.lock().await;
        let lock = lock.with_store_lock(settings.store.lock(&settings.server_url).await?);
        // A login that cannot be read is deleted, too.
        let login = settings.store.login(&settings.server_url).await;
        let was_there = settings.store.delete(&settings.server_url).await?;
        self.slot.clear();
        drop(lock);
        if !was_there {
            return Ok(None);
        }
        Ok(Some(match login {
            Ok(Some(login)) => self.revoke_tokens(&login).await,
            Ok(None) => Revocation::Unsupported,
            Err(error) => Revocation::Failed(error),
        }))
    }

    async fn revoke_tokens(&self, login: &StoredLogin) -> Revocation {
        let client = self.client_for_refresh(login, &login.server);
        let endpoint = self.endpoint(&login.server, &client);
        match token::revoke(&*self.settings.fetch, &endpoint, &login.tokens).await {
            Ok(true) => Revocation::Revoked,
            Ok(false) => Revocation::Unsupported,
            Err(error) => Revocation::Failed(error),
        }
    }

    async fn get_tokens(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<(ClientRegistration, Tokens), AuthorizationError> {
        match &self.settings.grant {
            GrantType::AuthorizationCode => self.log_in_with_browser(attempt).await,
            GrantType::DeviceCode => self.log_in_with_device_code(attempt).await,
            grant => {
                let client = self
                    .settings
                    .client_for_machine_grant(&attempt.discovery.server, attempt.stored)?;
                let tokens = self
                    .get_tokens_without_user(grant, attempt, &client)
                    .await?;
                Ok((client, tokens))
            }
        }
    }

    async fn log_in_with_browser(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<(ClientRegistration, Tokens), AuthorizationError> {
        let server = &attempt.discovery.server;
        let user_agent = self.require_user_agent(attempt)?;
        // Checked first, to avoid a registration for a login that would fail.
        authorization::endpoint(server)?;
        loop {
            let client = self
                .settings
                .client_for_browser_login(server, attempt.stored, user_agent)
                .await?;
            let failure = match self.get_tokens_by_code(attempt, &client, user_agent).await {
                Ok(tokens) => return Ok((client.registered, tokens)),
                Err(failure) => failure,
            };
            if !client.is_reused || !may_be_unknown_client(&failure) {
                return Err(failure);
            }
            self.settings
                .store
                .save_registration(&server.issuer, None)
                .await?;
            if failure.error_code().is_none() {
                // The browser did not return, perhaps because it showed that the client is unknown.
                return Err(failure);
            }
        }
    }

    async fn get_tokens_by_code(
        &self,
        attempt: &LoginAttempt<'_>,
        client: &OAuthClientIdentity,
        user_agent: &dyn UserAgent,
    ) -> Result<Tokens, AuthorizationError> {
        let server = &attempt.discovery.server;
        let thumbprint = attempt.prover.as_ref().map(DpopProver::thumbprint);
        let request = AuthorizationRequest::new(
            server,
            &client.registered,
            &client.redirect_uri,
            &attempt.discovery.resource,
            attempt.scopes.as_ref(),
            thumbprint.as_deref(),
        )?;
        let response = user_agent.open_url(request.url()).await?;
        let code = request.parse_response(&response)?;
        let endpoint = self.endpoint(server, &client.registered);
        let mut binding = attempt.prover.as_ref().map(|prover| self.binding(prover));
        let fetch = &*self.settings.fetch;
        let tokens = token::exchange_code(fetch, &endpoint, &code, binding.as_mut()).await;
        self.store_issuer_nonce(binding);
        tokens
    }

    async fn log_in_with_device_code(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<(ClientRegistration, Tokens), AuthorizationError> {
        let server = &attempt.discovery.server;
        let user_agent = self.require_user_agent(attempt)?;
        loop {
            let (client, is_reused) = self
                .settings
                .client_for_device_login(server, attempt.stored)
                .await?;
            let failure = match self
                .get_tokens_by_device_code(attempt, &client, user_agent)
                .await
            {
                Ok(tokens) => return Ok((client, tokens)),
                Err(failure) => failure,
            };
            if !is_reused || failure.error_code() != Some("invalid_client") {
                return Err(failure);
            }
            self.settings
                .store
                .save_registration(&server.issuer, None)
                .await?;
        }
    }

    async fn get_tokens_by_device_code(
        &self,
        attempt: &LoginAttempt<'_>,
        client: &ClientRegistration,
        user_agent: &dyn UserAgent,
    ) -> Result<Tokens, AuthorizationError> {
        let fetch = &*self.settings.fetch;
        let endpoint = self.endpoint(&attempt.discovery.server, client);
        let (resource, scopes) = (&attempt.discovery.resource, attempt.scopes.as_ref());
        let code = device::request_code(fetch, &endpoint, resource, scopes).await?;
        user_agent.show_device_code(&code).await?;
        let mut binding = attempt.prover.as_ref().map(|prover| self.binding(prover));
        let tokens = device::poll(fetch, &endpoint, &code, binding.as_mut()).await;
        self.store_issuer_nonce(binding);
        tokens
    }

    async fn get_tokens_without_user(
        &self,
        grant: &GrantType,
        attempt: &LoginAttempt<'_>,
        client: &ClientRegistration,
    ) -> Result<Tokens, AuthorizationError> {
        let fetch = &*self.settings.fetch;
        let server = &attempt.discovery.server;
        let endpoint = self.endpoint(server, client);
        let (resource, scopes) = (&attempt.discovery.resource, attempt.scopes.as_ref());
        let mut binding = attempt.prover.as_ref().map(|prover| self.binding(prover));
        let bound = binding.as_mut();
        let tokens = match grant {
            GrantType::EnterpriseManaged {
                idp_token_endpoint,
                idp_client_id,
                idp_client_secret,
                id_token,
            } => {
                let secret = idp_client_secret.clone();
                let provider = IdentityProvider::new(idp_token_endpoint, idp_client_id, secret);
                let issuer = &server.issuer;
                let assertion =
                    token::request_id_jag(fetch, &provider, id_token, issuer, resource, scopes);
                let assertion = assertion.await?;
                token::jwt_bearer(fetch, &endpoint, &assertion, resource, scopes, bound).await
            }
            GrantType::WorkloadIdentity { assertion } => {
                token::jwt_bearer(fetch, &endpoint, assertion, resource, scopes, bound).await
            }
            _ => token::client_credentials(fetch, &endpoint, resource, scopes, bound).await,
        };
        self.store_issuer_nonce(binding);
        tokens
    }

    /// Returns the user agent, or an error without one.
    fn require_user_agent(
        &self,
        attempt: &LoginAttempt<'_>,
    ) -> Result<&dyn UserAgent, AuthorizationError> {
        let issuer = &attempt.discovery.server.issuer;
        self.settings.user_agent.as_deref().ok_or_else(|| {
            let again = if attempt.stored.is_some() { " again" } else { "" };
            let reason =
                format!("the user has to log in{again} at `{issuer}`, which is not possible here");
            AuthorizationError::new(AuthorizationStep::Authorization, reason).with_hint(
                "log in once with an interactive program that uses the same store; or use a token, or client credentials",
            )
        })
    }

    /// Generates a key if the login is to be bound to one.
    pub(super) fn prover(
        &self,
        discovery: &DiscoveryResult,
    ) -> Result<Option<DpopProver>, AuthorizationError> {
        let is_wanted = match self.settings.dpop {
            DpopMode::Always => true,
            DpopMode::Never => false,
            DpopMode::WhenRequired => discovery.dpop_required,
        };
        if !is_wanted {
            return Ok(None);
        }
        let key = SigningKey::generate().map_err(|error| {
            AuthorizationError::new(
                AuthorizationStep::Token,
                format!("cannot generate a key: {error}"),
            )
        })?;
        Ok(Some(DpopProver::new(key)))
    }
}

/// Returns whether the authorization server may have failed because it does not know the client any more.
fn may_be_unknown_client(failure: &AuthorizationError) -> bool {
    match failure.error_code() {
        Some(code) => matches!(code, "invalid_client" | "unauthorized_client"),
        None => failure.step() == AuthorizationStep::Callback,
    }
}

fn token_not_bound(discovery: &DiscoveryResult) -> AuthorizationError {
    let reason = format!(
        "the token issued by `{}` is not bound to the client's key",
        discovery.server.issuer
    );
    AuthorizationError::new(AuthorizationStep::Token, reason).with_hint(
        "the server requires bound tokens: ask the operator of the authorization server to enable DPoP",
    )
}

/// Scope for refresh tokens; not a scope of the resource.
const OFFLINE_ACCESS: &str = "offline_access";

/// The scopes that are known at a login.
#[derive(Clone, Copy, Default)]
pub(super) struct ScopeSources<'a> {
    /// Scopes of the challenge.
    pub(super) challenged: Option<&'a Scopes>,
    /// Scopes listed in the metadata of the server.
    pub(super) advertised: Option<&'a Scopes>,
    /// Scopes configured by the user.
    pub(super) configured: Option<&'a Scopes>,
    /// Scopes of the previous login.
    pub(super) previous: Option<&'a Scopes>,
}

impl ScopeSources<'_> {
    /// Returns the scopes to request; `None` leaves the choice to the authorization server.
    ///
    /// The scopes of the challenge take precedence over the advertised ones. Configured and previous scopes are always
    /// included.
    pub(super) fn to_request(self, server: &AuthorizationServer) -> Option<Scopes> {
        let advertised = self.advertised.map(without_offline_access);
        let first = self.challenged.or(self.configured).or(advertised.as_ref());
        let all = [first, self.configured, self.previous]
            .into_iter()
            .flatten();
        let all = all.cloned().reduce(|all, more| all.union(&more));
        with_offline_access(all.filter(|all| !all.is_empty()), server)
    }
}

/// Returns the scopes of the challenge, if they are valid.
pub(super) fn challenge_scopes(challenges: &[Challenge]) -> Option<Scopes> {
    let scopes = token_challenges(challenges).find_map(|challenge| challenge.parameter("scope"))?;
    let scopes = without_offline_access(&scopes.parse().ok()?);
    (!scopes.is_empty()).then_some(scopes)
}

/// Returns the first error code of the challenges.
pub(super) fn challenge_error(challenges: &[Challenge]) -> Option<&str> {
    token_challenges(challenges).find_map(|challenge| challenge.parameter("error"))
}

fn without_offline_access(scopes: &Scopes) -> Scopes {
    let others = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS);
    others.map(str::to_owned).collect()
}

fn token_challenges(challenges: &[Challenge]) -> impl Iterator<Item = &Challenge> {
    let is_ours =
        |challenge: &&Challenge| challenge.is_scheme("Bearer") || challenge.is_scheme("DPoP");
    challenges.iter().filter(is_ours)
}

#[cfg(test)]
mod tests {
    use turnbuckle_spec_coverage::req;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn challenged_scopes_precede_advertised_scopes() {
        req!("auth.scope.order");
        req!("auth.scope.least");
        let (challenged, advertised) = (scopes("a"), scopes("a b offline_access"));
        let server = AuthorizationServer::default();
        let sources = ScopeSources {
            challenged: Some(&challenged),
            advertised: Some(&advertised),
            ..ScopeSources::default()
        };

        assert_eq!(sources.to_request(&server), Some(scopes("a")));
        let sources = ScopeSources {
            challenged: None,
            ..sources
        };
        assert_eq!(sources.to_request(&server), Some(scopes("a b")));
        assert_eq!(ScopeSources::default().to_request(&server), None);
    }

    #[test]
    fn configured_and_earlier_scopes_are_always_requested() {
        req!("auth.scope.keep");
        let [challenged, advertised, configured, previous] = ["w", "o", "c", "b"].map(scopes);
        let server = AuthorizationServer::default();
        let sources = ScopeSources {
            challenged: Some(&challenged),
            advertised: Some(&advertised),
            configured: Some(&configured),
            previous: Some(&previous),
        };

        assert_eq!(sources.to_request(&server), Some(scopes("b c w")));
        let sources = ScopeSources {
            challenged: None,
            previous: None,
            ..sources
        };
        assert_eq!(sources.to_request(&server), Some(scopes("c")));
    }

    #[test]
    fn offline_access_of_the_resource_server_is_ignored() {
        req!("auth.refresh.offline");
        let challenged =
            challenge_scopes(&[Challenge::bearer().scope(&scopes("a offline_access"))]);
        let sources = ScopeSources {
            challenged: challenged.as_ref(),
            ..ScopeSources::default()
        };
        let mut server = AuthorizationServer::default();

        assert_eq!(sources.to_request(&server), Some(scopes("a")));
        server.scopes_supported = vec!["offline_access".to_owned()];
        assert_eq!(
            sources.to_request(&server),
            Some(scopes("a offline_access"))
        );
    }

    #[test]
    fn a_challenge_of_another_scheme_or_without_scope_adds_no_scopes() {
        let read = |header: &str| challenge_scopes(&Challenge::parse(header).unwrap());

        let header = r#"Basic scope="x", Bearer scope="a""#;
        assert_eq!(read(header), Some(scopes("a")));
        for header in [
            "Bearer",
            r#"Bearer scope="""#,
            r#"Basic scope="a""#,
            r#"Bearer scope="a\"b""#,
        ] {
            assert_eq!(read(header), None, "{header}");
        }
    }
}
