//! A server that requires an access token, and its authorization server.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_text::percent;

use crate::{
    engine::transcript::HttpHead,
    mock_server::{
        script::ScriptedReply,
        server::{ENDPOINT, MockServer, NonRpcRequest},
    },
};

/// The access token.
pub(crate) const TOKEN: &str = "turnbuckle-token-1";

/// The path of the resource metadata; only the challenge contains it.
pub(crate) const RESOURCE: &str = "/about/this-resource";

/// The authorization, token and registration endpoints.
pub(crate) const LOG_IN: &str = "/as/log-in";
pub(crate) const TOKENS: &str = "/as/tokens";
pub(crate) const CLIENTS: &str = "/as/clients";

/// The authorization code.
const CODE: &str = "turnbuckle-code-1";

/// Rejects requests without the token.
pub(super) fn reject(mock: &MockServer, head: Option<&HttpHead>) -> Option<ScriptedReply> {
    let given = head.and_then(|head| head.header("authorization"));
    if given == Some(&format!("Bearer {TOKEN}")) {
        return None;
    }
    let challenge = if mock.revision < Revision::V2025_06_18 {
        "Bearer".to_owned()
    } else {
        format!(r#"Bearer resource_metadata="{}{RESOURCE}""#, mock.origin)
    };
    Some(ScriptedReply::status(401).header("www-authenticate", challenge))
}

pub(super) fn page(mock: &MockServer, page: &NonRpcRequest<'_>) -> Option<ScriptedReply> {
    let path = page.path.split('?').next().unwrap_or_default();
    let origin = &mock.origin;
    if path == ENDPOINT {
        return reject(mock, Some(page.head));
    }
    match (page.method, path) {
        ("GET", RESOURCE) if mock.revision >= Revision::V2025_06_18 => Some(document(json!({
            "resource": format!("{origin}{ENDPOINT}"),
            "authorization_servers": [issuer(mock)],
        }))),
        ("GET", path) if path == metadata_at(mock) => Some(document(metadata(mock))),
        ("GET", LOG_IN) => Some(log_in(mock, page)),
        ("POST", CLIENTS) => Some(document(registered(page)).with_status(201)),
        ("POST", TOKENS) => Some(
            document(json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 }))
                .header("cache-control", "no-store"),
        ),
        _ => None,
    }
}

/// Returns the issuer of the authorization server.
pub(crate) fn issuer(mock: &MockServer) -> String {
    if mock.revision < Revision::V2025_06_18 {
        mock.origin.clone()
    } else {
        format!("{}/as", mock.origin)
    }
}

/// Returns the path of the authorization server metadata: the last one that a client of the revision tries.
pub(crate) fn metadata_at(mock: &MockServer) -> &'static str {
    match mock.revision {
        Revision::V2025_06_18 => "/.well-known/oauth-authorization-server/as",
        revision if revision < Revision::V2025_06_18 => "/.well-known/oauth-authorization-server",
        _ => "/as/.well-known/openid-configuration",
    }
}

fn metadata(mock: &MockServer) -> Value {
    let at = |path: &str| format!("{}{path}", mock.origin);
    json!({
        "issuer": issuer(mock),
        "authorization_endpoint": at(LOG_IN),
        "token_endpoint": at(TOKENS),
        "registration_endpoint": at(CLIENTS),
        "jwks_uri": at("/as/keys"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn log_in(mock: &MockServer, page: &NonRpcRequest<'_>) -> ScriptedReply {
    let query = query_of(page.path);
    let Some(redirect_uri) = percent::form_value(query, "redirect_uri") else {
        return ScriptedReply::status(400);
    };
    let parameters = percent::Form::default()
        .with("code", CODE)
        .with("iss", &issuer(mock))
        .with_optional("state", percent::form_value(query, "state").as_deref());
    let location = format!("{redirect_uri}?{}", parameters.into_string());
    ScriptedReply::status(302).header("location", location)
}

/// Returns the query of a path, without `?`.
pub(crate) fn query_of(path: &str) -> &str {
    path.split_once('?').map_or("", |(_, query)| query)
}

fn registered(page: &NonRpcRequest<'_>) -> Value {
    let mut client: Value = serde_json::from_str(page.body).unwrap_or_default();
    if !client.is_object() {
        client = json!({});
    }
    client["client_id"] = "turnbuckle-client-1".into();
    client
}

fn document(value: Value) -> ScriptedReply {
    ScriptedReply::message(value)
}
