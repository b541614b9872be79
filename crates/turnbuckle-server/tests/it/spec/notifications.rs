//! Notifications: changes, log messages, progress.

use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Prompt, Resource, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{Peer, modern},
    spec::revision_client::{EVERY, MODERN, RevisionClient},
};

const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

fn server() -> Server {
    let log = Tool::new("log", async |cx: Context| {
        for level in LEVELS {
            let level: LogLevel = level.parse().unwrap();
            cx.log(level, "x").await;
        }
        Ok("logged".to_owned())
    });
    let work = Tool::new("work", async |cx: Context| {
        cx.progress_message(1, None, "reading").await;
        cx.progress_message(2, Some(2.0), "writing").await;
        Ok("worked".to_owned())
    });
    Server::new("notices", "1")
        .tool(log)
        .tool(work)
        .prompt(Prompt::new("p", async || Ok("hi")))
        .resource(Resource::text("note://a", "a", "A"))
}

#[tokio::test(start_paused = true)]
async fn every_subscriber_is_notified_of_a_changed_list() {
    req!(
        "tools.list-changed.send",
        "tools.list-changed.send-modern",
        "resources.list-changed.send",
        "prompts.list-changed.send",
        "prompts.list-changed.send-modern",
        "caching.notify.both"
    );
    for revision in EVERY {
        let server = server();
        let mut client = RevisionClient::new(revision, server.clone()).await;
        if client.is_modern() {
            let filter = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            });
            client
                .request("subscriptions/listen", json!({ "notifications": filter }))
                .await;
            client.peer.next().await;
            let list = client.result("tools/list", json!({})).await;
            assert!(list["ttlMs"].is_u64(), "in addition to the cache time");
        } else {
            client.call("ping", json!({})).await;
        }

        server.tools_changed();
        server.prompts_changed();
        server.resources_changed();

        for kind in ["tools", "prompts", "resources"] {
            let message = client.peer.next().await;
            let expected = format!("notifications/{kind}/list_changed");
            assert_eq!(message["method"], expected, "{revision}");
        }
        client.peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_receives_resource_updates_only_on_its_subscription() {
    req!("resources.subscribe.modern");
    let server = server();
    let mut client = RevisionClient::new(MODERN, server.clone()).await;
    server.resource_updated("note://a");
    client.peer.expect_no_message().await;
    let mut ids = Vec::new();
    for filter in [
        json!({ "resourceSubscriptions": ["note://a"] }),
        json!({ "resourceSubscriptions": ["note://b"] }),
        json!({ "resourcesListChanged": true }),
        json!({}),
    ] {
        let listen = json!({ "notifications": filter });
        ids.push(client.request("subscriptions/listen", listen).await);
        client.peer.next().await;
    }

    server.resource_updated("note://a/part");
    server.resource_updated("note://ab");

    let received = client.peer.next().await;
    assert_eq!(received["method"], "notifications/resources/updated");
    assert_eq!(received["params"]["uri"], "note://a/part");
    let id = &received["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*id, ids[0]);
    client.peer.expect_no_message().await;
}

/// The levels of the log messages of a call, with the minimum `level`.
async fn heard(client: &mut RevisionClient, level: &str) -> Vec<String> {
    let mut params = json!({ "name": "log" });
    if client.is_modern() {
        params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": level });
    } else {
        client
            .result("logging/setLevel", json!({ "level": level }))
            .await;
    }
    let id = client.request("tools/call", params).await;
    let mut messages = client.until_answered(id).await;
    messages.pop();
    messages
        .iter()
        .map(|message| message["params"]["level"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn there_are_exactly_eight_log_levels() {
    req!("logging.levels");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for (at, level) in LEVELS.iter().enumerate() {
            assert_eq!(heard(&mut client, level).await, &LEVELS[at..], "{revision}");
        }
        for level in [
            json!("Info"),
            json!("warn"),
            json!("trace"),
            json!(""),
            json!(3),
            json!(null),
        ] {
            let code = if client.is_modern() {
                let meta = json!({ "io.modelcontextprotocol/logLevel": level });
                if level.is_null() {
                    continue;
                }
                client.code("tools/list", json!({ "_meta": meta })).await
            } else {
                client
                    .code("logging/setLevel", json!({ "level": level }))
                    .await
            };
            assert_eq!(code, -32602, "{revision} {level}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_has_a_message_and_total_where_available() {
    req!("progress.message", "progress.receiver-options");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let params = json!({ "name": "work", "_meta": { "progressToken": "t" } });

        let id = client.request("tools/call", params).await;
        let messages = client.until_answered(id).await;

        assert_eq!(messages.len(), 3, "{revision}");
        let received = |at: usize, member: &str| messages[at]["params"].get(member).cloned();
        let message = |text: &str| (revision >= "2025-03-26").then(|| json!(text));
        assert_eq!(received(0, "message"), message("reading"), "{revision}");
        assert_eq!(received(1, "message"), message("writing"), "{revision}");
        assert_eq!(received(0, "total"), None);
        assert_eq!(
            received(1, "total").and_then(|total| total.as_f64()),
            Some(2.0)
        );
        assert_eq!(received(0, "progressToken"), Some(json!("t")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_in_the_revision_that_was_negotiated() {
    req!(
        "lifecycle.operation.version-must",
        "lifecycle.operation.version-should"
    );
    let tool = || Tool::new("t", async || Ok(vec![1])).title("T").read_only();
    for revision in &EVERY[..5] {
        let mut client = RevisionClient::new(revision, Server::new("s", "1").tool(tool())).await;
        for _ in 0..2 {
            let listed = client.result("tools/list", json!({})).await["tools"][0].clone();
            let called = client.tool("t", json!({})).await;

            assert_eq!(listed.get("title").is_some(), *revision >= "2025-06-18");
            assert_eq!(
                listed.get("annotations").is_some(),
                *revision >= "2025-03-26"
            );
            assert_eq!(
                listed.get("outputSchema"),
                None,
                "its root is not an object"
            );
            assert_eq!(called.get("resultType"), None);
            assert_eq!(called.get("_meta"), None);

            // A request of the other era does not change that.
            let own = client.peer.call_modern("tools/list", json!({})).await;
            assert!(own["result"]["tools"][0]["outputSchema"].is_object());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_without_a_message() {
    req!("lifecycle.shutdown.no-message");
    for revision in &EVERY[..5] {
        let mut client = RevisionClient::new(revision, server()).await;
        for method in ["shutdown", "exit"] {
            assert_eq!(
                client.code(method, json!({})).await,
                -32601,
                "{revision} {method}"
            );
        }
        assert_eq!(client.peer.finish().await, [] as [Value; 0], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_carries_no_messages_of_requests() {
    req!("subscriptions.no-request-scoped");
    let mut peer = Peer::new(server());
    let listen = modern(json!({ "notifications": { "toolsListChanged": true } }));
    peer.request("subscriptions/listen", listen).await;
    peer.next().await;
    for name in ["log", "work"] {
        let mut params = modern(json!({ "name": name }));
        params["_meta"]["progressToken"] = json!(1);
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        let id = peer.request("tools/call", params).await;
        loop {
            let message = peer.next().await;
            if message["id"] == id {
                break;
            }
            let meta = message["params"].get("_meta");
            assert_eq!(meta, None, "{message} names no subscription");
        }
    }
}
