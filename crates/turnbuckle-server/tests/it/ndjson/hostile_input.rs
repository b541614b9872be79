//! Hostile input.

use std::{env, fs, path::PathBuf};

use serde_json::{Value, json};
use turnbuckle_server::{Server, Tool, ndjson::NdjsonServer};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer, modern},
    spec::revision_client::{EVERY, RevisionClient},
};

fn server() -> Server {
    let hello = Tool::new("hello", async || Ok("hello".to_owned()));
    let lines = Tool::new("lines", async || Ok("one\ntwo\r\n".to_owned()));
    Server::new("hostile", "1").tool(hello).tool(lines)
}

const PING: &str = r#"{"jsonrpc":"2.0","id":"alive","method":"ping"}"#;

/// Sends bytes as a line and returns the responses. The connection must survive.
async fn responses(peer: &mut Peer, line: &[u8]) -> Vec<Value> {
    peer.send_bytes(line).await;
    peer.send_bytes(format!("\n{PING}\n").as_bytes()).await;
    let mut responses = Vec::new();
    loop {
        let response = peer.next().await;
        if response["id"] == "alive" && response["result"] == json!({}) {
            return responses;
        }
        responses.push(response);
    }
}

async fn code(peer: &mut Peer, line: &[u8]) -> Option<i64> {
    let responses = responses(peer, line).await;
    assert!(responses.len() <= 1, "{responses:?}");
    let error = &responses.first()?["error"];
    assert!(error.is_null() || error["message"].is_string(), "{error}");
    error["code"].as_i64()
}

#[tokio::test(start_paused = true)]
async fn a_bad_line_gets_an_error_and_the_connection_continues() {
    req!(
        "base.error.parse",
        "base.error.invalid-request",
        "base.error.code-message"
    );
    let ping = PING.as_bytes();
    let bad: &[(&[u8], i64)] = &[
        (b"nonsense", -32700),
        (b"{", -32700),
        (b"\x00", -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\x00\"id\":1,\"method\":\"ping\"}",
            -32700,
        ),
        (b"\xff\xfe", -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}",
            -32700,
        ),
        (&[b"\xef\xbb\xbf", ping].concat(), -32700),
        (&[ping, ping].concat(), -32700),
        (&[ping, b" ", ping].concat(), -32700),
        (br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, -32700),
        (b"7", -32600),
        (b"\"ping\"", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (br#"{"id":1,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, -32600),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
            -32600,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32602,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#,
            -32600,
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
    ];
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        for (line, expected) in bad {
            let shown = String::from_utf8_lossy(line);
            let code = code(&mut client.peer, line).await;
            assert_eq!(code, Some(*expected), "{revision} {shown}");
        }
        client.result("tools/list", json!({})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn line_ends_of_both_kinds_and_blank_lines_are_fine() {
    req!("stdio.framing.newline");
    for revision in EVERY {
        let mut client = RevisionClient::new(revision, server()).await;
        let call = json!({ "name": "lines", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": client.params(call) });
        let sent = format!("\r\n\n  \n\t\r\n{call}\r\n{PING}\n");
        client.peer.send_line(&sent).await;

        // Two messages are two lines, whatever they contain.
        let mut lines = [client.peer.next().await, client.peer.next().await];
        lines.sort_by_key(|line| line["id"] == "alive");
        let [response, pong] = lines;
        assert_eq!(
            response["result"]["content"][0]["text"], "one\ntwo\r\n",
            "{revision}"
        );
        assert_eq!(pong["id"], "alive", "{revision}");
        client.peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn depth_is_limited_over_the_whole_message() {
    let mut peer = Peer::new(server());
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}{close}}}}}"#)
    };

    assert_eq!(
        code(&mut peer, nested(20_000).as_bytes()).await,
        Some(-32700)
    );
    assert_eq!(code(&mut peer, nested(126).as_bytes()).await, None);
    assert_eq!(code(&mut peer, nested(127).as_bytes()).await, Some(-32700));
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_is_rejected_once_without_using_memory() {
    let mut peer = Peer::with(NdjsonServer::new(server()).line_limit(64 * 1024));
    let before = memory_peak();
    let chunk = vec![b'x'; 1024 * 1024];
    for _ in 0..64 {
        peer.send_bytes(&chunk).await;
    }

    let refused = peer.next().await;
    assert_eq!(refused["error"]["code"], -32600);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("65536")
    );
    assert_eq!(responses(&mut peer, b"").await, [] as [Value; 0]);
    if let (Some(before), Some(after)) = (before, memory_peak()) {
        assert!(after - before < 16 * 1024, "{} KiB more", after - before);
    }
}

/// Peak memory of this process in KiB, where available.
fn memory_peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn a_line_of_maximum_length_is_read_and_a_longer_one_is_rejected() {
    let mut peer = Peer::with(NdjsonServer::new(server()).line_limit(1_000));
    let padded = |length: usize| format!("{PING:<length$}");

    peer.send_line(&padded(1_000)).await;
    assert_eq!(peer.next().await["result"], json!({}));
    peer.send_line(&padded(1_001)).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
}

#[tokio::test(start_paused = true)]
async fn headers_of_language_servers_are_refused() {
    let mut peer = Peer::new(server());

    peer.send_bytes(format!("Content-Length: {}\r\n\r\n{PING}\n", PING.len()).as_bytes())
        .await;

    let refused = peer.next().await;
    assert_eq!(refused["error"]["code"], -32700);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Content-Length")
    );
    assert_eq!(
        peer.next().await["id"],
        "alive",
        "the line after it is a message"
    );
}

