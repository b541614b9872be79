//! Getting a grant from the identity provider of an enterprise, for the authorization server of an MCP server (ID-JAG).

use crate::{
    AuthorizationServer, Failure, Scopes, Secret, Step,
    client::{
        form::{self, Form},
        registration::Registered,
    },
    fetch::Fetch,
};

use super::{Endpoint, answer, post::Post};

const STEP: Step = Step::Assertion;
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// The identity provider of an enterprise, and who asks there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// Where it gives tokens.
    pub token_endpoint: String,
    /// As whom we ask.
    pub client: Registered,
}

impl IdentityProvider {
    /// Asks here, with this id and, if it has one, this secret.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Self {
        let nothing_said = AuthorizationServer::default();
        Self {
            token_endpoint: token_endpoint.into(),
            client: Registered::preregistered(&nothing_said, client_id, secret),
        }
    }
}

/// Exchanges the ID token of a user for a grant that [`jwt_bearer`](super::jwt_bearer) takes at the authorization server
/// `issuer`, for the server `resource`.
pub async fn identity_grant(
    fetch: &dyn Fetch,
    provider: &IdentityProvider,
    id_token: &Secret,
    issuer: &str,
    resource: &str,
    scopes: Option<&Scopes>,
) -> Result<Secret, Failure> {
    let form = Form::default()
        .with("grant_type", TOKEN_EXCHANGE)
        .with("requested_token_type", ID_JAG)
        .with("audience", issuer)
        .with("resource", resource)
        .with_some("scope", form::scope(scopes).as_deref())
        .with("subject_token", id_token.expose())
        .with("subject_token_type", ID_TOKEN);
    let server = AuthorizationServer::default();
    let post = Post {
        url: &provider.token_endpoint,
        what: "token endpoint of the identity provider",
        step: STEP,
        form,
        endpoint: &Endpoint::new(&server, &provider.client),
    };
    let response = post.send(fetch, None).await?;
    let secrets = [id_token].into_iter().chain(&provider.client.secret);
    let secrets: Vec<_> = secrets.collect();
    let grant = answer::parse(&response, STEP, &secrets).and_then(|answer| {
        // Anything else would be a token of the identity provider, which no other server must see.
        let is_grant = answer.issued_token_type.as_deref() == Some(ID_JAG);
        let grant = answer.access_token.filter(answer::is_token);
        grant
            .filter(|_| is_grant)
            .ok_or_else(|| answer::wrong(&response, STEP, "has no identity assertion grant"))
    });
    grant.map_err(|failure| failure.request(post.described()))
}
