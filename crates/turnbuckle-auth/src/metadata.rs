//! Metadata documents of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect), and
//! the comparison of resource identifiers.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use turnbuckle_protocol::json;
use turnbuckle_text::url::HttpUrl;

/// Metadata of a protected resource, that is, of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// URL of the server, as used in token audiences.
    pub resource: String,
    /// The accepted token issuers.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// Scopes that a client may request.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub scopes_supported: Vec<String>,
    /// Ways to send tokens; MCP allows only `header`.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub bearer_methods_supported: Vec<String>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// URL of the documentation for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// True if access tokens must be bound to a key with DPoP.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_false"
    )]
    pub dpop_bound_access_tokens_required: bool,
}

/// Metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServer {
    /// The issuer identifier, compared byte for byte.
    pub issuer: String,
    /// URL where users log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// URL that issues tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// URL where clients register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// URL that issues device codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    /// URL that describes tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// URL that revokes tokens (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// URL of its public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Scopes that can be requested.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub scopes_supported: Vec<String>,
    /// Supported grants; if empty, `authorization_code` and `implicit`.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub grant_types_supported: Vec<String>,
    /// Client authentication methods of the token endpoint; if empty, `client_secret_basic`.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// Supported PKCE methods.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub code_challenge_methods_supported: Vec<String>,
    /// Algorithms accepted for DPoP proofs.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub dpop_signing_alg_values_supported: Vec<String>,
    /// True if authorization responses contain `iss` (RFC 9207).
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_false"
    )]
    pub authorization_response_iss_parameter_supported: bool,
    /// True if a client id may be the URL of a client metadata document.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_false"
    )]
    pub client_id_metadata_document_supported: bool,
}

/// Reason why metadata must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidMetadata {
    /// Not JSON of the expected shape.
    InvalidJson(String),
    /// The document describes another resource than the requested one.
    ResourceMismatch {
        /// The resource it describes.
        found: String,
    },
    /// The document lacks an authorization server.
    NoAuthorizationServer,
    /// The document belongs to another issuer than the requested one.
    IssuerMismatch {
        /// The issuer in the document.
        found: String,
    },
    /// The server does not announce PKCE with `S256`, so that an authorization code could be stolen.
    NoPkce,
}

impl ProtectedResource {
    /// Describes a resource that accepts tokens of these issuers.
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

    /// Parses a document, and rejects it unless it describes `expected_resource`.
    ///
    /// Otherwise a server could make its client log in for another server and get the token.
    pub fn parse(
        json: &[u8],
        expected_resource: &str,
    ) -> Result<ProtectedResource, InvalidMetadata> {
        let metadata: ProtectedResource = json::from_slice(json)
            .map_err(|error| InvalidMetadata::InvalidJson(error.to_string()))?;
        if !is_same_resource(&metadata.resource, expected_resource) {
            let found = metadata.resource;
            return Err(InvalidMetadata::ResourceMismatch { found });
        }
        if metadata.authorization_servers.is_empty() {
            return Err(InvalidMetadata::NoAuthorizationServer);
        }
        Ok(metadata)
    }
}

impl AuthorizationServer {
    /// Parses a document, and rejects it unless its issuer equals `issuer` byte for byte.
    pub fn parse(json: &[u8], issuer: &str) -> Result<AuthorizationServer, InvalidMetadata> {
        let metadata: AuthorizationServer = json::from_slice(json)
            .map_err(|error| InvalidMetadata::InvalidJson(error.to_string()))?;
        if metadata.issuer != issuer {
            let found = metadata.issuer;
            return Err(InvalidMetadata::IssuerMismatch { found });
        }
        Ok(metadata)
    }

    /// Returns an error unless the server announces PKCE with `S256`.
    pub fn check_pkce(&self) -> Result<(), InvalidMetadata> {
        let methods = &self.code_challenge_methods_supported;
        if methods.iter().any(|method| method == "S256") {
            Ok(())
        } else {
            Err(InvalidMetadata::NoPkce)
        }
    }
}

impl fmt::Display for InvalidMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidMetadata::InvalidJson(error) => {
                write!(f, "invalid metadata: {error}")
            }
            InvalidMetadata::ResourceMismatch { found } => {
                write!(f, "the metadata describes another resource: {found:?}")
            }
            InvalidMetadata::NoAuthorizationServer => {
                f.write_str("the metadata does not name an authorization server")
            }
            InvalidMetadata::IssuerMismatch { found } => {
                write!(f, "the metadata belongs to another issuer: {found:?}")
            }
            InvalidMetadata::NoPkce => {
                f.write_str("the authorization server does not support PKCE with S256")
            }
        }
    }
}

impl std::error::Error for InvalidMetadata {}

/// Reads `null`, which some servers send for absent members, as the default value.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let value: Option<T> = Deserialize::deserialize(deserializer)?;
    Ok(value.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Returns whether two URLs identify the same protected resource.
///
/// Scheme and host are compared case-insensitively; the default port and a trailing slash may be omitted. Everything
/// else must be equal: another path is another resource.
///
/// ```
/// use turnbuckle_auth::is_same_resource;
///
/// assert!(is_same_resource("https://a.example/mcp", "HTTPS://A.example:443/mcp/"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example/mcp/admin"));
/// assert!(!is_same_resource("https://a.example/mcp", "https://a.example.evil.example/mcp"));
/// ```
pub fn is_same_resource(one: &str, other: &str) -> bool {
    match (HttpUrl::parse(one), HttpUrl::parse(other)) {
        (Ok(one), Ok(other)) => {
            one.is_same_origin(&other)
                && without_trailing_slash(one.path) == without_trailing_slash(other.path)
                && one.query == other.query
        }
        _ => false,
    }
}

fn without_trailing_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}
