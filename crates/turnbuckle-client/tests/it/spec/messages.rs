//! Rules for all messages that a client sends.

use std::{collections::HashSet, future::IntoFuture};

use serde_json::{Value, json};
use turnbuckle_client::{Client, Roots};
use turnbuckle_protocol::types::{CompleteParams, CompletionReference, LogLevel};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, LEGACY, MODERN, MockServer};

const TEXT: &str = "two\nlines\r\u{2028}and \u{7} more: 世界 🦀";

/// Returns all messages of a client that uses every feature.
pub(crate) async fn conversation(revision: &str) -> MockServer {
    let server = MockServer::for_revision(revision);
    server.respond("tools/list", json!({ "tools": [] }));
    server.respond("resources/list", json!({ "resources": [] }));
    server.respond(
        "resources/templates/list",
        json!({ "resourceTemplates": [] }),
    );
    server.respond("prompts/list", json!({ "prompts": [] }));
    server.respond("resources/read", json!({ "contents": [] }));
    server.respond("prompts/get", json!({ "messages": [] }));
    server.respond(
        "completion/complete",
        json!({ "completion": { "values": [] } }),
    );
    server.respond("logging/setLevel", json!({}));
    server.on("tools/call", |call| match &call["params"]["name"] {
        name if name == "slow" => crate::servers::mock_ndjson::MockReply::Silence,
        _ => json!({ "content": [] }).into(),
    });
    let roots = Roots::new(["file:///home/ada"]).unwrap();
    let client = Client::builder("envelopes\n", "1")
        .roots(roots.clone())
        .log_level(LogLevel::Debug);
    let client = server.connect_with(client).await;

    client.tools().all().await.unwrap();
    client.resources().all().await.unwrap();
    client.resource_templates().all().await.unwrap();
    client.prompts().all().await.unwrap();
    client.read_resource("file:///a%20b").await.unwrap();
    client.get_prompt(TEXT, [("name", TEXT)]).await.unwrap();
    let completion = CompleteParams::new(CompletionReference::prompt("p"), "argument", TEXT);
    client.complete(completion).await.unwrap();
    client
        .call_tool(TEXT, json!({ TEXT: [TEXT, 1.5, null] }))
        .on_progress(|_| {})
        .await
        .unwrap();
    // Two concurrent calls, which are dropped.
    let calls = [(); 2].map(|()| tokio::spawn(client.call_tool("slow", ()).into_future()));
    for _ in &calls {
        let is_slow = |call: &Value| call["params"]["name"] == "slow";
        server.next_matching("a slow call", is_slow).await;
    }
    for call in calls {
        call.abort();
        server.next("notifications/cancelled").await;
    }
    for (method, params) in [
        ("ping", json!({})),
        ("roots/list", json!({})),
        ("sampling/createMessage", json!({})),
        ("no/such\nmethod", json!({ "text": TEXT })),
    ] {
        match revision {
            MODERN => drop(server.request(method, params).await),
            _ => drop(server.call_client(method, params).await),
        }
    }
    if revision != MODERN {
        client.ping().await.unwrap();
        client.set_log_level(LogLevel::Error).await.unwrap();
        roots.add("file:///home/grace").unwrap();
        server.next("notifications/roots/list_changed").await;
    }
    server.expect_no_message().await;
    client.close().await;
    server.client_closed().await;
    server
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

fn is_notification(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_none()
}

fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}

