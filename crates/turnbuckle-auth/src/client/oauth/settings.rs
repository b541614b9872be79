//! Settings of the OAuth client.

use std::sync::Arc;

use turnbuckle_protocol::revision::NEWEST_DATE;
use turnbuckle_text::url::HttpUrl;

use crate::{
    AuthorizationError, AuthorizationStep, Scopes, Secret,
    client::{
        store::{MemoryStore, StoredLogin, TokenStore},
        user_agent::UserAgent,
    },
    fetch::Fetch,
    jwt::SigningKey,
};

/// Policy for binding tokens to a key, which makes stolen tokens useless (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopMode {
    /// If the server requires it.
    #[default]
    WhenRequired,
    /// Always; an unbound token is an error.
    Always,
    /// Never.
    Never,
}

#[derive(Clone)]
pub(super) struct OAuthSettings {
    pub(super) server_url: String,
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<Secret>,
    pub(super) issuer: Option<String>,
    pub(super) client_metadata_url: Option<String>,
    pub(super) client_name: String,
    pub(super) scopes: Option<Scopes>,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) user_agent: Option<Arc<dyn UserAgent>>,
    pub(super) grant: GrantType,
    pub(super) dpop: DpopMode,
    pub(super) protocol_version: String,
}

impl OAuthSettings {
    pub(super) fn new(server_url: String, fetch: Arc<dyn Fetch>) -> OAuthSettings {
        OAuthSettings {
            server_url,
            fetch,
            client_id: None,
            client_secret: None,
            issuer: None,
            client_metadata_url: None,
            client_name: "Turnbuckle".to_owned(),
            scopes: None,
            store: Arc::new(MemoryStore::new()),
            user_agent: None,
            grant: GrantType::AuthorizationCode,
            dpop: DpopMode::WhenRequired,
            protocol_version: NEWEST_DATE.to_owned(),
        }
    }

    /// Returns an error if a request goes to another origin than that of the server.
    pub(super) fn check_origin(&self, url: &str) -> Result<(), AuthorizationError> {
        if self.is_same_origin(url) {
            return Ok(());
        }
        let to = HttpUrl::parse(url).map_or("another origin", |url| url.origin);
        let reason = format!(
            "the token is for `{}`, but the request goes to `{to}`",
            self.server_url
        );
        Err(AuthorizationError::new(AuthorizationStep::Use, reason)
            .with_hint("connect to the other server by its own URL, with its own login"))
    }

    pub(super) fn is_same_origin(&self, url: &str) -> bool {
        match (HttpUrl::parse(&self.server_url), HttpUrl::parse(url)) {
            (Ok(ours), Ok(other)) => ours.is_same_origin(&other),
            _ => false,
        }
    }

    /// Returns whether a stored login fits these settings.
    pub(super) fn is_compatible(&self, login: &StoredLogin) -> bool {
        let is_our_client = self
            .client_id
            .as_ref()
            .is_none_or(|id| *id == login.client.id);
        let is_our_issuer = self
            .issuer
            .as_ref()
            .is_none_or(|issuer| issuer == login.issuer());
        is_our_client && is_our_issuer
    }
}

/// The grant that a client uses to obtain tokens.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum GrantType {
    /// The user logs in with a browser on this machine.
    #[default]
    AuthorizationCode,
    /// The user logs in on another device, with a code.
    DeviceCode,
    /// The client has access itself, and authenticates with its secret.
    ClientCredentials,
    /// The client has access itself, and authenticates by signing with this key.
    ClientCredentialsJwt(SigningKey),
    /// The identity provider of an enterprise authorizes the client for a user who has logged in there.
    EnterpriseManaged {
        /// Token endpoint of the identity provider.
        idp_token_endpoint: String,
        /// Client id at the identity provider.
        idp_client_id: String,
        /// Client secret at the identity provider, if there is one.
        idp_client_secret: Option<Secret>,
        /// ID token of the user.
        id_token: Secret,
    },
    /// The platform that the client runs on asserts its identity.
    WorkloadIdentity {
        /// The JWT that the platform has signed for the authorization server.
        assertion: Secret,
    },
}

impl GrantType {
    /// Returns the protocol extensions that define the grant.
    pub(super) fn extensions(&self) -> &'static [&'static str] {
        match self {
            GrantType::ClientCredentials | GrantType::ClientCredentialsJwt(_) => {
                &["io.modelcontextprotocol/oauth-client-credentials"]
            }
            GrantType::EnterpriseManaged { .. } => {
                &["io.modelcontextprotocol/enterprise-managed-authorization"]
            }
            _ => &[],
        }
    }

    /// Returns the key for `private_key_jwt`.
    pub(super) fn key(&self) -> Option<&SigningKey> {
        match self {
            GrantType::ClientCredentialsJwt(key) => Some(key),
            _ => None,
        }
    }

    /// Returns whether every login needs the user.
    pub(super) fn needs_user(&self) -> bool {
        matches!(self, GrantType::AuthorizationCode | GrantType::DeviceCode)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnbuckle_spec_coverage::req;

    use super::*;
    use crate::{
        CredentialProvider,
        client::{OAuth, tests::fake_http::FakeHttp},
    };

    #[test]
    fn extensions_are_declared_by_name() {
        req!("ext-cc.identifier", "ext-ema.identifier");
        let declared = |grant| {
            let fetch = Arc::new(FakeHttp::default());
            let client = OAuth::new("https://a.example/mcp", fetch).grant(grant);
            CredentialProvider::extensions(&client)
        };
        let enterprise = GrantType::EnterpriseManaged {
            idp_token_endpoint: "https://idp.example/token".to_owned(),
            idp_client_id: "desk".to_owned(),
            idp_client_secret: None,
            id_token: Secret::new("sesame"),
        };
        let key = SigningKey::generate().unwrap();

        assert_eq!(declared(GrantType::AuthorizationCode), [""; 0]);
        assert_eq!(declared(GrantType::DeviceCode), [""; 0]);
        for grant in [
            GrantType::ClientCredentials,
            GrantType::ClientCredentialsJwt(key),
        ] {
            assert_eq!(
                declared(grant),
                ["io.modelcontextprotocol/oauth-client-credentials"]
            );
        }
        assert_eq!(
            declared(enterprise),
            ["io.modelcontextprotocol/enterprise-managed-authorization"]
        );
    }
}
