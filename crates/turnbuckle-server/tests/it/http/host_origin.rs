//! The Host and Origin check, paths and HTTP methods.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::{Method, request::Builder};
use serde_json::json;
use turnbuckle_server::http::{Http, SessionMode};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{
    HttpTestClient, HttpTestResponse, SESSIONS, initialize, modern, modern_headers, server,
};

/// A modern request with a head that a test can modify.
async fn list_with(
    caller: &HttpTestClient,
    spoil: impl FnOnce(Builder) -> Builder,
) -> HttpTestResponse {
    let message = modern("tools/list", json!({}));
    let builder = modern_headers(spoil(Builder::new()), &message)
        .method(Method::POST)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    caller.send(builder, message.to_string()).await
}

#[tokio::test]
async fn loopback_hosts_are_accepted() {
    let caller = HttpTestClient::new(server());

    for host in [
        "localhost",
        "LOCALHOST:3000",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]",
    ] {
        let http_response = list_with(&caller, |head| head.uri("/mcp").header("host", host)).await;
        assert_eq!(http_response.status(), 200, "{host}");
    }
}

#[tokio::test]
async fn a_request_for_another_host_is_rejected() {
    let caller = HttpTestClient::new(server());

    for host in [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8080",
        "user@localhost",
        "localhost.",
        "localhost:",
        "localhost:http",
        "localhost:99999",
        "127.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::1",
        "::1",
        "127.0.0.1@evil.example",
        "",
    ] {
        let http_response = list_with(&caller, |head| head.uri("/mcp").header("host", host)).await;
        assert_eq!(
            http_response.status_and_code().await,
            (403, -32600),
            "{host:?}"
        );
    }
}

#[tokio::test]
async fn duplicate_or_missing_hosts_are_rejected() {
    let caller = HttpTestClient::new(server());

    let none = list_with(&caller, |head| head.uri("/mcp")).await;
    let two = list_with(&caller, |head| {
        head.uri("/mcp")
            .header("host", "localhost")
            .header("host", "localhost")
    })
    .await;
    let contradiction = list_with(&caller, |head| {
        head.uri("http://localhost/mcp")
            .header("host", "evil.example")
    })
    .await;
    let user = list_with(&caller, |head| {
        head.uri("http://user@localhost/mcp")
            .header("host", "localhost")
    })
    .await;

    for http_response in [none, two, contradiction, user] {
        assert_eq!(http_response.status_and_code().await, (403, -32600));
    }
}

#[tokio::test]
async fn the_target_may_name_the_host() {
    let caller = HttpTestClient::new(server());

    let absolute = list_with(&caller, |head| {
        head.uri("http://localhost:1/mcp")
            .header("host", "localhost:1")
    })
    .await;
    let http2 = list_with(&caller, |head| head.uri("http://localhost/mcp")).await;

    assert_eq!(absolute.status(), 200);
    assert_eq!(http2.status(), 200);
}

#[tokio::test]
async fn a_foreign_host_is_rejected_on_every_path() {
    let caller = HttpTestClient::new(server());

    for (method, path) in [
        (Method::GET, "/mcp"),
        (Method::DELETE, "/mcp"),
        (Method::OPTIONS, "/mcp"),
        (Method::GET, "/.well-known/oauth-protected-resource"),
    ] {
        let head = Builder::new()
            .method(method)
            .uri(path)
            .header("host", "evil.example");
        assert_eq!(caller.send(head, "").await.status(), 403, "{path}");
    }
}

#[tokio::test]
async fn an_error_response_names_the_fix() {
    req!("http.origin.403-body");
    let caller = HttpTestClient::new(server());

    let host = list_with(&caller, |head| {
        head.uri("/mcp").header("host", "my.example")
    })
    .await;
    let origin = list_with(&caller, |head| {
        head.uri("/mcp")
            .header("host", "localhost")
            .header("origin", "http://my.example")
    })
    .await;

    let (host, origin) = (host.json().await, origin.json().await);
    assert_eq!(host.get("id"), None);
    let text = host["error"]["message"].as_str().unwrap();
    assert!(text.contains("my.example") && text.contains("allow_host"));
    let text = origin["error"]["message"].as_str().unwrap();
    assert!(text.contains("my.example") && text.contains("allow_origin"));
}

#[tokio::test]
async fn a_host_can_be_allowed() {
    let caller = HttpTestClient::with_options(Http::new(server()).allow_host("tools.example:443"));

    let allowed = list_with(&caller, |head| {
        head.uri("/mcp").header("host", "Tools.example:443")
    });
    let other_port = list_with(&caller, |head| {
        head.uri("/mcp").header("host", "tools.example")
    });

    assert_eq!(allowed.await.status(), 200);
    assert_eq!(other_port.await.status(), 403);
}

