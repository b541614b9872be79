//! What a connection announces reaches only the callers who use it.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway, Sharing, Upstream};
use turnbuckle_protocol::{Principal, Revision};
use turnbuckle_server::testing::{
    Combination, Peer, TestEventStream, TestHttpClient, TransportKind, http,
};

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted_as, scripted_with},
    upstreams::{desk, peer_of, per_caller, start},
};

const URI: &str = "file:///notes";
const UPDATED: &str = "notifications/resources/updated";
const CHANGED: &str = "notifications/tools/list_changed";
const COMPLETED: &str = "notifications/elicitation/complete";

/// The clients with sessions: on a byte stream, with a GET stream, and over HTTP+SSE.
fn sessions() -> [Combination; 3] {
    [
        Combination::new(TransportKind::Ndjson, Revision::V2025_11_25),
        Combination::new(TransportKind::Http, Revision::V2025_11_25),
        Combination::new(TransportKind::HttpSse, Revision::V2024_11_05),
    ]
}

/// A server that announces changes.
fn announcing() -> (Upstream, ScriptedServer) {
    let announced = json!({
        "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true },
    });
    scripted_with("scripted", LifecycleMode::Legacy, &announced)
}

async fn gateway(sharing: Sharing) -> (RunningGateway, ScriptedServer) {
    let (upstream, mut server) = announcing();
    let gateway = start([upstream.sharing(sharing)]).await;
    // That of the start.
    drop(server.connection().await);
    (gateway, server)
}

/// Lets a client subscribe on a connection of its own.
async fn subscribed(peer: &mut Peer, server: &mut ScriptedServer) -> ScriptedConnection {
    let id = peer.start("resources/subscribe", json!({ "uri": URI }));
    let id = id.await;
    let mut connection = server.connection().await;
    let request = connection.expect("resources/subscribe").await;
    connection.respond(&request, json!({})).await;
    peer.finish(id).await.expect_result();
    connection
}

/// Lets a client list the tools on a connection of its own.
async fn listed(peer: &mut Peer, server: &mut ScriptedServer) -> ScriptedConnection {
    let id = peer.start("tools/list", json!({})).await;
    let mut connection = server.connection().await;
    respond_tools(&mut connection, "before").await;
    peer.finish(id).await.expect_result();
    connection
}

async fn respond_tools(connection: &mut ScriptedConnection, name: &str) {
    let request = connection.expect("tools/list").await;
    let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
    connection
        .respond(&request, json!({ "tools": [tool] }))
        .await;
}

/// A client of the modern era over HTTP.
fn caller(gateway: &RunningGateway, subject: &str) -> TestHttpClient {
    let mut client = http(gateway.server());
    client.principal = Some(Principal::new("https://issuer.example", subject));
    client
}

/// Lets a client of the modern era listen on the connection of its principal.
async fn listening(
    client: &TestHttpClient,
    server: &mut ScriptedServer,
) -> (TestEventStream, ScriptedConnection) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": [URI] });
    let params = json!({ "notifications": wanted, "_meta": meta });
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let connect = async {
        let mut connection = server.connection().await;
        let request = connection.expect("resources/subscribe").await;
        connection.respond(&request, json!({})).await;
        connection
    };
    let (response, connection) = tokio::join!(client.post(&message), connect);
    let mut events = response.events();
    let acknowledged = events.message().await.unwrap();
    let granted = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*granted, json!([URI]));
    (events, connection)
}

/// Returns the methods of the messages until the stream has been silent for a second.
async fn methods(events: &mut TestEventStream) -> Vec<Value> {
    let mut methods = Vec::new();
    let silence = std::time::Duration::from_secs(5);
    while let Ok(Some(message)) = tokio::time::timeout(silence, events.message()).await {
        methods.push(message["method"].clone());
    }
    methods
}

