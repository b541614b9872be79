//! Client registration: preregistered, by client metadata document, or dynamic (RFC 7591).

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_text::url::{HttpScheme, HttpUrl};

use super::{
    oauth_error::{self, OAuthErrorResponse},
    safe_url,
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Scopes, Secret,
    fetch::{Fetch, FetchRequest, FetchResponse},
};

/// A client as registered with one authorization server; it must not be used with another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientRegistration {
    /// The `client_id`.
    pub id: String,
    /// The `client_secret`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Authentication method at the token endpoint.
    pub method: ClientAuthentication,
    /// The registered redirect URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// Unix time in seconds when the secret expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Origin of the registration.
    pub source: RegistrationSource,
}

/// Client authentication method at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Only `client_id`, without authentication.
    #[serde(rename = "none")]
    None,
    /// The secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// The secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// A JWT signed by the client (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// Origin of a client registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegistrationSource {
    /// Manually, before the login.
    Preregistered,
    /// By the URL of a metadata document, which is the client id.
    MetadataDocument,
    /// With dynamic registration.
    Dynamic,
}

/// Method to register a client with an authorization server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistrationMethod {
    /// Use an existing registration.
    Existing(ClientRegistration),
    /// Register with [`register`].
    Dynamic,
    /// The user has to obtain a client id.
    Manual,
}

/// Chooses the method: preregistered, else metadata document, else dynamic registration.
pub fn choose_method(
    server: &AuthorizationServer,
    preregistered: Option<ClientRegistration>,
    metadata_url: Option<&str>,
) -> RegistrationMethod {
    if let Some(client) = preregistered {
        return RegistrationMethod::Existing(client);
    }
    let document = metadata_url.filter(|url| is_metadata_document_url(url));
    match document {
        Some(url) if server.client_id_metadata_document_supported => {
            RegistrationMethod::Existing(ClientRegistration::metadata_document(url))
        }
        _ if server.registration_endpoint.is_some() => RegistrationMethod::Dynamic,
        _ => RegistrationMethod::Manual,
    }
}

/// Registers a client (RFC 7591).
pub async fn register(
    fetch: &dyn Fetch,
    server: &AuthorizationServer,
    client_metadata: &ClientMetadata,
) -> Result<ClientRegistration, AuthorizationError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(no_registration_endpoint(server));
    };
    safe_url::check(
        endpoint,
        AuthorizationStep::Registration,
        "registration endpoint",
    )?;
    for uri in &client_metadata.redirect_uris {
        safe_url::check(uri, AuthorizationStep::Registration, "redirect URI")?;
    }
    let method = ClientAuthentication::method_to_register(server);
    let body = client_metadata.to_json(method).to_string();
    let request = FetchRequest::post(endpoint, "application/json", body);
    let description = oauth_error::RequestDescription(format!("{request:?}"));
    let response =
        oauth_error::send_request(fetch, request, AuthorizationStep::Registration).await?;
    let registered = read_registration(&response, server)
        .map_err(|failure| failure.with_request(description))?;
    let redirect_uri = client_metadata.redirect_uris.first().cloned();
    Ok(ClientRegistration {
        redirect_uri,
        ..registered
    })
}

