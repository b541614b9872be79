//! Era detection with misleading first responses.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{
    Client, ClientBuilder, ConnectError, Era, LifecycleCache, LifecycleMode, TransportError,
};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockResponse, RecordedRequest},
    mock_mcp_http::{LATEST_LEGACY, MODERN, posted_messages, server, target_of},
    mock_ndjson::{self, MockServer, discover_result, initialize_result},
};

/// The key of the mock HTTP server in the lifecycle cache.
const ORIGIN: &str = "http://fake.test";

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

fn on(
    method: &'static str,
    reply: impl Fn(&RecordedRequest) -> MockResponse,
) -> impl Fn(&RecordedRequest) -> Option<MockResponse> {
    move |request| (request.rpc() == method).then(|| reply(request))
}

#[tokio::test(start_paused = true)]
async fn modern_mode_does_not_initialize_a_server_that_names_older_revisions() {
    let server = MockServer::modern();
    let mut older = discover_result();
    older["supportedVersions"] = json!(["2025-06-18"]);
    server.respond("server/discover", older);
    server.respond("initialize", initialize_result("2025-06-18"));

    let connected = server
        .start_connect(client().lifecycle_mode(LifecycleMode::Modern))
        .await;

    let error = connected.unwrap().unwrap_err();
    assert!(
        matches!(&error, ConnectError::NoCommonRevision { server } if *server == ["2025-06-18"]),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn an_http_status_alone_does_not_select_the_era() {
    for status in [400, 404, 405] {
        let mock = server(
            MODERN,
            on("server/discover", move |_| MockResponse::status(status)),
        );

        let connected = client()
            .lifecycle_mode(LifecycleMode::Modern)
            .connect(target_of(&mock))
            .await;

        let error = connected.unwrap_err();
        assert!(
            matches!(
                &error,
                ConnectError::Unreachable(TransportError::ErrorResponse(rejection))
                    if rejection.status.as_u16() == status
            ),
            "{error:?}"
        );
        assert!(posted_messages(&mock, "initialize").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_era_is_not_cached() {
    let mock = server(
        MODERN,
        on("initialize", |request| {
            MockResponse::result(request, &initialize_result(LATEST_LEGACY))
        }),
    );
    let eras = LifecycleCache::new();
    let older = client()
        .lifecycle_mode(LifecycleMode::Legacy)
        .lifecycle_cache(eras.clone());
    let older = older.connect(target_of(&mock)).await.unwrap();
    assert_eq!(older.server().era, Era::Legacy);

    let any = client()
        .lifecycle_cache(eras.clone())
        .connect(target_of(&mock))
        .await;

    assert_eq!(any.unwrap().server().era, Era::Modern);
    assert_eq!(eras.get(ORIGIN), Some(Era::Modern));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_cached_era_is_corrected_after_any_rejection() {
    req!("versioning.era.cache");
    for status in [400, 404, 405] {
        let mock = server(
            MODERN,
            on("initialize", move |_| MockResponse::status(status)),
        );
        let eras = LifecycleCache::new();
        eras.set(ORIGIN, Era::Legacy);

        let connected = client()
            .lifecycle_cache(eras.clone())
            .connect(target_of(&mock))
            .await;

        assert_eq!(connected.unwrap().server().era, Era::Modern, "{status}");
        assert_eq!(eras.get(ORIGIN), Some(Era::Modern));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_probed_again() {
    let server = MockServer::modern();
    let probes = AtomicUsize::new(0);
    server.on("server/discover", move |_| {
        match probes.fetch_add(1, Ordering::Relaxed) {
            0 => mock_ndjson::MockReply::Silence,
            _ => mock_ndjson::MockReply::Result(discover_result()),
        }
    });
    server.reject("initialize", -32600, "this server speaks 2026-07-28");

    let client = server.connect().await;

    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(
        server.methods(),
        ["server/discover", "initialize", "server/discover"]
    );
}

#[tokio::test(start_paused = true)]
async fn on_http_a_silent_probe_fails_after_the_idle_timeout() {
    let slow = |request: &RecordedRequest| {
        let id: Value = request.json()["id"].clone();
        MockResponse::events(move |events| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let mut result = discover_result();
            result["resultType"] = json!("complete");
            events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        })
    };
    let mock = server(MODERN, on("server/discover", slow));
    let connected = client().connect(target_of(&mock)).await;
    assert_eq!(connected.unwrap().server().era, Era::Modern);

    let server = MockServer::modern();
    server.withhold("server/discover");
    let start_connect = server.start_connect(client().lifecycle_mode(LifecycleMode::Modern));
    let input_request = server.next("server/discover").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.reply(&input_request, discover_result()).await;
    start_connect.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn in_modern_mode_a_silent_server_times_out() {
    let server = MockServer::without_responses();

    let connected = server
        .start_connect(client().lifecycle_mode(LifecycleMode::Modern))
        .await;

    let error = connected.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
}
