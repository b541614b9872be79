//! Sessions: `initialize`, requests, expiry and deletion.

use std::time::Duration;

use http::Method;
use serde_json::json;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    ServedEras,
    http::{Http, SessionMode},
};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{Store, StoreLimits};

use crate::http::test_client::{HttpTestClient, SESSIONS, initialize, server};

#[tokio::test]
async fn tools_are_called_in_a_session_after_initialize() {
    req!(
        "http.session.assign",
        "http.session.id-charset",
        "http.post.request-content-type",
        "http.sse.event-format",
        "versioning.dual.server-select-legacy"
    );

    for revision in SESSIONS {
        let without = HttpTestClient::new(server());
        let caller = without.clone().in_session(revision).await;
        let session = caller.session.clone().unwrap();
        assert!(session.bytes().all(|byte| matches!(byte, 0x21..=0x7e)));

        let http_response = caller.tool(1, "echo", json!({ "message": "hello" })).await;

        assert_eq!(http_response.status(), 200);
        assert_eq!(
            http_response.header("content-type"),
            Some("application/json")
        );
        assert_eq!(http_response.header("mcp-session-id"), None);
        let result = http_response.json().await["result"].clone();
        assert_eq!(result["content"][0]["text"], "hello");
        assert_eq!(result.get("resultType"), None);
        // Only the session is of that revision, not the server.
        let modern = without.modern_tool("echo", json!({ "message": "hello" }));
        let modern = modern.await.json().await;
        assert_eq!(modern["result"]["resultType"], "complete", "{revision}");

        let http_response = caller.tool(2, "progress", json!({ "steps": 2 })).await;
        assert_eq!(
            http_response.header("content-type"),
            Some("text/event-stream")
        );
        let mut stream = http_response.stream();
        let mut messages = Vec::new();
        while let Some(event) = stream.event().await {
            // Only the priming event is empty.
            if !(messages.is_empty() && event.data.is_empty()) {
                messages.push(serde_json::from_str::<serde_json::Value>(&event.data).unwrap());
            }
        }
        assert_eq!(messages.len(), 3, "{revision}");
        assert_eq!(messages[2]["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test]
async fn the_modern_version_in_initialize_negotiates_the_newest_legacy_revision() {
    let mut caller = HttpTestClient::new(server());
    caller.version = Some("2026-07-28".to_owned());

    let http_response = caller.post(&initialize("2026-07-28")).await;

    assert!(http_response.header("mcp-session-id").is_some());
    let response = http_response.json().await;
    assert_eq!(response["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_server_of_one_era_names_its_revisions_to_clients_of_the_other() {
    let legacy = HttpTestClient::new(server().served_eras(ServedEras::Legacy));
    let arguments = json!({ "message": "hello" });
    let refused = legacy.modern_tool("echo", arguments.clone()).await;
    assert_eq!(refused.status(), 400);
    let error = refused.json().await["error"].clone();
    assert_eq!(error["code"], -32022, "{error}");
    let supported = error["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!("2025-11-25")), "{error}");
    assert!(!supported.contains(&json!("2026-07-28")), "{error}");
    let session = legacy.in_session("2025-11-25").await;
    let result = session
        .tool(1, "echo", arguments.clone())
        .await
        .json()
        .await;
    assert_eq!(result["result"]["content"][0]["text"], "hello");

    let modern = HttpTestClient::new(server().served_eras(ServedEras::Modern));
    let error = modern.post(&initialize("2025-11-25")).await.json().await["error"].clone();
    assert_eq!(error["code"], -32022, "{error}");
    assert_eq!(error["data"]["supported"], json!(["2026-07-28"]), "{error}");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let no_version = modern.post(&list).await.status_and_code().await;
    assert_eq!(no_version, (400, -32602));
    let result = modern.modern_tool("echo", arguments).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "hello");
    let discovered = modern
        .modern("server/discover", json!({}))
        .await
        .json()
        .await;
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
}

#[tokio::test]
async fn without_sessions_a_modern_server_rejects_legacy_requests() {
    let options = Http::new(server().served_eras(ServedEras::Modern)).sessions(SessionMode::Off);
    let mut caller = HttpTestClient::with_options(options);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });

    for (version, code) in [(None, -32602), (Some("2025-11-25".to_owned()), -32022)] {
        caller.version = version;
        let refused = caller.post(&list).await.status_and_code().await;
        assert_eq!(refused, (400, code));
    }
}

#[tokio::test]
async fn a_message_without_a_session_is_answered_with_session_required() {
    req!("http.session.missing-400");
    let caller = HttpTestClient::new(server());

    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]),
    ] {
        let http_response = caller.post(&message).await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32600),
            "{message}"
        );
    }
    assert_eq!(
        caller.get(None).await.status_and_code().await,
        (400, -32600)
    );
    assert_eq!(caller.delete().await.status_and_code().await, (400, -32600));
}

