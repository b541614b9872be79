//! Change notifications in both eras.

use serde_json::{Value, json};
use turnbuckle_server::{Context, Prompt, Resource, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{LEGACY, Peer, initialize, modern};

fn server() -> Server {
    let touch = Tool::new("touch", async |cx: Context| {
        cx.resource_updated("note://a");
        Ok("touched".to_owned())
    });
    let prompt = Prompt::new("p", async || Ok("hello"));
    Server::new("changes", "1")
        .tool(touch)
        .prompt(prompt)
        .resource(Resource::text("note://a", "a", "A"))
        .resource(Resource::text("note://b", "b", "B"))
}

#[tokio::test(start_paused = true)]
async fn sessions_are_notified_of_list_changes() {
    for revision in LEGACY {
        let server = server();
        let mut peer = Peer::initialized(server.clone(), revision, json!({})).await;
        peer.call("ping", json!({})).await;

        server.tools_changed();
        server.prompts_changed();
        server.resources_changed();

        for kind in ["tools", "prompts", "resources"] {
            let message = peer.next().await;
            assert_eq!(
                message["method"],
                format!("notifications/{kind}/list_changed")
            );
            assert_eq!(message.get("id"), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_are_notified_of_subscribed_updates() {
    req!(
        "resources.subscribe.updated",
        "resources.subscribe.legacy-methods"
    );

    for revision in LEGACY {
        let server = server();
        let mut peer = Peer::initialized(server.clone(), revision, json!({})).await;
        assert_eq!(
            peer.call("resources/subscribe", json!({ "uri": "note://a" }))
                .await["result"],
            json!({})
        );

        server.resource_updated("note://b");
        server.resource_updated("note://a/part");
        server.resource_updated("note://a");

        for uri in ["note://a/part", "note://a"] {
            let message = peer.next().await;
            assert_eq!(message["method"], "notifications/resources/updated");
            assert_eq!(message["params"]["uri"], uri);
        }
        let ended = peer
            .call("resources/unsubscribe", json!({ "uri": "note://a" }))
            .await;
        assert_eq!(ended["result"], json!({}));
        server.resource_updated("note://a");
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscribing_to_an_unknown_resource_or_over_the_limit_is_rejected() {
    let server = (0..1_001).fold(server(), |server, at| {
        let uri = format!("many://{at}");
        server.resource(Resource::text(uri.clone(), uri, ""))
    });
    let mut peer = Peer::initialized(server, "2025-06-18", json!({})).await;

    let unknown = peer
        .call("resources/subscribe", json!({ "uri": "note://z" }))
        .await;
    assert_eq!(unknown["error"]["code"], -32002);

    for at in 0..1_000 {
        let uri = format!("many://{at}");
        peer.call("resources/subscribe", json!({ "uri": uri }))
            .await;
    }
    let response = peer
        .call("resources/subscribe", json!({ "uri": "many://1000" }))
        .await;
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .contains("1000"),
        "{response}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_notification_is_sent_before_initialized() {
    let server = server();
    let mut peer = Peer::new(server.clone());
    peer.call("initialize", initialize("2025-11-25", json!({})))
        .await;
    peer.call("ping", json!({})).await;

    server.tools_changed();

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_client_gets_no_notification_before_its_first_response() {
    for (revision, is_quiet) in [("2024-11-05", true), ("2025-03-26", false)] {
        let server = server();
        let mut peer = Peer::new(server.clone());
        peer.call("initialize", initialize(revision, json!({})))
            .await;
        peer.call("ping", json!({})).await;
        peer.notify("notifications/initialized", json!({})).await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;

        server.tools_changed();
        if is_quiet {
            peer.expect_no_message().await;
        } else {
            assert_eq!(
                peer.next().await["method"],
                "notifications/tools/list_changed"
            );
        }

        peer.call("ping", json!({})).await;
        server.tools_changed();
        assert_eq!(
            peer.next().await["method"],
            "notifications/tools/list_changed"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_second_initialize_an_old_client_gets_no_notification_before_its_first_response() {
    let server = server();
    let mut peer = Peer::initialized(server.clone(), "2024-11-05", json!({})).await;
    peer.call("ping", json!({})).await;

    peer.initialize_session("2024-11-05", json!({})).await;
    peer.expect_no_message().await;
    server.tools_changed();

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_lagging_session_is_notified_of_all_changes() {
    let server = server();
    let mut peer = Peer::initialized(server.clone(), "2025-11-25", json!({})).await;
    peer.call("resources/subscribe", json!({ "uri": "note://a" }))
        .await;

    // Without yielding, so that the forwarding task does not run.
    for _ in 0..100_000 {
        server.resource_updated("note://b");
    }

    let mut methods = Vec::new();
    for _ in 0..4 {
        methods.push(peer.next().await["method"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ]
    );
    peer.expect_no_message().await;
}

async fn listen(peer: &mut Peer, filter: Value) -> (i64, Value) {
    let params = modern(json!({ "notifications": filter }));
    let id = peer.request("subscriptions/listen", params).await;
    (id, peer.next().await)
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[tokio::test(start_paused = true)]
async fn unsupported_subscriptions_are_not_acknowledged() {
    req!("subscriptions.ack.subset");
    let all = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["note://a"],
    });
    let tool = Tool::new("t", async || Ok(String::new()));
    let prompt = Prompt::new("p", async || Ok("hello"));
    for (server, expected) in [
        (
            Server::new("s", "1").tool(tool),
            json!({ "toolsListChanged": true }),
        ),
        (
            Server::new("s", "1").prompt(prompt),
            json!({ "promptsListChanged": true }),
        ),
        (server(), all.clone()),
    ] {
        let mut peer = Peer::new(server);
        let (_, acknowledged) = listen(&mut peer, all.clone()).await;
        assert_eq!(acknowledged["params"]["notifications"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_receives_the_requested_changes_under_its_id() {
    req!(
        "subscriptions.filter.only-requested",
        "subscriptions.ack.first",
        "subscriptions.ack.nothing-before",
        "subscriptions.ack.subset",
        "subscriptions.id.tag",
        "subscriptions.id.value"
    );
    let server = server();
    let mut peer = Peer::new(server.clone());
    let (tools, acknowledged) = listen(
        &mut peer,
        json!({ "toolsListChanged": true, "taskIds": ["t"] }),
    )
    .await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    assert_eq!(subscription(&acknowledged), tools);
    let (note, _) = listen(&mut peer, json!({ "resourceSubscriptions": ["note://a"] })).await;

    server.prompts_changed();
    server.resource_updated("note://b");
    server.resource_updated("note://a");
    let update = peer.next().await;
    assert_eq!(update["method"], "notifications/resources/updated");
    assert_eq!(update["params"]["uri"], "note://a");
    assert_eq!(subscription(&update), note);

    server.tools_changed();
    let change = peer.next().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(subscription(&change), tools);
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_subscription_receives_no_more_notifications() {
    req!("subscriptions.client-cancel.stop");
    let server = server();
    let mut peer = Peer::new(server.clone());
    let (id, _) = listen(&mut peer, json!({ "toolsListChanged": true })).await;

    peer.cancel(id).await;
    server.tools_changed();

    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_made_by_a_tool_reaches_both_eras() {
    let mut peer = Peer::initialized(server(), "2025-06-18", json!({})).await;
    peer.call("resources/subscribe", json!({ "uri": "note://a" }))
        .await;
    let (id, _) = listen(&mut peer, json!({ "resourceSubscriptions": ["note://a"] })).await;

    peer.request("tools/call", json!({ "name": "touch", "arguments": {} }))
        .await;

    let mut messages = vec![peer.next().await, peer.next().await, peer.next().await];
    messages.retain(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(messages.len(), 2);
    assert_eq!(
        messages
            .iter()
            .filter(|message| *subscription(message) == id)
            .count(),
        1
    );
}
