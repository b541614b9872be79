//! Ids, batches and malformed messages.

use serde_json::{Value, json};
use tokio::sync::Notify;
use turnbuckle_server::{Server, Tool, ndjson::NdjsonServer};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer, initialize, modern},
    spec::revision_client::{EVERY, RevisionClient},
};

/// A server with a tool `wait` that ends on the signal `go`.
fn server() -> (Server, std::sync::Arc<Notify>) {
    let proceed = std::sync::Arc::new(Notify::new());
    let gate = proceed.clone();
    let wait = Tool::new("wait", move || {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok("waited".to_owned())
        }
    });
    let hello = Tool::new("hello", async || Ok("hello".to_owned()));
    (
        Server::new("messages", "1.0.0").tool(wait).tool(hello),
        proceed,
    )
}

fn call(id: impl Into<Value>, tool: &str) -> Value {
    let id = id.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
}

#[tokio::test(start_paused = true)]
async fn ids_are_echoed_in_the_bytes_received() {
    req!("base.response.same-id", "base.error.id-echo");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server().0).await;
        let params = client.params(json!({}));
        let peer = &mut client.peer;
        for id in [
            "1",
            "-7",
            "1.0",
            "1e0",
            "123456789012345678901234567890",
            "\"a\\u0062\"",
            "\"\"",
        ] {
            for (method, outcome) in [("tools/list", "result"), ("no/such", "error")] {
                peer.send_line(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
                ))
                .await;

                let response = peer.next_line().await;

                let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"{outcome}":{{"#);
                assert!(response.starts_with(&expected), "{revision} {response}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_id_is_neither_a_request_nor_a_notification() {
    req!("base.error.invalid-request");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server().0).await;
        let params = client.params(json!({}));
        let peer = &mut client.peer;
        for id in ["null", "1.5", "true", "[1]", "{}"] {
            peer.send_line(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{params}}}"#
            ))
            .await;

            let response = peer.next().await;

            assert_eq!(response["error"]["code"], -32600, "{revision} {id}");
            // Older revisions respond with a `null` id if the id is unreadable.
            let null = (revision < "2025-11-25").then_some(&serde_json::Value::Null);
            assert_eq!(response.get("id"), null, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_in_use_is_rejected_and_the_first_call_continues() {
    let (server, proceed) = server();
    let mut peer = Peer::initialized(server, "2025-11-25", json!({})).await;
    peer.send(call(1, "wait")).await;
    peer.send_line(
        &call(1, "hello")
            .to_string()
            .replace(r#""id":1"#, r#""id":1.0"#),
    )
    .await;
    assert_eq!(peer.next().await["error"]["code"], -32600);

    // Both eras share the connection and its ids.
    peer.send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})) }),
    )
    .await;
    assert_eq!(peer.next().await["error"]["code"], -32600);

    proceed.notify_one();
    assert_eq!(peer.next().await["result"]["content"][0]["text"], "waited");
    peer.send(call(1, "hello")).await;
    assert_eq!(peer.next().await["result"]["content"][0]["text"], "hello");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_id_is_null_before_2025_11_25_and_omitted_since() {
    req!("base.error.id-unreadable", "base.error.parse");
    for revision in LEGACY {
        let mut peer = Peer::initialized(server().0, revision, json!({})).await;

        peer.send_line("{").await;
        let response = peer.next().await;

        let expected = (revision < "2025-11-25").then_some(&Value::Null);
        assert_eq!(response.get("id"), expected, "{revision}");
        assert_eq!(response["error"]["code"], -32700);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_by_one_batch_in_2025_03_26() {
    req!("base.batch.receive");
    let (server, proceed) = server();
    let mut peer = Peer::initialized(server, "2025-03-26", json!({})).await;

    peer.send(json!([
        call("slow", "wait"),
        { "jsonrpc": "2.0", "method": "notifications/unknown" },
        call("quick", "hello"),
        7,
        { "jsonrpc": "2.0", "id": "p", "method": "ping" },
        { "jsonrpc": "2.0", "id": 99, "result": {} },
    ]))
    .await;
    peer.expect_no_message().await;
    proceed.notify_one();

    let responses = peer.next().await;
    let responses = responses.as_array().unwrap();
    assert_eq!(responses.len(), 4);
    assert_eq!(responses[0]["result"]["content"][0]["text"], "waited");
    assert_eq!(responses[1]["result"]["content"][0]["text"], "hello");
    assert_eq!(responses[2]["error"]["code"], -32600);
    assert_eq!(responses[2].get("id"), Some(&Value::Null));
    assert_eq!(
        responses[3],
        json!({ "jsonrpc": "2.0", "id": "p", "result": {} })
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_without_requests_gets_no_response() {
    let mut peer = Peer::initialized(server().0, "2025-03-26", json!({})).await;

    peer.send(json!([
        { "jsonrpc": "2.0", "method": "notifications/unknown" },
        { "jsonrpc": "2.0", "id": 99, "result": {} },
    ]))
    .await;

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_removed_from_its_batch() {
    let (server, proceed) = server();
    let mut peer = Peer::initialized(server, "2025-03-26", json!({})).await;
    peer.send(json!([call(1, "wait"), call(2, "wait")])).await;

    peer.cancel(1).await;
    peer.expect_no_message().await;
    proceed.notify_one();

    let responses = peer.next().await;
    assert_eq!(responses.as_array().unwrap().len(), 1);
    assert_eq!(responses[0]["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn initialize_and_stateless_requests_are_rejected_in_batches() {
    let mut peer = Peer::initialized(server().0, "2025-03-26", json!({})).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });

    for disallowed in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25", json!({})) }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": modern(json!({})) }),
    ] {
        peer.send(json!([ping, disallowed])).await;

        let refused = peer.next().await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert_eq!(refused.get("id"), Some(&json!(null)));
    }
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_oversized_batch_is_rejected() {
    let mut peer = Peer::initialized(server().0, "2025-03-26", json!({})).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });

    for array in [json!([]), json!(vec![ping; 101])] {
        peer.send(array).await;
        assert_eq!(peer.next().await["error"]["code"], -32600);
    }
}

#[tokio::test(start_paused = true)]
async fn no_other_revision_has_batches() {
    req!("base.batch.removed");
    let ping = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
    for revision in LEGACY.into_iter().filter(|it| *it != "2025-03-26") {
        let mut peer = Peer::initialized(server().0, revision, json!({})).await;
        peer.send(ping.clone()).await;
        assert_eq!(peer.next().await["error"]["code"], -32600, "{revision}");
    }
    let mut without = Peer::new(server().0);
    let list =
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})) }]);
    for array in [ping, list] {
        without.send(array).await;
        assert_eq!(without.next().await["error"]["code"], -32600);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_over_the_limit_are_rejected_and_can_still_be_cancelled() {
    let (server, _) = server();
    let mut peer = Peer::with(NdjsonServer::new(server).max_in_flight(2));
    peer.initialize_session("2025-06-18", json!({})).await;
    for id in [1, 2, 3] {
        peer.send(call(id, "wait")).await;
    }

    let refused = peer.next().await;
    assert_eq!(refused["id"], 3);
    assert_eq!(refused["error"]["code"], -32603);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("busy")
    );

    assert_eq!(peer.call("ping", json!({})).await["result"], json!({}));
    peer.cancel(1).await;
    peer.expect_no_message().await;
    assert_eq!(
        peer.call_tool("hello", json!({})).await["result"]["content"][0]["text"],
        "hello"
    );
}

#[tokio::test(start_paused = true)]
async fn the_number_of_waiting_batches_is_limited() {
    let (server, _) = server();
    let mut peer = Peer::initialized(server, "2025-03-26", json!({})).await;
    for id in 0..64 {
        peer.send(json!([call(id, "wait")])).await;
    }

    peer.send(json!([call(64, "hello")])).await;

    let responses = peer.next().await;
    assert_eq!(responses[0]["id"], 64);
    assert_eq!(responses[0]["error"]["code"], -32603);
}
