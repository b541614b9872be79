//! Messages over HTTP+SSE, in both directions.

use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Elicitation, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{Empty, HttpTestClient, initialize, modern, server, tool},
    http_sse::test_client::{HttpSseClient, get, ping, post, with_http_sse},
};

const LEGACY: [&str; 5] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Signature {
    name: String,
}

/// A server with a tool that elicits input.
fn server_with_elicitation() -> Server {
    server().tool(Tool::new("sign", async |_: Empty, cx: Context| {
        let response = cx
            .elicit(Elicitation::form::<Signature>("Who signs?").key("signature"))
            .await?;
        Ok(match response.accepted() {
            Some(signature) => signature.name,
            None => "missing".to_owned(),
        })
    }))
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn the_first_event_names_the_post_url() {
    req!("httpsse.endpoints", "httpsse.endpoint-event");
    let caller = HttpTestClient::with_options(with_http_sse(server()));

    let http_response = caller.send(get("/sse"), "").await;
    assert_eq!(
        http_response.header("cache-control"),
        Some("no-cache, no-transform")
    );
    assert_eq!(http_response.header("x-accel-buffering"), Some("no"));
    assert_eq!(http_response.header("mcp-session-id"), None);
    let first = http_response.stream().bytes().await.unwrap();

    let first = std::str::from_utf8(&first).unwrap();
    let id = first
        .strip_prefix("event: endpoint\ndata: /messages?sessionId=")
        .and_then(|rest| rest.strip_suffix("\n\n"))
        .expect(first);
    // Six bits a character.
    assert!(id.len() * 6 >= 128, "{id}");
    // Messages are posted to the URL of the first event.
    let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;
    assert_eq!(peer.request(&ping(1)).await["result"], json!({}));
    assert_ne!(
        HttpSseClient::open(&caller).await.uri,
        HttpSseClient::open(&caller).await.uri
    );
}

#[tokio::test]
async fn tools_are_called_in_every_legacy_revision() {
    req!("httpsse.message-event", "httpsse.compat.server");
    let caller = HttpTestClient::with_options(with_http_sse(server()));

    for revision in LEGACY {
        let mut peer = HttpSseClient::initialized(&caller, revision).await;
        let response = peer
            .request(&tool(1, "echo", &json!({ "message": "hi" })))
            .await;
        assert_eq!((&response["id"], text(&response)), (&json!(1), "hi"));
        let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "nope" });
        assert_eq!(peer.request(&unknown).await["error"]["code"], -32601);
    }
    // The Streamable HTTP endpoint is unaffected.
    let session = caller.in_session("2025-11-25").await;
    let http_response = session.tool(1, "echo", json!({ "message": "hi" })).await;
    assert_eq!(text(&http_response.json().await), "hi");
}

#[tokio::test]
async fn events_name_their_type() {
    let mut peer =
        HttpSseClient::open(&HttpTestClient::with_options(with_http_sse(server()))).await;

    peer.post_accepted(&ping(1)).await;

    assert_eq!(
        peer.stream.bytes().await.unwrap(),
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
    );
}

#[tokio::test]
async fn progress_and_response_arrive_in_order() {
    let mut peer = HttpSseClient::initialized(
        &HttpTestClient::with_options(with_http_sse(server())),
        "2024-11-05",
    )
    .await;

    peer.post_accepted(&tool(5, "progress", &json!({ "steps": 200 })))
        .await;

    for step in 1..=200 {
        let progress = peer.next().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progress"], f64::from(step));
    }
    assert_eq!(text(&peer.next().await), "done");
}

#[tokio::test]
async fn an_elicitation_is_sent_while_the_call_waits() {
    let caller = HttpTestClient::with_options(with_http_sse(server_with_elicitation()));
    let mut peer = HttpSseClient::initialized(&caller, "2025-06-18").await;

    let client_request = peer.request(&tool(1, "sign", &json!({}))).await;
    assert_eq!(client_request["method"], "elicitation/create");
    // Other clients are served at the same time.
    assert_eq!(peer.request(&ping(2)).await["id"], 2);
    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    let response = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": content });

    assert_eq!(text(&peer.request(&response).await), "Ada");
}

#[tokio::test]
async fn a_malformed_response_fails_the_client_request() {
    let caller = HttpTestClient::with_options(with_http_sse(server_with_elicitation()));
    let mut peer = HttpSseClient::initialized(&caller, "2025-06-18").await;
    let client_request = peer.request(&tool(1, "sign", &json!({}))).await;

    let both = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": {}, "error": 1 });
    let http_response = peer.post(both.to_string()).await;

    assert_eq!(http_response.status_and_code().await, (400, -32600));
    let response = peer.next().await;
    assert_eq!(
        (&response["id"], &response["result"]["isError"]),
        (&json!(1), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gets_no_response_and_its_client_request_is_cancelled() {
    let caller = HttpTestClient::with_options(with_http_sse(server_with_elicitation()));
    let mut peer = HttpSseClient::initialized(&caller, "2025-06-18").await;
    let client_request = peer.request(&tool(1, "sign", &json!({}))).await;

    let params = json!({ "requestId": 1 });
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    let taken_back = peer.request(&cancelled).await;

    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], client_request["id"]);
    peer.expect_no_message().await;
    // The id is free again.
    let response = peer
        .request(&tool(1, "echo", &json!({ "message": "hi" })))
        .await;
    assert_eq!(text(&response), "hi");
}

#[tokio::test(start_paused = true)]
async fn changes_are_announced_only_after_the_first_response() {
    let server = server();
    let caller = HttpTestClient::with_options(with_http_sse(server.clone()));
    let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;

    server.tools_changed();
    peer.expect_no_message().await;
    peer.request(&ping(1)).await;
    server.tools_changed();

    let received = peer.next().await;
    assert_eq!(received["method"], "notifications/tools/list_changed");
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn subscriptions_and_log_levels_are_stored() {
    let server = server().tool(Tool::new("say", async |_: Empty, cx: Context| {
        cx.log(LogLevel::Info, "a little").await;
        cx.log(LogLevel::Error, "a lot").await;
        Ok("said".to_owned())
    }));
    let mut peer = HttpSseClient::initialized(
        &HttpTestClient::with_options(with_http_sse(server.clone())),
        "2024-11-05",
    )
    .await;

    let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "test://a" } });
    let level = json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "error" } });
    assert_eq!(peer.request(&subscribe).await["result"], json!({}));
    assert_eq!(peer.request(&level).await["result"], json!({}));
    server.resource_updated("test://a");
    assert_eq!(peer.next().await["params"]["uri"], "test://a");

    let logged = peer.request(&tool(3, "say", &json!({}))).await;
    assert_eq!(logged["params"]["data"], "a lot");
    assert_eq!(text(&peer.next().await), "said");
}

