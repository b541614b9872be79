//! A fake server on HTTP that knows the handshake of its revision, and leaves the rest to the test.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use turnbuckle_client::{Client, ClientBuilder, ConnectError, LifecycleMode, http::HttpTarget};

use crate::fake_http::{FakeHttp, Reply, Seen};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LATEST_LEGACY: &str = "2025-11-25";
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", LATEST_LEGACY];

/// A server of a revision. What the test does not answer is answered as a plain server would.
///
/// Sessions are named `session-1`, `session-2` and so on; there is no stream of the server's own.
pub(crate) fn server(
    revision: &'static str,
    answer: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
) -> FakeHttp {
    let sessions = AtomicUsize::new(0);
    FakeHttp::in_memory(move |seen| {
        answer(seen).unwrap_or_else(|| match seen.method.as_str() {
            "POST" => plain_answer(revision, seen, &sessions),
            "DELETE" => Reply::status(200),
            _ => Reply::status(405),
        })
    })
}

fn plain_answer(revision: &str, seen: &Seen, sessions: &AtomicUsize) -> Reply {
    let modern = revision == MODERN;
    match seen.rpc().as_str() {
        "server/discover" if modern => Reply::result(seen, &discovered()),
        "server/discover" => Reply::status(400),
        "initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let reply = Reply::result(seen, &initialized(revision));
            reply.header("Mcp-Session-Id", &format!("session-{number}"))
        }
        "tools/call" => Reply::result(seen, &output("done")),
        _ if seen.json()["id"].is_null() || seen.rpc().is_empty() => Reply::status(202),
        _ => Reply::result(seen, &json!({})),
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {}, "logging": {} },
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn initialized(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {}, "logging": {} },
        "serverInfo": { "name": "fake", "version": "1" },
    })
}

/// The result of a tool, good for every revision.
pub(crate) fn output(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// The answer to a request that was seen, as a message.
pub(crate) fn answer_to(seen: &Seen, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": output(text) })
}

/// Answers calls of tools, and leaves everything else.
pub(crate) fn on_call(
    reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static {
    move |seen| (seen.rpc() == "tools/call").then(|| reply(seen))
}

/// Where the fake is.
pub(crate) fn at(fake: &FakeHttp) -> HttpTarget {
    HttpTarget::new(fake.url("/mcp")).connector(fake.dial())
}

/// A client that speaks this revision, and asks nothing else first.
pub(crate) fn speaking(revision: &str) -> ClientBuilder {
    let era = match revision {
        MODERN => LifecycleMode::Modern,
        _ => LifecycleMode::Legacy,
    };
    Client::builder("test", "1.0").lifecycle_mode(era)
}

pub(crate) async fn connect(fake: &FakeHttp, revision: &str) -> Client {
    let connected = speaking(revision).connect(at(fake)).await;
    connected.expect("the fake can be connected to")
}

/// Tries to connect to a fake that makes it fail.
pub(crate) async fn connect_error(fake: &FakeHttp, revision: &str) -> ConnectError {
    let connected = speaking(revision).connect(at(fake)).await;
    connected.expect_err("this cannot go well")
}

/// Every message of a method that was posted.
pub(crate) fn posted(fake: &FakeHttp, method: &str) -> Vec<Seen> {
    let mut seen = fake.seen();
    seen.retain(|seen| seen.rpc() == method);
    seen
}

/// Every request with an HTTP method.
pub(crate) fn by_method(fake: &FakeHttp, method: &str) -> Vec<Seen> {
    let mut seen = fake.seen();
    seen.retain(|seen| seen.method == method);
    seen
}

/// Lets everything happen that needs no time.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
