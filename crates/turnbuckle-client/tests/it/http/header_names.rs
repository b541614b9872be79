//! Header names are case-insensitive.

use serde_json::json;
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::MockResponse,
    mock_mcp_http::{
        LATEST_LEGACY, MODERN, connect, on_call, posted_messages, server, text_result,
    },
};

/// A response with unusual spelling in its head.
fn response_with_head(names: &str, id: &serde_json::Value) -> MockResponse {
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": text_result("done") }).to_string();
    MockResponse::raw(format!(
        "HTTP/1.1 200 OK\r\n{names}\r\ncOnTeNt-LeNgTh: {}\r\n\r\n{body}",
        body.len()
    ))
}

#[tokio::test(start_paused = true)]
async fn the_content_type_header_is_case_insensitive() {
    req!("http.header.case-insensitive-names");
    for name in [
        "content-type",
        "CONTENT-TYPE",
        "Content-Type",
        "cOnTeNt-TyPe",
    ] {
        let mock = server(
            MODERN,
            on_call(move |request| {
                response_with_head(&format!("{name}: application/json"), &request.json()["id"])
            }),
        );
        let client = connect(&mock, MODERN).await;

        let text_result = client.call_tool("a", json!({})).await.unwrap();

        assert_eq!(text_result.content[0].as_text(), Some("done"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_session_id_header_is_case_insensitive() {
    for name in ["mcp-session-id", "MCP-SESSION-ID", "mCp-SeSsIoN-iD"] {
        let mock = server(LATEST_LEGACY, move |request| {
            let body = json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": {
                "protocolVersion": LATEST_LEGACY, "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            } })
            .to_string();
            (request.rpc() == "initialize").then(|| {
                MockResponse::raw(format!(
                    "HTTP/1.1 200 OK\r\n{name}: mine\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                ))
            })
        });
        let client = connect(&mock, LATEST_LEGACY).await;

        client.call_tool("a", json!({})).await.unwrap();

        let call = &posted_messages(&mock, "tools/call")[0];
        assert_eq!(call.header("mcp-session-id"), "mine", "{name}");
    }
}
