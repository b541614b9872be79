//! Attacks on byte streams.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool, ndjson::NdjsonServer};

use crate::ndjson::test_client::Peer;

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"alive\",\"method\":\"ping\"}\n";

/// A server with more output than input.
pub(crate) fn talkative() -> Server {
    let large = Tool::new("large", async || Ok("x".repeat(1024 * 1024)));
    let later = Tool::new("later", async || {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok("x".repeat(1024 * 1024))
    });
    let forever = Tool::new("forever", async |cx: Context| {
        loop {
            cx.log(LogLevel::Error, "x".repeat(16 * 1024)).await;
            tokio::task::yield_now().await;
        }
        #[expect(unreachable_code, reason = "the type of what never returns")]
        Ok(String::new())
    });
    Server::new("talkative", "1")
        .tool(large)
        .tool(later)
        .tool(forever)
}

pub(crate) fn call(id: usize, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Waits for the response to a ping, and skips other messages.
async fn alive(peer: &mut Peer) {
    peer.send_bytes(PING).await;
    while peer.next().await["id"] != "alive" {}
}

/// A gigabyte without a line break.
pub(crate) async fn endless_line() {
    let mut peer = Peer::new(talkative());
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..1024 {
        peer.send_bytes(&piece).await;
    }
    assert_eq!(peer.next().await["error"]["code"], -32600);
    peer.send_bytes(b"\n").await;
    alive(&mut peer).await;
}

/// A hundred thousand notifications of every kind, and unexpected responses.
pub(crate) async fn notifications() {
    let mut peer = Peer::initialized(talkative(), "2025-11-25", json!({})).await;
    // Enough of each kind to exceed the limit if they were stored.
    let padding = "x".repeat(3 * 1024);
    for round in 0..100 {
        let mut flood = String::new();
        for at in 0..250 {
            let id = round * 250 + at;
            for message in [
                json!({ "method": "notifications/cancelled", "params": { "requestId": id, "reason": padding } }),
                json!({ "method": "notifications/progress", "params": { "progressToken": id, "progress": 1, "message": padding } }),
                json!({ "method": format!("notifications/{id}"), "params": { "text": padding } }),
                json!({ "id": id, "result": { "text": padding } }),
            ] {
                let mut message = message;
                message["jsonrpc"] = json!("2.0");
                flood.push_str(&message.to_string());
                flood.push('\n');
            }
        }
        peer.send_bytes(flood.as_bytes()).await;
    }
    alive(&mut peer).await;
}

/// Writes until the other end stops reading.
async fn push_until_stuck(writer: &mut (impl AsyncWrite + Unpin), text: &str) {
    for _ in 0..100_000 {
        let written = timeout(Duration::from_secs(1), writer.write_all(text.as_bytes())).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("{error}"),
            Err(_) => return,
        }
    }
    panic!("everything was taken");
}

/// A peer that sends many requests, and one with a call that keeps sending messages. Neither reads.
pub(crate) async fn unread() {
    let server = talkative();
    let mut kept = Vec::new();
    for tool in ["large", "forever"] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        drop(tokio::spawn(
            NdjsonServer::new(server.clone()).serve(reader, writer),
        ));
        let (unread, mut writer) = tokio::io::split(near);
        let hello = crate::ndjson::test_client::initialize("2025-11-25", json!({}));
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let started = format!("{hello}\n{ready}\n{}\n", call(1, tool));
        writer.write_all(started.as_bytes()).await.unwrap();
        push_until_stuck(&mut writer, &format!("{}\n", call(2, "large"))).await;
        kept.push((unread, writer));
    }
    let mut other = Peer::new(server);
    alive(&mut other).await;
}

/// Batches of a hundred calls with responses of 1 MiB each, immediate and delayed.
pub(crate) async fn batches() {
    for tool in ["large", "later"] {
        let mut peer = Peer::initialized(talkative(), "2025-03-26", json!({})).await;
        let calls: Vec<_> = (1..=100).map(|id| call(id, tool)).collect();

        peer.send(Value::Array(calls)).await;

        let responses = peer.next().await;
        let responses = responses.as_array().unwrap();
        assert_eq!(responses.len(), 100, "each has an answer");
        let given = responses
            .iter()
            .filter(|it| it["result"].is_object())
            .count();
        assert_eq!(given, 3, "and there is room for three of them");
        drop(peer);
    }
}
