//! A new token for an old one.

use super::{
    OAuth,
    hand::{self, Came, now},
    renew::is_final,
    turn::Turn,
};
use crate::{
    AuthorizationServer, Failure,
    client::{
        registration::{Registered, Source},
        store::Login,
        token::{self, Binding, Endpoint},
    },
};

impl OAuth {
    /// Refreshes a login, and keeps and uses what comes of it.
    pub(super) async fn refresh(
        &self,
        login: &Login,
        server: &AuthorizationServer,
        _: &Turn,
    ) -> Result<(), Failure> {
        let Some(refresh) = &login.tokens.refresh else {
            return Ok(());
        };
        let client = self.client_of(login, server);
        let endpoint = self.endpoint(server, &client);
        let prover = hand::prover(login)?;
        let mut binding = prover.as_ref().map(|prover| self.binding(prover));
        let fetch = &*self.settings.fetch;
        let (resource, scopes) = (&login.resource, login.tokens.scopes.as_ref());
        let refreshed = token::refresh(
            fetch,
            &endpoint,
            refresh,
            resource,
            scopes,
            binding.as_mut(),
        )
        .await;
        self.remember(binding);
        match refreshed {
            Ok(tokens) => {
                let login = Login {
                    tokens,
                    client,
                    server: server.clone(),
                    obtained: now(),
                    ..login.clone()
                };
                self.keep(login, Came::ByRefresh).await?;
                Ok(())
            }
            Err(failure) => {
                if is_final(&failure) {
                    self.refresh_no_more(login.clone(), &failure).await?;
                }
                Err(failure)
            }
        }
    }

    /// Keeps a login without its refresh token, so that nobody tries it again.
    async fn refresh_no_more(&self, mut login: Login, failure: &Failure) -> Result<(), Failure> {
        let store = &self.settings.store;
        if failure.error_code() == Some("invalid_client") && login.client.source == Source::Dynamic
        {
            store.register(login.issuer(), None).await?;
        }
        login.tokens.refresh = None;
        store.save(&login).await
    }

    /// Uses a login from now on, after it is kept.
    pub(super) async fn keep(&self, login: Login, came: Came) -> Result<(), Failure> {
        let saved = self.settings.store.save(&login).await;
        // Even if it could not be kept, it is the only one that is good.
        self.hand.hold(login, came)?;
        saved
    }

    /// As whom we ask for tokens in place of those of a login; the secret may be another one by now.
    fn client_of(&self, login: &Login, server: &AuthorizationServer) -> Registered {
        let settings = &self.settings;
        match (&settings.client_id, &settings.client_secret) {
            (Some(id), Some(secret)) if *id == login.client.id => {
                Registered::preregistered(server, id, Some(secret.clone()))
            }
            _ => login.client.clone(),
        }
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        server: &'a AuthorizationServer,
        client: &'a Registered,
    ) -> Endpoint<'a> {
        let endpoint = Endpoint::new(server, client);
        match self.settings.grant.key() {
            Some(key) => endpoint.key(key),
            None => endpoint,
        }
    }

    pub(super) fn binding<'a>(&self, prover: &'a crate::dpop::Prover) -> Binding<'a> {
        let mut binding = Binding::new(prover);
        binding.nonce = self.hand.issuer_nonce.get();
        binding
    }

    /// Remembers the nonce of the authorization server for the next time.
    pub(super) fn remember(&self, binding: Option<Binding<'_>>) {
        if let Some(nonce) = binding.and_then(|binding| binding.nonce) {
            self.hand.issuer_nonce.set(&nonce);
        }
    }
}
