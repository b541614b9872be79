//! The handshake of the legacy era.

use serde_json::json;
use turnbuckle_client::{CallError, Client, ConnectError, Era, LifecycleMode};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{LEGACY, MockReply, MockServer, initialize_result};

fn legacy_builder() -> turnbuckle_client::ClientBuilder {
    Client::builder("handshake", "1.2").lifecycle_mode(LifecycleMode::Legacy)
}

#[tokio::test(start_paused = true)]
async fn the_handshake_completes_before_other_requests() {
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
        let server = MockServer::legacy(revision);
        server.respond("tools/list", json!({ "tools": [] }));

        let client = server.connect_with(legacy_builder()).await;
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
async fn nothing_is_sent_during_the_handshake() {
    req!("lifecycle.init.first");
    let server = MockServer::legacy("2025-11-25");
    server.withhold("initialize");
    let start_connect = server.start_connect(legacy_builder());
    let requested = server.next("initialize").await;

    server.expect_no_message().await;
    server
        .reply(&requested, initialize_result("2025-11-25"))
        .await;

    start_connect.await.unwrap().unwrap();
    server.next("notifications/initialized").await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_revision_ends_the_connection() {
    // No revision is negotiated here, so the test covers all revisions.
    req!("lifecycle.version.client-disconnect-schema", in: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
    for revision in ["1999-01-01", "2026-07-28", "2099-01-01", ""] {
        let server = MockServer::legacy(revision);

        let rejected = server.start_connect(legacy_builder()).await.unwrap();

        match rejected {
            Err(ConnectError::NoCommonRevision { server }) => assert_eq!(server, [revision]),
            other => panic!("{other:?}"),
        }
        server.client_closed().await;
        assert_eq!(server.methods(), ["initialize"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_is_never_cancelled() {
    // No revision is negotiated yet, so the test covers all revisions.
    req!("lifecycle.init.no-cancel", in: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
    let server = MockServer::legacy("2025-11-25");
    server.withhold("initialize");

    let timed_out = server.start_connect(legacy_builder()).await.unwrap();

    assert!(
        matches!(timed_out, Err(ConnectError::TimedOut { .. })),
        "{timed_out:?}"
    );
    server.client_closed().await;
    assert_eq!(server.methods(), ["initialize"]);

    let server = MockServer::legacy("2025-11-25");
    server.withhold("initialize");
    let start_connect = server.start_connect(legacy_builder());
    server.next("initialize").await;
    start_connect.abort();
    server.client_closed().await;
    assert_eq!(server.methods(), ["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn undeclared_capabilities_are_not_used() {
    req!(
        "lifecycle.operation.capabilities-must",
        "lifecycle.capabilities.advertise"
    );
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let server = MockServer::for_revision(revision);
        server.on("initialize", {
            let mut result = initialize_result(revision);
            result["capabilities"] = json!({});
            move |_| result.clone()
        });
        server.on("server/discover", {
            let mut result = crate::servers::mock_ndjson::discover_result();
            result["capabilities"] = json!({});
            let legacy = revision != "2026-07-28";
            move |_| {
                if legacy {
                    MockReply::error(-32601, "what?")
                } else {
                    result.clone().into()
                }
            }
        });
        let client = server.connect().await;
        let before = server.received().len();

        let rejected = [
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

        for error in rejected
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
            before,
            "{revision}: nothing was sent"
        );
    }
}

/// A server may send `ping` before the handshake is done.
#[tokio::test(start_paused = true)]
async fn a_ping_during_the_handshake_gets_a_response() {
    req!("ping.respond");
    let server = MockServer::legacy("2025-11-25");
    server.withhold("initialize");
    let start_connect = server.start_connect(legacy_builder());
    let requested = server.next("initialize").await;

    let pong = server.call_client("ping", json!({})).await;
    server
        .reply(&requested, initialize_result("2025-11-25"))
        .await;

    assert_eq!(pong["result"], json!({}));
    start_connect.await.unwrap().unwrap();
}

/// Many servers send their first request right after the handshake.
#[tokio::test(start_paused = true)]
async fn a_server_request_right_after_the_handshake_gets_a_response() {
    req!("ping.respond");
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        server.on("initialize", move |requested| {
            let response =
                json!({ "jsonrpc": "2.0", "id": requested["id"], "result": initialize_result(revision) });
            let ping = json!({ "jsonrpc": "2.0", "id": "at once", "method": "ping" });
            MockReply::Raw(format!("{response}\n{ping}"))
        });

        let _client = server.connect_with(legacy_builder()).await;

        assert_eq!(server.next_response("at once").await["result"], json!({}));
    }
}
