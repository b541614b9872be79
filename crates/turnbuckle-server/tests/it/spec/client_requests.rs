//! Client requests, in every revision.

use std::{collections::HashSet, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::types::Tool as Definition;
use turnbuckle_server::{
    CompletionRequest, Context, Elicitation, Prompt, SamplingBuilder, Server, Tool,
};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, MODERN, RevisionClient};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// A form with a field of each kind.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct All {
    name: String,
    age: u8,
    height: f64,
    sure: bool,
    colour: Colour,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

/// A server with a tool for each kind of client request.
pub(crate) fn server() -> Server {
    let name = Tool::new("name", async |cx: Context| {
        let name = cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?
            .accepted();
        Ok(name.map_or("missing".to_owned(), |it| it.name))
    });
    let open_url = Tool::new("visit", async |url: Url, cx: Context| {
        let went = cx
            .elicit(Elicitation::url("Sign in", url.url).key("visit"))
            .await?;
        Ok(format!("{}", went.accepted().is_some()))
    });
    let roots = Tool::new("roots", async |cx: Context| {
        let roots = cx.roots("roots").await?;
        let uris: Vec<_> = roots.iter().map(|root| root.uri.clone()).collect();
        Ok(uris.join(" "))
    });
    let three = Tool::new("three", async |cx: Context| {
        let (a, b, c) = tokio::join!(
            cx.roots("a"),
            cx.sample("b", SamplingBuilder::text("?")),
            cx.elicit(Elicitation::form::<Name>("Who?").key("c"))
        );
        let _ = (a?, b?, c?);
        Ok("asked".to_owned())
    });
    let tools = Tool::new("tools", async |cx: Context| {
        let tool = Definition::new("t", serde_json::Map::new());
        let message = cx
            .sample("s", SamplingBuilder::text("?").tools([tool], None))
            .await?;
        Ok(message.model)
    });
    let form = Tool::new("form", async |cx: Context| {
        let all = cx
            .elicit(Elicitation::form::<All>("All of it").key("form"))
            .await?
            .accepted();
        Ok(format!("{}", all.is_some()))
    });
    let think = Tool::new("think", async |cx: Context| {
        let message = cx
            .sample("thought", SamplingBuilder::text("Think!"))
            .await?;
        Ok(message.model)
    });
    Server::new("asking", "1")
        .tool(name)
        .tool(form)
        .tool(think)
        .tool(open_url)
        .tool(roots)
        .tool(three)
        .tool(tools)
}

#[derive(Deserialize, JsonSchema)]
struct Url {
    url: String,
}

pub(crate) fn everything() -> Value {
    json!({
        "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} },
    })
}

