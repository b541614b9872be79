//! How a client finds out what a server on lines speaks.

use serde_json::json;
use turnbuckle_client::{Client, ClientBuilder, ConnectError, Era, LifecycleMode};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, MODERN, Reply, discovered, initialized};

fn client() -> ClientBuilder {
    Client::builder("prober", "1")
}

/// A server with a handshake that answers the first question in its own way.
fn legacy_that(answers: impl Fn() -> Reply + Send + 'static) -> FakeServer {
    let server = FakeServer::legacy("2025-11-25");
    server.on("server/discover", move |_| answers());
    server
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_asked_once_and_never_for_a_handshake() {
    let server = FakeServer::modern();

    let client = server.connect().await;

    assert_eq!(server.methods(), ["server/discover"]);
    assert_eq!(client.server().era, Era::Modern);
    assert_eq!(client.server().revision.as_str(), MODERN);
}

#[tokio::test(start_paused = true)]
async fn whatever_error_an_old_server_has_a_handshake_follows() {
    // What a client of 2026-07-28 does on its way to an older revision.
    req!("versioning.stdio.no-single-code", in: ["2026-07-28"]);
    for code in [
        -32700, -32600, -32601, -32602, -32603, -32000, -32001, -1, 0, 1, 404,
    ] {
        let server = legacy_that(move || Reply::error(code, "what?"));

        let client = server.connect_as(client()).await;

        assert_eq!(client.server().era, Era::Legacy, "{code}");
        let methods = server.methods();
        assert_eq!(methods[..2], ["server/discover", "initialize"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_and_answers_that_are_none_are_signs_of_an_old_server() {
    // What a client of 2026-07-28 does on its way to an older revision.
    req!("versioning.stdio.no-single-code", in: ["2026-07-28"]);
    for reply in [
        None,
        Some(json!({})),
        Some(json!({ "tools": [] })),
        Some(json!("what?")),
    ] {
        let server = legacy_that(move || match &reply {
            Some(result) => Reply::Exactly(result.clone()),
            None => Reply::Silence,
        });

        let client = server.connect_as(client()).await;

        assert_eq!(client.server().era, Era::Legacy);
        let (probe, initialize) = (
            server.next("server/discover").await,
            server.next("initialize").await,
        );
        assert_ne!(
            probe["id"], initialize["id"],
            "an answer may still come late"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_first_question_is_ignored() {
    let server = legacy_that(|| Reply::Silence);
    server.answer("tools/list", json!({ "tools": [] }));
    let client = server.connect_as(client()).await;
    let probe = server.next("server/discover").await;

    server.reply(&probe, discovered()).await;

    client.tools().all().await.unwrap();
    assert_eq!(client.server().era, Era::Legacy);
}

fn unsupported(supported: &[&str]) -> Reply {
    Reply::Error(json!({
        "code": -32022, "message": "unsupported",
        "data": { "supported": supported, "requested": MODERN },
    }))
}

#[tokio::test(start_paused = true)]
async fn a_modern_refusal_leads_to_a_version_that_it_names() {
    req!("versioning.stdio.probe-modern-error");
    let server = FakeServer::modern();
    let mut refused = false;
    server.on("server/discover", move |_| {
        match std::mem::replace(&mut refused, true) {
            false => unsupported(&[MODERN]),
            true => discovered().into(),
        }
    });

    let client = server.connect_as(client()).await;

    assert_eq!(server.methods(), ["server/discover", "server/discover"]);
    assert_eq!(client.server().era, Era::Modern);
}

#[tokio::test(start_paused = true)]
async fn a_modern_refusal_without_a_common_version_is_the_end() {
    req!("versioning.stdio.probe-modern-error");
    for (reply, named) in [
        (unsupported(&["2099-01-01"]), vec!["2099-01-01"]),
        (unsupported(&[]), vec![]),
    ] {
        let server = FakeServer::modern();
        let mut reply = Some(reply);
        server.on("server/discover", move |_| {
            reply.take().unwrap_or(Reply::Silence)
        });

        let error = server.connecting(client()).await.unwrap().unwrap_err();

        assert!(
            matches!(&error, ConnectError::NoCommonRevision { server } if *server == named),
            "{error:?}"
        );
        assert_eq!(server.count("initialize"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn other_modern_errors_are_told_and_not_worked_around() {
    req!("versioning.stdio.probe-modern-error");
    for code in [-32020, -32021] {
        let server = FakeServer::modern();
        server.refuse("server/discover", code, "no");

        let error = server.connecting(client()).await.unwrap().unwrap_err();

        assert!(
            matches!(&error, ConnectError::Rejected { source, .. } if source.code == code),
            "{error:?}"
        );
        assert_eq!(server.count("initialize"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_only_older_revisions_gets_a_handshake_with_the_newest_of_them() {
    for reply in [
        unsupported(&["2024-11-05", "2025-06-18"]),
        Reply::Result(json!({
            "supportedVersions": ["2024-11-05", "2025-06-18"], "capabilities": {},
            "ttlMs": 0, "cacheScope": "private", "resultType": "complete",
        })),
    ] {
        let server = FakeServer::legacy("2025-06-18");
        let mut reply = Some(reply);
        server.on("server/discover", move |_| {
            reply.take().unwrap_or(Reply::Silence)
        });

        let client = server.connect_as(client()).await;

        assert_eq!(client.server().revision.as_str(), "2025-06-18");
        let initialize = server.next("initialize").await;
        assert_eq!(initialize["params"]["protocolVersion"], "2025-06-18");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_refused_by_its_version_says_which_ones_there_are() {
    let server = FakeServer::modern();
    server.on("initialize", |_| unsupported(&[MODERN]));
    let legacy = client().lifecycle_mode(LifecycleMode::Legacy);

    let error = server.connecting(legacy).await.unwrap().unwrap_err();

    assert!(
        matches!(&error, ConnectError::NoCommonRevision { server } if *server == [MODERN]),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["initialize"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_one_era_does_not_try_the_other() {
    let server = FakeServer::legacy("2025-11-25");
    let modern = client().lifecycle_mode(LifecycleMode::Modern);
    let error = server.connecting(modern).await.unwrap().unwrap_err();
    assert!(
        matches!(error, ConnectError::NoCommonRevision { .. }),
        "{error:?}"
    );
    assert_eq!(server.methods(), ["server/discover"]);

    let server = FakeServer::modern();
    server.answer("initialize", initialized("2025-11-25"));
    let legacy = client().lifecycle_mode(LifecycleMode::Legacy);
    server.connect_as(legacy).await;
    assert_eq!(server.count("server/discover"), 0);
}