#[tokio::test(start_paused = true)]
async fn every_message_is_one_line_of_json_rpc_in_utf_8() {
    req!(
        "base.jsonrpc.conform",
        "base.jsonrpc.version-field",
        "base.encoding.utf8",
        "base.batch.removed",
        "stdio.framing.newline",
        "stdio.framing.no-embedded",
        "stdio.stdin.only-mcp"
    );
    for revision in EVERY {
        let server = conversation(revision).await;
        let text = String::from_utf8(server.received_bytes()).expect("all of it is UTF-8");

        assert!(text.ends_with('\n'), "also the last message");
        assert!(
            text.contains("世界 🦀"),
            "as UTF-8, not as escapes that stand for it"
        );
        for line in text.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            assert!(message.is_object() && !line.contains('\r'), "{line}");
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            assert!(
                is_request(&message) || is_notification(&message) || is_answer(&message),
                "{line}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_has_a_unique_integer_id() {
    req!(
        "base.request.id-type",
        "base.request.id-not-null",
        "base.request.method-string",
        "base.request.id-unique-session",
        "base.request.id-unique-inflight"
    );
    for revision in EVERY {
        let messages = conversation(revision).await.received();
        let mut ids = HashSet::new();

        for request in messages.iter().filter(|message| is_request(message)) {
            assert!(request["method"].is_string(), "{request}");
            let id = request["id"].as_i64().expect("an integer");
            assert!(ids.insert(id), "{revision}: {request} uses an id again");
        }
        assert!(ids.len() > 8, "{revision}: {}", ids.len());
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_have_a_method_and_no_id() {
    req!("base.notification.no-id", "base.notification.method-string");
    for revision in EVERY {
        let messages = conversation(revision).await.received();
        let notifications: Vec<_> = messages
            .iter()
            .filter(|message| is_notification(message))
            .collect();

        assert!(
            notifications.len() >= 2,
            "{revision}: cancellations at least"
        );
        for message in notifications {
            assert!(
                message["method"]
                    .as_str()
                    .unwrap()
                    .starts_with("notifications/")
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_has_a_result_or_an_error_with_code_and_message() {
    req!(
        "base.response.one-of",
        "base.error.code-message",
        "base.error.code-integer"
    );
    for revision in LEGACY {
        let messages = conversation(revision).await.received();
        let responses: Vec<_> = messages
            .iter()
            .filter(|message| is_answer(message))
            .collect();

        assert_eq!(responses.len(), 4, "{revision}: {responses:?}");
        for response in responses {
            let (result, error) = (response.get("result"), response.get("error"));
            assert!(result.is_some() != error.is_some(), "{response}");
            if let Some(error) = error {
                let code = error["code"].as_i64().expect("an integer");
                assert!(error["message"].is_string(), "{response}");
                assert!(!(-32099..=-32000).contains(&code), "{response}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_requests_and_notifications_but_no_responses() {
    req!(
        "base.client-no-responses",
        "stdio.client.no-responses",
        "transport.binding.directions"
    );

    let messages = conversation(MODERN).await.received();

    assert!(!messages.iter().any(is_answer), "{messages:#?}");
}

#[tokio::test(start_paused = true)]
async fn every_modern_request_has_revision_and_capabilities() {
    req!(
        "base.request.params-required-modern",
        "meta.request.protocol-version",
        "meta.request.client-capabilities",
        "lifecycle.info.shape",
        "transport.custom.preserve-modern"
    );
    let messages = conversation(MODERN).await.received();

    for request in messages.iter().filter(|message| is_request(message)) {
        let meta = &request["params"]["_meta"];
        let of = |key: &str| &meta[format!("io.modelcontextprotocol/{key}")];
        assert_eq!(of("protocolVersion"), MODERN, "{request}");
        assert!(of("clientCapabilities")["roots"].is_object(), "{request}");
        assert_eq!(of("clientInfo")["name"], "envelopes\n", "{request}");
        assert_eq!(of("clientInfo")["version"], "1", "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn empty_capabilities_are_an_object() {
    req!("meta.request.client-capabilities");
    let server = MockServer::modern();
    server.respond("tools/list", json!({ "tools": [] }));
    let client = server.connect().await;

    client.tools().all().await.unwrap();

    let request = server.next("tools/list").await;
    let meta = &request["params"]["_meta"];
    let declared = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert!(declared.is_object(), "{request}");
    for capability in ["roots", "sampling", "elicitation"] {
        assert!(declared.get(capability).is_none(), "{request}");
    }
}
