//! Who is at the browser.

use std::sync::Arc;

use turnbuckle_auth::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Secret,
    client::{
        authorization::AuthorizationRequest,
        discovery,
        registration::ClientRegistration,
        token::{self, TokenEndpoint},
    },
    fetch::Fetch,
    server::{ResourceServer, TrustedIssuer},
};
use turnbuckle_protocol::{
    authenticator::{AuthRequest, Authenticator as _},
    revision::NEWEST_DATE,
};

use super::User;
use crate::error::{CliError, Result};

/// How the user of a browser is identified.
pub(super) enum BrowserIdentity {
    /// The browser runs on this machine, and there is one user.
    LocalUser,
    /// The user logs in at the issuer of the tokens of callers.
    Issuer(Box<IssuerIdentity>),
}

impl BrowserIdentity {
    /// Returns whether a user can be identified.
    pub(super) fn can_identify(&self, user: &User) -> bool {
        match self {
            Self::LocalUser => *user == User::default(),
            Self::Issuer(own) => own.issuer == user.issuer,
        }
    }
}

/// The issuer of the tokens of callers, where the bridge is a client too.
pub(super) struct IssuerIdentity {
    pub(super) issuer: String,
    client_id: String,
    client_secret: Option<Secret>,
    audience: String,
    fetch: Arc<dyn Fetch>,
    /// Verifies tokens as those of callers.
    verifier: ResourceServer,
}

/// A started login at the issuer.
pub(super) struct IdentityRequest {
    server: AuthorizationServer,
    client: ClientRegistration,
    request: AuthorizationRequest,
}

impl IdentityRequest {
    pub(super) fn url(&self) -> &str {
        self.request.url()
    }

    pub(super) fn state(&self) -> &Secret {
        self.request.state()
    }
}

impl IssuerIdentity {
    /// Creates it for an issuer, the audience of tokens of callers, and the client that the bridge is there.
    pub(super) fn new(
        issuer: &str,
        audience: &str,
        client_id: &str,
        client_secret: Option<Secret>,
        fetch: Arc<dyn Fetch>,
    ) -> Result<Self> {
        let verifier = ResourceServer::new(audience, Arc::clone(&fetch));
        let verifier = verifier.map_err(|error| CliError::could_not_run(error.to_string()))?;
        Ok(Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret,
            audience: audience.to_owned(),
            fetch,
            verifier: verifier.issuer(TrustedIssuer::jwt(issuer)),
        })
    }

    /// Starts a login of the user of a browser.
    pub(super) async fn begin(
        &self,
        redirect_uri: &str,
    ) -> std::result::Result<IdentityRequest, AuthorizationError> {
        let server = discovery::server_metadata(&*self.fetch, &self.issuer, NEWEST_DATE).await?;
        let secret = self.client_secret.clone();
        let client = ClientRegistration::preregistered(&server, &self.client_id, secret);
        let audience = &self.audience;
        let request =
            AuthorizationRequest::new(&server, &client, redirect_uri, audience, None, None)?;
        Ok(IdentityRequest {
            server,
            client,
            request,
        })
    }

    /// Returns the user that has logged in. The token is used for nothing else.
    pub(super) async fn complete(
        &self,
        login: IdentityRequest,
        query: &str,
    ) -> std::result::Result<User, AuthorizationError> {
        let code = login.request.parse_response(query)?;
        let endpoint = TokenEndpoint::new(&login.server, &login.client);
        let tokens = token::exchange_code(&*self.fetch, &endpoint, &code, None).await?;
        // It comes from the issuer itself, for a code that only this browser has: it is not the token of another client.
        let header = Secret::new(format!("Bearer {}", tokens.access.expose()));
        let authorization = [header.expose()];
        let request = AuthRequest::new("GET", "/mcp", &authorization, &[]);
        let principal = self.verifier.authenticate(request).await;
        let principal = principal.map_err(|_| {
            let reason = "the authorization server issued a token that is not one for this bridge";
            AuthorizationError::new(AuthorizationStep::Token, reason)
        })?;
        Ok(User {
            issuer: principal.issuer.clone(),
            subject: principal.subject.clone(),
        })
    }
}
