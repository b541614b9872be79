//! The connection of the start, which the first client of a gateway can use.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway, Sharing, Upstream};
use turnbuckle_protocol::types::Implementation;
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::scripted,
    scripts::{Script, text, tools},
    upstreams::{ConnectionCount, ERAS, counted, desk},
};

/// Starts a gateway that expects the peers of these tests, with some capabilities.
async fn start(upstream: Upstream, capabilities: &Value) -> RunningGateway {
    let capabilities = serde_json::from_value(capabilities.clone()).unwrap();
    let gateway = Gateway::new("gateway", "1.0.0").upstream(upstream);
    let gateway = gateway.first_client(Implementation::new("test", "0"), capabilities);
    gateway.start().await.unwrap()
}

async fn connect(gateway: &RunningGateway, capabilities: &Value) -> Peer {
    let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
    peer.capabilities(capabilities.clone()).await
}

async fn greet(peer: &mut Peer) {
    let greeted = peer.call_tool("greet", json!({ "name": "Ada" })).await;
    assert_eq!(greeted.text(), "Hello, Ada!");
}

#[tokio::test(start_paused = true)]
async fn the_first_client_uses_the_connection_of_the_start() {
    let declared = json!({ "elicitation": {}, "sampling": {} });
    for era in ERAS {
        for sharing in [Sharing::Auto, Sharing::Session, Sharing::Principal] {
            let count = ConnectionCount::default();
            let upstream = counted("desk", era, desk(), &count).sharing(sharing);
            let gateway = start(upstream, &declared).await;
            let mut peer = connect(&gateway, &declared).await;
            for _ in 0..3 {
                greet(&mut peer).await;
            }

            assert_eq!(count.opened(), 1, "{era:?} {sharing:?}");
            gateway.close().await;
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert_eq!(count.open(), 0, "{era:?} {sharing:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_client_gets_a_connection_of_its_own() {
    let count = ConnectionCount::default();
    let upstream = counted("desk", LifecycleMode::Legacy, desk(), &count);
    let gateway = start(upstream, &json!({ "sampling": {} })).await;
    let mut other = connect(&gateway, &json!({ "roots": {} })).await;
    greet(&mut other).await;
    assert_eq!(count.opened(), 2);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(count.open(), 1, "the connection of the start is closed");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_no_client_uses_ends_with_the_idle_timeout() {
    let count = ConnectionCount::default();
    let upstream = counted("desk", LifecycleMode::Legacy, desk(), &count);
    let gateway = start(upstream, &json!({})).await;
    assert_eq!(count.open(), 1);
    tokio::time::sleep(std::time::Duration::from_secs(330)).await;
    assert_eq!(count.open(), 0);
    let mut peer = connect(&gateway, &json!({})).await;
    greet(&mut peer).await;
    assert_eq!(count.opened(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_down_keeps_no_connection_without_a_client() {
    let script = Script::new(|method, _| match method {
        "tools/list" => tools(&["x"]),
        "tools/call" => text("done"),
        _ => Value::Null,
    });
    let upstream = script.upstream("script").sharing(Sharing::Session);
    let gateway = start(upstream, &json!({})).await;
    let mut peer = connect(&gateway, &json!({})).await;
    assert_eq!(peer.call_tool("x", json!({})).await.text(), "done");
    assert_eq!(script.open_connections(), 1);

    script.set_down(true);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let _ = peer.call_tool("x", json!({})).await;
    script.set_down(false);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(script.open_connections(), 0);
    assert!(
        script.requests("initialize").len() > 1,
        "it was tried again"
    );

    assert_eq!(peer.call_tool("x", json!({})).await.text(), "done");
    assert_eq!(script.open_connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_handshake_names_the_client_and_its_capabilities() {
    let declared = json!({ "sampling": {} });
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start(upstream, &declared).await;
    let mut connection = server.connection().await;
    let named = &connection.handshake["clientInfo"]["name"];
    assert_eq!(named, "test (via gateway 1.0.0)");
    assert_eq!(connection.handshake["capabilities"], declared);

    let mut peer = connect(&gateway, &declared).await;
    let id = peer.start_tool("x", json!({})).await;
    let request = connection.expect("tools/call").await;
    // It has a client now, which gets requests outside of calls too.
    connection.respond_text(&request, "done").await;
    peer.finish(id).await.expect_result();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_requests_roots_at_once_gets_a_connection_of_the_client() {
    let declared = json!({ "roots": {} });
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start(upstream, &declared).await;
    let mut first = server.connection().await;
    first.request(7, "roots/list", json!({})).await;
    let refused = first.response(7).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");

    let mut peer = connect(&gateway, &declared).await;
    let _id = peer.start_tool("x", json!({})).await;
    let mut second = server.connection().await;
    second.expect("tools/call").await;
    assert_eq!(gateway.status()[0].refused_client_requests, 0);
}
