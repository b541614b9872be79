//! Access to HTTP+SSE, and rejected requests.

use http::Method;
use serde_json::json;
use turnbuckle_protocol::Principal;
use turnbuckle_server::http::{Http, HttpSse, SessionMode};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, initialize, server},
    http_sse::test_client::{HttpSseClient, get, ping, post, with_http_sse},
};

#[tokio::test]
async fn http_sse_is_disabled_by_default() {
    let caller = HttpTestClient::new(server());

    for builder in [
        get("/sse"),
        post("/messages"),
        post("/messages?sessionId=x"),
    ] {
        let http_response = caller.send(builder, ping(1).to_string()).await;
        assert_eq!(http_response.status(), 404);
    }
}

#[tokio::test]
async fn the_mcp_endpoint_and_the_http_sse_paths_are_separate() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));

    // A stream of the MCP endpoint needs a session.
    assert_eq!(caller.send(get("/mcp"), "").await.status(), 400);
    // Clients that try the newer transport first detect HTTP+SSE by this status.
    let tried = caller.send(post("/sse"), initialize("2025-11-25").to_string());
    let tried = tried.await;
    assert_eq!(
        (tried.status().as_u16(), tried.header("allow")),
        (405, Some("GET"))
    );
    let tried = caller.send(get("/messages"), "").await;
    assert_eq!(
        (tried.status().as_u16(), tried.header("allow")),
        (405, Some("POST"))
    );
}

#[tokio::test]
async fn paths_can_be_chosen() {
    let options = HttpSse::new()
        .stream_path("/old/events")
        .messages_path("/old/inbox");
    let http = Http::new(server())
        .sessions(SessionMode::Off)
        .http_sse(options);
    let caller = HttpTestClient::with_options(http);

    assert_eq!(caller.send(get("/sse"), "").await.status(), 404);
    let mut stream = caller.send(get("/old/events"), "").await.stream();
    let uri = stream.event().await.unwrap().data;
    assert!(uri.starts_with("/old/inbox?sessionId="), "{uri}");
    let taken = caller.send(post(&uri), initialize("2024-11-05").to_string());
    assert_eq!(taken.await.status(), 202);
    assert_eq!(stream.message().await.unwrap()["id"], 0);
}

#[tokio::test]
async fn streams_at_several_paths_name_the_messages_path_of_their_own() {
    let options = HttpSse::new().also_at("/mcp/sse", "/mcp/messages");
    let caller = HttpTestClient::with_options(Http::new(server()).http_sse(options));

    for (path, messages) in [("/sse", "/messages"), ("/mcp/sse", "/mcp/messages")] {
        let mut stream = caller.send(get(path), "").await.stream();
        let uri = stream.event().await.unwrap().data;
        assert!(uri.starts_with(&format!("{messages}?sessionId=")), "{uri}");
        let taken = caller.send(post(&uri), initialize("2024-11-05").to_string());
        assert_eq!(taken.await.status(), 202);
        assert_eq!(stream.message().await.unwrap()["id"], 0);
    }
}

#[tokio::test]
async fn hosts_and_origins_are_checked_on_both_http_sse_paths() {
    req!("http.origin.validate");
    let caller = HttpTestClient::with_options(with_http_sse(server()));
    let peer = HttpSseClient::initialized(&caller, "2024-11-05").await;

    for uri in ["/sse", &peer.uri] {
        for (header, value, status) in [
            ("origin", "https://evil.example", 403),
            ("origin", "null", 403),
            ("host", "evil.example", 403),
        ] {
            let builder = if uri == "/sse" { get(uri) } else { post(uri) };
            let mut request = builder;
            let headers = request.headers_mut().unwrap();
            headers.insert(header, value.parse().unwrap());
            let http_response = caller.send(request, ping(1).to_string()).await;
            assert_eq!(http_response.status(), status, "{uri} {header}: {value}");
        }
    }
}

#[tokio::test]
async fn allowed_origins_may_use_both_http_sse_paths() {
    let caller =
        HttpTestClient::with_options(with_http_sse(server()).allow_origin("https://app.example"));
    let peer = HttpSseClient::open(&caller).await;

    for (uri, methods) in [("/sse", "GET"), (&*peer.uri, "POST")] {
        let preflight = get(uri)
            .method(Method::OPTIONS)
            .header("origin", "https://app.example")
            .header("access-control-request-method", methods);
        let http_response = caller.send(preflight, "").await;
        assert_eq!(http_response.status(), 204);
        assert_eq!(
            http_response.header("access-control-allow-methods"),
            Some(methods)
        );
    }
    let builder = post(&peer.uri).header("origin", "https://app.example");
    let http_response = caller.send(builder, ping(1).to_string()).await;
    assert_eq!(
        http_response.header("access-control-allow-origin"),
        Some("https://app.example")
    );
}

