//! Requirements for every message that a server sends.

use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, RevisionClient};

const TEXT: &str = "two\nlines\r\u{2028}and \u{7} more: 世界 🦀";

/// A server that sends every kind of message.
fn server() -> Server {
    let busy = Tool::new("busy", async |cx: Context| {
        cx.progress_message(1, None, TEXT).await;
        cx.log(LogLevel::Error, TEXT).await;
        cx.tools_changed();
        let roots = cx.roots("roots\n").await?;
        Ok(format!("{TEXT} {}", roots.len()))
    });
    let says = Tool::new("says", async || Ok(TEXT.to_owned()));
    Server::new("envelopes\n", "1")
        .tool(busy)
        .tool(says)
        .instructions(TEXT)
}

/// Returns every line received during all kinds of requests.
async fn lines(revision: &'static str) -> Vec<String> {
    let mut client = RevisionClient::with(revision, server(), json!({ "roots": {} })).await;
    let mut lines = Vec::new();
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "says" })),
        ("tools/call", json!({ "name": TEXT })),
        ("tools/call", json!({ "arguments": {} })),
        ("no/such\nmethod", json!({})),
        (
            "tools/call",
            json!({ "name": "busy", "_meta": {
                "progressToken": TEXT, "io.modelcontextprotocol/logLevel": "debug",
            } }),
        ),
    ] {
        let id = client.request(method, params).await;
        loop {
            let line = client.peer.next_line().await;
            let message: Value = serde_json::from_str(&line).unwrap();
            lines.push(line);
            if message["method"] == "roots/list" {
                let roots = json!({ "roots": [] });
                client
                    .peer
                    .send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": roots }))
                    .await;
            } else if message["id"] == id {
                break;
            }
        }
    }
    for line in ["{", "7", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#] {
        client.peer.send_line(line).await;
        lines.push(client.peer.next_line().await);
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn every_message_is_one_line_of_json_rpc_in_utf_8() {
    req!(
        "base.jsonrpc.version-field",
        "base.encoding.utf8",
        "stdio.framing.no-embedded"
    );
    for revision in EVERY {
        let lines = lines(revision).await;

        assert!(
            lines.iter().any(|line| line.contains("世界 🦀")),
            "as UTF-8, not as escapes that stand for it"
        );
        for line in lines {
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{revision} {line}");
            assert!(!line.contains(['\n', '\r']), "{revision} {line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_message_is_a_request_notification_or_response() {
    req!(
        "base.jsonrpc.conform",
        "base.request.id-type",
        "base.request.id-not-null",
        "base.request.method-string",
        "base.notification.method-string",
        "base.notification.no-id",
        "base.response.one-of",
        "base.response.result-object",
        "base.error.code-integer"
    );
    for revision in EVERY {
        let (mut requests, mut notifications, mut responses) = (0, 0, 0);
        for line in lines(revision).await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let members = message.as_object().unwrap();
            if let Some(method) = members.get("method") {
                assert!(method.is_string(), "{line}");
                assert!(!members.contains_key("result") && !members.contains_key("error"));
                match members.get("id") {
                    Some(id) => {
                        assert!(id.is_string() || id.is_i64(), "{line}");
                        requests += 1;
                    }
                    None => notifications += 1,
                }
            } else {
                responses += 1;
                match (members.get("result"), members.get("error")) {
                    (Some(result), None) => assert!(result.is_object(), "{line}"),
                    (None, Some(error)) => {
                        assert!(error["code"].is_i64() && error["message"].is_string());
                    }
                    _ => panic!("both or neither: {line}"),
                }
            }
        }
        let is_modern = revision == "2026-07-28";
        assert_eq!(requests, i32::from(!is_modern), "{revision}");
        // Progress, a log message, and in sessions the change notification.
        assert_eq!(notifications, if is_modern { 2 } else { 3 }, "{revision}");
        assert_eq!(responses, 9, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_sends_only_responses_and_notifications() {
    req!("transport.binding.directions");
    for line in lines("2026-07-28").await {
        let message: Value = serde_json::from_str(&line).unwrap();

        let is_request = message.get("method").is_some() && message.get("id").is_some();

        assert!(!is_request, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_may_be_left_out_and_are_an_object_if_not() {
    req!("base.request.params-object");
    for revision in &EVERY[..5] {
        let mut client = RevisionClient::new(revision, server()).await;
        for method in ["ping", "tools/list"] {
            client
                .peer
                .send(json!({ "jsonrpc": "2.0", "id": 1, "method": method }))
                .await;
            assert!(client.peer.next().await["result"].is_object(), "{method}");
            for (params, code) in [
                (json!([]), -32602),
                (json!(7), -32600),
                (json!("{}"), -32600),
            ] {
                client
                    .peer
                    .send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
                    .await;
                assert_eq!(client.peer.next().await["error"]["code"], code);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_never_used_twice_in_a_session() {
    req!("base.request.id-unique-session");
    for revision in &EVERY[..5] {
        let mut client = RevisionClient::with(revision, server(), json!({ "roots": {} })).await;
        let mut seen = std::collections::HashSet::new();
        for _ in 0..20 {
            let id = client
                .request("tools/call", json!({ "name": "busy" }))
                .await;
            let mut client_request = client.peer.next().await;
            while client_request["method"] != "roots/list" {
                client_request = client.peer.next().await;
            }
            assert!(seen.insert(client_request["id"].to_string()), "{revision}");
            let roots = json!({ "roots": [] });
            client
                .peer
                .send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": roots }))
                .await;
            client.until_answered(id).await;
        }
    }
}
