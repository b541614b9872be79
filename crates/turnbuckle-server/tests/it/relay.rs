//! The interface for a relay: messages outside of requests, in both directions.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Principal, Revision, RpcError,
    types::{ListCapability, LogLevel, ServerCapabilities, SubscriptionFilter},
};
use turnbuckle_server::{
    Server,
    relay::{
        ChangeTarget, GeneralStream, Relay, RelayFuture, RelayedNotification, RelayedRequest,
        RelayedResult, ServerChange,
    },
    testing::{Combination, TestEventStream, TransportKind, http},
};

/// Requests the roots of each client after the response to its request, and records notifications of clients.
#[derive(Default)]
struct RootsAfterwards {
    notified: Mutex<Vec<String>>,
}

impl Relay for RootsAfterwards {
    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::new()
    }

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>> {
        let stream = request.general_stream();
        tokio::spawn(async move {
            while !request.has_ended() {
                tokio::task::yield_now().await;
            }
            let Some(stream) = stream else {
                return;
            };
            assert!(stream.is_open());
            stream.log(LogLevel::Debug, r#"{"level":"debug","data":"hidden"}"#);
            stream.log(LogLevel::Error, r#"{"level":"error","data":"shown"}"#);
            let roots = stream.request_client("roots/list", "{}", None).await;
            stream.notify("notifications/roots", &roots.unwrap());
        });
        Box::pin(async { Ok("{}".to_owned().into()) })
    }

    fn subscribe<'a>(
        &'a self,
        _request: RelayedRequest,
        _filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async { None })
    }

    fn on_notification(&self, notification: RelayedNotification<'_>) {
        let text = format!("{} {}", notification.method, notification.params);
        self.notified.lock().unwrap().push(text);
    }
}

fn sessions() -> [Combination; 3] {
    [
        Combination::new(TransportKind::Ndjson, Revision::V2025_11_25),
        Combination::new(TransportKind::Http, Revision::V2025_11_25),
        Combination::new(TransportKind::HttpSse, Revision::V2024_11_05),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_relay_sends_messages_outside_of_requests() {
    for combination in sessions() {
        let server = Server::new("relay", "1.0.0").relay(Arc::new(RootsAfterwards::default()));
        let peer = combination
            .connect(server)
            .respond_with(|_, _| json!({ "roots": [] }));
        let mut peer = peer.await;

        peer.request("com.example/later", json!({}))
            .await
            .expect_result();

        let message = peer.expect_notification("notifications/message").await;
        assert_eq!(message["data"], "shown", "{combination}");
        let roots = peer.expect_notification("notifications/roots").await;
        assert_eq!(roots, json!({ "roots": [] }), "{combination}");
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relay_gets_the_notifications_that_the_server_does_not_handle() {
    for combination in sessions() {
        let relay = Arc::new(RootsAfterwards::default());
        let server = Server::new("relay", "1.0.0").relay(relay.clone());
        let mut peer = combination.connect(server).await;
        peer.notify("notifications/roots/list_changed", json!({ "a": 1 }))
            .await;
        peer.notify("notifications/cancelled", json!({ "requestId": 9 }))
            .await;
        peer.request("ping", json!({})).await.expect_result();

        let notified = relay.notified.lock().unwrap();
        assert_eq!(
            *notified,
            [r#"notifications/roots/list_changed {"a":1}"#],
            "{combination}"
        );
    }
}

/// Keeps the way to the client of the last request.
#[derive(Default)]
struct KeepsGeneralStream(Mutex<Option<GeneralStream>>);

impl Relay for KeepsGeneralStream {
    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::new()
    }

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>> {
        *self.0.lock().unwrap() = request.general_stream();
        Box::pin(async { Ok("{}".to_owned().into()) })
    }

    fn subscribe<'a>(
        &'a self,
        _request: RelayedRequest,
        _filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async { None })
    }
}

/// The methods of the messages that arrive within a second, and the id of the last event.
async fn methods(stream: &mut TestEventStream) -> (Vec<String>, String) {
    let (mut methods, mut last) = (Vec::new(), String::new());
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(1), stream.next()).await {
        last = event.last_event_id;
        if let Ok(message) = serde_json::from_str::<Value>(&event.data) {
            methods.push(message["method"].as_str().unwrap().to_owned());
        }
    }
    (methods, last)
}

#[tokio::test(start_paused = true)]
async fn messages_outside_of_requests_survive_a_lost_connection() {
    let relay = Arc::new(KeepsGeneralStream::default());
    let server = Server::new("relay", "1.0.0").relay(relay.clone());
    let session = http(server.clone()).in_session("2025-11-25").await;
    let mut stream = session.get(None).await.events();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "com.example/x" });
    assert!(session.post(&request).await.json().await["result"].is_object());
    let general = relay.0.lock().unwrap().take().unwrap();
    general.notify("notifications/a", "{}");
    let (received, last) = methods(&mut stream).await;
    assert_eq!(received, ["notifications/a"]);

    drop(stream);
    for method in ["notifications/b", "notifications/c"] {
        general.notify(method, "{}");
        tokio::time::sleep(Duration::from_millis(1)).await;
        server.tools_changed();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut stream = session.get(Some(&last)).await.events();

    let list = "notifications/tools/list_changed";
    let (received, last) = methods(&mut stream).await;
    assert_eq!(received, ["notifications/b", list, "notifications/c", list]);
    drop(stream);
    let mut stream = session.get(Some(&last)).await.events();
    assert!(
        methods(&mut stream).await.0.is_empty(),
        "nothing is repeated"
    );
}

