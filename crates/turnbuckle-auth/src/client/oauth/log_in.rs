//! Logging in, by each of the grants.

use std::sync::Arc;

use super::{
    Dpop, Grant, OAuth,
    client::Client,
    hand::{Came, now},
    renew::is_from,
    scopes::{self, Known},
    turn::Turn,
};
use crate::{
    Challenge, Failure, Scopes, Step,
    client::{
        authorization::{self, AuthorizationRequest},
        device,
        discovery::Discovered,
        interact::Interact,
        registration::Registered,
        store::Login,
        token::{self, IdentityProvider, TokenKind, Tokens},
    },
    dpop::Prover,
    jwt::SigningKey,
};

/// What a login is for.
struct Asking<'a> {
    found: &'a Discovered,
    scopes: Option<Scopes>,
    prover: Option<Prover>,
    kept: Option<&'a Login>,
}

impl OAuth {
    /// Logs in where tokens for the server are given now, and uses what comes of it.
    pub(super) async fn log_in_at(
        &self,
        found: &Discovered,
        wanted: Option<&Scopes>,
        kept: Option<&Login>,
        _: &Turn,
    ) -> Result<(), Failure> {
        let before = kept.filter(|login| is_from(login, found));
        let known = Known {
            wanted,
            offered: found.scopes.as_ref(),
            configured: self.settings.scopes.as_ref(),
            before: before.and_then(|it| it.asked.as_ref().or(it.tokens.scopes.as_ref())),
        };
        let asking = Asking {
            found,
            scopes: known.to_ask_for(&found.server),
            prover: self.prover(found)?,
            kept,
        };
        let (client, tokens) = self.log_in_by(&asking).await?;
        if asking.prover.is_some() && tokens.kind != TokenKind::Dpop {
            return Err(not_bound(found));
        }
        let login = Login {
            server_url: self.settings.server_url.clone(),
            resource: found.resource.clone(),
            server: found.server.clone(),
            client,
            tokens,
            obtained: now(),
            asked: asking.scopes,
            dpop_key: asking.prover.map(|prover| prover.key().to_secret()),
        };
        self.keep(login, Came::ByLogin).await
    }

    /// Logs in now, whatever is kept.
    pub(super) async fn log_in_now(&self, challenges: &[Challenge]) -> Result<Login, Failure> {
        let turn = self.renewals.turn().await;
        let lock = self.settings.store.lock(&self.settings.server_url).await?;
        let turn = turn.with(lock);
        let kept = self.login().await?;
        let found = self.discover(challenges).await?;
        let wanted = scopes::challenged(challenges);
        self.log_in_at(&found, wanted.as_ref(), kept.as_ref(), &turn)
            .await?;
        // From now on the store has nothing that we do not know.
        let _ = self.renewals.loaded.set(());
        let login = self.hand.held().login;
        login.map(Arc::unwrap_or_clone).ok_or_else(|| {
            // Somebody has logged out at this very moment.
            Failure::new(Step::Store, "the login is gone again").cure("log in again")
        })
    }

    /// Forgets the login, here and in the store.
    pub(super) async fn forget(&self) -> Result<bool, Failure> {
        let settings = &self.settings;
        let turn = self.renewals.turn().await;
        let _turn = turn.with(settings.store.lock(&settings.server_url).await?);
        let was_there = settings.store.forget(&settings.server_url).await?;
        self.hand.let_go();
        Ok(was_there)
    }

    async fn log_in_by(&self, asking: &Asking<'_>) -> Result<(Registered, Tokens), Failure> {
        match &self.settings.grant {
            Grant::Code => self.log_in_by_code(asking).await,
            Grant::Device => self.log_in_by_device(asking).await,
            machine => {
                let client = self.client_for_machine(&asking.found.server, asking.kept)?;
                let tokens = self.log_in_by_machine(machine, asking, &client).await?;
                Ok((client, tokens))
            }
        }
    }

    async fn log_in_by_code(&self, asking: &Asking<'_>) -> Result<(Registered, Tokens), Failure> {
        let server = &asking.found.server;
        let interact = self.person(asking)?;
        // Does not register where the login would be refused anyway.
        authorization::endpoint(server)?;
        loop {
            let client = self.client_for_code(server, asking.kept, interact).await?;
            let failure = match self.ask_for_code(asking, &client, interact).await {
                Ok(tokens) => return Ok((client.registered, tokens)),
                Err(failure) => failure,
            };
            if !client.is_old || !may_be_forgotten(&failure) {
                return Err(failure);
            }
            self.settings.store.register(&server.issuer, None).await?;
            if failure.error_code().is_none() {
                // Nobody came back, perhaps since the browser showed that the client is not known.
                return Err(failure);
            }
        }
    }

