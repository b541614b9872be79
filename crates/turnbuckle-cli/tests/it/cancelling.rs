//! Calls that are given up: the server is told, in the session of the call.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::fake_http::{FakeHttp, Reply, Seen};
use crate::stage::Stage;

/// A server with a session and a tool that never answers.
fn server() -> FakeHttp {
    FakeHttp::start(|seen| match (seen.method.as_str(), seen.rpc()) {
        ("POST", "initialize") => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            });
            let message = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
            Reply::Json(message, Some(("Mcp-Session-Id", "session-1")))
        }
        ("POST", "tools/list") => seen.result(&json!({
            "tools": [{ "name": "sleep", "inputSchema": { "type": "object" } }],
        })),
        ("POST", "tools/call") => Reply::Silence,
        ("POST", _) if seen.body["id"].is_null() => Reply::Status(202),
        ("POST", _) => seen.result(&json!({})),
        ("DELETE", _) => Reply::Status(204),
        _ => Reply::Status(405),
    })
}

/// Checks that the call is cancelled, that the session ends after it, and that every message names the session.
fn assert_cancelled_in_session(fake: &FakeHttp) {
    let mut seen = fake.seen();
    // The stream of the server's own goes its own way.
    seen.retain(|seen| seen.method != "GET");
    let [.., call, cancelled, end] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(call.rpc(), "tools/call", "{seen:?}");
    assert_eq!(cancelled.rpc(), "notifications/cancelled", "{seen:?}");
    assert_eq!(cancelled.body["params"]["requestId"], call.body["id"]);
    assert_eq!(end.method, "DELETE", "{seen:?}");
    let is_outside = |seen: &&Seen| seen.header("mcp-session-id") != Some("session-1");
    let outside: Vec<_> = seen.iter().filter(is_outside).map(Seen::rpc).collect();
    assert_eq!(outside, ["initialize"]);
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_before_the_session_ends() {
    let (stage, fake) = (Stage::new(), server());

    let words = [
        "call",
        &fake.url,
        "sleep",
        "--era",
        "legacy",
        "--timeout",
        "300ms",
    ];
    let seen = stage.run(&words);

    assert!(seen.contains("got no answer within 300ms"), "{seen}");
    assert_cancelled_in_session(&fake);
}

#[test]
fn a_call_that_is_interrupted_is_cancelled_before_the_session_ends() {
    for signal in ["-INT", "-TERM"] {
        let (stage, fake) = (Stage::new(), server());
        let mut command = stage.command(&["call", &fake.url, "sleep", "--era", "legacy"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        fake.wait_for(|seen| seen.rpc() == "tools/call");

        let id = child.id().to_string();
        Command::new("kill").args([signal, &id]).status().unwrap();
        let status = child.wait().unwrap();

        assert_eq!(status.code(), Some(2), "{signal}");
        assert_cancelled_in_session(&fake);
    }
}
