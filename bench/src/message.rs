//! The messages that a benchmark sends, as text.
//!
//! They are written by hand so that every server receives the same bytes.

/// The era of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// A handshake, then calls that belong to its session.
    Legacy,
    /// Every call on its own, with `_meta`.
    Modern,
}

/// The first message of a legacy connection.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0.0.0"}}}"#;

/// The second message of a legacy connection, a notification.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A legacy request that only tests whether its session exists.
pub const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Returns the body of a `tools/list`.
pub fn list(era: Era, id: u64) -> String {
    let params = match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(r#","params":{{{META}}}"#),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"{params}}}"#)
}

/// Returns the body of a `tools/call` with a progress token, which is the id.
pub fn call_with_progress(era: Era, id: u64, tool: &str, arguments: &str) -> String {
    let token = format!(r#""_meta":{{"progressToken":{id}"#);
    let meta = match era {
        Era::Legacy => format!(",{token}}}"),
        Era::Modern => format!(
            ",{}",
            META.replacen(r#""_meta":{"#, &format!("{token},"), 1)
        ),
    };
    with_meta(id, tool, arguments, &meta)
}

/// Returns the body of a `tools/call`; `arguments` is a JSON object.
pub fn call(era: Era, id: u64, tool: &str, arguments: &str) -> String {
    let meta = match era {
        Era::Legacy => String::new(),
        Era::Modern => format!(",{META}"),
    };
    with_meta(id, tool, arguments, &meta)
}

fn with_meta(id: u64, tool: &str, arguments: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
    )
}

/// Returns the `name: value` pairs that MCP requires on a `tools/list` over HTTP.
pub fn list_headers(era: Era, session: Option<&str>) -> Headers<'_> {
    match era {
        Era::Legacy => session_headers(session),
        Era::Modern => vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ],
    }
}

/// Returns the `name: value` pairs that MCP requires on a `tools/call` over HTTP.
pub fn call_headers<'a>(era: Era, tool: &'a str, session: Option<&'a str>) -> Headers<'a> {
    match era {
        Era::Legacy => session_headers(session),
        Era::Modern => vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ],
    }
}

/// Returns the `name: value` pairs of a legacy request after the handshake.
pub fn session_headers(session: Option<&str>) -> Headers<'_> {
    let version = ("mcp-protocol-version", "2025-11-25");
    let session = session.map(|id| ("mcp-session-id", id));
    std::iter::once(version).chain(session).collect()
}

/// Returns the body of a `subscriptions/listen` for changes of the list of tools.
pub fn listen(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    )
}

/// Returns the `name: value` pairs that MCP requires on a `subscriptions/listen` over HTTP.
pub fn listen_headers() -> Headers<'static> {
    vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ]
}

/// Headers of one request, in addition to those of every POST.
pub type Headers<'a> = Vec<(&'a str, &'a str)>;

/// Returns a whole HTTP/1.1 POST to `/mcp`, so that it is sent in one write.
pub fn post(host: &str, headers: &Headers<'_>, body: &str) -> Vec<u8> {
    post_to("/mcp", host, headers, body)
}

/// Returns a whole HTTP/1.1 POST, so that it is sent in one write.
pub fn post_to(path: &str, host: &str, headers: &Headers<'_>, body: &str) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    );
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.extend([
        "content-length: ",
        &body.len().to_string(),
        "\r\n\r\n",
        body,
    ]);
    request.into_bytes()
}

/// Returns a whole HTTP/1.1 GET that opens a stream of events.
pub fn get(path: &str, host: &str, headers: &Headers<'_>) -> Vec<u8> {
    let mut request =
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// Returns JSON string content that decodes to `size` bytes, with an escaped newline about every 90.
///
/// Real text has escapes, and an escape makes a reader copy instead of borrow.
pub fn text(size: usize) -> String {
    let sentence = "the quick brown fox jumps over the lazy dog, ";
    let mut text = String::with_capacity(size + size / 64);
    for position in 0..size {
        if position % 91 == 90 {
            text.push_str("\\n");
        } else {
            text.push(char::from(sentence.as_bytes()[position % sentence.len()]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_requested_size() {
        for size in [0, 50, 90, 91, 65_536] {
            let decoded: String = serde_json::from_str(&format!("\"{}\"", text(size))).unwrap();

            assert_eq!(decoded.len(), size);
        }
    }

    #[test]
    fn a_call_is_one_json_object() {
        for era in [Era::Legacy, Era::Modern] {
            let body = call(era, 7, "echo", r#"{"message":"hi"}"#);

            let value: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(value["params"]["arguments"]["message"], "hi");
            assert_eq!(value["params"].get("_meta").is_some(), era == Era::Modern);
        }
    }

    #[test]
    fn a_list_and_a_call_with_progress_are_one_json_object() {
        for era in [Era::Legacy, Era::Modern] {
            let list: serde_json::Value = serde_json::from_str(&list(era, 7)).unwrap();
            let call = call_with_progress(era, 7, "steps", "{}");
            let call: serde_json::Value = serde_json::from_str(&call).unwrap();

            assert_eq!(list.get("params").is_some(), era == Era::Modern);
            assert_eq!(call["params"]["_meta"]["progressToken"], 7);
        }
    }
}