#[tokio::test]
async fn a_stream_requires_accept_event_stream() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));

    let builder = post("/sse")
        .method(Method::GET)
        .header("accept", "application/json");

    assert_eq!(caller.send(builder, "").await.status(), 406);
}

#[tokio::test]
async fn an_unknown_session_is_answered_with_404() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));
    let peer = HttpSseClient::open(&caller).await;
    let id = peer.uri.split_once('=').unwrap().1;

    for query in [
        String::new(),
        "?".to_owned(),
        "?sessionId=".to_owned(),
        "?sessionId=AAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        format!("?sessionid={id}"),
        format!("?sessionId={id}A"),
        format!("?sessionId={id}&sessionId={id}"),
    ] {
        let uri = format!("/messages{query}");
        let http_response = caller.send(post(&uri), ping(1).to_string()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (404, -32600),
            "{uri}"
        );
    }
    let uri = format!("{}&other=1", peer.uri);
    let http_response = caller.send(post(&uri), ping(1).to_string()).await;
    assert_eq!(
        http_response.status(),
        202,
        "what else is in a query is not ours"
    );
}

#[tokio::test]
async fn a_session_is_usable_only_by_its_owner() {
    let mut caller = HttpTestClient::with_options(with_http_sse(server()));
    caller.principal = Some(Principal::new("https://issuer.example", "ada"));
    let mut peer = HttpSseClient::open(&caller).await;

    for other in [None, Some(Principal::new("https://issuer.example", "bo"))] {
        caller.principal = other;
        let http_response = caller.send(post(&peer.uri), ping(1).to_string()).await;
        assert_eq!(http_response.status_and_code().await, (404, -32600));
    }

    assert_eq!(peer.request(&ping(2)).await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_rejected_only_in_the_http_response() {
    let caller = HttpTestClient::with_options(with_http_sse(server()).body_limit(1_000));
    let mut peer = HttpSseClient::open(&caller).await;

    for (body, status_and_code) in [
        (b"".to_vec(), (400, -32700)),
        (b"{".to_vec(), (400, -32700)),
        (b"\xff".to_vec(), (400, -32700)),
        (b"{}{}".to_vec(), (400, -32700)),
        ([b"[".repeat(400), b"]".repeat(400)].concat(), (400, -32700)),
        (b"{}".to_vec(), (400, -32600)),
        (b"[]".to_vec(), (400, -32600)),
        (
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_vec(),
            (400, -32600),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#.to_vec(),
            (400, -32600),
        ),
        (vec![b' '; 1_001], (413, -32600)),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(
            peer.post(body).await.status_and_code().await,
            status_and_code,
            "{shown}"
        );
    }
    peer.expect_no_message().await;
    assert_eq!(peer.request(&ping(1)).await["result"], json!({}));
}

#[tokio::test]
async fn errors_without_an_id_are_written_as_the_session_reads_them() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));
    for (revision, id) in [("2024-11-05", Some(json!(null))), ("2025-11-25", None)] {
        let peer = HttpSseClient::initialized(&caller, revision).await;
        let response = peer.post("{").await.json().await;
        assert_eq!(response.get("id").cloned(), id, "{revision}");
    }
}

#[tokio::test]
async fn only_json_bodies_are_accepted() {
    let caller = HttpTestClient::with_options(with_http_sse(server()));
    let peer = HttpSseClient::open(&caller).await;

    for (header, value) in [("content-type", "text/plain"), ("content-encoding", "gzip")] {
        let mut builder = post(&peer.uri);
        let headers = builder.headers_mut().unwrap();
        headers.insert(header, value.parse().unwrap());
        let http_response = caller.send(builder, ping(1).to_string()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (415, -32600),
            "{header}"
        );
    }
}

#[tokio::test]
async fn an_oversized_client_description_is_rejected() {
    let mut peer =
        HttpSseClient::open(&HttpTestClient::with_options(with_http_sse(server()))).await;
    let mut hello = initialize("2024-11-05");
    hello["params"]["clientInfo"]["name"] = "x".repeat(100_000).into();

    assert_eq!(peer.request(&hello).await["error"]["code"], -32602);
    let hello = initialize("2024-11-05");
    assert_eq!(
        peer.request(&hello).await["result"]["protocolVersion"],
        "2024-11-05"
    );
}
