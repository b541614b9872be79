//! Responses to requests of legacy servers.

use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, LEGACY, MockServer};

#[tokio::test(start_paused = true)]
async fn a_ping_gets_an_empty_result() {
    req!("ping.respond", "base.response.same-id");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;
        for id in [
            json!(7),
            json!("seven"),
            json!(-1),
            json!(9_007_199_254_740_993_i64),
        ] {
            let sent_at = tokio::time::Instant::now();
            server
                .send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
                .await;

            let pong = server.next_response(id.clone()).await;

            assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
            assert_eq!(sent_at.elapsed().as_millis(), 0, "without any wait");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_repeats_the_id_as_received() {
    req!("base.response.same-id");

    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;

        for id in ["1e2", "1.0", "\"1\"", "18446744073709551616", "\"\\u00e9\""] {
            server
                .send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
                .await;
            server
                .next_matching("a response", |message| message.get("result").is_some())
                .await;
            let text = String::from_utf8(server.received_bytes()).unwrap();
            let last = text.lines().last().unwrap();
            let content: Value = serde_json::from_str(last).unwrap();
            let same = serde_json::from_str::<Value>(id).unwrap();
            assert!(last.contains(id) || content["id"] == same, "{id}: {last}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_is_method_not_found() {
    req!("base.error.method-not-found", "base.error.id-echo");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;

        for method in [
            "no/such",
            "tools/list",
            "initialize",
            "server/discover",
            "Ping",
            "",
        ] {
            let rejected = server.call_client(method, json!({})).await;

            assert_eq!(rejected["error"]["code"], -32601, "{method}: {rejected}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_request_is_rejected_by_its_id() {
    req!("base.error.invalid-request", "base.error.id-echo");

    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let _client = server.connect().await;

        for line in [
            r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
            r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
            r#"{"id":5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":1}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"ping"}"#,
        ] {
            server.send_line(line).await;

            let rejected = server.next_response(5).await;

            assert_eq!(rejected["error"]["code"], -32600, "{line}: {rejected}");
        }
    }
}

/// Servers of 2026-07-28 must not send requests, so they get neither a result nor an error.
#[tokio::test(start_paused = true)]
async fn a_request_of_a_modern_server_gets_no_response() {
    req!(
        "base.error.legacy-range-no-new",
        "base.error.reserved-range-undefined",
        "base.error.reserved-range-meaning"
    );
    let server = MockServer::modern();
    server.respond("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;
    for method in ["ping", "roots/list", "no/such", "tools/list"] {
        server.request(method, json!({})).await;
    }
    for line in [
        r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
        r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
        "[]",
        "{",
    ] {
        server.send_line(line).await;
    }

    // A response would arrive before this one.
    client.tools().all().await.unwrap();
    server.expect_no_message().await;
    assert_eq!(server.methods(), ["server/discover", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn notifications_get_no_response() {
    req!("base.notification.no-reply");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let _client = server.connect().await;

        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[]}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/no/such"}"#,
            r#"{"jsonrpc":"2.0","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":99,"error":{"code":-32600,"message":"what?"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
            r#"{"jsonrpc":"2.0","id":99,"result":{},"error":{"code":1,"message":"both"}}"#,
        ] {
            server.send_line(line).await;
        }

        server.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn batches_are_accepted_in_the_revisions_that_define_them() {
    req!("base.batch.receive");
    let server = MockServer::legacy("2025-03-26");
    server.withhold("tools/list");
    let client = server.connect().await;
    // A dropped client does not respond any more.
    let asking = client.clone();
    let listing = tokio::spawn(async move { asking.tools().all().await });
    let requested = server.next("tools/list").await;

    server
        .send(json!([
            { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" },
            { "jsonrpc": "2.0", "id": "a", "method": "ping" },
            { "jsonrpc": "2.0", "id": requested["id"], "result": { "tools": [] } },
            { "jsonrpc": "2.0", "id": "b", "method": "ping" },
        ]))
        .await;

    assert_eq!(listing.await.unwrap().unwrap(), []);
    // One array with all responses, or separate responses.
    let responses = || {
        let received = server.received().into_iter();
        let all = received.flat_map(|message| match message {
            Value::Array(messages) => messages,
            message => vec![message],
        });
        let of = |id: &str| {
            let id = id.to_owned();
            move |message: &Value| message["id"] == id && message["result"] == json!({})
        };
        let all: Vec<_> = all.collect();
        all.iter().any(of("a")) && all.iter().any(of("b"))
    };
    while !responses() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn endless_requests_of_a_server_that_never_reads_are_limited() {
    let server = MockServer::legacy("2025-11-25");
    let _client = server.connect().await;
    server.stop_reading();

    for id in 0..5_000 {
        server
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
            .await;
        server
            .send(json!({ "jsonrpc": "2.0", "id": -id, "method": id }))
            .await;
    }

    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert!(tasks < 200, "{tasks}");
}

#[tokio::test(start_paused = true)]
async fn a_request_right_after_the_handshake_gets_a_response() {
    let server = MockServer::legacy("2025-11-25");
    server.withhold("initialize");
    let start_connect = server.start_connect(turnbuckle_client::Client::builder("test", "1.0"));
    let initialize = server.next("initialize").await;
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "a", "version": "1" } });
    let response = json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": result });
    let ping = json!({ "jsonrpc": "2.0", "id": "early", "method": "ping" });

    // In one write: the request is there before the client can process the response.
    server
        .send_bytes(format!("{response}\n{ping}\n").as_bytes())
        .await;

    let pong = server.next_response(json!("early")).await;
    assert_eq!(pong["result"], json!({}));
    start_connect.await.unwrap().unwrap();
}
