//! The interface for a relay: messages outside of requests, in both directions.

use std::sync::{Arc, Mutex};

use serde_json::json;
use turnbuckle_protocol::{
    Revision, RpcError,
    types::{LogLevel, ServerCapabilities, SubscriptionFilter},
};
use turnbuckle_server::{
    Server,
    relay::{Relay, RelayFuture, RelayedNotification, RelayedRequest, RelayedResult},
    testing::{Combination, TransportKind},
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