#[tokio::test(start_paused = true)]
async fn clients_with_equal_request_ids_are_separate() {
    let caller = HttpTestClient::with_options(with_http_sse(server_with_elicitation()));
    let mut first = HttpSseClient::initialized(&caller, "2025-06-18").await;
    let mut second = HttpSseClient::initialized(&caller, "2025-06-18").await;
    let call = tool(1, "sign", &json!({}));
    let client_requests = [first.request(&call).await, second.request(&call).await];

    let sign = |client_request: usize, name: &str| {
        json!({
            "jsonrpc": "2.0", "id": client_requests[client_request]["id"],
            "result": { "action": "accept", "content": { "name": name } },
        })
    };
    // A response to a request of another session has no effect.
    second.post_accepted(&sign(0, "Eve")).await;
    let responses = [
        second.request(&sign(1, "Bo")).await,
        first.request(&sign(0, "Ada")).await,
    ];

    assert_eq!((text(&responses[0]), text(&responses[1])), ("Bo", "Ada"));
    first.expect_no_message().await;
    second.expect_no_message().await;
}

#[tokio::test]
async fn an_id_in_use_is_rejected_and_the_first_call_continues() {
    let mut peer = HttpSseClient::initialized(
        &HttpTestClient::with_options(with_http_sse(server_with_elicitation())),
        "2025-06-18",
    )
    .await;
    let client_request = peer.request(&tool(1, "sign", &json!({}))).await;

    let refused = peer.request(&ping(1)).await;
    let declined =
        json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": { "action": "decline" } });

    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(text(&peer.request(&declined).await), "missing");
}

#[tokio::test]
async fn batches_are_accepted_only_in_the_revision_that_has_them() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));
    for revision in LEGACY {
        let mut peer = HttpSseClient::initialized(&caller, revision).await;
        let array = json!([ping(1), { "jsonrpc": "2.0", "method": "x" }, ping(2)]);
        if revision == "2025-03-26" {
            let responses = peer.request(&array).await;
            assert_eq!(
                (&responses[0]["id"], &responses[1]["id"]),
                (&json!(1), &json!(2))
            );
        } else {
            let http_response = peer.post(array.to_string()).await;
            assert_eq!(
                http_response.status_and_code().await,
                (400, -32600),
                "{revision}"
            );
        }
        assert_eq!(peer.request(&ping(3)).await["id"], 3);
    }
}

#[tokio::test]
async fn http_sse_accepts_stateless_requests() {
    let mut peer =
        HttpSseClient::open(&HttpTestClient::with_options(with_http_sse(server()))).await;

    let response = peer.request(&modern("tools/list", json!({}))).await;
    assert_eq!(response["result"]["resultType"], "complete");
    // A request with neither a session nor `_meta` gets an error that names what is missing.
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(peer.request(&list).await["error"]["code"], -32602);
    peer.request(&initialize("2025-06-18")).await;
    assert_eq!(peer.request(&list).await["result"].get("resultType"), None);
}

#[tokio::test]
async fn version_headers_of_newer_clients_do_not_matter() {
    let mut peer = HttpSseClient::initialized(
        &HttpTestClient::with_options(with_http_sse(server())),
        "2025-06-18",
    )
    .await;

    for version in ["2025-06-18", "2025-11-25", "2026-07-28", "nonsense"] {
        let builder = post(&peer.uri).header("mcp-protocol-version", version);
        let http_response = peer.caller.send(builder, ping(1).to_string()).await;
        assert_eq!(http_response.status(), 202, "{version}");
        assert_eq!(peer.next().await["result"], json!({}));
    }
}

#[tokio::test]
async fn handlers_see_the_request_head() {
    let server = server().tool(Tool::new("who", async |_: Empty, cx: Context| {
        let headers = cx.get::<http::HeaderMap>().unwrap();
        Ok(headers["x-trace"].to_str().unwrap_or("?").to_owned())
    }));
    let mut peer = HttpSseClient::initialized(
        &HttpTestClient::with_options(with_http_sse(server)),
        "2025-06-18",
    )
    .await;

    let builder = post(&peer.uri).header("x-trace", "t-1");
    let call = tool(1, "who", &json!({})).to_string();
    assert_eq!(peer.caller.send(builder, call).await.status(), 202);

    assert_eq!(text(&peer.next().await), "t-1");
}