/// Records the targets of its clients, and lets them listen to everything.
#[derive(Default)]
struct Targets(Mutex<Vec<(ChangeTarget, ChangeTarget)>>);

impl Relay for Targets {
    fn capabilities(&self) -> ServerCapabilities {
        let list = || Some(ListCapability::default().list_changed(true));
        let mut capabilities = ServerCapabilities::new();
        capabilities.tools = list();
        capabilities
    }

    fn handle(&self, request: RelayedRequest) -> RelayFuture<'_, Result<RelayedResult, RpcError>> {
        let targets = (request.session_target(), request.principal_target());
        self.0.lock().unwrap().push(targets);
        let is_modern = request.revision().is_stateless();
        let result = if is_modern {
            r#"{"resultType":"complete"}"#
        } else {
            "{}"
        };
        Box::pin(async move { Ok(result.to_owned().into()) })
    }

    fn subscribe<'a>(
        &'a self,
        _request: RelayedRequest,
        _filter: &'a mut SubscriptionFilter,
    ) -> RelayFuture<'a, Option<Box<dyn Send + Sync>>> {
        Box::pin(async { None })
    }
}

fn message(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The clients of a principal: a session with a GET stream, and a listener without a session.
async fn clients_of(server: &Server, subject: &str) -> [TestEventStream; 2] {
    let mut client = http(server.clone());
    client.principal = Some(Principal::new("https://issuer.example", subject));
    let session = client.clone().in_session("2025-11-25").await;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "com.example/x" });
    assert!(session.post(&request).await.json().await["result"].is_object());
    let request = message(1, "com.example/x", json!({}));
    assert!(client.post(&request).await.json().await["result"].is_object());
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let listen = message(2, "subscriptions/listen", wanted);
    let mut listener = client.post(&listen).await.events();
    // The acknowledgement.
    listener.message().await.unwrap();
    [session.get(None).await.events(), listener]
}

async fn counts(clients: &mut [TestEventStream]) -> Vec<usize> {
    let mut counts = Vec::new();
    for client in clients {
        let mut count = 0;
        let silence = Duration::from_secs(5);
        while let Ok(Some(message)) = tokio::time::timeout(silence, client.message()).await {
            assert_eq!(message["method"], "notifications/tools/list_changed");
            count += 1;
        }
        counts.push(count);
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_change_with_a_target_reaches_only_its_clients() {
    let relay = Arc::new(Targets::default());
    let server = Server::new("relay", "1.0.0").relay(relay.clone());
    let mut clients = Vec::new();
    clients.extend(clients_of(&server, "ada").await);
    clients.extend(clients_of(&server, "bo").await);
    let targets = relay.0.lock().unwrap().clone();
    let (session, of_ada) = targets[0].clone();
    let (sessionless, same) = targets[1].clone();
    assert_eq!(of_ada, same);

    for (target, expected) in [
        (session, [1, 0, 0, 0]),
        (sessionless, [0, 1, 0, 0]),
        (of_ada, [1, 1, 0, 0]),
        (ChangeTarget::Principal(None), [0, 0, 0, 0]),
        (ChangeTarget::Sessionless(None), [0, 0, 0, 0]),
        (ChangeTarget::Everyone, [1, 1, 1, 1]),
    ] {
        server.publish_to(target.clone(), ServerChange::ToolsChanged);
        assert_eq!(counts(&mut clients).await, expected, "{target:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_carries_all_requests_is_a_target() {
    for revision in [Revision::V2025_11_25, Revision::MODERN] {
        let relay = Arc::new(Targets::default());
        let server = Server::new("relay", "1.0.0").relay(relay.clone());
        let combination = Combination::new(TransportKind::Ndjson, revision);
        let mut peers = Vec::new();
        for _ in 0..2 {
            let mut peer = combination.connect(server.clone()).await;
            peer.request("com.example/x", json!({})).await;
            peer.listen(json!({ "toolsListChanged": true })).await;
            peer.notifications();
            peers.push(peer);
        }
        let target = relay.0.lock().unwrap()[0].0.clone();

        server.publish_to(target, ServerChange::ToolsChanged);

        let changed = "notifications/tools/list_changed";
        peers[0].expect_notification(changed).await;
        peers[1].expect_no_message().await;
    }
}
