//! Cancelled calls: the server gets a notification in the session of the call.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::{
    fake_http::{FakeHttp, FakeResponse, RecordedRequest},
    sandbox::Sandbox,
};

/// A server with a session and a tool that never responds.
fn server() -> FakeHttp {
    FakeHttp::start(|seen| match (seen.method.as_str(), seen.rpc()) {
        ("POST", "initialize") => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            let message = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
            FakeResponse::Json(message, Some(("Mcp-Session-Id", "session-1")))
        }
        ("POST", "tools/list") => seen.result(&json!({
            "tools": [{ "name": "sleep", "inputSchema": { "type": "object" } }],
        })),
        ("POST", "tools/call") => FakeResponse::Silence,
        ("POST", _) if seen.body["id"].is_null() => FakeResponse::Status(202),
        ("POST", _) => seen.result(&json!({})),
        ("DELETE", _) => FakeResponse::Status(204),
        _ => FakeResponse::Status(405),
    })
}

/// Asserts that the call is cancelled before the session ends, and that every message has the session id.
fn assert_cancelled_in_session(fake: &FakeHttp) {
    let mut seen = fake.seen();
    // The GET stream has its own order.
    seen.retain(|seen| seen.method != "GET");
    let [.., call, cancelled, end] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(call.rpc(), "tools/call", "{seen:?}");
    assert_eq!(cancelled.rpc(), "notifications/cancelled", "{seen:?}");
    assert_eq!(cancelled.body["params"]["requestId"], call.body["id"]);
    assert_eq!(end.method, "DELETE", "{seen:?}");
    let is_outside = |seen: &&RecordedRequest| seen.header("mcp-session-id") != Some("session-1");
    let outside: Vec<_> = seen
        .iter()
        .filter(is_outside)
        .map(RecordedRequest::rpc)
        .collect();
    assert_eq!(outside, ["initialize"]);
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_before_the_session_ends() {
    let (sandbox, fake) = (Sandbox::new(), server());

    let words = [
        "call",
        &fake.url,
        "sleep",
        "--era",
        "legacy",
        "--timeout",
        "300ms",
    ];
    let seen = sandbox.run(&words);

    assert!(seen.contains("got no response within 300ms"), "{seen}");
    assert_cancelled_in_session(&fake);
}

#[test]
fn a_call_that_is_interrupted_is_cancelled_before_the_session_ends() {
    for signal in ["-INT", "-TERM"] {
        let (sandbox, fake) = (Sandbox::new(), server());
        let mut command = sandbox.command(&["call", &fake.url, "sleep", "--era", "legacy"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        fake.wait_for(|seen| seen.rpc() == "tools/call");

        let id = child.id().to_string();
        Command::new("kill").args([signal, &id]).status().unwrap();
        let status = child.wait().unwrap();

        assert_eq!(status.code(), Some(2), "{signal}");
        assert_cancelled_in_session(&fake);
    }
}