impl ClientRegistration {
    /// Describes a preregistered client; the authentication method follows from the server metadata.
    pub fn preregistered(
        server: &AuthorizationServer,
        id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Self {
        let method = ClientAuthentication::default_for(server, secret.is_some());
        Self::new(id, secret, method, RegistrationSource::Preregistered)
    }

    /// Describes a preregistered client that authenticates with `private_key_jwt`.
    pub fn with_key(id: impl Into<String>) -> Self {
        let method = ClientAuthentication::PrivateKeyJwt;
        Self::new(id, None, method, RegistrationSource::Preregistered)
    }

    /// Describes a client that is identified by the URL of its metadata document.
    pub fn metadata_document(url: impl Into<String>) -> Self {
        let method = ClientAuthentication::None;
        Self::new(url, None, method, RegistrationSource::MetadataDocument)
    }

    /// Returns whether the secret has expired at this Unix time in seconds.
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn new(
        id: impl Into<String>,
        secret: Option<Secret>,
        method: ClientAuthentication,
        source: RegistrationSource,
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
    /// Returns the name in metadata and registrations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the method for a registration that does not name one.
    fn default_for(server: &AuthorizationServer, has_secret: bool) -> Self {
        let methods = &server.token_endpoint_auth_methods_supported;
        let supports = |method: Self| methods.iter().any(|one| one == method.as_str());
        if !has_secret {
            return Self::None;
        }
        if methods.is_empty() || supports(Self::Basic) {
            return Self::Basic;
        }
        // A secret that the server does not accept is not sent.
        let mut others = [Self::Post, Self::None].into_iter();
        others
            .find(|method| supports(*method))
            .unwrap_or(Self::Basic)
    }

    /// Returns the method to register with. A client on the user's machine cannot keep a secret from the user.
    fn method_to_register(server: &AuthorizationServer) -> Self {
        let methods = &server.token_endpoint_auth_methods_supported;
        let supports = |method: &Self| methods.iter().any(|one| one == method.as_str());
        let mut possible = [Self::None, Self::Basic, Self::Post].into_iter();
        possible.find(supports).unwrap_or(Self::None)
    }
}

fn no_registration_endpoint(server: &AuthorizationServer) -> AuthorizationError {
    AuthorizationError::new(
        AuthorizationStep::Registration,
        format!(
            "`{}` does not support dynamic client registration",
            server.issuer
        ),
    )
    .with_hint("get a client id from its operator, and configure it")
}

const STEP: AuthorizationStep = AuthorizationStep::Registration;

/// Maximum length of a client id or secret, in bytes.
const MAX_CREDENTIAL_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<serde_json::Number>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Reads the registration, or the error.
fn read_registration(
    response: &FetchResponse,
    server: &AuthorizationServer,
) -> Result<ClientRegistration, AuthorizationError> {
    if !response.is_success() {
        return Err(registration_rejected(response));
    }
    let invalid = |reason: &str| {
        AuthorizationError::new(STEP, format!("the response to the registration {reason}"))
            .with_response(response.status.to_string())
            .with_hint(
                "get a client id from the operator of the authorization server, and configure it",
            )
    };
    let parsed: RegistrationResponse =
        oauth_error::parse_json(&response.body).map_err(|why| invalid(&why))?;
    let secret = parsed
        .client_secret
        .filter(|secret| !secret.expose().is_empty());
    if !is_usable(&parsed.client_id) || !secret.as_ref().is_none_or(|one| is_usable(one.expose())) {
        return Err(invalid("lacks a usable client id or secret"));
    }
    let method = match parsed.token_endpoint_auth_method.as_deref() {
        None => ClientAuthentication::default_for(server, secret.is_some()),
        Some("none") => ClientAuthentication::None,
        Some("client_secret_basic") if secret.is_some() => ClientAuthentication::Basic,
        Some("client_secret_post") if secret.is_some() => ClientAuthentication::Post,
        Some("client_secret_basic" | "client_secret_post") => {
            return Err(invalid("requires a client secret but contains none"));
        }
        Some(other) => {
            let other = oauth_error::sanitize(other);
            return Err(invalid(&format!(
                "requires an unsupported authentication method, `{other}`"
            )));
        }
    };
    let expires = parsed.client_secret_expires_at.and_then(|at| at.as_u64());
    Ok(ClientRegistration {
        expires: expires.filter(|at| *at != 0 && secret.is_some()),
        ..ClientRegistration::new(
            parsed.client_id,
            secret,
            method,
            RegistrationSource::Dynamic,
        )
    })
}

/// Returns whether the text can be used in a form and a header.
fn is_usable(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_CREDENTIAL_BYTES && !text.chars().any(char::is_control)
}

fn registration_rejected(response: &FetchResponse) -> AuthorizationError {
    let error_response = OAuthErrorResponse::new(response, &[]);
    let (reason, hint) = match error_response.code.as_deref() {
        Some("invalid_redirect_uri") => (
            "the authorization server does not allow redirect URIs on this machine",
            "get a client id from its operator, with a redirect URI that is allowed",
        ),
        Some("invalid_client_metadata") => (
            "the authorization server does not accept the client metadata",
            "get a client id from its operator, and configure it",
        ),
        Some("invalid_software_statement" | "unapproved_software_statement") => (
            "the authorization server registers only approved software",
            "get a client id from its operator, and configure it",
        ),
        _ if matches!(response.status, 401 | 403) => (
            "the authorization server does not allow open registration",
            "get a client id from its operator, and configure it",
        ),
        _ => (
            "the authorization server did not register the client",
            "try again later, or get a client id from its operator and configure it",
        ),
    };
    error_response
        .add_to(AuthorizationError::new(STEP, reason))
        .with_hint(hint)
}

/// Client metadata: sent in a registration, or served as the document at the URL that is the client id.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// Display name.
    pub name: String,
    /// Redirect URIs.
    pub redirect_uris: Vec<String>,
    /// Scopes that the client may request.
    pub scopes: Option<Scopes>,
    /// The kind of application.
    pub application_type: ApplicationType,
    /// The grants that the client uses.
    pub grant_types: Vec<String>,
    /// Identifier of the software, the same for all installations.
    pub software_id: Option<String>,
    /// Version of the software.
    pub software_version: Option<String>,
    /// URL of the homepage.
    pub client_uri: Option<String>,
}

/// The kind of application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplicationType {
    /// A program on the user's machine.
    #[default]
    Native,
    /// A web application.
    Web,
}