#[tokio::test(start_paused = true)]
async fn an_update_reaches_only_the_session_with_the_connection() {
    for combination in sessions() {
        let (gateway, mut server) = gateway(Sharing::Auto).await;
        let mut ada = combination.connect(gateway.server()).await;
        let mut bo = combination.connect(gateway.server()).await;
        let mut of_ada = subscribed(&mut ada, &mut server).await;
        let mut of_bo = subscribed(&mut bo, &mut server).await;

        of_ada.notify(UPDATED, json!({ "uri": URI })).await;

        let updated = ada.expect_notification(UPDATED).await;
        assert_eq!(updated["uri"], URI, "{combination}");
        bo.expect_no_message().await;
        of_bo.notify(UPDATED, json!({ "uri": URI })).await;
        bo.expect_notification(UPDATED).await;
        ada.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_change_reaches_only_the_session_with_the_connection() {
    for combination in sessions() {
        let (gateway, mut server) = gateway(Sharing::Auto).await;
        let mut ada = combination.connect(gateway.server()).await;
        let mut bo = combination.connect(gateway.server()).await;
        let mut of_ada = listed(&mut ada, &mut server).await;
        let _of_bo = listed(&mut bo, &mut server).await;

        of_ada.notify(CHANGED, json!({})).await;
        respond_tools(&mut of_ada, "after").await;

        ada.expect_notification(CHANGED).await;
        bo.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_reach_only_the_listeners_of_the_principal_with_the_connection() {
    let (gateway, mut server) = gateway(Sharing::Auto).await;
    let (ada, bo) = (caller(&gateway, "ada"), caller(&gateway, "bo"));
    let (mut at_ada, mut of_ada) = listening(&ada, &mut server).await;
    let (mut at_bo, _of_bo) = listening(&bo, &mut server).await;
    // A session of the same principal has a connection of its own.
    let session = ada.clone().in_session("2025-11-25").await;
    let mut at_session = session.get(None).await.events();

    of_ada.notify(UPDATED, json!({ "uri": URI })).await;
    of_ada.notify(CHANGED, json!({})).await;

    assert_eq!(methods(&mut at_ada).await, [UPDATED, CHANGED]);
    assert_eq!(methods(&mut at_bo).await, Vec::<Value>::new());
    assert_eq!(methods(&mut at_session).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_a_principal_announces_to_its_sessions_and_listeners() {
    let (gateway, mut server) = gateway(Sharing::Principal).await;
    let (ada, bo) = (caller(&gateway, "ada"), caller(&gateway, "bo"));
    let (mut at_ada, mut of_ada) = listening(&ada, &mut server).await;
    let (mut at_bo, _of_bo) = listening(&bo, &mut server).await;
    let session = ada.in_session("2025-11-25").await;
    let mut at_session = session.get(None).await.events();
    let session_of_bo = bo.in_session("2025-11-25").await;
    let mut at_session_of_bo = session_of_bo.get(None).await.events();

    of_ada.notify(CHANGED, json!({})).await;

    assert_eq!(methods(&mut at_ada).await, [CHANGED]);
    assert_eq!(methods(&mut at_session).await, [CHANGED]);
    assert_eq!(methods(&mut at_bo).await, Vec::<Value>::new());
    assert_eq!(methods(&mut at_session_of_bo).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn modern_clients_on_connections_of_their_own_get_only_their_changes() {
    let (gateway, mut server) = gateway(Sharing::Session).await;
    let mut listeners = Vec::new();
    for _ in 0..2 {
        let mut peer = Peer::connect(gateway.server()).modern().await;
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": [URI] });
        let params = json!({ "notifications": filter });
        peer.start("subscriptions/listen", params).await;
        let mut connection = server.connection().await;
        let request = connection.expect("resources/subscribe").await;
        connection.respond(&request, json!({})).await;
        peer.expect_notification("notifications/subscriptions/acknowledged")
            .await;
        listeners.push((peer, connection));
    }

    listeners[0].1.notify(UPDATED, json!({ "uri": URI })).await;
    listeners[0].1.notify(CHANGED, json!({})).await;

    listeners[0].0.expect_notification(UPDATED).await;
    listeners[0].0.expect_notification(CHANGED).await;
    listeners[1].0.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_connection_announces_to_all() {
    let (upstream, mut server) = announcing();
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut peers = Vec::new();
    for combination in sessions() {
        let mut peer = combination.connect(gateway.server()).await;
        let id = peer
            .start("resources/subscribe", json!({ "uri": URI }))
            .await;
        if peers.is_empty() {
            let request = connection.expect("resources/subscribe").await;
            connection.respond(&request, json!({})).await;
        }
        peer.finish(id).await.expect_result();
        peers.push(peer);
    }

    connection.notify(UPDATED, json!({ "uri": URI })).await;
    connection.notify(CHANGED, json!({})).await;

    for peer in &mut peers {
        peer.expect_notification(UPDATED).await;
        peer.expect_notification(CHANGED).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_elicitation_is_completed_only_by_the_server_that_sent_it_to_the_session() {
    let (first, mut a) = scripted_as("a", LifecycleMode::Legacy);
    let (second, mut b) = scripted_as("b", LifecycleMode::Legacy);
    let gateway = start([first, second]).await;
    drop((a.connection().await, b.connection().await));
    let mut connected = Vec::new();
    for _ in 0..2 {
        let urls = json!({ "elicitation": { "form": {}, "url": {} } });
        let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
        let mut peer = peer.capabilities(urls).await;
        let id = peer.start("tools/list", json!({})).await;
        let (mut of_a, mut of_b) = (a.connection().await, b.connection().await);
        respond_tools(&mut of_a, "x").await;
        respond_tools(&mut of_b, "x").await;
        peer.finish(id).await.expect_result();
        connected.push((peer, of_a, of_b));
    }
    let (mut ada, mut of_ada_at_a, mut of_ada_at_b) = connected.remove(0);
    let (mut bo, mut of_bo_at_a, _) = connected.remove(0);
    let id = ada.start_tool("a_x", json!({})).await;
    let request = of_ada_at_a.expect("tools/call").await;
    let params = json!({
        "mode": "url", "message": "Pay", "url": "https://pay.example/7", "elicitationId": "e1",
    });
    of_ada_at_a.request(1, "elicitation/create", params).await;
    let elicitation = ada.expect_request("elicitation/create").await;
    ada.respond(&elicitation, json!({ "action": "accept" }))
        .await;
    of_ada_at_a.response(1).await;
    of_ada_at_a.respond_text(&request, "pay").await;
    ada.finish(id).await.expect_result();

    let completed = json!({ "elicitationId": "e1" });
    of_ada_at_b.notify(COMPLETED, completed.clone()).await;
    of_bo_at_a.notify(COMPLETED, completed.clone()).await;
    ada.expect_no_message().await;

    of_ada_at_a.notify(COMPLETED, completed.clone()).await;
    assert_eq!(ada.expect_notification(COMPLETED).await, completed);
    bo.expect_no_message().await;
}

/// A modern server with the credentials of each caller has one connection for all clients of a caller.
#[tokio::test(start_paused = true)]
async fn an_update_reaches_every_client_of_the_caller_with_the_connection() {
    const NOTE: &str = "desk://note";
    let server = desk();
    let gateway = Gateway::new("gateway", "1")
        .authenticated_callers(true)
        .upstream(per_caller("desk", LifecycleMode::Modern, server.clone()));
    let gateway = gateway.start().await.unwrap();
    let mut peers = Vec::new();
    for subject in ["ada", "ada", "bo"] {
        let builder = peer_of(&gateway, subject).legacy("2025-11-25");
        let mut peer = builder.await;
        // From then on the server is known to be modern.
        peer.request("tools/list", json!({})).await.expect_result();
        peers.push(peer);
    }
    for peer in &mut peers[..2] {
        let subscribed = peer.request("resources/subscribe", json!({ "uri": NOTE }));
        subscribed.await.expect_result();
    }

    server.resource_updated(NOTE);

    for peer in &mut peers[..2] {
        let updated = peer.expect_notification(UPDATED).await;
        assert_eq!(updated["uri"], NOTE);
    }
    peers[2].expect_no_message().await;
}
