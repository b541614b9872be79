//! Clients that do not read what is sent to them, on a connection that they share with others.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use turnbuckle_gateway::{RunningGateway, Sharing};
use turnbuckle_server::testing::Peer;

use crate::{
    failing_server::{Scripted, Step, is_call, result},
    upstreams::{ERAS, start},
};

/// The number of notifications that a server sends for one call.
const FLOOD: usize = 10_000;
/// Every this many, there is a log message too.
const LOG_INTERVAL: usize = 10;

/// A server that sends many notifications for a call before its result.
fn flooding(mode: turnbuckle_client::LifecycleMode, count: usize) -> Scripted {
    Scripted::new(mode, move |message, _| {
        if !is_call(message, "flood") {
            return Step::Default;
        }
        let token = &message["params"]["_meta"]["progressToken"];
        let notification = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let mut messages = Vec::new();
        for number in 0..count {
            let progress =
                json!({ "progressToken": token, "progress": number, "message": "x".repeat(100) });
            messages.push(notification("notifications/progress", progress));
            if number % LOG_INTERVAL > 0 {
                continue;
            }
            let log = json!({ "level": "error", "data": number });
            messages.push(notification("notifications/message", log));
        }
        messages.push(result(message, &json!({ "content": [] })));
        Step::Messages(messages)
    })
}

/// Connects a client that has a small buffer, and calls the tool; the response is not read.
async fn call_without_reading(gateway: &RunningGateway) -> DuplexStream {
    let (mut near, far) = tokio::io::duplex(2 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(turnbuckle_server::ndjson::serve(
        reader,
        writer,
        gateway.server(),
    ));
    let client = json!({ "name": "slow", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": "flood", "arguments": {}, "_meta": { "progressToken": "mine" } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "debug" } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }),
    ] {
        near.write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    near
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_delays_no_other_client_and_gets_the_newest_progress() {
    for mode in ERAS {
        let server = flooding(mode, FLOOD);
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        let slow = call_without_reading(&gateway).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(server.calls("flood"), 1, "{mode:?}");

        let mut peer = Peer::connect(gateway.server()).modern().await;
        let started = tokio::time::Instant::now();
        assert_eq!(peer.call_tool("greet", json!({})).await.text(), "done");
        assert!(started.elapsed() < Duration::from_secs(1), "{mode:?}");

        let mut lines = BufReader::new(slow).lines();
        let (mut progress, mut logs) = (Vec::new(), Vec::new());
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            match message["method"].as_str() {
                Some("notifications/progress") => {
                    progress.push(message["params"]["progress"].as_u64().unwrap());
                }
                Some("notifications/message") => {
                    logs.push(message["params"]["data"].as_u64().unwrap());
                }
                _ if message["id"] == 3 => break,
                _ => {}
            }
        }
        assert!(progress.len() < FLOOD / 2, "{mode:?}: {}", progress.len());
        assert!(progress.is_sorted() && logs.is_sorted(), "{mode:?}");
        assert_eq!(progress.last(), Some(&(FLOOD as u64 - 1)), "{mode:?}");
        assert_eq!(
            logs.last(),
            Some(&((FLOOD - LOG_INTERVAL) as u64)),
            "{mode:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_in_a_flood_leaves_the_connection_usable() {
    for mode in ERAS {
        let server = flooding(mode, 500);
        let gateway = start([server.upstream("desk").sharing(Sharing::All)]).await;
        for _ in 0..20 {
            drop(call_without_reading(&gateway).await);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;

        let mut peer = Peer::connect(gateway.server()).modern().await;
        assert_eq!(peer.call_tool("greet", json!({})).await.text(), "done");
        assert_eq!(server.connections(), 1, "{mode:?}");
    }
}