pub(crate) fn call(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

pub(crate) fn url_elicitation_call(url: &str) -> Value {
    json!({ "name": "visit", "arguments": { "url": url } })
}

/// Returns the client requests of a call, as method and parameters.
pub(crate) async fn sent_client_requests(client: &mut RevisionClient, params: Value) -> Vec<Value> {
    let is_three = params["name"] == "three";
    if client.is_modern() {
        let result = client.result("tools/call", params).await;
        let client_requests = result["inputRequests"].as_object().unwrap();
        return client_requests.values().cloned().collect();
    }
    client.request("tools/call", params).await;
    let mut client_requests = vec![client.peer.next().await];
    if is_three {
        client_requests.push(client.peer.next().await);
        client_requests.push(client.peer.next().await);
    }
    client_requests
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_capability_is_never_used_in_any_revision() {
    req!(
        "base.capabilities.respect",
        "roots.server.capability",
        "lifecycle.operation.capabilities-must",
        "lifecycle.operation.capabilities-should"
    );
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for params in [
            call("name"),
            call("roots"),
            call("tools"),
            url_elicitation_call("https://a.example/"),
        ] {
            let response = client.call("tools/call", params).await;

            if client.is_modern() {
                assert_eq!(response["error"]["code"], -32021);
            } else {
                assert_eq!(response["result"]["isError"], true, "{revision}");
            }
        }
        client.peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_request_is_cancelled_by_id_and_only_while_pending() {
    req!(
        "cancellation.reference.direction",
        "cancellation.reference.in-progress",
        "cancellation.request-id",
        "lifecycle.timeout.cancel"
    );
    for revision in &EVERY[..5] {
        let server =
            server().client_request_timeout(Duration::from_secs(5), Duration::from_secs(50));
        let mut client = RevisionClient::with(revision, server, everything()).await;
        let http_response = sent_client_requests(&mut client, call("roots"))
            .await
            .remove(0);
        let roots =
            json!({ "jsonrpc": "2.0", "id": http_response["id"], "result": { "roots": [] } });
        client.peer.send(roots).await;
        client.peer.next().await;

        let open = sent_client_requests(&mut client, call("roots"))
            .await
            .remove(0);
        let cancelled = client.peer.next().await;
        let result = client.peer.next().await;

        assert_eq!(cancelled["method"], "notifications/cancelled", "{revision}");
        assert_eq!(cancelled["params"]["requestId"], open["id"], "{revision}");
        assert_eq!(result["result"]["isError"], true);
        client.peer.expect_no_message().await;
    }
    // In stateless revisions a server cancels only subscriptions.
    let mut client = RevisionClient::new(MODERN, server()).await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let id = client.request("subscriptions/listen", listen).await;
    client.peer.next().await;
    let rest = client.peer.finish().await;
    assert_eq!(rest[0]["method"], "notifications/cancelled");
    assert_eq!(rest[0]["params"]["requestId"], id);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_cancels_only_subscriptions() {
    req!(
        "cancellation.server-only-listen",
        "elicitation.url.complete-removed"
    );
    let server = server().client_request_timeout(Duration::from_secs(1), Duration::from_secs(1));
    let mut client = RevisionClient::with(MODERN, server, everything()).await;

    for params in [
        call("roots"),
        call("three"),
        url_elicitation_call("https://a.example/"),
    ] {
        let first = client.result("tools/call", params.clone()).await;
        assert_eq!(first["resultType"], "input_required");
        client.peer.expect_no_message().await;
        if params["name"] == "visit" {
            let mut retry = params;
            retry["requestState"] = first["requestState"].clone();
            retry["inputResponses"] = json!({ "visit": { "action": "accept" } });
            let done = client.result("tools/call", retry).await;
            assert_eq!(done["content"][0]["text"], "true");
            client.peer.expect_no_message().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_tokens_of_client_requests_are_unique_integers_or_strings() {
    req!("progress.token.type", "progress.token.unique");
    for revision in EVERY {
        let mut client = RevisionClient::with(revision, server(), everything()).await;
        let call = if revision < "2025-06-18" {
            call("roots")
        } else {
            call("three")
        };
        let mut seen = HashSet::new();
        for _ in 0..3 {
            for client_request in sent_client_requests(&mut client, call.clone()).await {
                let token = client_request.pointer("/params/_meta/progressToken");
                // Input requests in a result do not report progress.
                assert_eq!(token.is_some(), !client.is_modern(), "{revision}");
                if let Some(token) = token {
                    assert!(token.is_i64() || token.is_string(), "{revision} {token}");
                    assert!(
                        seen.insert(token.to_string()),
                        "{revision}: all of them are open"
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_call_has_three_kinds_of_input_requests_under_separate_keys() {
    req!(
        "mrtr.result.values",
        "mrtr.result.at-least-one",
        "mrtr.result.keys-unique",
        "caching.hints.not-interim"
    );
    let twice = Tool::new("twice", async |cx: Context| {
        let (first, second) = tokio::join!(cx.roots("a"), cx.roots("a"));
        Ok(format!("{} {}", first?.len(), second?.len()))
    });
    let differs = Tool::new("differs", async |cx: Context| {
        let (first, second) =
            tokio::join!(cx.roots("a"), cx.sample("a", SamplingBuilder::text("?")));
        Ok(format!("{} {}", first?.len(), second?.model))
    });
    let server = server().tool(twice).tool(differs);
    let mut client = RevisionClient::with(MODERN, server, everything()).await;

    let three = client.result("tools/call", call("three")).await;
    let params = client.params(call("twice"));
    client.peer.request("tools/call", params).await;
    let line = client.peer.next_line().await;
    let differs = client.result("tools/call", call("differs")).await;

    let client_requests = three["inputRequests"].as_object().unwrap();
    let methods: Vec<_> = client_requests
        .values()
        .map(|one| one["method"].clone())
        .collect();
    assert_eq!(
        methods,
        ["roots/list", "sampling/createMessage", "elicitation/create"]
    );
    assert!(three["requestState"].is_string());
    assert_eq!(three.get("ttlMs"), None);
    assert_eq!(three.get("cacheScope"), None);
    assert_eq!(line.matches(r#""roots/list""#).count(), 1, "{line}");
    let sent_client_requests = differs["inputRequests"].as_object().unwrap();
    assert_eq!(
        sent_client_requests.len(),
        1,
        "the second question under a key is refused"
    );
}

#[tokio::test(start_paused = true)]
async fn a_completion_cannot_end_with_an_input_request() {
    req!("mrtr.methods.others");
    let complete = async |_: CompletionRequest, cx: Context| {
        let roots = cx.roots("roots").await?;
        Ok(roots.into_iter().map(|root| root.uri).collect())
    };
    let prompt = Prompt::new("p", async || Ok("")).complete("a", complete);
    let server = server().prompt(prompt);
    let mut client = RevisionClient::with(MODERN, server, everything()).await;
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });

    let code = client.code("completion/complete", params).await;

    assert_eq!(code, -32603);
    for method in ["tools/list", "prompts/list", "server/discover"] {
        let result = client.result(method, json!({})).await;
        assert_eq!(result["resultType"], "complete");
    }
}

#[tokio::test(start_paused = true)]
async fn changed_roots_are_requested_again() {
    req!("roots.server.changes");
    for revision in &EVERY[..5] {
        let capabilities = json!({ "roots": { "listChanged": true } });
        let mut client = RevisionClient::with(revision, server(), capabilities).await;
        for uri in ["file:///a", "file:///b"] {
            let client_request = sent_client_requests(&mut client, call("roots"))
                .await
                .remove(0);
            let roots = json!({ "roots": [{ "uri": uri }] });
            client
                .peer
                .send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": roots }))
                .await;
            let response = client.peer.next().await;
            assert_eq!(response["result"]["content"][0]["text"], uri, "{revision}");

            client
                .peer
                .notify("notifications/roots/list_changed", json!({}))
                .await;
            client.peer.expect_no_message().await;
        }
    }
}
