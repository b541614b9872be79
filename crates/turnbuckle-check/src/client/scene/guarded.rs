//! A server that wants a token, and the authorization server that gives it: both are us.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::client::cue::Reply;
use crate::client::part::{ENDPOINT, Page, Part};
use crate::client::query;
use crate::tape::Head;

/// The token.
pub(crate) const TOKEN: &str = "turnbuckle-token-1";

/// Where the metadata of the server is; nobody finds it who does not read the challenge.
pub(crate) const RESOURCE: &str = "/about/this-resource";

/// Where people log in, where codes become tokens, and where clients register.
pub(crate) const LOG_IN: &str = "/as/log-in";
pub(crate) const TOKENS: &str = "/as/tokens";
pub(crate) const CLIENTS: &str = "/as/clients";

/// The code that a log-in brings.
const CODE: &str = "turnbuckle-code-1";

/// Refuses what comes without the token.
pub(super) fn refuse(part: &Part, head: Option<&Head>) -> Option<Reply> {
    let given = head.and_then(|head| head.header("authorization"));
    if given == Some(&format!("Bearer {TOKEN}")) {
        return None;
    }
    let challenge = match part.revision < Revision::V2025_06_18 {
        true => "Bearer".to_owned(),
        false => format!(r#"Bearer resource_metadata="{}{RESOURCE}""#, part.origin),
    };
    Some(Reply::status(401).header("www-authenticate", challenge))
}

pub(super) fn page(part: &Part, page: &Page<'_>) -> Option<Reply> {
    let path = page.path.split('?').next().unwrap_or_default();
    let origin = &part.origin;
    if path == ENDPOINT {
        return refuse(part, Some(page.head));
    }
    match (page.method, path) {
        ("GET", RESOURCE) if part.revision >= Revision::V2025_06_18 => Some(document(json!({
            "resource": format!("{origin}{ENDPOINT}"),
            "authorization_servers": [issuer(part)],
        }))),
        ("GET", path) if path == metadata_at(part) => Some(document(metadata(part))),
        ("GET", LOG_IN) => Some(log_in(part, page)),
        ("POST", CLIENTS) => Some(document(registered(page)).with_status(201)),
        ("POST", TOKENS) => Some(
            document(json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 }))
                .header("cache-control", "no-store"),
        ),
        _ => None,
    }
}

/// Returns the name of the authorization server.
pub(crate) fn issuer(part: &Part) -> String {
    match part.revision < Revision::V2025_06_18 {
        true => part.origin.clone(),
        false => format!("{}/as", part.origin),
    }
}

/// Returns where the metadata of the authorization server is: at the last place where a client of the revision looks.
pub(crate) fn metadata_at(part: &Part) -> &'static str {
    match part.revision {
        Revision::V2025_06_18 => "/.well-known/oauth-authorization-server/as",
        revision if revision < Revision::V2025_06_18 => "/.well-known/oauth-authorization-server",
        _ => "/as/.well-known/openid-configuration",
    }
}

fn metadata(part: &Part) -> Value {
    let at = |path: &str| format!("{}{path}", part.origin);
    json!({
        "issuer": issuer(part),
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

fn log_in(part: &Part, page: &Page<'_>) -> Reply {
    let query = query::of(page.path);
    let Some(back) = query::value(query, "redirect_uri") else {
        return Reply::status(400);
    };
    let mut to = format!("{back}?code={CODE}&iss={}", query::encode(&issuer(part)));
    if let Some(state) = query::value(query, "state") {
        to.push_str(&format!("&state={}", query::encode(&state)));
    }
    Reply::status(302).header("location", to)
}

fn registered(page: &Page<'_>) -> Value {
    let mut client: Value = serde_json::from_str(page.body).unwrap_or_default();
    if !client.is_object() {
        client = json!({});
    }
    client["client_id"] = "turnbuckle-client-1".into();
    client
}

fn document(value: Value) -> Reply {
    Reply::say(value)
}
