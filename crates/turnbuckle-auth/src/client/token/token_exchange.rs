//! The grant that exchanges a token for one for another server (RFC 8693).

use turnbuckle_text::percent::Form;

use super::{
    AcceptedTokenKinds, TokenEndpoint, Tokens, invalid_response, parse_token_response, read_tokens,
    request::TokenPost,
};
use crate::{
    AuthorizationError, AuthorizationStep, Scopes, Secret, client::authorization::scope_value,
    fetch::Fetch,
};

const STEP: AuthorizationStep = AuthorizationStep::Exchange;
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// A token to exchange, and the server that the new one is for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ExchangeRequest<'a> {
    /// The access token of the caller.
    pub subject_token: &'a Secret,
    /// The resource identifier of the other server.
    pub resource: &'a str,
    /// The name of the other server at the authorization server, if it has one.
    pub audience: Option<&'a str>,
    /// The scopes of the new token; without them, the authorization server selects some.
    pub scopes: Option<&'a Scopes>,
}

impl<'a> ExchangeRequest<'a> {
    /// Requests a token for a resource.
    pub fn new(subject_token: &'a Secret, resource: &'a str) -> Self {
        Self {
            subject_token,
            resource,
            audience: None,
            scopes: None,
        }
    }
}

/// Exchanges the access token of a caller for one for another server.
///
/// A token of another type is an error, and so is the token of the caller itself.
pub async fn exchange_token(
    fetch: &dyn Fetch,
    endpoint: &TokenEndpoint<'_>,
    request: ExchangeRequest<'_>,
) -> Result<Tokens, AuthorizationError> {
    let Some(url) = endpoint.server.token_endpoint.as_deref() else {
        let reason = format!("`{}` lacks a token endpoint", endpoint.server.issuer);
        return Err(AuthorizationError::new(STEP, reason));
    };
    let form = Form::default()
        .with("grant_type", TOKEN_EXCHANGE)
        .with("resource", request.resource)
        .with_optional("audience", request.audience)
        .with_optional("scope", scope_value(request.scopes).as_deref())
        .with("requested_token_type", ACCESS_TOKEN)
        .with("subject_token", request.subject_token.expose())
        .with("subject_token_type", ACCESS_TOKEN);
    let post = TokenPost {
        url,
        what: "token endpoint",
        step: STEP,
        form,
        endpoint,
    };
    let response = post.send(fetch, None).await?;
    let secrets = [request.subject_token]
        .into_iter()
        .chain(&endpoint.client.secret);
    let secrets: Vec<_> = secrets.collect();
    let read = || {
        let issued = parse_token_response(&response, STEP, &secrets)?.issued_token_type;
        // Required by the RFC, but some servers leave it out.
        if issued.is_some_and(|kind| kind != ACCESS_TOKEN && kind != JWT) {
            return Err(invalid_response(&response, STEP, "lacks an access token"));
        }
        let bearer = AcceptedTokenKinds::Bearer;
        let tokens = read_tokens(&response, STEP, request.scopes, bearer, &secrets)?;
        if tokens.access.constant_time_eq(request.subject_token) {
            let reason = "has the token of the caller, which is not for another server";
            return Err(invalid_response(&response, STEP, reason));
        }
        Ok(tokens)
    };
    read().map_err(|failure| failure.with_request(post.description()))
}