#[tokio::test]
async fn an_unknown_session_is_answered_with_404() {
    let mut caller = HttpTestClient::new(server());

    for session in ["nonsense", "AAAAAAAAAAAAAAAAAAAAAAAA", "a b", ""] {
        caller.session = Some(session.to_owned());
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let http_response = caller.post(&ping).await;
        assert_eq!(
            http_response.status_and_code().await,
            (404, -32600),
            "{session}"
        );
    }
}

#[tokio::test]
async fn an_ended_session_is_not_found() {
    req!("http.session.terminated-404", "http.session.terminate");

    for revision in SESSIONS {
        let caller = HttpTestClient::new(server()).in_session(revision).await;

        let deleted = caller.delete().await;

        assert_eq!(deleted.status(), 204);
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(caller.post(&ping).await.status(), 404);
        assert_eq!(caller.get(None).await.status(), 404);
        assert_eq!(caller.delete().await.status(), 404);
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_creator() {
    req!(
        "http.session.bind-user",
        "http.session.not-auth",
        "security.session.verify-requests"
    );

    for revision in SESSIONS {
        let mut alice = HttpTestClient::new(server());
        alice.principal = Some(Principal::new("issuer", "alice"));
        let alice = alice.in_session(revision).await;
        let (mut stream, event) = alice.opened().await;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });

        for other in [Some(Principal::new("issuer", "bob")), None] {
            let mut thief = alice.clone();
            thief.principal = other;
            assert_eq!(thief.post(&ping).await.status(), 404);
            assert_eq!(thief.get(None).await.status(), 404);
            assert_eq!(thief.get(Some(&event)).await.status(), 404);
            assert_eq!(thief.delete().await.status(), 404);
        }

        assert_eq!(alice.post(&ping).await.status(), 200);
        alice.tool(2, "change", json!({})).await;
        let received = stream.message().await.unwrap();
        assert_eq!(received["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn unknown_items_are_reported_equally_to_all_callers() {
    let mut alice = HttpTestClient::new(server());
    alice.principal = Some(Principal::new("issuer", "alice"));
    let alice = alice.in_session("2025-11-25").await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });

    let mut thief = alice.clone();
    thief.principal = None;
    let foreign = thief.post(&ping).await.bytes().await;
    thief.session = Some("AAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    let unknown = thief.post(&ping).await.bytes().await;

    assert_eq!(foreign, unknown);
}

#[tokio::test]
async fn the_version_header_must_be_the_negotiated_one() {
    req!("http.version-header.400");

    for (revision, other) in [("2025-06-18", "2025-11-25"), ("2025-11-25", "2025-06-18")] {
        let mut caller = HttpTestClient::new(server()).in_session(revision).await;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });

        for version in [other, "2025-03-26", "1999-01-01", "nonsense", ""] {
            caller.version = Some(version.to_owned());
            let http_response = caller.post(&ping).await;
            assert_eq!(
                http_response.status_and_code().await,
                (400, -32600),
                "{version}"
            );
            assert_eq!(caller.get(None).await.status(), 400);
        }
        // Some clients never send it.
        caller.version = None;
        assert_eq!(caller.post(&ping).await.status(), 200);
        let twice = caller
            .request(Method::POST)
            .header("mcp-protocol-version", revision)
            .header("mcp-protocol-version", revision);
        assert_eq!(caller.send(twice, ping.to_string()).await.status(), 400);
    }
}

