//! Who is let in, and what those are told who are not: not quite right.

use http::{HeaderValue, StatusCode, request::Parts};
use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::http::{method, set};
use crate::{
    good::protected::KNOWN,
    mutant::{Mutant, OutgoingResponse},
};

const CHALLENGE: &str = "www-authenticate";
const TOKEN: &str = "authorization";

pub(super) fn mutants() -> Vec<Mutant> {
    let mutants = vec![
        Mutant::new("authorization.missing-401", "403 without a token")
            .response(|asked, outgoing_response| {
                if !asked.headers.contains_key(TOKEN)
                    && !asked.headers.contains_key("mcp-session-id")
                {
                    refuse_otherwise(outgoing_response);
                }
            })
            .in_revision(Revision::V2025_03_26),
        Mutant::new(
            "authorization.invalid-401",
            "403 for a token that is not valid",
        )
        .response(|asked, outgoing_response| {
            if asked.headers.contains_key(TOKEN) {
                refuse_otherwise(outgoing_response);
            }
        }),
        Mutant::new("authorization.challenge", "does not say what it wants").response(
            |_, outgoing_response| {
                outgoing_response.head.headers.remove(CHALLENGE);
            },
        ),
        Mutant::new(
            "authorization.challenge-names-metadata",
            "does not say where its metadata is",
        )
        .response(|_, outgoing_response| without(outgoing_response, "resource_metadata")),
        Mutant::new("authorization.metadata-announced", "has no metadata").response(
            |asked, outgoing_response| {
                without(outgoing_response, "resource_metadata");
                if is_metadata(asked) {
                    outgoing_response.head.status = StatusCode::NOT_FOUND;
                }
            },
        ),
        Mutant::new("authorization.metadata", "has no metadata where it says").response(
            |asked, outgoing_response| {
                if is_metadata(asked) {
                    outgoing_response.body = Some(b"{}".to_vec());
                }
            },
        ),
        metadata(
            "authorization.metadata-resource",
            "is about something else",
            |metadata| {
                metadata["resource"] = "http://127.0.0.1/other".into();
            },
        ),
        metadata(
            "authorization.metadata-servers",
            "names no issuer",
            |metadata| {
                metadata["authorization_servers"] = Value::Array(vec![]);
            },
        ),
        Mutant::new(
            "authorization.challenge-scope",
            "does not say what is needed",
        )
        .response(|_, outgoing_response| without(outgoing_response, "scope")),
        metadata(
            "authorization.no-offline-access",
            "offers to go on alone",
            |metadata| {
                metadata["scopes_supported"] = serde_json::json!(["mcp", "offline_access"]);
            },
        ),
        Mutant::new(
            "authorization.before-anything-else",
            "looks at the method first",
        )
        .request(|request| {
            if method(request) == "turnbuckle/no-such-method" {
                set(request, TOKEN, KNOWN);
            }
        }),
        Mutant::new(
            "authorization.session-is-no-token",
            "knows people by their sessions",
        )
        .request(|request| {
            if request.headers().contains_key("mcp-session-id") {
                set(request, TOKEN, KNOWN);
            }
        }),
    ];
    mutants.into_iter().map(Mutant::guarded).collect()
}

fn metadata(violates: &'static str, name: &'static str, change: fn(&mut Value)) -> Mutant {
    Mutant::new(violates, name).response(move |asked, outgoing_response| {
        if let (true, Some(body)) = (is_metadata(asked), &mut outgoing_response.body) {
            let mut metadata = serde_json::from_slice(body).unwrap();
            change(&mut metadata);
            *body = metadata.to_string().into_bytes();
        }
    })
}

fn is_metadata(asked: &Parts) -> bool {
    asked.uri.path().starts_with("/.well-known/")
}

fn refuse_otherwise(outgoing_response: &mut OutgoingResponse) {
    if outgoing_response.head.status == 401 {
        outgoing_response.head.status = StatusCode::FORBIDDEN;
    }
}

/// Takes a parameter out of the challenge.
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
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