#[tokio::test]
async fn any_host_can_be_allowed_explicitly() {
    let caller = HttpTestClient::with_options(Http::new(server()).danger_accept_any_host());

    let http_response = list_with(&caller, |head| {
        head.uri("/mcp").header("host", "evil.example")
    });

    assert_eq!(http_response.await.status(), 200);
}

#[tokio::test]
async fn other_origins_are_rejected() {
    req!("http.origin.validate", "http.origin.403");
    let caller = HttpTestClient::new(server());
    let mut sessions = Vec::new();
    for revision in SESSIONS {
        sessions.push(caller.clone().in_session(revision).await);
    }

    for origin in [
        "http://evil.example",
        "null",
        "file://",
        "https://localhost.evil.example",
        "http://localhost@evil.example",
        "chrome-extension://abc",
        "localhost",
        "",
    ] {
        let http_response = list_with(&caller, |head| {
            head.uri("/mcp")
                .header("host", "localhost")
                .header("origin", origin)
        })
        .await;
        assert_eq!(
            http_response.status_and_code().await,
            (403, -32600),
            "{origin:?}"
        );
        for session in &sessions {
            let request = session.request(Method::POST).header("origin", origin);
            let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
            let http_response = session.send(request, ping.to_string()).await;
            assert_eq!(
                http_response.status_and_code().await,
                (403, -32600),
                "{origin:?}"
            );
        }
    }
}

#[tokio::test]
async fn loopback_origins_may_read_responses() {
    req!("http.cors.browser");
    let caller = HttpTestClient::new(server());

    let http_response = list_with(&caller, |head| {
        head.uri("/mcp")
            .header("host", "127.0.0.1:8001")
            .header("origin", "http://127.0.0.1:8001")
    })
    .await;

    assert_eq!(http_response.status(), 200);
    assert_eq!(
        http_response.header("access-control-allow-origin"),
        Some("http://127.0.0.1:8001")
    );
    assert!(
        http_response
            .header("access-control-expose-headers")
            .unwrap()
            .contains("Mcp-Session-Id")
    );
    assert_eq!(http_response.header("vary"), Some("Origin"));
}

#[tokio::test]
async fn an_origin_can_be_allowed() {
    let caller =
        HttpTestClient::with_options(Http::new(server()).allow_origin("https://app.example"));
    let from = async |origin: &str| {
        list_with(&caller, |head| {
            head.uri("/mcp")
                .header("host", "localhost")
                .header("origin", origin)
        })
        .await
        .status()
    };

    assert_eq!(from("https://app.example").await, 200);
    assert_eq!(from("https://app.example:443").await, 200);
    assert_eq!(from("http://app.example").await, 403);
}

#[tokio::test]
async fn every_origin_can_be_accepted() {
    let caller = HttpTestClient::with_options(Http::new(server()).danger_accept_any_origin());
    for origin in ["https://app.example", "http://127.0.0.1:9", "null"] {
        let answered = list_with(&caller, |head| {
            head.uri("/mcp")
                .header("host", "localhost")
                .header("origin", origin)
        })
        .await;
        assert_eq!(answered.status(), 200, "{origin}");
        assert_eq!(answered.header("access-control-allow-origin"), Some(origin));
    }

    let wrong_host = list_with(&caller, |head| {
        head.uri("/mcp")
            .header("host", "evil.example")
            .header("origin", "https://app.example")
    });
    assert_eq!(wrong_host.await.status(), 403, "`Host` is still checked");
}

#[tokio::test]
async fn a_cors_preflight_is_answered() {
    let caller =
        HttpTestClient::with_options(Http::new(server()).allow_origin("https://app.example"));

    let head = Builder::new()
        .method(Method::OPTIONS)
        .uri("/mcp")
        .header("host", "localhost")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "mcp-method, mcp-param-region, x-evil",
        );
    let http_response = caller.send(head, "").await;

    assert_eq!(http_response.status(), 204);
    assert_eq!(
        http_response.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    let allowed = http_response
        .header("access-control-allow-headers")
        .unwrap();
    for header in [
        "mcp-method",
        "mcp-session-id",
        "mcp-param-region",
        "authorization",
    ] {
        assert!(allowed.contains(header), "{header}");
    }
    assert!(!allowed.contains("x-evil"));
}

