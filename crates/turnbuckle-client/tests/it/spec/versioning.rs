//! Negotiation of a revision over newline-delimited JSON.

use serde_json::json;
use turnbuckle_client::{Client, ClientBuilder, ConnectError, Era, LifecycleMode};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{
    MODERN, MockReply, MockServer, discover_result, initialize_result,
};

fn client() -> ClientBuilder {
    Client::builder("prober", "1")
}

/// A legacy server with this response to the probe.
fn legacy_server_with_probe_response(
    respond: impl Fn() -> MockReply + Send + 'static,
) -> MockServer {
    let server = MockServer::legacy("2025-11-25");
    server.on("server/discover", move |_| respond());
    server
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_gets_one_probe_and_no_handshake() {
    let server = MockServer::modern();

    let client = server.connect().await;

    assert_eq!(server.methods(), ["server/discover"]);
    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(client.server().revision.as_str(), MODERN);
}

#[tokio::test(start_paused = true)]
async fn any_error_of_a_legacy_server_leads_to_a_handshake() {
    // A requirement of 2026-07-28, although the negotiated revision is older.
    req!("versioning.stdio.no-single-code", in: ["2026-07-28"]);
    for code in [
        -32700, -32600, -32601, -32602, -32603, -32000, -32001, -1, 0, 1, 404,
    ] {
        let server = legacy_server_with_probe_response(move || MockReply::error(code, "what?"));

        let client = server.connect_with(client()).await;

        assert_eq!(client.server().era, Era::Legacy, "{code}");
        let methods = server.methods();
        assert_eq!(methods[..2], ["server/discover", "initialize"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_invalid_responses_indicate_a_legacy_server() {
    // A requirement of 2026-07-28, although the negotiated revision is older.
    req!("versioning.stdio.no-single-code", in: ["2026-07-28"]);
    for reply in [
        None,
        Some(json!({})),
        Some(json!({ "tools": [] })),
        Some(json!("what?")),
    ] {
        let server = legacy_server_with_probe_response(move || match &reply {
            Some(result) => MockReply::Exactly(result.clone()),
            None => MockReply::Silence,
        });

        let client = server.connect_with(client()).await;

        assert_eq!(client.server().era, Era::Legacy);
        let (probe, initialize) = (
            server.next("server/discover").await,
            server.next("initialize").await,
        );
        assert_ne!(
            probe["id"], initialize["id"],
            "the response may still arrive"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_response_to_the_probe_is_ignored() {
    let server = legacy_server_with_probe_response(|| MockReply::Silence);
    server.respond("tools/list", json!({ "tools": [] }));
    let client = server.connect_with(client()).await;
    let probe = server.next("server/discover").await;

    server.reply(&probe, discover_result()).await;

    client.tools().all().await.unwrap();
    assert_eq!(client.server().era, Era::Legacy);
}

fn unsupported(supported: &[&str]) -> MockReply {
    MockReply::Error(json!({
        "code": -32022, "message": "unsupported",
        "data": { "supported": supported, "requested": MODERN },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_version_error_leads_to_a_revision_that_it_names() {
    req!("versioning.stdio.probe-modern-error");
    let server = MockServer::modern();
    let mut is_rejected = false;
    server.on("server/discover", move |_| {
        if !std::mem::replace(&mut is_rejected, true) {
            unsupported(&[MODERN])
        } else {
            discover_result().into()
        }
    });

    let client = server.connect_with(client()).await;

    assert_eq!(server.methods(), ["server/discover", "server/discover"]);
    assert_eq!(client.server().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_version_error_without_a_common_revision_ends_the_connection() {
    req!("versioning.stdio.probe-modern-error");
    for (reply, named) in [
        (unsupported(&["2099-01-01"]), vec!["2099-01-01"]),
        (unsupported(&[]), vec![]),
    ] {
        let server = MockServer::modern();
        let mut reply = Some(reply);
        server.on("server/discover", move |_| {
            reply.take().unwrap_or(MockReply::Silence)
        });

        let error = server.start_connect(client()).await.unwrap().unwrap_err();

        assert!(
            matches!(&error, ConnectError::NoCommonRevision { server } if *server == named),
            "{error:?}"
        );
        assert_eq!(server.count("initialize"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn other_modern_errors_are_returned() {
    req!("versioning.stdio.probe-modern-error");
    for code in [-32020, -32021] {
        let server = MockServer::modern();
        server.reject("server/discover", code, "no");

        let error = server.start_connect(client()).await.unwrap().unwrap_err();

        assert!(
            matches!(&error, ConnectError::Rejected { source, .. } if source.code == code),
            "{error:?}"
        );
        assert_eq!(server.count("initialize"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_only_older_revisions_gets_a_handshake_with_the_newest() {
    for reply in [
        unsupported(&["2024-11-05", "2025-06-18"]),
        MockReply::Result(json!({
            "supportedVersions": ["2024-11-05", "2025-06-18"], "capabilities": {},
            "ttlMs": 0, "cacheScope": "private", "resultType": "complete",
        })),
    ] {
        let server = MockServer::legacy("2025-06-18");
        let mut reply = Some(reply);
        server.on("server/discover", move |_| {
            reply.take().unwrap_or(MockReply::Silence)
        });

        let client = server.connect_with(client()).await;

        assert_eq!(client.server().revision.as_str(), "2025-06-18");
        let initialize = server.next("initialize").await;
        assert_eq!(initialize["params"]["protocolVersion"], "2025-06-18");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_handshake_reports_the_revisions_of_the_server() {
    let server = MockServer::modern();
    server.on("initialize", |_| unsupported(&[MODERN]));
    let legacy = client().lifecycle_mode(LifecycleMode::Legacy);

    let error = server.start_connect(legacy).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, ConnectError::NoCommonRevision { server } if *server == [MODERN]),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_fixed_era_does_not_try_the_other() {
    let server = MockServer::legacy("2025-11-25");
    let modern = client().lifecycle_mode(LifecycleMode::Modern);
    let error = server.start_connect(modern).await.unwrap().unwrap_err();
    assert!(
        matches!(error, ConnectError::NoCommonRevision { .. }),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["server/discover"]);

    let server = MockServer::modern();
    server.respond("initialize", initialize_result("2025-11-25"));
    let legacy = client().lifecycle_mode(LifecycleMode::Legacy);
    server.connect_with(legacy).await;
    assert_eq!(server.count("server/discover"), 0);
}
