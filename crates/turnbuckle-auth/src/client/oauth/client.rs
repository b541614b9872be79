//! As whom to log in.

use super::{OAuth, hand::now};
use crate::{
    AuthorizationServer, Failure, Step,
    client::{
        interact::Interact,
        registration::{self, ApplicationType, Choice, ClientDescription, Registered, Source},
        store::Login,
    },
};

/// A client as the authorization server knows it, for one login.
pub(super) struct Client {
    pub(super) registered: Registered,
    /// Where the browser comes back to.
    pub(super) redirect_uri: String,
    /// Whether the registration is of an earlier time; the server may have forgotten it.
    pub(super) is_old: bool,
}

impl OAuth {
    /// Becomes known for a login in a browser, which then comes back to where this listens.
    pub(super) async fn client_for_code(
        &self,
        server: &AuthorizationServer,
        kept: Option<&Login>,
        interact: &dyn Interact,
    ) -> Result<Client, Failure> {
        let registered = match self.choose(server, kept)? {
            Choice::Use(registered) => registered,
            Choice::Register => return self.client_by_registration(server, interact).await,
            _ => return Err(unknown(server)),
        };
        let redirect_uri = interact.redirect_uri(None).await?;
        Ok(Client {
            registered,
            redirect_uri,
            is_old: false,
        })
    }

    async fn client_by_registration(
        &self,
        server: &AuthorizationServer,
        interact: &dyn Interact,
    ) -> Result<Client, Failure> {
        let store = &self.settings.store;
        let before = store.registration(&server.issuer).await?;
        let before = before.filter(|before| !before.has_expired(now()));
        let wanted = before
            .as_ref()
            .and_then(|before| before.redirect_uri.as_deref());
        let redirect_uri = interact.redirect_uri(wanted).await?;
        if let Some(registered) =
            before.filter(|it| it.redirect_uri.as_ref() == Some(&redirect_uri))
        {
            return Ok(Client {
                registered,
                redirect_uri,
                is_old: true,
            });
        }
        let mut description = ClientDescription::new(&self.settings.name, [&redirect_uri]);
        if redirect_uri.starts_with("https:") {
            description.application_type = ApplicationType::Web;
        }
        let registered = self.register(server, &description).await?;
        Ok(Client {
            registered,
            redirect_uri,
            is_old: false,
        })
    }

    /// Becomes known for a login on another device; says whether that was at an earlier time.
    pub(super) async fn client_for_device(
        &self,
        server: &AuthorizationServer,
        kept: Option<&Login>,
    ) -> Result<(Registered, bool), Failure> {
        match self.choose(server, kept)? {
            Choice::Use(registered) => return Ok((registered, false)),
            Choice::Register => {}
            _ => return Err(unknown(server)),
        }
        let before = self.settings.store.registration(&server.issuer).await?;
        // With a redirect URI, it is one for logins in a browser.
        let is_ours = |it: &Registered| it.redirect_uri.is_none() && !it.has_expired(now());
        if let Some(registered) = before.filter(is_ours) {
            return Ok((registered, true));
        }
        let mut description = ClientDescription::new(&self.settings.name, [""; 0]);
        description.grant_types = [
            "urn:ietf:params:oauth:grant-type:device_code",
            "refresh_token",
        ]
        .map(str::to_owned)
        .into();
        let registered = self.register(server, &description).await?;
        Ok((registered, false))
    }

    /// Returns as what the client was made known beforehand, for grants in which nobody logs in.
    pub(super) fn client_for_machine(
        &self,
        server: &AuthorizationServer,
        kept: Option<&Login>,
    ) -> Result<Registered, Failure> {
        match self.choose(server, kept)? {
            Choice::Use(registered) => Ok(registered),
            _ => Err(unknown(server)),
        }
    }

    fn choose(
        &self,
        server: &AuthorizationServer,
        kept: Option<&Login>,
    ) -> Result<Choice, Failure> {
        let preregistered = self.preregistered(server, kept)?;
        let document = self.settings.metadata_document.as_deref();
        Ok(registration::choose(server, preregistered, document))
    }

    /// A client id is shown to the issuer that gave it, and to no other.
    fn preregistered(
        &self,
        server: &AuthorizationServer,
        kept: Option<&Login>,
    ) -> Result<Option<Registered>, Failure> {
        let settings = &self.settings;
        let before = kept.filter(|login| login.client.source == Source::Preregistered);
        let bound = settings.issuer.as_deref().or(before.map(Login::issuer));
        let id = settings
            .client_id
            .as_ref()
            .or(before.map(|login| &login.client.id));
        let (Some(id), bound) = (id, bound.filter(|bound| *bound != server.issuer)) else {
            return Ok(None);
        };
        if let Some(bound) = bound {
            return Err(foreign(id, bound, server));
        }
        Ok(Some(match (&settings.client_id, before) {
            (None, Some(login)) => login.client.clone(),
            _ if settings.grant.key().is_some() => Registered::with_key(id),
            _ => Registered::preregistered(server, id, settings.client_secret.clone()),
        }))
    }

    async fn register(
        &self,
        server: &AuthorizationServer,
        description: &ClientDescription,
    ) -> Result<Registered, Failure> {
        let settings = &self.settings;
        let registered = registration::register(&*settings.fetch, server, description).await?;
        let kept = settings.store.register(&server.issuer, Some(&registered));
        kept.await?;
        Ok(registered)
    }
}

fn foreign(id: &str, bound: &str, server: &AuthorizationServer) -> Failure {
    let issuer = &server.issuer;
    Failure::new(
        Step::Registration,
        format!("the client id `{id}` is of `{bound}`, and the server now names `{issuer}`"),
    )
    .cure(format!(
        "if the server has moved, log out, and log in with a client id of `{issuer}`; if not, do not"
    ))
}

fn unknown(server: &AuthorizationServer) -> Failure {
    let issuer = &server.issuer;
    Failure::new(
        Step::Registration,
        format!("`{issuer}` does not know this client, and does not let it register itself"),
    )
    .cure("get a client id from whoever runs it, and configure it here")
}