#[tokio::test]
async fn the_modern_header_makes_a_request_modern_even_in_a_session() {
    let mut caller = HttpTestClient::new(server()).in_session("2025-06-18").await;
    caller.version = Some("2026-07-28".to_owned());

    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });

    assert_eq!(
        caller.post(&ping).await.status_and_code().await,
        (400, -32602)
    );
}

#[tokio::test]
async fn notifications_and_responses_are_answered_with_202() {
    req!("http.post.202");

    for revision in SESSIONS {
        let caller = HttpTestClient::new(server()).in_session(revision).await;

        for message in [
            json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} }),
            json!({ "jsonrpc": "2.0", "id": 77, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": 78, "error": { "code": -1, "message": "no" } }),
        ] {
            let http_response = caller.post(&message).await;
            assert_eq!(http_response.status(), 202, "{message}");
            assert!(http_response.bytes().await.is_empty());
        }
    }
}

#[tokio::test]
async fn a_malformed_input_response_is_rejected() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;

    let both =
        json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": { "code": 1, "message": "" } });

    assert_eq!(
        caller.post(&both).await.status_and_code().await,
        (400, -32600)
    );
}

#[tokio::test]
async fn an_error_without_an_id_has_null_for_older_clients() {
    for (version, id) in [("2025-06-18", Some(json!(null))), ("2025-11-25", None)] {
        let caller = HttpTestClient::new(server()).in_session(version).await;

        let http_response = caller.send(caller.request(Method::POST), "{").await;

        assert_eq!(http_response.status(), 400);
        let response = http_response.json().await;
        assert_eq!(response["error"]["code"], -32700);
        assert_eq!(response.get("id").cloned(), id, "{version}");
    }
}

#[tokio::test]
async fn errors_of_a_session_have_status_200() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;

    let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "unknown/method" });

    assert_eq!(
        caller.post(&unknown).await.status_and_code().await,
        (200, -32601)
    );
}

#[tokio::test]
async fn session_settings_are_stored() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "test://a" },
    });

    let response = caller.post(&subscribe).await.json().await;

    assert_eq!(response["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn sessions_are_limited_and_expire() {
    let mut limits = StoreLimits::default();
    limits.sessions.max_sessions = 3;
    limits.sessions.idle_before_initialized = Duration::from_millis(50);
    let caller = HttpTestClient::new(server().store(Store::memory_with(limits)));
    let begin = async |subject: &str| {
        let mut caller = caller.clone();
        caller.principal = Some(Principal::new("https://issuer.example", subject));
        caller.post(&initialize("2025-11-25")).await
    };
    for subject in ["ann", "bob", "cid"] {
        assert_eq!(begin(subject).await.status(), 200);
    }

    let refused = begin("dee").await;
    assert_eq!(refused.status(), 503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.json().await["id"], 0);

    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(begin("dee").await.status(), 200);
}

#[tokio::test]
async fn a_second_initialize_creates_another_session() {
    let caller = HttpTestClient::new(server()).in_session("2025-11-25").await;

    let http_response = caller.post(&initialize("2025-11-25")).await;

    let second = http_response.header("mcp-session-id").unwrap();
    assert_ne!(Some(second), caller.session.as_deref());
}

#[tokio::test]
async fn without_sessions_the_version_header_selects_the_revision() {
    req!("http.version-header.default", "http.session.delete-405");
    let mut caller = HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));

    let http_response = caller.post(&initialize("2025-11-25")).await;
    assert_eq!(http_response.status(), 200);
    assert_eq!(http_response.header("mcp-session-id"), None);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(caller.post(&initialized).await.status(), 202);
    for version in [None, Some("2025-06-18"), Some("2025-11-25")] {
        caller.version = version.map(str::to_owned);
        let http_response = caller.tool(1, "echo", json!({ "message": "hi" })).await;
        assert_eq!(http_response.status(), 200);
        let response = http_response.json().await;
        assert_eq!(response["result"]["content"][0]["text"], "hi");
    }
    caller.version = Some("1999-01-01".to_owned());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(caller.post(&ping).await.status(), 400);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        caller.version = Some(version.to_owned());
        assert_eq!(caller.delete().await.status(), 405, "{version}");
    }
}

