//! Patterns and scopes: what a server hides, and what its callers need.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway, StartError, Upstream};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument},
};
use turnbuckle_server::{
    Resource, ResourceTemplate, Server, Tool, Variables,
    http::Http,
    testing::{self, Peer, all_combinations},
};

use crate::upstreams::{ERAS, desk, start, upstream};

/// A server with an item of each kind that is hidden.
fn files() -> Server {
    Server::new("files", "1.0.0")
        .tool(Tool::new("drop", async || Ok("dropped".to_owned())))
        .tool(Tool::new("show", async || Ok("shown".to_owned())))
        .resource(Resource::text("secret://key", "key", "k"))
        .resource(Resource::text("open://key", "key", "k"))
        .template(ResourceTemplate::new(
            "secret://{name}",
            "secrets",
            async |_: Variables| Ok("s".to_owned()),
        ))
}

fn unknown_message(name: &str, response: &turnbuckle_server::testing::PeerResponse) {
    let text = response.json().to_string();
    assert!(text.contains("unknown") && text.contains(name), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_denied_is_unknown_to_every_method() {
    for (combination, mode) in
        all_combinations().flat_map(|combination| ERAS.map(|mode| (combination, mode)))
    {
        for prefix in [false, true] {
            let hidden = upstream("files", mode, files()).deny(["drop", "secret://*"]);
            let mut upstreams = vec![hidden];
            if prefix {
                upstreams.push(upstream("desk", LifecycleMode::Modern, desk()));
            }
            let gateway = start(upstreams).await;
            let mut peer = combination.connect(gateway.server()).await;
            let tool = if prefix { "files_drop" } else { "drop" };
            let variable = json!({ "name": "name", "value": "" });
            for (method, params, name) in [
                ("tools/call", json!({ "name": tool, "arguments": {} }), tool),
                (
                    "resources/read",
                    json!({ "uri": "secret://key" }),
                    "secret://key",
                ),
                (
                    "resources/read",
                    json!({ "uri": "SECRET://key" }),
                    "SECRET://key",
                ),
                (
                    "completion/complete",
                    json!({ "ref": { "type": "ref/resource", "uri": "secret://{name}" }, "argument": variable }),
                    "secret://{name}",
                ),
            ] {
                let response = peer.request(method, params).await;
                assert!(response.result().is_none(), "{combination} {method}");
                unknown_message(name, &response);
            }
            let read = peer.request("resources/read", json!({ "uri": "open://key" }));
            read.await.expect_result();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_resource_cannot_be_subscribed_to() {
    let gateway = start([upstream("files", LifecycleMode::Legacy, files()).deny(["secret://*"])]);
    let mut peer = Peer::connect(gateway.await.server())
        .legacy("2025-11-25")
        .await;
    let denied = peer.request("resources/subscribe", json!({ "uri": "secret://key" }));
    unknown_message("secret://key", &denied.await);
}

/// Accepts `Bearer SCOPE`.
struct ScopeAuthenticator;

impl Authenticator for ScopeAuthenticator {
    fn authenticate<'a>(
        &'a self,
        request: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        let mut principal = Principal::new("https://issuer.example", "ada");
        let scope = request.authorization[0].strip_prefix("Bearer ").unwrap();
        principal.scopes = BTreeSet::from([scope.to_owned()]);
        Box::pin(async move { Ok(Arc::new(principal)) })
    }

    fn insufficient_scope(&self, _: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
        let scopes = Vec::from_iter(needed.iter().map(String::as_str)).join(" ");
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
        AuthRejection::new(403, "more scopes are needed").challenge(challenge)
    }

    fn metadata_document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        None
    }
}

async fn start_with_scopes(upstream: Upstream) -> Result<RunningGateway, StartError> {
    let gateway = Gateway::new("gateway", "1").upstream(upstream);
    gateway.authenticated_callers(true).start().await
}

/// Returns a call in a session.
pub(crate) fn session_call(tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// Returns a call in the modern era.
pub(crate) fn stateless_call(tool: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_the_scope_gets_a_challenge_in_both_eras() {
    for mode in ERAS {
        let scoped = upstream("files", mode, files()).scope("dr*", "write");
        let gateway = start_with_scopes(scoped).await.unwrap();
        let http = Http::new(gateway.server()).authenticator(ScopeAuthenticator);
        let mut client = testing::http(http);
        for is_legacy in [false, true] {
            client.authorization = Some("Bearer read".to_owned());
            let mut call: fn(&str) -> Value = stateless_call;
            if is_legacy {
                client = client.in_session("2025-11-25").await;
                call = session_call;
            }
            let denied = client.post(&call("drop")).await;
            assert_eq!(denied.status(), 403);
            assert_eq!(
                denied.header("www-authenticate"),
                Some("Bearer error=\"insufficient_scope\", scope=\"write\"")
            );
            assert_eq!(client.post(&call("show")).await.status(), 200);
        }
        let mut client =
            testing::http(Http::new(gateway.server()).authenticator(ScopeAuthenticator));
        client.authorization = Some("Bearer write".to_owned());
        let called = client.post(&stateless_call("drop")).await;
        assert_eq!(
            called.json().await["result"]["content"][0]["text"],
            "dropped"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn scopes_without_authorization_in_front_are_an_error_at_start() {
    let scoped = upstream("files", LifecycleMode::Modern, files()).scope("*", "write");
    let started = Gateway::new("gateway", "1").upstream(scoped).start().await;
    let error = started.unwrap_err().to_string();
    assert_eq!(
        error,
        "server `files` requires scopes, but callers are not authenticated"
    );
}
