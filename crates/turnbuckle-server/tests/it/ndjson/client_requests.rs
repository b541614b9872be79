//! Client requests in sessions.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnbuckle_server::{Context, Elicitation, Prompt, Resource, SamplingBuilder, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{LEGACY, Peer, initialize};

#[derive(Deserialize, JsonSchema)]
struct Signature {
    /// Your full name.
    name: String,
    #[serde(default)]
    age: Option<u8>,
}

fn server() -> Server {
    let sign = Tool::new("sign", async |cx: Context| {
        let response = cx
            .elicit(Elicitation::form::<Signature>("Who signs?").key("signature"))
            .await?;
        let response = response.accepted();
        Ok(match response {
            Some(signature) => format!("signed by {} ({:?})", signature.name, signature.age),
            None => "not signed".to_owned(),
        })
    });
    let think = Tool::new("think", async |cx: Context| {
        let said = cx
            .sample("thought", SamplingBuilder::text("Think!"))
            .await?;
        Ok(format!("the model is {}", said.model))
    });
    let look = Tool::new("look", async |cx: Context| {
        let roots = cx.roots("roots").await?;
        let uris: Vec<_> = roots.iter().map(|root| root.uri.clone()).collect();
        Ok(uris.join(" "))
    });
    let prompt = Prompt::new("ask", async |cx: Context| {
        let roots = cx.roots("roots").await?;
        Ok(format!("{} roots", roots.len()))
    });
    Server::new("asking", "1")
        .tool(sign)
        .tool(think)
        .tool(look)
        .prompt(prompt)
}

fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

async fn begin(peer: &mut Peer, tool: &str) -> (i64, Value) {
    let id = peer
        .request("tools/call", json!({ "name": tool, "arguments": {} }))
        .await;
    (id, peer.next().await)
}

async fn response(peer: &mut Peer, client_request: &Value, result: Value) {
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
        .await;
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_is_sent_while_its_call_waits() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut peer = Peer::initialized(server(), revision, everything()).await;
        let (id, client_request) = begin(&mut peer, "sign").await;
        assert_eq!(client_request["method"], "elicitation/create");
        assert_eq!(client_request["params"]["message"], "Who signs?");
        let schema = &client_request["params"]["requestedSchema"];
        assert_eq!(schema["properties"]["name"]["type"], "string");
        assert_eq!(schema["required"], json!(["name"]));

        response(
            &mut peer,
            &client_request,
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        )
        .await;

        let http_response = peer.next().await;
        assert_eq!(http_response["id"], id);
        assert_eq!(text(&http_response), "signed by Ada (None)");
    }
}

