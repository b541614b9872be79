//! Which era a server is of, where its first answers could mislead.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{
    Client, ClientBuilder, ConnectError, Era, LifecycleCache, LifecycleMode, TransportError,
};
use turnbuckle_spec_coverage::req;

use crate::{
    fake_http::{Reply, Seen},
    fake_lines::{self, FakeServer, discovered, initialized},
    http_peer::{LATEST_LEGACY, MODERN, at, posted, server},
};

/// The name under which the fake on HTTP is remembered.
const ORIGIN: &str = "http://fake.test";

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

fn on(method: &'static str, reply: impl Fn(&Seen) -> Reply) -> impl Fn(&Seen) -> Option<Reply> {
    move |seen| (seen.rpc() == method).then(|| reply(seen))
}

#[tokio::test(start_paused = true)]
async fn who_wants_only_the_newest_revision_shakes_no_hands_with_who_names_older_ones() {
    let server = FakeServer::modern();
    let mut older = discovered();
    older["supportedVersions"] = json!(["2025-06-18"]);
    server.answer("server/discover", older);
    server.answer("initialize", initialized("2025-06-18"));

    let connected = server
        .connecting(client().lifecycle_mode(LifecycleMode::Modern))
        .await;

    let error = connected.unwrap().unwrap_err();
    assert!(
        matches!(&error, ConnectError::NoCommonRevision { server } if *server == ["2025-06-18"]),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_no_statement_about_revisions() {
    for status in [400, 404, 405] {
        let fake = server(
            MODERN,
            on("server/discover", move |_| Reply::status(status)),
        );

        let connected = client()
            .lifecycle_mode(LifecycleMode::Modern)
            .connect(at(&fake))
            .await;

        let error = connected.unwrap_err();
        assert!(
            matches!(
                &error,
                ConnectError::Unreachable(TransportError::ErrorResponse(refusal))
                    if refusal.status.as_u16() == status
            ),
            "{error:?}"
        );
        assert!(posted(&fake, "initialize").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn who_chose_an_era_teaches_nobody_else_to() {
    let fake = server(
        MODERN,
        on("initialize", |seen| {
            Reply::result(seen, &initialized(LATEST_LEGACY))
        }),
    );
    let eras = LifecycleCache::new();
    let older = client()
        .lifecycle_mode(LifecycleMode::Legacy)
        .lifecycle_cache(eras.clone());
    let older = older.connect(at(&fake)).await.unwrap();
    assert_eq!(older.server().era, Era::Legacy);

    let any = client()
        .lifecycle_cache(eras.clone())
        .connect(at(&fake))
        .await;

    assert_eq!(any.unwrap().server().era, Era::Modern);
    assert_eq!(eras.get(ORIGIN), Some(Era::Modern));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_memory_is_corrected_however_the_handshake_is_refused() {
    req!("versioning.era.cache");
    for status in [400, 404, 405] {
        let fake = server(MODERN, on("initialize", move |_| Reply::status(status)));
        let eras = LifecycleCache::new();
        eras.set(ORIGIN, Era::Legacy);

        let connected = client()
            .lifecycle_cache(eras.clone())
            .connect(at(&fake))
            .await;

        assert_eq!(connected.unwrap().server().era, Era::Modern, "{status}");
        assert_eq!(eras.get(ORIGIN), Some(Era::Modern));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_took_its_time_to_start_is_asked_again() {
    let server = FakeServer::modern();
    let asked = AtomicUsize::new(0);
    server.on("server/discover", move |_| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => fake_lines::Reply::Silence,
            _ => fake_lines::Reply::Result(discovered()),
        }
    });
    server.refuse("initialize", -32600, "this server speaks 2026-07-28");

    let client = server.connect().await;

    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(
        server.methods(),
        ["server/discover", "initialize", "server/discover"]
    );
}

#[tokio::test(start_paused = true)]
async fn where_silence_says_nothing_patience_counts() {
    let slow = |seen: &Seen| {
        let id: Value = seen.json()["id"].clone();
        Reply::events(move |events| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let mut result = discovered();
            result["resultType"] = json!("complete");
            events.message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        })
    };
    let fake = server(MODERN, on("server/discover", slow));
    let connected = client().connect(at(&fake)).await;
    assert_eq!(connected.unwrap().server().era, Era::Modern);

    let server = FakeServer::modern();
    server.hold("server/discover");
    let connecting = server.connecting(client().lifecycle_mode(LifecycleMode::Modern));
    let question = server.next("server/discover").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.reply(&question, discovered()).await;
    connecting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_to_who_has_no_other_question_is_said_to_be_silent() {
    let server = FakeServer::mute();

    let connected = server
        .connecting(client().lifecycle_mode(LifecycleMode::Modern))
        .await;

    let error = connected.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
}
