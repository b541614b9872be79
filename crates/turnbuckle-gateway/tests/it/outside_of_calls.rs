//! What a legacy server sends outside of calls: it reaches the client of a connection that belongs to one session.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing};
use turnbuckle_protocol::{Revision, types::LogLevel};
use turnbuckle_server::testing::{Combination, Peer, TransportKind, http};

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted},
    upstreams::{client, start},
};

/// The clients with sessions: on a byte stream, with a GET stream, and over HTTP+SSE.
fn sessions() -> [Combination; 3] {
    [
        Combination::new(TransportKind::Ndjson, Revision::V2025_11_25),
        Combination::new(TransportKind::Http, Revision::V2025_11_25),
        Combination::new(TransportKind::HttpSse, Revision::V2024_11_05),
    ]
}

async fn gateway(sharing: Sharing) -> (RunningGateway, ScriptedServer) {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(sharing)]).await;
    // That of the start.
    drop(server.connection().await);
    (gateway, server)
}

/// Completes a call of the client, and returns the connection that it has opened.
async fn connect(peer: &mut Peer, server: &mut ScriptedServer) -> ScriptedConnection {
    let id = peer.start_tool("x", json!({})).await;
    let mut connection = server.connection().await;
    finish_call(&mut connection).await;
    peer.finish(id).await.expect_result();
    connection
}

async fn finish_call(connection: &mut ScriptedConnection) {
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
}

async fn log(connection: &mut ScriptedConnection, level: &str, data: &str) {
    let params = json!({ "level": level, "data": data });
    connection.notify("notifications/message", params).await;
}

