//! Accepted and rejected request bodies.

use http::{Method, header::HeaderName};
use serde_json::{Value, json};
use turnbuckle_server::http::Http;
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{
    HttpTestClient, HttpTestResponse, SESSIONS, modern, modern_headers, server,
};

/// Posts bytes that claim to be a modern `tools/call`.
async fn post_raw(caller: &HttpTestClient, body: impl Into<bytes::Bytes>) -> HttpTestResponse {
    let claimed = modern("tools/call", json!({ "name": "echo" }));
    let builder = modern_headers(caller.request(Method::POST), &claimed);
    caller.send(builder, body).await
}

fn echo() -> Value {
    modern(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "hi" } }),
    )
}

#[tokio::test]
async fn invalid_json_is_a_parse_error() {
    req!("base.error.parse", "base.error.id-unreadable");
    let caller = HttpTestClient::new(server());
    let nested = echo().to_string().replace(
        r#""hi""#,
        &format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)),
    );

    for body in [
        &b""[..],
        b"{",
        b"nope",
        b"{}{}",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}",
        br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
        nested.as_bytes(),
    ] {
        let http_response = post_raw(&caller, body.to_vec()).await;
        assert_eq!(http_response.status(), 400);
        let response = http_response.json().await;
        assert_eq!(response["error"]["code"], -32700);
        assert_eq!(response.get("id"), None);
    }
}

#[tokio::test]
async fn json_that_is_not_a_request_is_an_invalid_request() {
    req!("base.error.invalid-request");
    let caller = HttpTestClient::new(server());

    for body in [
        json!([]).to_string(),
        json!([echo()]).to_string(),
        json!("text").to_string(),
        json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list" }).to_string(),
        json!({ "jsonrpc": "2.0", "id": 1.5, "method": "tools/list" }).to_string(),
        json!({ "jsonrpc": "2.0", "id": {}, "method": "tools/list" }).to_string(),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "tools/list" }).to_string(),
        json!({ "id": 1, "method": "tools/list" }).to_string(),
        json!({ "jsonrpc": "2.0", "id": 1, "Method": "tools/list" }).to_string(),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": 7 }).to_string(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}"#.to_owned(),
    ] {
        let http_response = post_raw(&caller, body.clone()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32600),
            "{body}"
        );
    }
}

#[tokio::test]
async fn responses_from_modern_clients_are_rejected() {
    req!("http.post.reject-status", "http.post.reject-body");
    let caller = HttpTestClient::new(server());

    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });

    assert_eq!(
        post_raw(&caller, response.to_string())
            .await
            .status_and_code()
            .await,
        (400, -32600)
    );
    assert_eq!(caller.modern("tools/list", json!({})).await.status(), 200);

    for revision in SESSIONS {
        let session = HttpTestClient::new(server()).in_session(revision).await;
        let neither = json!({ "jsonrpc": "2.0", "id": 1 });
        let both = json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": { "code": 1, "message": "" } });
        for message in [neither, both] {
            let refused = session.post(&message).await.status();
            assert!(refused.is_client_error(), "{revision} {message} {refused}");
        }
        let mut without_session = session.clone();
        without_session.session = None;
        let http_response = without_session.post(&response).await.status();
        assert!(
            http_response.is_client_error(),
            "{revision} {http_response}"
        );
    }
}

#[tokio::test]
async fn a_modern_notification_is_answered_with_202() {
    req!("http.post.202-modern");
    let caller = HttpTestClient::new(server());

    let mut notification = modern("notifications/cancelled", json!({ "requestId": 4711 }));
    notification.as_object_mut().unwrap().remove("id");
    let builder = modern_headers(caller.request(Method::POST), &notification);
    let http_response = caller.send(builder, notification.to_string()).await;

    assert_eq!(http_response.status(), 202);
    assert!(http_response.bytes().await.is_empty());
}

#[tokio::test]
async fn an_error_repeats_the_id() {
    req!("base.error.id-echo", "base.response.same-id");
    let caller = HttpTestClient::new(server());
    let mut message = modern("nothing/like-this", json!({}));
    message["id"] = json!("listen:0");

    let builder = modern_headers(caller.request(Method::POST), &message);
    let response = caller.send(builder, message.to_string()).await.json().await;

    assert_eq!(response["id"], "listen:0");
}

