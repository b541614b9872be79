//! Becoming known to an authorization server.
//!
//! By what was agreed upon beforehand, by the URL of a document about the client, or by registering at this moment (RFC 7591).

mod answer;
mod description;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{
    AuthorizationServer, Failure, Secret, Step,
    fetch::{Fetch, Request},
};

use super::{safe_url, told};
use description::is_document_url;

pub use description::{ApplicationType, ClientDescription};

/// A client as one authorization server knows it; never to be shown to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Registered {
    /// The `client_id`.
    pub id: String,
    /// The `client_secret`, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// How it shows who it is at the token endpoint.
    pub method: ClientAuthentication,
    /// Where logins return to, if that was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// When the secret ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// How it became known.
    pub source: Source,
}

/// How a client shows who it is at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// It only says its id.
    #[serde(rename = "none")]
    None,
    /// By its secret, in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// By its secret, in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// By a JWT that it signs (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// How a client became known to an authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// By what was agreed upon beforehand.
    Preregistered,
    /// By the URL of a document about it, which is its id.
    MetadataDocument,
    /// By registering itself.
    Dynamic,
}

/// How a client becomes known to an authorization server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Choice {
    /// It is known already.
    Use(Registered),
    /// It registers itself, by [`register`].
    Register,
    /// Somebody must get it an id.
    Ask,
}

/// Chooses how a client becomes known: what was agreed upon, else the URL of its document, else registration.
pub fn choose(
    server: &AuthorizationServer,
    preregistered: Option<Registered>,
    metadata_url: Option<&str>,
) -> Choice {
    if let Some(client) = preregistered {
        return Choice::Use(client);
    }
    let document = metadata_url.filter(|url| is_document_url(url));
    match document {
        Some(url) if server.client_id_metadata_document_supported => {
            Choice::Use(Registered::metadata_document(url))
        }
        _ if server.registration_endpoint.is_some() => Choice::Register,
        _ => Choice::Ask,
    }
}

/// Registers a client (RFC 7591).
pub async fn register(
    fetch: &dyn Fetch,
    server: &AuthorizationServer,
    description: &ClientDescription,
) -> Result<Registered, Failure> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(nobody_registers(server));
    };
    safe_url::check(endpoint, Step::Registration, "registration endpoint")?;
    for uri in &description.redirect_uris {
        safe_url::check(uri, Step::Registration, "redirect URI")?;
    }
    let asked = ClientAuthentication::to_ask_for(server);
    let body = description.to_json(asked).to_string();
    let request = Request::post(endpoint, "application/json", body);
    let described = told::Described(format!("{request:?}"));
    let response = told::fetched(fetch, request, Step::Registration).await?;
    let registered =
        answer::read(&response, server).map_err(|failure| failure.request(described))?;
    let redirect_uri = description.redirect_uris.first().cloned();
    Ok(Registered {
        redirect_uri,
        ..registered
    })
}

impl Registered {
    /// Describes a client that was agreed upon beforehand; its secret is sent as the server wants it.
    pub fn preregistered(
        server: &AuthorizationServer,
        id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Self {
        let method = ClientAuthentication::suited(server, secret.is_some());
        Self::new(id, secret, method, Source::Preregistered)
    }

    /// Describes a client that was agreed upon beforehand and shows who it is by signing.
    pub fn with_key(id: impl Into<String>) -> Self {
        let method = ClientAuthentication::PrivateKeyJwt;
        Self::new(id, None, method, Source::Preregistered)
    }

    /// Describes a client whose id is the URL of a document about it.
    pub fn metadata_document(url: impl Into<String>) -> Self {
        let method = ClientAuthentication::None;
        Self::new(url, None, method, Source::MetadataDocument)
    }

    /// Says whether its secret has ended at this time, in seconds since 1970.
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn new(
        id: impl Into<String>,
        secret: Option<Secret>,
        method: ClientAuthentication,
        source: Source,
    ) -> Self {
        Self {
            id: id.into(),
            secret,
            method,
            redirect_uri: None,
            expires: None,
            source,
        }
    }
}

impl ClientAuthentication {
    /// Returns its name in metadata and registrations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// What a client that has a secret, or none, uses where nobody has told it.
    fn suited(server: &AuthorizationServer, has_secret: bool) -> Self {
        let methods = &server.token_endpoint_auth_methods_supported;
        let offers = |method: Self| methods.iter().any(|one| one == method.as_str());
        match has_secret {
            true if methods.is_empty() || offers(Self::Basic) => Self::Basic,
            true if offers(Self::Post) => Self::Post,
            // A secret that nobody wants to see is not shown.
            true if offers(Self::None) => Self::None,
            true => Self::Basic,
            false => Self::None,
        }
    }

    /// What a client that runs on a user's machine, and can keep no secret from the user, registers for.
    fn to_ask_for(server: &AuthorizationServer) -> Self {
        let methods = &server.token_endpoint_auth_methods_supported;
        let offers = |method: &Self| methods.iter().any(|one| one == method.as_str());
        let mut possible = [Self::None, Self::Basic, Self::Post].into_iter();
        possible.find(offers).unwrap_or(Self::None)
    }
}

fn nobody_registers(server: &AuthorizationServer) -> Failure {
    Failure::new(
        Step::Registration,
        format!("`{}` lets no client register itself", server.issuer),
    )
    .cure("get a client id from whoever runs it, and configure it here")
}