/// Returns the texts of the log messages until the last one of the test.
async fn logged(peer: &mut Peer) -> Vec<Value> {
    let mut texts = Vec::new();
    loop {
        let message = peer.expect_notification("notifications/message").await;
        texts.push(message["data"].clone());
        if message["data"] == "last" {
            return texts;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn log_messages_reach_the_session_at_its_level() {
    for combination in sessions() {
        let (gateway, mut server) = gateway(Sharing::Auto).await;
        let mut peer = combination.connect(gateway.server()).await;
        let mut connection = connect(&mut peer, &mut server).await;
        log(&mut connection, "debug", "below the default").await;
        log(&mut connection, "info", "last").await;
        assert_eq!(logged(&mut peer).await, ["last"], "{combination}");

        let level = peer.start("logging/setLevel", json!({ "level": "error" }));
        let id = level.await;
        let set = connection.expect("logging/setLevel").await;
        assert_eq!(set["params"]["level"], "error");
        connection.respond(&set, json!({})).await;
        peer.finish(id).await.expect_result();
        log(&mut connection, "warning", "below the level").await;
        log(&mut connection, "error", "last").await;
        assert_eq!(logged(&mut peer).await, ["last"], "{combination}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_session_gets_the_log_messages_of_its_own_connection() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let http = Combination::new(TransportKind::Http, Revision::V2025_11_25);
    let mut ada = http.connect(gateway.server()).await;
    let mut bo = http.connect(gateway.server()).await;
    let mut of_ada = connect(&mut ada, &mut server).await;
    let mut of_bo = connect(&mut bo, &mut server).await;

    log(&mut of_ada, "info", "for Ada").await;
    log(&mut of_bo, "info", "for Bo").await;

    let message = ada.expect_notification("notifications/message").await;
    assert_eq!(message["data"], "for Ada");
    let message = bo.expect_notification("notifications/message").await;
    assert_eq!(message["data"], "for Bo");
    ada.expect_no_message().await;
    bo.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_on_a_shared_connection_are_dropped_and_counted() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let id = peer.start_tool("x", json!({})).await;
    finish_call(&mut connection).await;
    peer.finish(id).await.expect_result();

    log(&mut connection, "error", "of unknown origin").await;

    peer.expect_no_message().await;
    assert_eq!(gateway.metrics().servers[0].1.dropped_notifications, 1);
}

#[tokio::test(start_paused = true)]
async fn client_requests_reach_the_session_and_its_responses_the_server() {
    for combination in sessions() {
        let (gateway, mut server) = gateway(Sharing::Auto).await;
        let peer = combination.connect(gateway.server());
        let mut peer = peer.respond_with(client).await;
        let mut connection = connect(&mut peer, &mut server).await;

        connection.request(1, "roots/list", json!({})).await;
        connection
            .request(2, "sampling/createMessage", sampling())
            .await;
        let expected = [
            client("roots/list", &Value::Null),
            client("sampling/createMessage", &Value::Null),
        ];
        // The client responds when it receives.
        let answered = async {
            let first = connection.response(1).await["result"].clone();
            [first, connection.response(2).await["result"].clone()]
        };
        let answered = with_messages(&mut peer, answered).await;
        assert_eq!(answered, expected, "{combination}");
        assert_eq!(gateway.status()[0].refused_client_requests, 0);
    }
}

fn sampling() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "messages": [message], "maxTokens": 5 })
}

/// Lets the client read messages until the future is ready.
async fn with_messages<T>(peer: &mut Peer, future: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        output = future => output,
        _ = peer.expect_notification("never") => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn roots_can_be_requested_directly_after_the_handshake() {
    for combination in sessions() {
        for method in ["tools/list", "tools/call"] {
            let (gateway, mut server) = gateway(Sharing::Auto).await;
            let mut peer = combination
                .connect(gateway.server())
                .respond_with(client)
                .await;
            let id = peer.start(method, json!({ "name": "x" })).await;
            let mut connection = server.connection().await;
            connection.request(1, "roots/list", json!({})).await;
            // The server does not wait for the roots.
            let request = connection.expect(method).await;
            let result = json!({ "tools": [], "content": [] });
            connection.respond(&request, result).await;

            peer.finish(id).await.expect_result();
            let response = with_messages(&mut peer, connection.response(1)).await;
            let roots = client("roots/list", &Value::Null);
            assert_eq!(response["result"], roots, "{combination} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_client_did_not_declare_is_not_requested() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
    let mut peer = peer.capabilities(json!({ "roots": {} })).await;
    let mut connection = connect(&mut peer, &mut server).await;
    assert_eq!(connection.handshake["capabilities"]["roots"], json!({}));

    connection
        .request(1, "sampling/createMessage", sampling())
        .await;

    assert_eq!(connection.response(1).await["error"]["code"], -32601);
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn client_requests_on_a_shared_connection_are_refused_and_counted() {
    for sharing in [Sharing::All, Sharing::Principal] {
        let (upstream, mut server) = scripted(LifecycleMode::Legacy);
        let gateway = start([upstream.sharing(sharing)]).await;
        let mut connection = server.connection().await;
        let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        let id = peer.start_tool("x", json!({})).await;
        if sharing == Sharing::Principal {
            connection = server.connection().await;
        }
        finish_call(&mut connection).await;
        peer.finish(id).await.expect_result();

        connection.request(1, "roots/list", json!({})).await;

        assert_eq!(connection.response(1).await["error"]["code"], -32603);
        assert_eq!(gateway.status()[0].refused_client_requests, 1);
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_stream_is_not_awaited_for_long() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let session = http(gateway.server()).in_session("2025-11-25").await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
    let (called, mut connection) = tokio::join!(session.post(&call), async {
        let mut connection = server.connection().await;
        finish_call(&mut connection).await;
        connection
    });
    assert!(called.json().await["result"].is_object());

    let started = tokio::time::Instant::now();
    log(&mut connection, "info", "dropped").await;
    connection
        .request(1, "sampling/createMessage", sampling())
        .await;
    assert_eq!(connection.response(1).await["error"]["code"], -32603);
    assert!(started.elapsed() < Duration::from_secs(10));

    connection.request(2, "roots/list", json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut events = session.get(None).await.events();
    let request = loop {
        let message = events.message().await.unwrap();
        if message["method"] == "roots/list" {
            break message;
        }
    };
    let roots = client("roots/list", &Value::Null);
    let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": roots });
    assert_eq!(session.post(&response).await.status(), 202);
    assert_eq!(connection.response(2).await["result"], roots);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_server_cancels_is_cancelled_at_the_client() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let http = Combination::new(TransportKind::Http, Revision::V2025_11_25);
    let peer = http.connect(gateway.server());
    let mut peer = peer.capabilities(json!({ "roots": {} })).await;
    let mut connection = connect(&mut peer, &mut server).await;
    connection.request(7, "roots/list", json!({})).await;
    let request = peer.expect_request("roots/list").await;

    let cancelled = json!({ "requestId": 7 });
    connection
        .notify("notifications/cancelled", cancelled)
        .await;

    let cancelled = peer.expect_notification("notifications/cancelled").await;
    assert_eq!(cancelled["requestId"], request.id);
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_gets_nothing_outside_of_its_requests() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let mut peer = Peer::connect(gateway.server())
        .modern()
        .log_level(LogLevel::Debug)
        .await;
    let mut connection = connect(&mut peer, &mut server).await;

    log(&mut connection, "error", "late").await;
    connection
        .request(1, "sampling/createMessage", sampling())
        .await;

    assert_eq!(connection.response(1).await["error"]["code"], -32603);
    peer.expect_no_message().await;
}
