//! Changes of the roots of a client.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing};
use turnbuckle_protocol::Revision;
use turnbuckle_server::testing::{Combination, Peer, TransportKind};

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted},
    upstreams::start,
};

async fn gateway() -> (RunningGateway, ScriptedServer) {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream]).await;
    drop(server.connection().await);
    (gateway, server)
}

fn roots(uri: &str) -> Value {
    json!({ "roots": [{ "uri": uri }] })
}

#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_servers_of_the_session() {
    for transport in [TransportKind::Ndjson, TransportKind::Http] {
        let (gateway, mut server) = gateway().await;
        let combination = Combination::new(transport, Revision::V2025_11_25);
        let declared = json!({ "roots": { "listChanged": true } });
        let connect = async || {
            let peer = combination.connect(gateway.server());
            peer.capabilities(declared.clone()).await
        };
        let (mut peer, mut other) = (connect().await, connect().await);
        let mut connection = open(&mut peer, &mut server).await;
        let mut of_other = open(&mut other, &mut server).await;
        assert_eq!(connection.handshake["capabilities"], declared);

        let changed = "notifications/roots/list_changed";
        peer.notify(changed, json!({ "_meta": { "a": 1 } })).await;

        let notified = connection.expect(changed).await;
        assert_eq!(notified["params"]["_meta"]["a"], 1);
        let id = other.start_tool("x", json!({})).await;
        let next = of_other.receive().await.unwrap();
        assert_eq!(
            next["method"], "tools/call",
            "the other server gets no notification"
        );
        of_other.respond_text(&next, "done").await;
        other.finish(id).await.expect_result();
    }
}

/// Completes a call of a legacy client, and returns the connection that it has opened.
async fn open(peer: &mut Peer, server: &mut ScriptedServer) -> ScriptedConnection {
    let id = peer.start_tool("x", json!({})).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
    peer.finish(id).await.expect_result();
    connection
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_reach_a_shared_connection() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    peer.notify("notifications/roots/list_changed", json!({}))
        .await;
    let _id = peer.start_tool("x", json!({})).await;
    let next = connection.receive().await.unwrap();
    assert_eq!(next["method"], "tools/call");
}

/// A modern client that gets requests for its roots in its calls.
struct ModernClient {
    peer: Peer,
    server: ScriptedServer,
    gateway: RunningGateway,
}

impl ModernClient {
    async fn new() -> Self {
        let (gateway, server) = gateway().await;
        let peer = Peer::connect(gateway.server()).modern();
        let peer = peer.capabilities(json!({ "roots": {} })).await;
        Self {
            peer,
            server,
            gateway,
        }
    }

    async fn call(&mut self) -> i64 {
        self.peer.start("tools/call", json!({ "name": "x" })).await
    }

    /// Responds to the request for the roots that is the result of a call.
    async fn send_roots(&mut self, id: i64, uri: &str) -> i64 {
        let result = self.peer.finish(id).await.expect_result().clone();
        let requests = result["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert_eq!(request["method"], "roots/list");
        let retry = json!({
            "name": "x", "requestState": result["requestState"], "inputResponses": { (key): roots(uri) },
        });
        self.peer.start("tools/call", retry).await
    }
}

async fn expect_ping(connection: &mut ScriptedConnection) {
    let ping = connection.receive().await.unwrap();
    assert_eq!(ping["method"], "ping");
    connection.respond(&ping, json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_is_asked_in_the_call_that_opened_the_connection_and_again_an_hour_later() {
    let mut client = ModernClient::new().await;
    let id = client.call().await;
    let mut connection = client.server.connection().await;
    // As servers do that request the roots as soon as they are initialized.
    connection.request(1, "roots/list", json!({})).await;
    expect_ping(&mut connection).await;
    let id = client.send_roots(id, "file:///a").await;
    assert_eq!(
        connection.receive().await.unwrap()["result"],
        roots("file:///a")
    );
    expect_ping(&mut connection).await;
    let request = connection.receive().await.unwrap();
    assert_eq!(
        request["method"], "tools/call",
        "the server gets the call after the roots"
    );
    connection.respond_text(&request, "done").await;
    assert_eq!(client.peer.finish(id).await.text(), "done");

    // Kept: neither the client nor the server hears of roots.
    let id = client.call().await;
    let request = connection.receive().await.unwrap();
    assert_eq!(request["method"], "tools/call");
    connection.request(2, "roots/list", json!({})).await;
    assert_eq!(connection.response(2).await["result"], roots("file:///a"));
    connection.respond_text(&request, "done").await;
    client.peer.finish(id).await.expect_result();

    for (uri, is_changed) in [("file:///a", false), ("file:///b", true)] {
        // The connection has to stay in use for an hour.
        for _ in 0..15 {
            tokio::time::sleep(Duration::from_secs(241)).await;
            let prompt = client.peer.start("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } })).await;
            let request = connection.expect("completion/complete").await;
            connection
                .respond(&request, json!({ "completion": { "values": [] } }))
                .await;
            client.peer.finish(prompt).await.expect_result();
        }
        let id = client.call().await;
        let id = client.send_roots(id, uri).await;
        if is_changed {
            let changed = connection.receive().await.unwrap();
            assert_eq!(changed["method"], "notifications/roots/list_changed");
            connection.request(3, "roots/list", json!({})).await;
            assert_eq!(connection.response(3).await["result"], roots("file:///b"));
        }
        let request = connection.expect("tools/call").await;
        connection.respond_text(&request, "done").await;
        assert_eq!(client.peer.finish(id).await.text(), "done", "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn roots_that_could_not_be_requested_are_requested_in_the_next_call() {
    let mut client = ModernClient::new().await;
    let id = client.peer.start("tools/list", json!({})).await;
    let mut connection = client.server.connection().await;
    connection.request(1, "roots/list", json!({})).await;
    let request = connection.expect("tools/list").await;
    connection.respond(&request, json!({ "tools": [] })).await;
    client.peer.finish(id).await.expect_result();
    assert_eq!(client.gateway.status()[0].refused_client_requests, 1);

    let id = client.call().await;
    connection.expect("notifications/roots/list_changed").await;
    connection.request(2, "roots/list", json!({})).await;
    expect_ping(&mut connection).await;
    let id = client.send_roots(id, "file:///a").await;
    assert_eq!(connection.response(2).await["result"], roots("file:///a"));
    expect_ping(&mut connection).await;
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
    assert_eq!(client.peer.finish(id).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_request_for_roots_ends_with_its_call() {
    let mut client = ModernClient::new().await;
    let id = client.call().await;
    let mut connection = client.server.connection().await;
    expect_ping(&mut connection).await;
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
    connection.request(1, "roots/list", json!({})).await;
    client.peer.finish(id).await.expect_result();
    assert_eq!(connection.response(1).await["error"]["code"], -32603);
}
