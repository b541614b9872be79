//! What servers say about themselves: protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect).

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::is_same_resource;

/// The metadata of a protected resource: an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// The URL of the server, as tokens name it.
    pub resource: String,
    /// The issuers whose tokens it takes.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// What a client may ask for.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub scopes_supported: Vec<String>,
    /// How tokens are sent; in MCP only by `header`.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub bearer_methods_supported: Vec<String>,
    /// What to call it in front of people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Where people can read about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// Whether every token must be bound to a key.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_false"
    )]
    pub dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServer {
    /// Its name, byte for byte.
    pub issuer: String,
    /// Where people log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where clients register themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where a device asks for a code that a person types elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    /// Where tokens are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// Where its public keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// What can be asked for.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub scopes_supported: Vec<String>,
    /// How a token can be had; nothing said means by a code, or implicitly.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub grant_types_supported: Vec<String>,
    /// How a client can show who it is at the token endpoint; nothing said means by a password in a header.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// How a login can be tied to who began it.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub code_challenge_methods_supported: Vec<String>,
    /// How keys that tokens are bound to may sign.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// Whether answers to a login say who gives them.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_false"
    )]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether the id of a client may be the URL of a document about it.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_false"
    )]
    pub client_id_metadata_document_supported: bool,
}

/// Why metadata must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidMetadata {
    /// Not JSON of the right shape.
    Shape(String),
    /// It is about another resource than the one that was asked.
    Resource {
        /// What it is about.
        found: String,
    },
    /// It names nobody who gives tokens.
    NoAuthorizationServer,
    /// It comes from another issuer than the one that was asked.
    Issuer {
        /// From whom it comes.
        found: String,
    },
    /// A login could be hijacked: the code is not tied to who asked for it by `S256`.
    NoPkce,
}

impl ProtectedResource {
    /// Describes a resource whose tokens come from these issuers.
    pub fn new(
        resource: impl Into<String>,
        issuers: impl IntoIterator<Item = impl Into<String>>,
    ) -> ProtectedResource {
        ProtectedResource {
            resource: resource.into(),
            authorization_servers: issuers.into_iter().map(Into::into).collect(),
            bearer_methods_supported: vec!["header".to_owned()],
            ..ProtectedResource::default()
        }
    }

    /// Reads what a server has answered, and refuses it unless it is about the server that was asked.
    ///
    /// Otherwise a server could send its client to log in for somebody else, and get the token.
    pub fn parse(json: &[u8], asked: &str) -> Result<ProtectedResource, InvalidMetadata> {
        let metadata: ProtectedResource = serde_json::from_slice(json)
            .map_err(|error| InvalidMetadata::Shape(error.to_string()))?;
        if !is_same_resource(&metadata.resource, asked) {
            let found = metadata.resource;
            return Err(InvalidMetadata::Resource { found });
        }
        if metadata.authorization_servers.is_empty() {
            return Err(InvalidMetadata::NoAuthorizationServer);
        }
        Ok(metadata)
    }
}

impl AuthorizationServer {
    /// Reads what a server has answered, and refuses it unless its issuer is, byte for byte, the one that was asked.
    pub fn parse(json: &[u8], issuer: &str) -> Result<AuthorizationServer, InvalidMetadata> {
        let metadata: AuthorizationServer = serde_json::from_slice(json)
            .map_err(|error| InvalidMetadata::Shape(error.to_string()))?;
        if metadata.issuer != issuer {
            let found = metadata.issuer;
            return Err(InvalidMetadata::Issuer { found });
        }
        Ok(metadata)
    }

    /// Refuses a server that does not say that it ties codes by `S256`; silence is no.
    pub fn check_pkce(&self) -> Result<(), InvalidMetadata> {
        let methods = &self.code_challenge_methods_supported;
        match methods.iter().any(|method| method == "S256") {
            true => Ok(()),
            false => Err(InvalidMetadata::NoPkce),
        }
    }
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidMetadata::Shape(error) => write!(f, "the metadata cannot be read: {error}"),
            InvalidMetadata::Resource { found } => {
                write!(f, "the metadata is about another resource, {found:?}")
            }
            InvalidMetadata::NoAuthorizationServer => {
                f.write_str("the metadata names no authorization server")
            }
            InvalidMetadata::Issuer { found } => {
                write!(f, "the metadata is of another issuer, {found:?}")
            }
            InvalidMetadata::NoPkce => {
                f.write_str("the authorization server does not offer PKCE with S256")
            }
        }
    }
}

impl std::error::Error for InvalidMetadata {}

/// Some servers write `null` for what they do not have.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let value: Option<T> = Deserialize::deserialize(deserializer)?;
    Ok(value.unwrap_or_default())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_false(value: &bool) -> bool {
    !value
}