#[tokio::test(start_paused = true)]
async fn notifications_are_never_answered() {
    req!("base.notification.no-reply");

    for revision in LEGACY {
        let mut peer = Peer::initialized(server(), revision, json!({})).await;
        let flood = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
        let flood = format!("{flood}\n").repeat(1_000);
        for _ in 0..20 {
            peer.send_bytes(flood.as_bytes()).await;
        }
        for method in [
            "tools/call",
            "initialize",
            "no/such",
            "notifications/cancelled",
        ] {
            peer.notify(method, json!({ "requestId": {} })).await;
            peer.notify(method, modern(json!({}))).await;
        }

        assert_eq!(responses(&mut peer, b"").await, [] as [Value; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_without_id_and_unexpected_responses_get_no_response() {
    let mut peer = Peer::initialized(server(), "2025-06-18", json!({})).await;
    for line in [
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}"#,
    ] {
        assert_eq!(
            responses(&mut peer, line.as_bytes()).await,
            [] as [Value; 0],
            "{line}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unusual_names_of_tools_and_methods_have_no_effect() {
    let mut peer = Peer::initialized(server(), "2025-06-18", json!({})).await;
    for name in [
        "__proto__",
        "",
        "hello\u{0}",
        "Hello",
        "\u{202e}olleh",
        "../hello",
    ] {
        let response = peer.call_tool(name, json!({})).await;
        assert_eq!(response["error"]["code"], -32602, "{name:?}");
    }
    for method in [
        "",
        "tools/call ",
        "TOOLS/LIST",
        "tools/\u{0}",
        "notifications/initialized",
    ] {
        let response = peer.call(method, json!({})).await;
        assert_eq!(response["error"]["code"], -32601, "{method:?}");
    }
    peer.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/\u006cist"}"#)
        .await;
    assert!(
        peer.next().await["result"]["tools"].is_array(),
        "escapes spell the same name"
    );
}

#[tokio::test(start_paused = true)]
async fn the_json_test_suite_is_classified_line_by_line() {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    let mut peer = Peer::new(server());
    let mut judged = 0;
    for entry in fs::read_dir(PathBuf::from(data).join("corpora/json")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(line) = as_line(&name, &fs::read(&path).unwrap()) else {
            continue;
        };

        let code = code(&mut peer, &line).await;

        let expected: &[i64] = match &name[..2] {
            "y_" => &[-32600],
            "n_" => &[-32700],
            _ => &[-32600, -32700],
        };
        assert!(
            code.is_some_and(|code| expected.contains(&code)),
            "{name}: {code:?}"
        );
        judged += 1;
    }
    assert!(judged > 280, "{judged}");
}

/// A test case as one line, unless it is empty or about line breaks.
fn as_line(name: &str, json: &[u8]) -> Option<Vec<u8>> {
    let mut line = json.strip_suffix(b"\n").unwrap_or(json).to_vec();
    if name.starts_with("y_") {
        line.iter_mut()
            .filter(|byte| **byte == b'\n')
            .for_each(|byte| *byte = b' ');
    }
    let is_blank = line.iter().all(u8::is_ascii_whitespace);
    (name.ends_with(".json") && !is_blank && !line.contains(&b'\n')).then_some(line)
}