    async fn ask_for_code(
        &self,
        asking: &Asking<'_>,
        client: &Client,
        interact: &dyn Interact,
    ) -> Result<Tokens, Failure> {
        let server = &asking.found.server;
        let thumbprint = asking.prover.as_ref().map(Prover::thumbprint);
        let request = AuthorizationRequest::new(
            server,
            &client.registered,
            &client.redirect_uri,
            &asking.found.resource,
            asking.scopes.as_ref(),
            thumbprint.as_deref(),
        )?;
        let answer = interact.visit(request.url()).await?;
        let code = request.answer(&answer)?;
        let endpoint = self.endpoint(server, &client.registered);
        let mut binding = asking.prover.as_ref().map(|prover| self.binding(prover));
        let fetch = &*self.settings.fetch;
        let tokens = token::exchange_code(fetch, &endpoint, &code, binding.as_mut()).await;
        self.remember(binding);
        tokens
    }

    async fn log_in_by_device(&self, asking: &Asking<'_>) -> Result<(Registered, Tokens), Failure> {
        let server = &asking.found.server;
        let interact = self.person(asking)?;
        loop {
            let (client, is_old) = self.client_for_device(server, asking.kept).await?;
            let failure = match self.ask_for_device(asking, &client, interact).await {
                Ok(tokens) => return Ok((client, tokens)),
                Err(failure) => failure,
            };
            if !is_old || failure.error_code() != Some("invalid_client") {
                return Err(failure);
            }
            self.settings.store.register(&server.issuer, None).await?;
        }
    }

    async fn ask_for_device(
        &self,
        asking: &Asking<'_>,
        client: &Registered,
        interact: &dyn Interact,
    ) -> Result<Tokens, Failure> {
        let fetch = &*self.settings.fetch;
        let endpoint = self.endpoint(&asking.found.server, client);
        let (resource, scopes) = (&asking.found.resource, asking.scopes.as_ref());
        let code = device::begin(fetch, &endpoint, resource, scopes).await?;
        interact.device(&code).await?;
        let mut binding = asking.prover.as_ref().map(|prover| self.binding(prover));
        let tokens = device::poll(fetch, &endpoint, &code, binding.as_mut()).await;
        self.remember(binding);
        tokens
    }

    async fn log_in_by_machine(
        &self,
        grant: &Grant,
        asking: &Asking<'_>,
        client: &Registered,
    ) -> Result<Tokens, Failure> {
        let fetch = &*self.settings.fetch;
        let server = &asking.found.server;
        let endpoint = self.endpoint(server, client);
        let (resource, scopes) = (&asking.found.resource, asking.scopes.as_ref());
        let mut binding = asking.prover.as_ref().map(|prover| self.binding(prover));
        let bound = binding.as_mut();
        let tokens = match grant {
            Grant::Enterprise {
                idp_token_endpoint,
                idp_client_id,
                idp_client_secret,
                id_token,
            } => {
                let secret = idp_client_secret.clone();
                let provider = IdentityProvider::new(idp_token_endpoint, idp_client_id, secret);
                let issuer = &server.issuer;
                let assertion =
                    token::identity_grant(fetch, &provider, id_token, issuer, resource, scopes);
                let assertion = assertion.await?;
                token::jwt_bearer(fetch, &endpoint, &assertion, resource, scopes, bound).await
            }
            Grant::Workload { assertion } => {
                token::jwt_bearer(fetch, &endpoint, assertion, resource, scopes, bound).await
            }
            _ => token::client_credentials(fetch, &endpoint, resource, scopes, bound).await,
        };
        self.remember(binding);
        tokens
    }

    /// Returns who can log in, or says that nobody can.
    fn person(&self, asking: &Asking<'_>) -> Result<&dyn Interact, Failure> {
        let issuer = &asking.found.server.issuer;
        self.settings.interact.as_deref().ok_or_else(|| {
            let again = if asking.kept.is_some() { " again" } else { "" };
            let reason =
                format!("somebody has to log in{again} at `{issuer}`, and nobody can be asked here");
            Failure::new(Step::Authorization, reason).cure(
                "log in once with a program that has a person in front of it and keeps its logins in the same store; \
                 or use a token, or client credentials",
            )
        })
    }

    /// Makes a key for a login that is to be bound to one.
    fn prover(&self, found: &Discovered) -> Result<Option<Prover>, Failure> {
        let is_wanted = match self.settings.dpop {
            Dpop::Always => true,
            Dpop::Never => false,
            Dpop::WhenWanted => found.dpop_required,
        };
        if !is_wanted {
            return Ok(None);
        }
        let key = SigningKey::generate()
            .map_err(|error| Failure::new(Step::Token, format!("no key can be made: {error}")))?;
        Ok(Some(Prover::new(key)))
    }
}

/// Whether the authorization server may have failed since it does not know a client any more.
fn may_be_forgotten(failure: &Failure) -> bool {
    match failure.error_code() {
        Some(code) => matches!(code, "invalid_client" | "unauthorized_client"),
        None => failure.step() == Step::Callback,
    }
}

fn not_bound(found: &Discovered) -> Failure {
    let reason = format!(
        "the token that `{}` has given is not bound to our key",
        found.server.issuer
    );
    Failure::new(Step::Token, reason)
        .cure("the server wants it so: whoever runs the authorization server must turn DPoP on")
}
