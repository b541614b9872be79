//! Names of headers are compared without regard to case.

use serde_json::json;
use turnbuckle_spec_coverage::req;

use crate::{
    fake_http::Reply,
    http_peer::{LATEST_LEGACY, MODERN, connect, on_call, output, posted, server},
};

/// An answer whose head is written as nobody would write it.
fn odd(names: &str, id: &serde_json::Value) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": output("done") }).to_string();
    Reply::raw(format!(
        "HTTP/1.1 200 OK\r\n{names}\r\ncOnTeNt-LeNgTh: {}\r\n\r\n{body}",
        body.len()
    ))
}

#[tokio::test(start_paused = true)]
async fn the_kind_of_an_answer_is_known_however_its_header_is_written() {
    req!("http.header.case-insensitive-names");
    for name in [
        "content-type",
        "CONTENT-TYPE",
        "Content-Type",
        "cOnTeNt-TyPe",
    ] {
        let fake = server(
            MODERN,
            on_call(move |seen| odd(&format!("{name}: application/json"), &seen.json()["id"])),
        );
        let client = connect(&fake, MODERN).await;

        let output = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text(), Some("done"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_known_however_its_header_is_written() {
    for name in ["mcp-session-id", "MCP-SESSION-ID", "mCp-SeSsIoN-iD"] {
        let fake = server(LATEST_LEGACY, move |seen| {
            let body = json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": {
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            } })
            .to_string();
            (seen.rpc() == "initialize").then(|| {
                Reply::raw(format!(
                    "HTTP/1.1 200 OK\r\n{name}: mine\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                ))
            })
        });
        let client = connect(&fake, LATEST_LEGACY).await;

        client.call_tool("a", json!({})).await.unwrap();

        let call = &posted(&fake, "tools/call")[0];
        assert_eq!(call.header("mcp-session-id"), "mine", "{name}");
    }
}
