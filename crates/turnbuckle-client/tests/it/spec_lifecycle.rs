//! The handshake of older revisions, and what both sides may do after it.

use serde_json::json;
use turnbuckle_client::{CallError, Client, ConnectError, Era, LifecycleMode};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, LEGACY, Reply, initialized};

fn old_fashioned() -> turnbuckle_client::ClientBuilder {
    Client::builder("handshake", "1.2").lifecycle_mode(LifecycleMode::Legacy)
}

#[tokio::test(start_paused = true)]
async fn a_handshake_comes_first_and_is_complete_before_anything_else() {
    req!(
        "lifecycle.init.first",
        "lifecycle.init.request",
        "lifecycle.init.client-fields",
        "lifecycle.init.initialized",
        "lifecycle.info.shape",
        "lifecycle.version.client-offers",
        "base.batch.no-initialize",
        "transport.custom.preserve-legacy"
    );
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        server.answer("tools/list", json!({ "tools": [] }));

        let client = server.connect_as(old_fashioned()).await;
        client.tools().all().await.unwrap();

        assert_eq!(
            server.methods(),
            ["initialize", "notifications/initialized", "tools/list"]
        );
        let params = &server.next("initialize").await["params"];
        assert_eq!(params["protocolVersion"], "2025-11-25");
        assert!(params["capabilities"].is_object());
        assert_eq!(params["clientInfo"]["name"], "handshake");
        assert_eq!(params["clientInfo"]["version"], "1.2");
        assert_eq!(client.server().revision.as_str(), revision);
        assert_eq!(client.server().era, Era::Legacy);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_while_the_handshake_waits() {
    req!("lifecycle.init.first");
    let server = FakeServer::legacy("2025-11-25");
    server.hold("initialize");
    let connecting = server.connecting(old_fashioned());
    let asked = server.next("initialize").await;

    server.expect_silence().await;
    server.reply(&asked, initialized("2025-11-25")).await;

    connecting.await.unwrap().unwrap();
    server.next("notifications/initialized").await;
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_nobody_knows_ends_the_connection() {
    // No revision is settled here, so it is the same in all that settle one.
    req!("lifecycle.version.client-disconnect-schema", in: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
    for revision in ["1999-01-01", "2026-07-28", "2099-01-01", ""] {
        let server = FakeServer::legacy(revision);

        let refused = server.connecting(old_fashioned()).await.unwrap();

        match refused {
            Err(ConnectError::NoCommonRevision { server }) => assert_eq!(server, [revision]),
            other => panic!("{other:?}"),
        }
        server.left().await;
        assert_eq!(server.methods(), ["initialize"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_is_never_cancelled() {
    // While it lasts no revision is settled, so it is the same in all of them.
    req!("lifecycle.init.no-cancel", in: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
    let server = FakeServer::legacy("2025-11-25");
    server.hold("initialize");

    let timed_out = server.connecting(old_fashioned()).await.unwrap();

    assert!(
        matches!(timed_out, Err(ConnectError::TimedOut { .. })),
        "{timed_out:?}"
    );
    server.left().await;
    assert_eq!(server.methods(), ["initialize"]);

    let server = FakeServer::legacy("2025-11-25");
    server.hold("initialize");
    let connecting = server.connecting(old_fashioned());
    server.next("initialize").await;
    connecting.abort();
    server.left().await;
    assert_eq!(server.methods(), ["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_does_not_declare_is_not_asked_for() {
    req!(
        "lifecycle.operation.capabilities-must",
        "lifecycle.capabilities.advertise"
    );
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let server = FakeServer::speaking(revision);
        server.on("initialize", {
            let mut result = initialized(revision);
            result["capabilities"] = json!({});
            move |_| result.clone()
        });
        server.on("server/discover", {
            let mut result = crate::fake_lines::discovered();
            result["capabilities"] = json!({});
            let legacy = revision != "2026-07-28";
            move |_| {
                if legacy {
                    Reply::error(-32601, "what?")
                } else {
                    result.clone().into()
                }
            }
        });
        let client = server.connect().await;
        let asked = server.received().len();

        let refused = [
            client.tools().all().await.err(),
            client.resources().all().await.err(),
            client.resource_templates().all().await.err(),
            client.prompts().all().await.err(),
            client.call_tool("t", json!({})).await.err(),
            client.read_resource("file:///a").await.err(),
            client.get_prompt("p", [("a", "b")]).await.err(),
        ];
        let only_legacy = [
            client.subscribe("file:///a").await.err(),
            client.set_log_level(LogLevel::Error).await.err(),
        ];

        for error in refused
            .into_iter()
            .chain(only_legacy.into_iter().filter(|_| revision != "2026-07-28"))
        {
            assert!(
                matches!(error, Some(CallError::CapabilityNotAdvertised { .. })),
                "{revision}: {error:?}"
            );
        }
        assert_eq!(
            server.received().len(),
            asked,
            "{revision}: nothing was asked"
        );
    }
}

/// A server may ask whether the client is there before the handshake is over.
#[tokio::test(start_paused = true)]
async fn a_ping_during_the_handshake_is_answered() {
    req!("ping.respond");
    let server = FakeServer::legacy("2025-11-25");
    server.hold("initialize");
    let connecting = server.connecting(old_fashioned());
    let asked = server.next("initialize").await;

    let pong = server.ask("ping", json!({})).await;
    server.reply(&asked, initialized("2025-11-25")).await;

    assert_eq!(pong["result"], json!({}));
    connecting.await.unwrap().unwrap();
}

/// The first question of many servers follows the handshake at once.
#[tokio::test(start_paused = true)]
async fn a_question_right_after_the_handshake_is_answered() {
    req!("ping.respond");
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        server.on("initialize", move |asked| {
            let answer =
                json!({ "jsonrpc": "2.0", "id": asked["id"], "result": initialized(revision) });
            let ping = json!({ "jsonrpc": "2.0", "id": "at once", "method": "ping" });
            Reply::Raw(format!("{answer}\n{ping}"))
        });

        let _client = server.connect_as(old_fashioned()).await;

        assert_eq!(server.next_answer("at once").await["result"], json!({}));
    }
}
