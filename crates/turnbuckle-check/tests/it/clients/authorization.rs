//! Authorization mutants.

use http::{HeaderValue, Uri};
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, OutgoingRequest};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.auth.resource-metadata", "ignores the challenge").responses(|head| {
            let challenge = HeaderValue::from_static("Bearer");
            if head.headers.contains_key("www-authenticate") {
                head.headers.insert("www-authenticate", challenge);
            }
        }),
        Mutant::new("client.auth.server-metadata", "skips one well-known URL").requests(
            |outgoing_request| {
                if outgoing_request.request.uri().path() == "/.well-known/openid-configuration/as" {
                    outgoing_request.response = Some(404);
                }
            },
        ),
        Mutant::new("client.auth.application-type", "no application type").map_sent(|outgoing| {
            if let Some(client) = outgoing.message.as_object_mut() {
                client.remove("application_type");
            }
        }),
        Mutant::new("client.auth.pkce", "a plain code challenge")
            .requests(|outgoing_request| in_query(outgoing_request, "S256", "plain")),
        Mutant::new("client.auth.resource", "no resource")
            .requests(|outgoing_request| in_query(outgoing_request, "resource=", "other=")),
        Mutant::new("client.auth.state", "no state")
            .in_revision(Revision::V2025_11_25)
            .requests(|outgoing_request| in_query(outgoing_request, "state=", "other=")),
        Mutant::new("client.auth.redirect", "a redirect over plain HTTP").requests(
            |outgoing_request| in_query(outgoing_request, "127.0.0.1%3A8976", "example.com"),
        ),
        Mutant::new("client.auth.token-always", "a request without the token").requests(
            |outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["method"] == "prompts/list" {
                    outgoing_request
                        .request
                        .headers_mut()
                        .remove("authorization");
                }
            },
        ),
        Mutant::new(
            "client.auth.token-not-in-query",
            "the token also in the URL",
        )
        .requests(|outgoing_request| {
            if outgoing_request
                .request
                .headers()
                .contains_key("authorization")
            {
                let path = "/mcp?access_token=turnbuckle-token-1";
                *outgoing_request.request.uri_mut() = Uri::from_static(path);
            }
        }),
        Mutant::new("client.shapes.messages", "arguments in a list").map_sent(|outgoing| {
            if outgoing.message["params"]["name"] == "hello" {
                outgoing.message["params"]["arguments"] = json!([]);
            }
        }),
    ]
}

/// Changes the authorization URL.
fn in_query(outgoing_request: &mut OutgoingRequest<'_>, from: &str, to: &str) {
    let uri = outgoing_request.request.uri().to_string();
    if uri.starts_with("/as/log-in") {
        assert!(uri.contains(from), "{uri}");
        *outgoing_request.request.uri_mut() = uri.replace(from, to).parse().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