/// Posts a valid request with one header replaced.
async fn post_with(
    caller: &HttpTestClient,
    name: &'static str,
    value: Option<&str>,
) -> HttpTestResponse {
    let message = echo();
    let mut builder = modern_headers(caller.request(Method::POST), &message);
    let headers = builder.headers_mut().unwrap();
    headers.remove(name);
    if let Some(value) = value {
        headers.insert(HeaderName::from_static(name), value.parse().unwrap());
    }
    caller.send(builder, message.to_string()).await
}

#[tokio::test]
async fn a_body_without_the_json_content_type_is_rejected() {
    let caller = HttpTestClient::new(server());

    for kind in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some(""),
    ] {
        let http_response = post_with(&caller, "content-type", kind).await;
        assert_eq!(
            http_response.status_and_code().await,
            (415, -32600),
            "{kind:?}"
        );
    }
    let kind = Some("Application/JSON; charset=utf-8");
    assert_eq!(post_with(&caller, "content-type", kind).await.status(), 200);
}

#[tokio::test]
async fn a_client_must_accept_json_and_event_streams() {
    let caller = HttpTestClient::new(server());

    for accept in [
        None,
        Some("application/json"),
        Some("text/event-stream"),
        Some("text/html"),
    ] {
        let http_response = post_with(&caller, "accept", accept).await;
        assert_eq!(
            http_response.status_and_code().await,
            (406, -32600),
            "{accept:?}"
        );
    }
    for accept in ["*/*", "text/event-stream, application/json"] {
        let http_response = post_with(&caller, "accept", Some(accept)).await;
        assert_eq!(http_response.status(), 200, "{accept}");
    }
}

#[tokio::test]
async fn two_accept_headers_count_as_one() {
    let caller = HttpTestClient::new(server());
    let message = echo();
    let mut builder = modern_headers(caller.request(Method::POST), &message);
    builder.headers_mut().unwrap().remove("accept");
    let builder = builder
        .header("accept", "application/json")
        .header("accept", "text/event-stream");

    assert_eq!(
        caller.send(builder, message.to_string()).await.status(),
        200
    );
}

#[tokio::test]
async fn compressed_bodies_are_rejected() {
    let caller = HttpTestClient::new(server());

    let http_response = post_with(&caller, "content-encoding", Some("gzip")).await;

    assert_eq!(http_response.status_and_code().await, (415, -32600));
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let caller = HttpTestClient::with_options(Http::new(server()).body_limit(1_000));
    let long = modern(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "x".repeat(1_000) } }),
    );

    assert_eq!(
        post_raw(&caller, long.to_string())
            .await
            .status_and_code()
            .await,
        (413, -32600)
    );
    assert_eq!(post_raw(&caller, echo().to_string()).await.status(), 200);
}

#[tokio::test]
async fn requests_over_the_limit_are_answered_with_503_and_retry_after() {
    let caller = HttpTestClient::with_options(Http::new(server()).max_in_flight(1));
    let first = caller.modern_tool("progress", json!({ "steps": 2 })).await;

    let second = caller.modern_tool("echo", json!({ "message": "hi" })).await;

    assert_eq!(second.status(), 503);
    assert!(second.header("retry-after").is_some());
    drop(first);
    let third = caller.modern_tool("echo", json!({ "message": "hi" })).await;
    assert_eq!(third.status(), 200);
}

#[tokio::test]
async fn the_public_json_test_suite_is_accepted_or_rejected_as_specified() {
    let Some(data) = std::env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    let caller = HttpTestClient::new(server());
    let folder = std::path::Path::new(&data).join("corpora/json");
    let mut files = 0;

    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let body = std::fs::read(&path).unwrap();
        let (status, code) = post_raw(&caller, body).await.status_and_code().await;
        assert_eq!(status, 400, "{name}");
        match name.as_bytes()[0] {
            b'y' => assert_eq!(code, -32600, "{name}"),
            b'n' => assert_eq!(code, -32700, "{name}"),
            _ => assert!([-32600, -32700].contains(&code), "{name}"),
        }
        files += 1;
    }

    assert!(files > 300, "{files}");
}