#[tokio::test]
async fn other_paths_do_not_exist() {
    let caller = HttpTestClient::new(server());

    for path in [
        "/",
        "/mcp/",
        "/mcp/sse",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server/mcp",
    ] {
        for method in [Method::GET, Method::POST] {
            let head = Builder::new()
                .method(method)
                .uri(path)
                .header("host", "localhost");
            assert_eq!(caller.send(head, "").await.status(), 404, "{path}");
        }
    }
}

#[tokio::test]
async fn the_path_can_be_chosen() {
    let caller = HttpTestClient::with_options(Http::new(server()).path("/tools"));

    let there = list_with(&caller, |head| {
        head.uri("/tools?a=b").header("host", "localhost")
    });
    let elsewhere = list_with(&caller, |head| head.uri("/mcp").header("host", "localhost"));

    assert_eq!(there.await.status(), 200);
    assert_eq!(elsewhere.await.status(), 404);
}

#[tokio::test]
async fn health_is_ok() {
    let caller = HttpTestClient::new(server());
    let at = |method| {
        Builder::new()
            .method(method)
            .uri("/health")
            .header("host", "localhost")
    };

    let get = caller.send(at(Method::GET), "").await;
    let head = caller.send(at(Method::HEAD), "").await;
    let post = caller.send(at(Method::POST), "").await;

    assert_eq!(
        (get.status().as_u16(), &get.bytes().await[..]),
        (200, &b"ok"[..])
    );
    assert_eq!(head.status(), 200);
    assert_eq!(post.status(), 405);
    assert_eq!(post.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn other_http_methods_are_answered_with_405_and_allow() {
    req!("http.endpoint.single-post-get");
    // Decided by the header: these requests are sent without a body.
    req!("http.modern-only.get-delete", in: ["2026-07-28"]);
    let mut caller = HttpTestClient::new(server());

    let put = caller.send(caller.request(Method::PUT), "").await;
    assert_eq!(put.header("allow"), Some("GET, POST, DELETE"));
    assert_eq!(put.status_and_code().await, (405, -32600));

    for revision in SESSIONS {
        let session = HttpTestClient::new(server()).in_session(revision).await;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(session.post(&ping).await.status(), 200, "{revision}");
        let stream = session.get(None).await;
        assert_eq!(stream.status(), 200, "the same path, {revision}");
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    }

    // A modern client has neither GET streams nor sessions.
    caller.version = Some("2026-07-28".to_owned());
    for method in [Method::GET, Method::DELETE] {
        let http_response = caller.send(caller.request(method), "").await;
        assert_eq!(http_response.status(), 405);
        assert_eq!(http_response.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn without_sessions_get_is_answered_with_405() {
    req!("http.get.response");
    for revision in SESSIONS {
        let mut caller =
            HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));
        let settled = caller.post(&initialize(revision)).await.json().await;
        assert_eq!(settled["result"]["protocolVersion"], revision);
        caller.version = Some(revision.to_owned());

        let http_response = caller.get(None).await;

        assert_eq!(http_response.status(), 405, "{revision}");
        assert_eq!(http_response.header("allow"), Some("POST"));

        let session = HttpTestClient::new(server()).in_session(revision).await;
        let stream = session.get(None).await;
        assert_eq!(stream.status(), 200, "{revision}");
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    }
}

#[tokio::test]
async fn the_health_path_accepts_any_host() {
    let health = |path| {
        Builder::new()
            .uri(path)
            .header("host", "10.0.0.7:8080")
            .header("origin", "http://evil.example")
    };

    for path in ["/health", "/healthz", "/readyz"] {
        let http_response = HttpTestClient::new(server()).send(health(path), "").await;
        assert_eq!(http_response.status(), 200, "{path}");
        assert_eq!(http_response.header("access-control-allow-origin"), None);
    }
    let moved = HttpTestClient::with_options(Http::new(server()).health_path("/up"));
    let http_response = moved.send(health("/healthz"), "").await;
    assert_ne!(http_response.status(), 200);
    let on_the_endpoint = HttpTestClient::with_options(Http::new(server()).health_path("/mcp"));
    let http_response = on_the_endpoint.send(health("/mcp"), "").await;
    assert_eq!(http_response.status(), 403);
}

#[tokio::test]
async fn the_readiness_path_responds_503_until_the_server_is_ready() {
    let is_ready = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&is_ready);
    let http = Http::new(server()).readiness_path("/readyz", move || state.load(Ordering::Relaxed));
    let client = HttpTestClient::with_options(http);
    let probe = || {
        Builder::new()
            .uri("/readyz")
            .header("host", "10.0.0.7:8080")
    };

    assert_eq!(client.send(probe(), "").await.status(), 503);
    is_ready.store(true, Ordering::Relaxed);
    assert_eq!(client.send(probe(), "").await.status(), 200);
}
