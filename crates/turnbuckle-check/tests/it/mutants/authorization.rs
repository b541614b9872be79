//! Authorization mutants.

use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::http::{method, set};
use crate::{
    good::protected::CREDENTIALS,
    mutant::{Mutant, OutgoingResponse},
};

const CHALLENGE: &str = "www-authenticate";
const TOKEN: &str = "authorization";

pub(super) fn mutants() -> Vec<Mutant> {
    let mutants = vec![
        Mutant::new("authorization.missing-401", "403 without a token")
            .for_requirement("auth.401.required")
            .response(|request, outgoing_response| {
                if !request.headers.contains_key(TOKEN)
                    && !request.headers.contains_key("mcp-session-id")
                {
                    refuse_otherwise(outgoing_response);
                }
            })
            .in_revision(Revision::V2025_03_26),
        Mutant::new("authorization.invalid-401", "403 for an invalid token")
            .for_requirement("auth.401.invalid-token")
            .response(|request, outgoing_response| {
                if request.headers.contains_key(TOKEN) {
                    refuse_otherwise(outgoing_response);
                }
            }),
        Mutant::new("authorization.challenge", "no challenge").response(|_, outgoing_response| {
            outgoing_response.head.headers.remove(CHALLENGE);
        }),
        Mutant::new(
            "authorization.challenge-names-metadata",
            "no metadata URL in the challenge",
        )
        .response(|_, outgoing_response| without(outgoing_response, "resource_metadata")),
        Mutant::new("authorization.metadata-announced", "no metadata").response(
            |request, outgoing_response| {
                without(outgoing_response, "resource_metadata");
                if is_metadata(request) {
                    outgoing_response.head.status = StatusCode::NOT_FOUND;
                }
            },
        ),
        Mutant::new("authorization.metadata", "no metadata at the announced URL").response(
            |request, outgoing_response| {
                if is_metadata(request) {
                    outgoing_response.body = Some(b"{}".to_vec());
                }
            },
        ),
        metadata(
            "authorization.metadata-resource",
            "metadata of another resource",
            |metadata| {
                metadata["resource"] = "http://127.0.0.1/other".into();
            },
        ),
        metadata(
            "authorization.metadata-servers",
            "no authorization servers",
            |metadata| {
                metadata["authorization_servers"] = Value::Array(vec![]);
            },
        ),
        Mutant::new("authorization.challenge-scope", "no scope in the challenge")
            .response(|_, outgoing_response| without(outgoing_response, "scope")),
        metadata(
            "authorization.no-offline-access",
            "advertises `offline_access`",
            |metadata| {
                metadata["scopes_supported"] = serde_json::json!(["mcp", "offline_access"]);
            },
        ),
        Mutant::new(
            "authorization.before-anything-else",
            "checks the method before the token",
        )
        .request(|request| {
            if method(request) == "turnbuckle/no-such-method" {
                set(request, TOKEN, CREDENTIALS);
            }
        }),
        Mutant::new(
            "authorization.session-is-no-token",
            "accepts a session id as a token",
        )
        .for_requirement("http.session.not-auth")
        .request(|request| {
            if request.headers().contains_key("mcp-session-id") {
                set(request, TOKEN, CREDENTIALS);
            }
        }),
    ];
    mutants.into_iter().map(Mutant::protected).collect()
}

fn metadata(violates: &'static str, name: &'static str, change: fn(&mut Value)) -> Mutant {
    Mutant::new(violates, name).response(move |request, outgoing_response| {
        if let (true, Some(body)) = (is_metadata(request), &mut outgoing_response.body) {
            let mut metadata = serde_json::from_slice(body).unwrap();
            change(&mut metadata);
            *body = metadata.to_string().into_bytes();
        }
    })
}

fn is_metadata(request: &Parts) -> bool {
    request.uri.path().starts_with("/.well-known/")
}

fn refuse_otherwise(outgoing_response: &mut OutgoingResponse) {
    if outgoing_response.head.status == 401 {
        outgoing_response.head.status = StatusCode::FORBIDDEN;
    }
}

/// Removes a parameter from the challenge.
fn without(outgoing_response: &mut OutgoingResponse, parameter: &str) {
    let Some(header) = outgoing_response.head.headers.get_mut(CHALLENGE) else {
        return;
    };
    let (scheme, parameters) = header.to_str().unwrap().split_once(' ').unwrap();
    let kept: Vec<_> = parameters
        .split(", ")
        .filter(|one| !one.starts_with(parameter))
        .collect();
    let text = format!("{scheme} {}", kept.join(", "));
    *header = HeaderValue::from_str(&text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