#[tokio::test]
async fn fifty_clients_with_the_same_ids_get_only_their_own() {
    let caller = HttpTestClient::new(server());
    let mut clients = Vec::new();
    for number in 0..50 {
        clients.push((number, caller.clone().in_session("2025-11-25").await));
    }

    let mut calls = tokio::task::JoinSet::new();
    for (number, client) in clients {
        for id in 0..10 {
            let client = client.clone();
            calls.spawn(async move {
                let steps = 1 + (number + id) % 4;
                let name = format!("{number}-{id}");
                let quick = client
                    .tool(100 + id, "echo", json!({ "message": name }))
                    .await;
                let response = quick.json().await;
                assert_eq!(response["result"]["content"][0]["text"], name.as_str());
                let stream = client.tool(id, "progress", json!({ "steps": steps })).await;
                let messages = stream.stream().messages_after_prime().await;
                assert_eq!(messages.len() as i64, steps + 1, "{name}");
                for message in &messages[..messages.len() - 1] {
                    assert_eq!(message["params"]["progressToken"], id);
                    assert_eq!(message["params"]["total"], steps as f64);
                }
                assert_eq!(messages.last().unwrap()["id"], id);
            });
        }
    }

    assert_eq!(calls.join_all().await.len(), 500);
}

#[tokio::test]
async fn duplicate_version_headers_are_rejected_everywhere() {
    for sessions in [SessionMode::On, SessionMode::Off] {
        let mut caller = HttpTestClient::with_options(Http::new(server()).sessions(sessions));
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        for in_session in [false, true] {
            if in_session && sessions == SessionMode::On {
                caller = caller.in_session("2025-11-25").await;
            }
            caller.version = Some("2025-11-25".to_owned());
            for message in [&ping, &initialize("2025-11-25")] {
                for second in ["2025-11-25", "2025-06-18", "2026-07-28"] {
                    let twice = caller
                        .request(http::Method::POST)
                        .header("mcp-protocol-version", second);
                    let http_response = caller.send(twice, message.to_string()).await;
                    assert_eq!(
                        http_response.status(),
                        400,
                        "{sessions:?} {second} {message}"
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_has_a_limit_of_running_calls() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_calls_per_session(2))
        .in_session("2025-11-25")
        .await;
    let sleep = |id| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.tool(id, "sleep", json!({})).await })
    };
    let (first, second) = (sleep(1), sleep(2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Calls with a lost connection count too.
    first.abort();

    let refused = caller.tool(3, "sleep", json!({})).await;
    assert_eq!(refused.status(), 429);
    let refused = refused.json().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(3), &json!(-32603))
    );
    let ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" });
    assert_eq!(caller.post(&ping).await.status(), 200);

    drop(second.await.unwrap());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(caller.tool(3, "sleep", json!({})).await.is_stream());
}

#[tokio::test]
async fn the_initialize_response_has_the_revision_in_a_header() {
    for sessions in [SessionMode::On, SessionMode::Off] {
        for (asked, negotiated) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
        ] {
            let caller = HttpTestClient::with_options(Http::new(server()).sessions(sessions));

            let http_response = caller.post(&initialize(asked)).await;

            assert_eq!(
                http_response.header("mcp-protocol-version"),
                Some(negotiated)
            );
        }
    }
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_path_makes_no_difference_where_it_is_accepted() {
    let caller = HttpTestClient::with_options(Http::new(server()).trailing_slash());
    let request = |path: &str, method: Method| {
        let builder = caller.request(method);
        builder.uri(path)
    };

    let started = caller
        .send(
            request("/mcp/", Method::POST),
            initialize("2025-11-25").to_string(),
        )
        .await;
    assert_eq!(started.status(), 200);
    let session = started.header("mcp-session-id").unwrap().to_owned();
    let ended = request("/mcp/", Method::DELETE).header("mcp-session-id", session);
    assert!(caller.send(ended, "").await.status().is_success());
    for path in ["/mcp//", "/mc", "/mcp/x", "/"] {
        let body = initialize("2025-11-25").to_string();
        let elsewhere = caller.send(request(path, Method::POST), body).await;
        assert_eq!(elsewhere.status(), 404, "{path}");
    }
}
