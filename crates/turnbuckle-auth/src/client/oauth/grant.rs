//! The ways to a token.

use crate::{Secret, jwt::SigningKey};

/// How a client gets its tokens.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Grant {
    /// Somebody logs in, in a browser on this machine.
    #[default]
    Code,
    /// Somebody logs in on another device, by a code that is shown.
    Device,
    /// The client itself has access, and shows who it is by its secret.
    ClientCredentials,
    /// The client itself has access, and shows who it is by signing with this key.
    ClientCredentialsJwt(SigningKey),
    /// The user has logged in to the identity provider of an enterprise, which says what the client may do in the user's name.
    Enterprise {
        /// Where the identity provider gives tokens.
        idp_token_endpoint: String,
        /// As what the client is known there.
        idp_client_id: String,
        /// By what it shows there who it is, if it has to.
        idp_client_secret: Option<Secret>,
        /// What the user's login there has given.
        id_token: Secret,
    },
    /// The place where the client runs says who it is.
    Workload {
        /// What that place has signed: a JWT for the authorization server.
        assertion: Secret,
    },
}

impl Grant {
    /// Returns the extensions of the protocol that have it.
    pub(super) fn extensions(&self) -> &'static [&'static str] {
        match self {
            Grant::ClientCredentials | Grant::ClientCredentialsJwt(_) => {
                &["io.modelcontextprotocol/oauth-client-credentials"]
            }
            Grant::Enterprise { .. } => {
                &["io.modelcontextprotocol/enterprise-managed-authorization"]
            }
            _ => &[],
        }
    }

    /// Returns what the client signs with to show who it is.
    pub(super) fn key(&self) -> Option<&SigningKey> {
        match self {
            Grant::ClientCredentialsJwt(key) => Some(key),
            _ => None,
        }
    }

    /// Whether somebody has to do something for each login.
    pub(super) fn needs_a_person(&self) -> bool {
        matches!(self, Grant::Code | Grant::Device)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnbuckle_ledger::req;

    use super::*;
    use crate::{
        Authorize,
        client::{OAuth, testing::Web},
    };

    #[test]
    fn what_an_extension_brought_is_declared_by_its_name() {
        req!("ext-cc.identifier", "ext-ema.identifier");
        let declared = |grant| {
            let fetch = Arc::new(Web::default());
            let client = OAuth::new("https://a.example/mcp", fetch).grant(grant);
            Authorize::extensions(&client)
        };
        let enterprise = Grant::Enterprise {
            idp_token_endpoint: "https://idp.example/token".to_owned(),
            idp_client_id: "desk".to_owned(),
            idp_client_secret: None,
            id_token: Secret::new("sesame"),
        };
        let key = SigningKey::generate().unwrap();

        assert_eq!(declared(Grant::Code), [""; 0]);
        assert_eq!(declared(Grant::Device), [""; 0]);
        for grant in [Grant::ClientCredentials, Grant::ClientCredentialsJwt(key)] {
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
