//! The client registration to log in with.

use super::settings::OAuthSettings;
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep,
    client::{
        registration::{
            self, ApplicationType, ClientMetadata, ClientRegistration, RegistrationMethod,
            RegistrationSource,
        },
        store::StoredLogin,
        user_agent::UserAgent,
    },
    unix_time::now,
};

/// A client registration, for one browser login.
pub(super) struct OAuthClientIdentity {
    pub(super) registered: ClientRegistration,
    /// The redirect URI of the login.
    pub(super) redirect_uri: String,
    /// True if the registration was stored earlier; the server may have deleted it.
    pub(super) is_reused: bool,
}

impl OAuthSettings {
    /// Returns the client for a browser login, registered if necessary. The user agent listens at the redirect URI.
    pub(super) async fn client_for_browser_login(
        &self,
        server: &AuthorizationServer,
        stored: Option<&StoredLogin>,
        user_agent: &dyn UserAgent,
    ) -> Result<OAuthClientIdentity, AuthorizationError> {
        let registered = match self.choose_registration(server, stored)? {
            RegistrationMethod::Existing(registered) => registered,
            RegistrationMethod::Dynamic => {
                return self.client_from_registration(server, user_agent).await;
            }
            _ => return Err(no_client_id(server)),
        };
        let redirect_uri = user_agent.redirect_uri(None).await?;
        Ok(OAuthClientIdentity {
            registered,
            redirect_uri,
            is_reused: false,
        })
    }

    async fn client_from_registration(
        &self,
        server: &AuthorizationServer,
        user_agent: &dyn UserAgent,
    ) -> Result<OAuthClientIdentity, AuthorizationError> {
        let store = &self.store;
        let before = store.registration(&server.issuer).await?;
        let before = before.filter(|before| !before.has_expired(now()));
        let preferred = before
            .as_ref()
            .and_then(|before| before.redirect_uri.as_deref());
        let redirect_uri = user_agent.redirect_uri(preferred).await?;
        if let Some(registered) =
            before.filter(|it| it.redirect_uri.as_ref() == Some(&redirect_uri))
        {
            return Ok(OAuthClientIdentity {
                registered,
                redirect_uri,
                is_reused: true,
            });
        }
        let mut client_metadata = ClientMetadata::new(&self.client_name, [&redirect_uri]);
        if redirect_uri.starts_with("https:") {
            client_metadata.application_type = ApplicationType::Web;
        }
        let registered = self.register_client(server, &client_metadata).await?;
        Ok(OAuthClientIdentity {
            registered,
            redirect_uri,
            is_reused: false,
        })
    }

    /// Returns the client for a device login, registered if necessary, and whether the registration was stored earlier.
    pub(super) async fn client_for_device_login(
        &self,
        server: &AuthorizationServer,
        stored: Option<&StoredLogin>,
    ) -> Result<(ClientRegistration, bool), AuthorizationError> {
        match self.choose_registration(server, stored)? {
            RegistrationMethod::Existing(registered) => return Ok((registered, false)),
            RegistrationMethod::Dynamic => {}
            _ => return Err(no_client_id(server)),
        }
        let before = self.store.registration(&server.issuer).await?;
        // A registration with a redirect URI is for browser logins.
        let is_ours = |it: &ClientRegistration| it.redirect_uri.is_none() && !it.has_expired(now());
        if let Some(registered) = before.filter(is_ours) {
            return Ok((registered, true));
        }
        let mut client_metadata = ClientMetadata::new(&self.client_name, [""; 0]);
        client_metadata.grant_types = [
            "urn:ietf:params:oauth:grant-type:device_code",
            "refresh_token",
        ]
        .map(str::to_owned)
        .into();
        let registered = self.register_client(server, &client_metadata).await?;
        Ok((registered, false))
    }

    /// Returns the preregistered client, for grants without a user.
    pub(super) fn client_for_machine_grant(
        &self,
        server: &AuthorizationServer,
        stored: Option<&StoredLogin>,
    ) -> Result<ClientRegistration, AuthorizationError> {
        match self.choose_registration(server, stored)? {
            RegistrationMethod::Existing(registered) => Ok(registered),
            _ => Err(no_client_id(server)),
        }
    }

    fn choose_registration(
        &self,
        server: &AuthorizationServer,
        stored: Option<&StoredLogin>,
    ) -> Result<RegistrationMethod, AuthorizationError> {
        let preregistered = self.preregistered(server, stored)?;
        let document = self.client_metadata_url.as_deref();
        Ok(registration::choose_method(server, preregistered, document))
    }

    /// Returns the configured client. Its id is used only with the issuer that assigned it.
    fn preregistered(
        &self,
        server: &AuthorizationServer,
        stored: Option<&StoredLogin>,
    ) -> Result<Option<ClientRegistration>, AuthorizationError> {
        let settings = self;
        let before =
            stored.filter(|login| login.client.source == RegistrationSource::Preregistered);
        let bound = settings
            .issuer
            .as_deref()
            .or(before.map(StoredLogin::issuer));
        let id = settings
            .client_id
            .as_ref()
            .or(before.map(|login| &login.client.id));
        let (Some(id), bound) = (id, bound.filter(|bound| *bound != server.issuer)) else {
            return Ok(None);
        };
        if let Some(bound) = bound {
            return Err(wrong_issuer(id, bound, server));
        }
        Ok(Some(match (&settings.client_id, before) {
            (None, Some(login)) => login.client.clone(),
            _ if settings.grant.key().is_some() => ClientRegistration::with_key(id),
            _ => ClientRegistration::preregistered(server, id, settings.client_secret.clone()),
        }))
    }

    async fn register_client(
        &self,
        server: &AuthorizationServer,
        client_metadata: &ClientMetadata,
    ) -> Result<ClientRegistration, AuthorizationError> {
        let settings = self;
        let registered = registration::register(&*settings.fetch, server, client_metadata).await?;
        let stored = settings
            .store
            .save_registration(&server.issuer, Some(&registered));
        stored.await?;
        Ok(registered)
    }
}

fn wrong_issuer(id: &str, bound: &str, server: &AuthorizationServer) -> AuthorizationError {
    let issuer = &server.issuer;
    AuthorizationError::new(
        AuthorizationStep::Registration,
        format!("the client id `{id}` belongs to `{bound}`, but the server now names `{issuer}`"),
    )
    .with_hint(format!(
        "if the server has moved, log out, and log in with a client id of `{issuer}`; otherwise do not log in"
    ))
}

fn no_client_id(server: &AuthorizationServer) -> AuthorizationError {
    let issuer = &server.issuer;
    AuthorizationError::new(
        AuthorizationStep::Registration,
        format!("`{issuer}` does not know this client and does not support dynamic registration"),
    )
    .with_hint("get a client id from its operator, and configure it")
}
