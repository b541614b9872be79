//! Ways to a token that are not quite right.

use http::{HeaderValue, Uri};
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, Requesting};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.auth.resource-metadata", "deaf for the challenge").responses(|head| {
            let challenge = HeaderValue::from_static("Bearer");
            if head.headers.contains_key("www-authenticate") {
                head.headers.insert("www-authenticate", challenge);
            }
        }),
        Mutant::new("client.auth.server-metadata", "one place is forgotten").requests(
            |requesting| {
                if requesting.request.uri().path() == "/.well-known/openid-configuration/as" {
                    requesting.answer = Some(404);
                }
            },
        ),
        Mutant::new("client.auth.application-type", "no kind of application").says(|saying| {
            if let Some(client) = saying.message.as_object_mut() {
                client.remove("application_type");
            }
        }),
        Mutant::new("client.auth.pkce", "a challenge in the clear")
            .requests(|requesting| in_query(requesting, "S256", "plain")),
        Mutant::new("client.auth.resource", "for nobody in particular")
            .requests(|requesting| in_query(requesting, "resource=", "other=")),
        Mutant::new("client.auth.state", "no state")
            .in_revision(Revision::V2025_11_25)
            .requests(|requesting| in_query(requesting, "state=", "other=")),
        Mutant::new("client.auth.redirect", "back in the clear")
            .requests(|requesting| in_query(requesting, "127.0.0.1%3A8976", "example.com")),
        Mutant::new("client.auth.token-always", "a request without").requests(|requesting| {
            let body: Value = serde_json::from_slice(requesting.request.body()).unwrap_or_default();
            if body["method"] == "prompts/list" {
                requesting.request.headers_mut().remove("authorization");
            }
        }),
        Mutant::new("client.auth.token-not-in-query", "in the URL too").requests(|requesting| {
            if requesting.request.headers().contains_key("authorization") {
                let path = "/mcp?access_token=turnbuckle-token-1";
                *requesting.request.uri_mut() = Uri::from_static(path);
            }
        }),
        Mutant::new("client.shapes.messages", "arguments in a list").says(|saying| {
            if saying.message["params"]["name"] == "hello" {
                saying.message["params"]["arguments"] = json!([]);
            }
        }),
    ]
}

/// Changes the URL of the page to log in.
fn in_query(requesting: &mut Requesting<'_>, from: &str, to: &str) {
    let uri = requesting.request.uri().to_string();
    if uri.starts_with("/as/log-in") {
        assert!(uri.contains(from), "{uri}");
        *requesting.request.uri_mut() = uri.replace(from, to).parse().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
