//! Subscriptions to changes, in both eras.

use serde_json::json;
use turnbuckle_client::{CallError, Change, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;
use turnbuckle_server::{Context, Resource, Server, Tool, ToolError};

use crate::servers::turnbuckle::both_eras;

async fn empty_tool(_: serde_json::Value, _: Context) -> Result<String, ToolError> {
    Ok(String::new())
}

fn tool(name: &str) -> Tool {
    Tool::raw(name, json!({ "type": "object" }), empty_tool)
}

fn server() -> Server {
    Server::new("changing", "1.0")
        .tool(tool("first"))
        .resource(Resource::text("note:a", "a", "text"))
        .resource(Resource::text("note:b", "b", "text"))
}

fn everything() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(vec!["note:a".to_owned()])
}

async fn next(subscription: &mut Subscription) -> SubscriptionEvent {
    let received = subscription.next().await.expect("the subscription is open");
    received.expect("the event is valid")
}

#[tokio::test]
async fn changes_are_received_in_both_eras() {
    let server = server();
    for client in both_eras(|| server.clone()).await {
        let mut subscription = client.listen(everything()).await.unwrap();
        let SubscriptionEvent::Acknowledged(filter) = next(&mut subscription).await else {
            panic!("the first event is the acknowledgement");
        };
        assert_eq!(filter, everything());

        server.add_tool(tool("second"));
        assert!(matches!(
            next(&mut subscription).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        // The other resource is not subscribed to.
        server.resource_updated("note:b");
        server.resource_updated("note:a");
        let SubscriptionEvent::Change(Change::Resource { uri }) = next(&mut subscription).await
        else {
            panic!("the resource changed");
        };
        assert_eq!(uri, "note:a");
        server.remove_tool("second");
        assert!(matches!(
            next(&mut subscription).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
    }
}

#[tokio::test]
async fn dropping_a_subscription_unsubscribes() {
    let server = server();
    for client in both_eras(|| server.clone()).await {
        let subscription = client.listen(everything()).await.unwrap();
        drop(subscription);
        // The old subscription has ended when a new one can be opened.
        let mut subscription = client.listen(everything()).await.unwrap();
        next(&mut subscription).await;

        server.resource_updated("note:a");
        server.add_tool(tool("third"));

        assert!(matches!(
            next(&mut subscription).await,
            SubscriptionEvent::Change(Change::Resource { .. })
        ));
        assert!(matches!(
            next(&mut subscription).await,
            SubscriptionEvent::Change(Change::Tools)
        ));
        server.remove_tool("third");
    }
}

#[tokio::test]
async fn closing_the_client_ends_the_subscription() {
    for client in both_eras(server).await {
        let mut subscription = client.listen(everything()).await.unwrap();
        next(&mut subscription).await;

        client.close().await;

        let last = subscription.next().await;
        assert!(
            matches!(
                last,
                None | Some(Ok(SubscriptionEvent::Ended))
                    | Some(Err(CallError::Disconnected { .. }))
            ),
            "{last:?}"
        );
        assert!(subscription.next().await.is_none());
    }
}
