//! Tests of servers on HTTP.

use std::fs;

use serde_json::json;
use tokio::net::TcpListener;
use turnbuckle_server::http;

use crate::{
    fake_http::{FakeHttp, FakeResponse},
    sandbox::Sandbox,
    weather,
};

/// Serves on a free port, and returns the URL.
pub(crate) fn serve(sandbox: &Sandbox) -> String {
    let listener = sandbox
        .runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap();
    sandbox
        .runtime
        .spawn(http::serve(listener, weather::server()));
    format!("http://{address}/mcp")
}

/// Serves HTTP+SSE on a free port, and returns the URL of its stream.
pub(crate) fn serve_http_sse(sandbox: &Sandbox) -> String {
    let listener = sandbox
        .runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap();
    let both = http::Http::new(weather::server()).http_sse(http::HttpSse::new());
    sandbox.runtime.spawn(both.serve(listener));
    format!("http://{address}/sse")
}

#[test]
fn a_url_is_a_target_in_either_era() {
    let sandbox = Sandbox::new();
    let url = serve(&sandbox);

    for era in ["modern", "legacy"] {
        let seen = sandbox.run(&["call", &url, "forecast", "city=Oslo", "--era", era]);

        assert!(seen.contains("Sun over Oslo"), "{seen}");
    }
}

#[test]
fn a_url_of_a_configuration_is_a_target() {
    let sandbox = Sandbox::new();
    let url = serve(&sandbox);
    let definition =
        format!(r#"{{"mcpServers": {{"weather": {{"type": "http", "url": "{url}"}}}}}}"#);
    sandbox.write(".mcp.json", &definition);
    let words = ["call", "weather", "forecast", "city=Oslo"];

    let approved = sandbox.run(&[&words[..], &["--yes"]].concat());
    fs::rename(
        sandbox.path().join(".mcp.json"),
        sandbox.path().join(".claude.json"),
    )
    .unwrap();
    let of_user = sandbox.run(&words);

    assert!(approved.contains("Sun over Oslo"), "{approved}");
    assert!(of_user.contains("Sun over Oslo"), "{of_user}");
}

#[test]
fn headers_are_sent_and_never_shown() {
    let sandbox = Sandbox::new();
    let url = serve(&sandbox);

    let seen = sandbox.run(&[
        "ping",
        &url,
        "--verbose",
        "--header",
        "Authorization: Bearer hunter2",
    ]);

    assert!(seen.contains(", Authorization: ***\n"), "{seen}");
    assert!(!seen.contains("hunter2"), "{seen}");
}

#[test]
fn a_url_without_an_endpoint_has_a_hint() {
    let sandbox = Sandbox::new();
    let url = serve(&sandbox).replace("/mcp", "/nothing");

    let seen = sandbox.run(&["info", &url]).replace(&url, "URL");

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: the server cannot be reached: HTTP status 404 Not Found

    hint: check that the URL is the MCP endpoint
    --- exit 2
    ");
}

#[test]
fn a_call_with_a_lost_response_has_an_unknown_effect() {
    let sandbox = Sandbox::new();
    let fake = FakeHttp::start(|seen| match seen.rpc() {
        "tools/call" => FakeResponse::Events(": started\n\n"),
        "tools/list" => seen.result(&json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{ "name": "pay", "inputSchema": { "type": "object" } }],
        })),
        _ => seen.result(&json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        })),
    });

    let seen = sandbox.run(&["call", &fake.url, "pay"]);

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: the response to `tools/call` was lost, and its effect is unknown: the server closed the connection

    hint: check whether it took effect before you retry
    --- exit 2
    ");
    let calls = fake.seen();
    let calls = calls.iter().filter(|seen| seen.rpc() == "tools/call");
    assert_eq!(calls.count(), 1);
}

#[test]
fn an_excluded_tool_is_named_with_the_reason() {
    let sandbox = Sandbox::new();
    let fake = FakeHttp::start(|seen| match seen.rpc() {
        "tools/list" => {
            let tool = |name: &str, header: &str| {
                let city = json!({ "type": "string", "x-mcp-header": header });
                let schema = json!({ "type": "object", "properties": { "city": city } });
                json!({ "name": name, "description": "Says something", "inputSchema": schema })
            };
            seen.result(&json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [
                    tool("good", "City"),
                    tool("bad\u{1b}[2J", "not a token"),
                    { "name": "malformed", "inputSchema": [] },
                    { "description": "nameless" },
                ],
            }))
        }
        _ => seen.result(&json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        })),
    });

    insta::assert_snapshot!(sandbox.run(&["tools", &fake.url]), @r"
    good(city?: string)
        Says something
    --- stderr
    warning: the tool `malformed` is excluded: `inputSchema`: invalid type: array, expected object
    warning: the tool `tools[3]` is excluded: missing field `name`
    warning: the tool `bad\u{1b}[2J` is excluded: `x-mcp-header` at `/properties/city` is not an HTTP token
    ");
}
