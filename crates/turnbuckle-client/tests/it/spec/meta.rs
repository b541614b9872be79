//! Members that a caller adds to `_meta`.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::{
    meta::Meta,
    types::{ClientCapabilities, Implementation},
};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MODERN, MockServer};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async fn sent(revision: &str, meta: Meta) -> (Value, String) {
    let server = MockServer::for_revision(revision);
    server.respond("tools/call", json!({ "content": [] }));
    let client = server.connect().await;
    client.call_tool("t", json!({})).meta(meta).await.unwrap();
    let mut call = server.next("tools/call").await;
    let text = String::from_utf8(server.received_bytes()).unwrap();
    let line = text.lines().last().unwrap().to_owned();
    (call["params"]["_meta"].take(), line)
}

#[tokio::test(start_paused = true)]
async fn callers_can_add_meta_members() {
    for revision in EVERY {
        let mut meta = Meta::new();
        meta.insert("example.com/colour", "red").unwrap();

        let (meta, _) = sent(revision, meta).await;

        assert_eq!(meta["example.com/colour"], "red", "{revision}: {meta}");
        let modern = meta
            .get("io.modelcontextprotocol/protocolVersion")
            .is_some();
        assert_eq!(modern, revision == MODERN, "{meta}");
    }
}

/// Members are added with a `Meta`, which rejects keys outside the grammar and reserved keys.
#[tokio::test(start_paused = true)]
async fn reserved_meta_keys_cannot_be_added() {
    req!(
        "meta.key.prefix-format",
        "meta.key.label-format",
        "meta.key.name-format",
        "meta.key.reserved-prefix"
    );
    for key in [
        "-a.com/b",
        "a..b/c",
        "a-/b",
        "/b",
        "a b",
        "example.com/b_",
        "a/b/c",
        "io.modelcontextprotocol/protocolVersion",
        "com.mcp/x",
        "mcp.dev/x",
        "traceparent",
    ] {
        let mut meta = Meta::new();
        assert!(meta.insert(key, 1).is_err(), "{key}");
        let map = Map::from_iter([(key.to_owned(), json!(1))]);
        assert!(Meta::try_from(map).is_err(), "{key}");

        for revision in ["2025-06-18", "2025-11-25", MODERN] {
            let (sent, _) = sent(revision, meta.clone()).await;
            let members = sent.as_object().unwrap();
            let own = |key: &&String| {
                let key = key.as_str();
                key != "progressToken" && !key.starts_with("io.modelcontextprotocol/client")
            };
            let others: Vec<_> = members.keys().filter(own).collect();
            // The protocol version is reserved.
            let expected: &[&str] = match revision {
                MODERN => &["io.modelcontextprotocol/protocolVersion"],
                _ => &[],
            };
            assert_eq!(others, expected, "{revision} {key}");
        }
    }
}

/// A member of `_meta` occurs once.
#[tokio::test(start_paused = true)]
async fn meta_members_of_the_client_occur_once() {
    for revision in EVERY {
        let mut meta = Meta::new();
        meta.set_progress_token(&"mine".into());
        meta.set_log_level(turnbuckle_protocol::types::LogLevel::Error);

        let (_, line) = sent(revision, meta).await;

        assert_eq!(line.matches("\"progressToken\"").count(), 1, "{line}");
        assert!(line.matches("logLevel").count() <= 1, "{line}");
    }
}

/// A gateway may forward received members; a server of both eras would take the request for a modern one.
#[tokio::test(start_paused = true)]
async fn callers_cannot_replace_the_client_identity() {
    for revision in EVERY {
        let mut meta = Meta::new();
        let other = Implementation::new("other", "1");
        meta.set_client("2099-01-01", &other, &ClientCapabilities::new());

        let (meta, line) = sent(revision, meta).await;

        assert!(!line.contains("2099-01-01"), "{line}");
        assert!(!line.contains("other"), "{line}");
        let sent_text = meta.get("io.modelcontextprotocol/protocolVersion");
        assert_eq!(sent_text.is_some(), revision == MODERN, "{meta}");
    }
}

#[tokio::test(start_paused = true)]
async fn trace_context_has_unprefixed_keys() {
    req!("meta.trace.format");
    let mut meta = Meta::new();
    meta.set_trace_context(PARENT, Some("rojo=1"));

    let (meta, _) = sent(MODERN, meta).await;

    assert_eq!(meta["traceparent"], PARENT);
    assert_eq!(meta["tracestate"], "rojo=1");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_trace_context_is_not_sent() {
    req!("meta.trace.format");
    for parent in [
        "",
        "nonsense",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    ] {
        let mut meta = Meta::new();
        meta.set_trace_context(parent, Some("rojo=1"));
        meta.insert("example.com/colour", "red").unwrap();

        let (meta, _) = sent(MODERN, meta).await;

        assert_eq!(meta.get("traceparent"), None, "{meta}");
        assert_eq!(meta.get("tracestate"), None, "{meta}");
        assert_eq!(meta["example.com/colour"], "red");
    }
}
