//! Getting a grant from the identity provider of an enterprise, for the authorization server of an MCP server (ID-JAG).

use crate::AuthorizationServer;
use crate::{
    Failure, Scopes, Secret, Step,
    client::{
        form::Form,
        registration::Registered,
        safe_url,
        told::{self, Described},
    },
    fetch::{Fetch, Request},
};

use super::{Endpoint, answer, authentication};

const STEP: Step = Step::Assertion;
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
    /// Asks here, with this id and secret.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Option<Secret>,
    ) -> Self {
        let token_endpoint = token_endpoint.into();
        let client = Registered::preregistered(&AuthorizationServer::default(), client_id, secret);
        Self {
            token_endpoint,
            client,
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
    let url = &provider.token_endpoint;
    safe_url::check(url, STEP, "token endpoint of the identity provider")?;
    let scopes = scopes
        .filter(|scopes| !scopes.is_empty())
        .map(ToString::to_string);
    let form = Form::default()
        .with(
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        )
        .with("requested_token_type", ID_JAG)
        .with("audience", issuer)
        .with("resource", resource)
        .with_some("scope", scopes.as_deref())
        .with("subject_token", id_token.expose())
        .with("subject_token_type", ID_TOKEN);
    let server = AuthorizationServer::default();
    let endpoint = Endpoint::new(&server, &provider.client);
    let (form, authorization) = authentication::apply(form, &endpoint, STEP)?;
    let mut request = Request::post(url, Form::CONTENT_TYPE, form.into_string());
    if let Some(value) = authorization {
        request = request.header("authorization", value.expose());
    }
    let described = Described(format!("{request:?}"));
    let response = told::fetched(fetch, request, STEP).await?;
    let secrets: Vec<_> = [id_token]
        .into_iter()
        .chain(&provider.client.secret)
        .collect();
    let grant = answer::parse(&response, STEP, &secrets).and_then(|answer| {
        let is_grant = answer.issued_token_type.as_deref() == Some(ID_JAG);
        let grant = answer.access_token.filter(|_| is_grant);
        grant.ok_or_else(|| answer::wrong(&response, STEP, "has no identity assertion grant"))
    });
    grant.map_err(|failure| failure.request(described))
}
