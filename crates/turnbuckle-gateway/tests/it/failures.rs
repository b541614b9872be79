//! Servers that cannot be reached, die or do not respond.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle_client::{LifecycleMode, Target, Timeouts, ndjson::NdjsonClient};
use turnbuckle_gateway::{Gateway, Sharing, StartError, Upstream, UpstreamState};
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::scripted,
    upstreams::{ConnectionCount, counted, desk, start, upstream},
};

/// A server with connections that close at once while `down` is set.
fn unreliable(name: &str, down: &Arc<AtomicBool>) -> Upstream {
    let (down, server) = (Arc::clone(down), desk());
    Upstream::new(name, move || {
        let (near, far) = tokio::io::duplex(64 * 1024);
        if !down.load(Ordering::SeqCst) {
            let (reader, writer) = tokio::io::split(far);
            let server = server.clone();
            tokio::spawn(turnbuckle_server::ndjson::serve(reader, writer, server));
        }
        let (reader, writer) = tokio::io::split(near);
        Target::from(NdjsonClient::new(reader, writer))
    })
    .lifecycle_mode(LifecycleMode::Legacy)
}

#[tokio::test(start_paused = true)]
async fn the_only_server_must_be_reachable() {
    let down = Arc::new(AtomicBool::new(true));
    let gateway = Gateway::new("gateway", "1").upstream(unreliable("desk", &down));
    let started = gateway.start().await;
    assert!(
        matches!(started, Err(StartError::Unreachable { .. })),
        "{started:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn equal_names_and_no_server_are_errors() {
    let none = Gateway::new("gateway", "1").start().await;
    assert!(matches!(none, Err(StartError::NoUpstream)));
    let desk = || upstream("desk", LifecycleMode::Modern, desk());
    let gateway = Gateway::new("gateway", "1")
        .upstream(desk())
        .upstream(desk());
    assert!(matches!(
        gateway.start().await,
        Err(StartError::DuplicateName(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_left_out_and_comes_back() {
    let down = Arc::new(AtomicBool::new(true));
    let gateway = start([
        upstream("up", LifecycleMode::Modern, desk()),
        unreliable("flaky", &down),
    ])
    .await;
    let mut peer = Peer::connect(gateway.server()).await;

    let tools = peer.request("tools/list", json!({})).await;
    let tools = tools.expect_result().clone();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5);
    assert_eq!(tools["_meta"]["dev.turnbuckle/servers"][1]["state"], "down");
    let params = json!({ "name": "flaky_greet", "arguments": { "name": "Ada" } });
    let response = peer.request("tools/call", params).await;
    let error = response.expect_error(-32602);
    assert!(
        error["message"].as_str().unwrap().contains("down: flaky"),
        "{error}"
    );

    down.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(gateway.status()[1].state, UpstreamState::Up);
    let tools = peer.request("tools/list", json!({})).await;
    assert_eq!(tools.expect_result()["tools"].as_array().unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_names_the_server_and_nothing_else() {
    let timeouts = Timeouts {
        idle: Duration::from_secs(10),
        total: Duration::from_secs(20),
    };
    let desk = upstream("desk", LifecycleMode::Legacy, desk()).timeouts(timeouts);
    let gateway = start([desk]).await;
    for peer in [
        Peer::connect(gateway.server()).modern(),
        Peer::connect(gateway.server()).legacy("2025-06-18"),
    ] {
        let mut peer = peer.await;
        let params = json!({ "name": "sleep", "arguments": {} });
        let response = peer.request("tools/call", params).await;
        let data = &response.expect_error(-32603)["data"];
        assert_eq!(
            *data,
            json!({ "server": "desk", "kind": "timeout", "effect": "unknown" })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_the_connection_usable() {
    let count = ConnectionCount::default();
    let gateway = start([counted("desk", LifecycleMode::Legacy, desk(), &count)]).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let params = json!({ "name": "sleep", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params });
    peer.send(call).await;
    peer.notify("notifications/cancelled", json!({ "requestId": "slow" }))
        .await;
    peer.call_tool("greet", json!({ "name": "Ada" }))
        .await
        .expect_result();
    gateway.close().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_counted_once() {
    let (scripted, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([scripted.sharing(Sharing::All)]).await;
    let mut peer = Peer::connect(gateway.server()).await;
    drop(server.connection().await);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let id = peer.start_tool("x", json!({})).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
    peer.finish(id).await.expect_result();

    assert_eq!(gateway.metrics().servers[0].1.restarts, 1);
}
