//! What a client says about itself: when it registers, or in a document at the URL that is its id.

use serde_json::{Value, json};

use crate::{Failure, Scopes, Step, place::Place};

use super::ClientAuthentication;

/// What a client says about itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientDescription {
    /// What to call it in front of people.
    pub name: String,
    /// Where logins return to.
    pub redirect_uris: Vec<String>,
    /// What it will ask for, if that is known.
    pub scopes: Option<Scopes>,
    /// What kind of program it is.
    pub application_type: ApplicationType,
    /// How it will get tokens.
    pub grant_types: Vec<String>,
    /// Which software it is, the same for all of its installations.
    pub software_id: Option<String>,
    /// Which version of it.
    pub software_version: Option<String>,
    /// Where people can read about it.
    pub client_uri: Option<String>,
}

/// What kind of program a client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplicationType {
    /// A program on the user's machine.
    #[default]
    Native,
    /// A site.
    Web,
}

impl ClientDescription {
    /// Describes a program on the user's machine that logs in by code and refreshes its tokens.
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

    /// Returns the document to be served at a URL, which then is the id of the client (Client ID Metadata Document).
    ///
    /// Fails if the URL can be no such id: it is `https`, and has a path.
    ///
    /// ```
    /// use turnbuckle_auth::client::registration::ClientDescription;
    ///
    /// let description = ClientDescription::new("Example", ["http://127.0.0.1/callback"]);
    /// let document = description.document("https://example.com/client.json")?;
    /// assert_eq!(document["client_id"], "https://example.com/client.json");
    /// # Ok::<(), turnbuckle_auth::Failure>(())
    /// ```
    pub fn document(&self, url: &str) -> Result<Value, Failure> {
        if !is_document_url(url) {
            let reason = format!("`{url}` cannot be the id of a client");
            return Err(Failure::new(Step::Registration, reason)
                .cure("serve the document by https, at a URL with a path"));
        }
        // Whoever can read the document could show a secret that is in it.
        let mut document = self.to_json(ClientAuthentication::None);
        document["client_id"] = url.into();
        Ok(document)
    }

    /// What it says to an authorization server.
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

/// Whether a URL can be the id of a client: by `https`, with a path that says what it says.
pub(super) fn is_document_url(url: &str) -> bool {
    let is_https = url
        .get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case("https://"));
    let has_path = Place::parse(url).is_some_and(|place| {
        let mut segments = place.path.split('/');
        !place.path_below_root().is_empty()
            && segments.all(|segment| !matches!(segment, "." | ".."))
    });
    is_https && has_path
}
