//! Servers on paths below that of the endpoint.

use http::{Method, Request};
use serde_json::{Value, json};
use turnbuckle_server::{
    Server, Tool,
    http::{Http, PathServers},
    testing::{TestHttpClient, TestHttpResponse, http as client},
};

fn server(name: &str) -> Server {
    Server::new(name, "1.0.0").tool(Tool::new("x", async || Ok("x".to_owned())))
}

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

/// Sends a message to a path.
async fn send(
    client: &TestHttpClient,
    method: Method,
    (path, host): (&str, &str),
    session: Option<&str>,
    message: &Value,
) -> TestHttpResponse {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", host)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", "2025-11-25");
    }
    client.send(request, message.to_string()).await
}

async fn post(
    client: &TestHttpClient,
    path: &str,
    session: Option<&str>,
    message: &Value,
) -> TestHttpResponse {
    send(client, Method::POST, (path, "localhost"), session, message).await
}

/// Returns the name of the server at a path.
async fn name_at(client: &TestHttpClient, path: &str) -> Option<String> {
    let response = post(client, path, None, &initialize()).await;
    if response.status() == 404 {
        return None;
    }
    let info = response.json().await["result"]["serverInfo"]["name"].clone();
    Some(info.as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn each_path_has_its_own_server_and_others_are_not_found() {
    let servers = PathServers::default();
    let client = client(Http::new(server("all")).path_servers(&servers));
    assert_eq!(name_at(&client, "/mcp").await.unwrap(), "all");
    assert_eq!(name_at(&client, "/mcp/clock").await, None);

    servers.insert("clock", Http::new(server("clock")));
    servers.insert("a/b é", Http::new(server("slash")));

    assert_eq!(name_at(&client, "/mcp").await.unwrap(), "all");
    for path in ["/mcp/clock", "/mcp/clock/", "/mcp/cl%6Fck"] {
        assert_eq!(name_at(&client, path).await.unwrap(), "clock", "{path}");
    }
    let encoded = "/mcp/a%2Fb%20%C3%A9";
    assert_eq!(name_at(&client, encoded).await.unwrap(), "slash");
    for path in [
        "/mcp/",
        "/mcp//",
        "/mcp/Clock",
        "/mcp/clock/x",
        "/mcp/a/b",
        "/mcp/%",
        "/mcp/%ff",
        "/clock",
        "/mcpclock",
        "/mcp/clock//",
        "/.well-known/clock",
    ] {
        assert_eq!(name_at(&client, path).await, None, "{path}");
    }
    let foreign = ("/mcp/clock", "evil.example");
    let refused = send(&client, Method::POST, foreign, None, &initialize()).await;
    assert_eq!(refused.status(), 403);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_known_on_its_path_only() {
    let servers = PathServers::default();
    servers.insert("clock", Http::new(server("clock")));
    servers.insert("other", Http::new(server("other")));
    let client = client(Http::new(server("all")).path_servers(&servers));
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
    for own in ["/mcp", "/mcp/clock", "/mcp/other"] {
        let opened = post(&client, own, None, &initialize()).await;
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        for path in ["/mcp", "/mcp/clock", "/mcp/other"] {
            let called = post(&client, path, Some(&session), &call).await;
            let expected = if path == own { 200 } else { 404 };
            assert_eq!(called.status(), expected, "{own} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_streams_of_a_removed_server_end_and_its_path_is_not_found() {
    let servers = PathServers::default();
    servers.insert("clock", Http::new(server("clock")));
    let client = client(Http::new(server("all")).path_servers(&servers));
    let opened = post(&client, "/mcp/clock", None, &initialize()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let at = ("/mcp/clock", "localhost");
    let stream = send(&client, Method::GET, at, Some(&session), &Value::Null).await;
    assert_eq!(stream.status(), 200);
    let mut events = stream.events();

    assert!(servers.remove("clock"));

    while events.next().await.is_some() {}
    assert_eq!(name_at(&client, "/mcp/clock").await, None);
    assert!(!servers.remove("clock"));
    // A server with the same name has other sessions.
    servers.insert("clock", Http::new(server("new")));
    assert_eq!(name_at(&client, "/mcp/clock").await.unwrap(), "new");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let gone = post(&client, "/mcp/clock", Some(&session), &call).await;
    assert_eq!(gone.status(), 404);
}