impl ClientMetadata {
    /// Describes a native program that uses the code flow and refresh tokens.
    pub fn new(
        name: impl Into<String>,
        redirect_uris: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            name: name.into(),
            redirect_uris: redirect_uris.into_iter().map(Into::into).collect(),
            grant_types: ["authorization_code", "refresh_token"]
                .map(Into::into)
                .into(),
            ..Self::default()
        }
    }

    /// Returns the document to serve at `url`, which is then the client id (Client ID Metadata Document).
    ///
    /// Fails if the URL cannot be a client id: it must be `https` and have a path.
    ///
    /// ```
    /// use turnbuckle_auth::client::registration::ClientMetadata;
    ///
    /// let metadata = ClientMetadata::new("Example", ["http://127.0.0.1/callback"]);
    /// let document = metadata.metadata_document("https://example.com/client.json")?;
    /// assert_eq!(document["client_id"], "https://example.com/client.json");
    /// # Ok::<(), turnbuckle_auth::AuthorizationError>(())
    /// ```
    pub fn metadata_document(&self, url: &str) -> Result<Value, AuthorizationError> {
        if !is_metadata_document_url(url) {
            let reason = format!("`{url}` cannot be a client id");
            return Err(
                AuthorizationError::new(AuthorizationStep::Registration, reason)
                    .with_hint("serve the document over https, at a URL with a path"),
            );
        }
        // The document is public, so it cannot contain a secret.
        let mut document = self.to_json(ClientAuthentication::None);
        document["client_id"] = url.into();
        Ok(document)
    }

    /// Returns the metadata as JSON.
    pub(super) fn to_json(&self, method: ClientAuthentication) -> Value {
        let is_by_code = self
            .grant_types
            .iter()
            .any(|grant| grant == "authorization_code");
        let response_types: &[&str] = if is_by_code { &["code"] } else { &[] };
        let mut body = json!({
            "client_name": self.name,
            "redirect_uris": self.redirect_uris,
            "grant_types": self.grant_types,
            "response_types": response_types,
            "token_endpoint_auth_method": method.as_str(),
            "application_type": match self.application_type {
                ApplicationType::Native => "native",
                ApplicationType::Web => "web",
            },
        });
        let further = [
            ("scope", self.scopes.as_ref().map(ToString::to_string)),
            ("software_id", self.software_id.clone()),
            ("software_version", self.software_version.clone()),
            ("client_uri", self.client_uri.clone()),
        ];
        for (name, value) in further {
            if let Some(value) = value {
                body[name] = value.into();
            }
        }
        body
    }
}

/// Returns whether a URL can be a client id: `https`, with a path without dot segments.
pub(super) fn is_metadata_document_url(url: &str) -> bool {
    HttpUrl::parse(url).is_ok_and(|url| {
        let mut segments = url.path.split('/');
        url.scheme == HttpScheme::Https
            && !url.path_without_root().is_empty()
            && segments.all(|segment| !matches!(segment, "." | ".."))
    })
}