#[tokio::test(start_paused = true)]
async fn declining_is_an_elicitation_outcome() {
    let mut peer = Peer::initialized(server(), "2025-11-25", everything()).await;
    for action in ["decline", "cancel"] {
        let (_, client_request) = begin(&mut peer, "sign").await;

        response(&mut peer, &client_request, json!({ "action": action })).await;

        assert_eq!(text(&peer.next().await), "not signed");
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_and_roots_work_in_every_revision() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = Peer::initialized(server(), revision, everything()).await;

        let (_, client_request) = begin(&mut peer, "think").await;
        assert_eq!(client_request["method"], "sampling/createMessage");
        assert_eq!(client_request["params"]["maxTokens"], 1_000);
        assert_eq!(
            client_request["params"]["messages"][0]["content"]["text"],
            "Think!"
        );
        let thought = json!({ "role": "assistant", "content": { "type": "text", "text": "Hm." }, "model": "m" });
        response(&mut peer, &client_request, thought).await;
        assert_eq!(text(&peer.next().await), "the model is m", "{revision}");

        let (_, client_request) = begin(&mut peer, "look").await;
        assert_eq!(client_request["method"], "roots/list");
        response(
            &mut peer,
            &client_request,
            json!({ "roots": [{ "uri": "file:///a" }] }),
        )
        .await;
        assert_eq!(text(&peer.next().await), "file:///a");
    }
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_capability_is_never_used() {
    let mut peer = Peer::initialized(server(), "2025-11-25", json!({})).await;
    for tool in ["sign", "think", "look"] {
        let (_, response) = begin(&mut peer, tool).await;

        assert_eq!(response["result"]["isError"], true, "{response}");
    }
    let prompt = peer.call("prompts/get", json!({ "name": "ask" })).await;
    assert_eq!(prompt["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_client_request_of_a_prompt_or_resource_is_an_internal_error_in_sessions() {
    let resource = Resource::new("note://r", "r", async |cx: Context| {
        Ok(format!("{} roots", cx.roots("roots").await?.len()))
    });
    let server = server().resource(resource);
    for revision in LEGACY {
        let mut peer = Peer::initialized(server.clone(), revision, json!({})).await;

        let prompt = peer.call("prompts/get", json!({ "name": "ask" })).await;
        let read = peer
            .call("resources/read", json!({ "uri": "note://r" }))
            .await;

        for response in [prompt, read] {
            assert_eq!(response["error"]["code"], -32603, "{revision}");
            let message = response["error"]["message"].as_str().unwrap();
            assert!(message.contains("`roots`"), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_before_initialized() {
    let ping = Tool::new("ping", async |cx: Context| {
        cx.ping().await?;
        Ok("alive".to_owned())
    });
    for revision in LEGACY {
        let mut peer = Peer::new(Server::new("s", "1").tool(ping.clone()));
        peer.call("initialize", initialize(revision, json!({})))
            .await;

        let (_, client_request) = begin(&mut peer, "ping").await;
        assert_eq!(client_request["method"], "ping", "{revision}");
        response(&mut peer, &client_request, json!({})).await;

        assert_eq!(text(&peer.next().await), "alive", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_another_request_does_not_extend_the_timeout() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    let started = Instant::now();
    let (_, client_request) = begin(&mut peer, "sign").await;
    let token = client_request["params"]["_meta"]["progressToken"]
        .as_i64()
        .unwrap();

    for foreign in [
        json!(token + 1),
        json!(token.to_string()),
        json!(null),
        json!([token]),
    ] {
        sleep(Duration::from_secs(10)).await;
        let params = json!({ "progressToken": foreign, "progress": 1 });
        peer.notify("notifications/progress", params).await;
    }

    let cancelled = peer.next().await;
    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!(cancelled["params"]["requestId"], client_request["id"]);
}

#[tokio::test(start_paused = true)]
async fn no_client_request_is_sent_before_initialized() {
    req!("lifecycle.init.server-wait");
    for revision in LEGACY {
        let mut peer = Peer::new(server());
        peer.call("initialize", initialize(revision, everything()))
            .await;

        for tool in ["look", "think"] {
            let (id, response) = begin(&mut peer, tool).await;
            assert_eq!(response["id"], id, "{revision} {tool}");
            assert_eq!(response["result"]["isError"], true, "{revision} {tool}");
        }
        peer.expect_no_message().await;

        // Client requests work as soon as the client has sent `notifications/initialized`.
        peer.notify("notifications/initialized", json!({})).await;
        let (_, client_request) = begin(&mut peer, "look").await;
        assert_eq!(client_request["method"], "roots/list", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_request_reaches_the_handler() {
    let mut peer = Peer::initialized(server(), "2025-11-25", everything()).await;
    let (_, client_request) = begin(&mut peer, "think").await;

    let error = json!({ "code": -1, "message": "the user said no" });
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "error": error }))
        .await;

    let response = peer.next().await;
    assert_eq!(response["result"]["isError"], true);
    assert!(text(&response).contains("the user said no"));
}

#[tokio::test(start_paused = true)]
async fn a_mismatched_or_missing_response_is_an_error_in_the_handler() {
    let mut peer = Peer::initialized(server(), "2025-11-25", everything()).await;

    let (_, client_request) = begin(&mut peer, "look").await;
    response(&mut peer, &client_request, json!({ "roots": 7 })).await;
    assert_eq!(peer.next().await["result"]["isError"], true);

    let (_, client_request) = begin(&mut peer, "look").await;
    let both = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": {}, "error": { "code": 1, "message": "" } });
    peer.send(both).await;
    assert_eq!(peer.next().await["result"]["isError"], true);

    let (id, client_request) = begin(&mut peer, "look").await;
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"] }))
        .await;
    let spoilt = peer.next().await;
    assert_eq!(spoilt["id"], id, "{spoilt}");
    assert_eq!(spoilt["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_client_request_is_cancelled_after_a_minute() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    let started = Instant::now();
    let (id, client_request) = begin(&mut peer, "sign").await;

    let cancelled = peer.next().await;
    let http_response = peer.next().await;

    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], client_request["id"]);
    assert_eq!(http_response["id"], id);
    assert_eq!(http_response["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn progress_of_the_client_extends_the_timeout_up_to_a_limit() {
    let server = server().client_request_timeout(Duration::from_secs(60), Duration::from_secs(100));
    let mut peer = Peer::initialized(server, "2025-06-18", everything()).await;
    let started = Instant::now();
    let (_, client_request) = begin(&mut peer, "sign").await;
    let token = client_request["params"]["_meta"]["progressToken"].clone();

    for step in 1..=3 {
        sleep(Duration::from_secs(30)).await;
        peer.notify(
            "notifications/progress",
            json!({ "progressToken": token, "progress": step }),
        )
        .await;
    }
    let cancelled = peer.next().await;

    assert_eq!(started.elapsed().as_secs(), 100);
    assert_eq!(cancelled["method"], "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_call_cancels_its_client_request() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    let (id, client_request) = begin(&mut peer, "sign").await;

    peer.cancel(id).await;

    let cancelled = peer.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], client_request["id"]);
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_client_request_ends_when_the_client_disconnects() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    let started = Instant::now();
    let (id, _) = begin(&mut peer, "sign").await;

    let rest = peer.finish().await;

    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["id"], id);
    assert_eq!(rest[0]["result"]["isError"], true);
    assert!(text(&rest[0]).contains("the call ended"));
}

#[tokio::test(start_paused = true)]
async fn a_response_without_a_request_is_dropped() {
    let mut peer = Peer::initialized(server(), "2025-06-18", everything()).await;
    let (_, client_request) = begin(&mut peer, "look").await;
    peer.send(json!({ "jsonrpc": "2.0", "id": "missing", "result": {} }))
        .await;
    peer.send(json!({ "jsonrpc": "2.0", "id": 4711, "result": {} }))
        .await;
    response(&mut peer, &client_request, json!({ "roots": [] })).await;
    assert_eq!(text(&peer.next().await), "");

    response(&mut peer, &client_request, json!({ "roots": [] })).await;

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn two_concurrent_client_requests_get_their_own_responses() {
    let both = Tool::new("both", async |cx: Context| {
        let (first, second) =
            tokio::join!(cx.roots("a"), cx.sample("b", SamplingBuilder::text("?")));
        Ok(format!("{} {}", first?.len(), second?.model))
    });
    let server = Server::new("s", "1").tool(both);
    let mut peer = Peer::initialized(server, "2025-03-26", everything()).await;
    let (_, first) = begin(&mut peer, "both").await;
    let second = peer.next().await;
    assert_ne!(first["id"], second["id"]);

    let thought =
        json!({ "role": "assistant", "content": { "type": "text", "text": "Hm." }, "model": "m" });
    response(&mut peer, &second, thought).await;
    response(&mut peer, &first, json!({ "roots": [] })).await;

    assert_eq!(text(&peer.next().await), "0 m");
}
