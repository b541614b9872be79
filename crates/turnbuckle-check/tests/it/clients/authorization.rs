//! Authorization mutants.

use http::{HeaderValue, Uri};
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, OutgoingRequest};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.auth.resource-metadata", "ignores the challenge")
            .for_requirement("auth.prm.client")
            .responses(|head| {
                let challenge = HeaderValue::from_static("Bearer");
                if head.headers.contains_key("www-authenticate") {
                    head.headers.insert("www-authenticate", challenge);
                }
            }),
        Mutant::new("client.auth.server-metadata", "skips one well-known URL")
            .for_requirement("auth.asm.order-path")
            .requests(|outgoing_request| skip(outgoing_request, OPENID_METADATA)),
        Mutant::new(
            "client.auth.server-metadata",
            "well-known URLs in another order",
        )
        .for_requirement("auth.asm.order-path")
        .requests(|outgoing_request| {
            let other = match outgoing_request.request.uri().path() {
                OAUTH_METADATA => OPENID_METADATA,
                OPENID_METADATA => OAUTH_METADATA,
                _ => return,
            };
            *outgoing_request.request.uri_mut() = Uri::from_static(other);
        }),
        Mutant::new("client.auth.server-metadata", "knows OpenID Connect only")
            .for_requirement("auth.asm.client-both")
            .requests(|outgoing_request| skip(outgoing_request, OAUTH_METADATA)),
        Mutant::new("client.auth.server-metadata", "requests no metadata")
            .for_requirement("auth.metadata.2025-03-26.client")
            .in_revision(Revision::V2025_03_26)
            .requests(|outgoing_request| {
                skip(outgoing_request, "/.well-known/oauth-authorization-server");
            }),
        Mutant::new("client.auth.server-metadata", "metadata below the endpoint")
            .for_requirement("auth.metadata.2025-03-26.base-url")
            .in_revision(Revision::V2025_03_26)
            .requests(|outgoing_request| {
                let root = "/.well-known/oauth-authorization-server";
                if outgoing_request.request.uri().path() == root {
                    let below = "/.well-known/oauth-authorization-server/mcp";
                    *outgoing_request.request.uri_mut() = Uri::from_static(below);
                }
            }),
        Mutant::new("client.auth.application-type", "no application type").map_sent(|outgoing| {
            if let Some(client) = outgoing.message.as_object_mut() {
                client.remove("application_type");
            }
        }),
        Mutant::new("client.auth.pkce", "a plain code challenge")
            .for_requirement("auth.pkce.s256")
            .requests(|outgoing_request| in_query(outgoing_request, "S256", "plain")),
        Mutant::new("client.auth.resource", "no resource")
            .for_requirement("auth.resource.both-requests")
            .requests(|outgoing_request| in_query(outgoing_request, "resource=", "other=")),
        Mutant::new("client.auth.state", "no state")
            .in_revision(Revision::V2025_11_25)
            .requests(|outgoing_request| in_query(outgoing_request, "state=", "other=")),
        Mutant::new("client.auth.redirect", "a redirect over plain HTTP").requests(
            |outgoing_request| in_query(outgoing_request, "127.0.0.1%3A8976", "example.com"),
        ),
        Mutant::new("client.auth.token-always", "a request without the token")
            .for_requirement("auth.token.every-request")
            .requests(|outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["method"] == "prompts/list" {
                    outgoing_request
                        .request
                        .headers_mut()
                        .remove("authorization");
                }
            }),
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

/// The well-known URLs of the mock authorization server, before the one that succeeds.
const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server/as";
const OPENID_METADATA: &str = "/.well-known/openid-configuration/as";

/// Does not send a request to this path; the client sees 404.
fn skip(outgoing_request: &mut OutgoingRequest<'_>, path: &str) {
    if outgoing_request.request.uri().path() == path {
        outgoing_request.response = Some(404);
    }
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
