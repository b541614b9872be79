//! Identity assertions of an enterprise identity provider for the authorization server of an MCP server (ID-JAG).

use turnbuckle_text::percent::Form;

use super::{
    TokenEndpoint, invalid_response, is_token, parse_token_response, request::TokenPost,
    token_exchange::TOKEN_EXCHANGE,
};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Scopes, Secret,
    client::{authorization::scope_value, registration::ClientRegistration},
    fetch::Fetch,
};

const STEP: AuthorizationStep = AuthorizationStep::Assertion;
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// The identity provider of an enterprise, and the client that uses it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// URL of its token endpoint.
    pub token_endpoint: String,
    /// The client registration.
    pub client: ClientRegistration,
}

impl IdentityProvider {
    /// Describes an identity provider and a client with or without a secret.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Self {
        let nothing_said = AuthorizationServer::default();
        Self {
            token_endpoint: token_endpoint.into(),
            client: ClientRegistration::preregistered(&nothing_said, client_id, secret),
        }
    }
}

/// Exchanges the ID token of a user for an assertion for [`jwt_bearer`](super::jwt_bearer) at the authorization server
/// `issuer`, for the MCP server `resource`.
pub async fn request_id_jag(
    fetch: &dyn Fetch,
    provider: &IdentityProvider,
    id_token: &Secret,
    issuer: &str,
    resource: &str,
    scopes: Option<&Scopes>,
) -> Result<Secret, AuthorizationError> {
    let form = Form::default()
        .with("grant_type", TOKEN_EXCHANGE)
        .with("requested_token_type", ID_JAG)
        .with("audience", issuer)
        .with("resource", resource)
        .with_optional("scope", scope_value(scopes).as_deref())
        .with("subject_token", id_token.expose())
        .with("subject_token_type", ID_TOKEN);
    let server = AuthorizationServer::default();
    let post = TokenPost {
        url: &provider.token_endpoint,
        what: "token endpoint of the identity provider",
        step: STEP,
        form,
        endpoint: &TokenEndpoint::new(&server, &provider.client),
    };
    let response = post.send(fetch, None).await?;
    let secrets = [id_token].into_iter().chain(&provider.client.secret);
    let secrets: Vec<_> = secrets.collect();
    let grant = parse_token_response(&response, STEP, &secrets).and_then(|parsed| {
        // Anything else would be a token of the identity provider, which must not be sent to another server.
        let is_grant = parsed.issued_token_type.as_deref() == Some(ID_JAG);
        let grant = parsed.access_token.filter(is_token);
        grant
            .filter(|_| is_grant)
            .ok_or_else(|| invalid_response(&response, STEP, "lacks an identity assertion"))
    });
    grant.map_err(|failure| failure.with_request(post.description()))
}
