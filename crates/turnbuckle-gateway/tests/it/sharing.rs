//! Which callers share a connection, and how many connections there are.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::Sharing;
use turnbuckle_protocol::Principal;
use turnbuckle_server::testing::{Peer, TestHttpClient, http};

use crate::upstreams::{ConnectionCount, ERAS, counted, desk, start};

async fn get_prompt(client: &TestHttpClient) -> Value {
    let params = json!({ "name": "letter" });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params });
    client.post(&call).await.json().await
}

#[tokio::test(start_paused = true)]
async fn a_principal_has_eight_connections_and_idle_ones_are_closed() {
    let count = ConnectionCount::default();
    let gateway = start([counted("desk", LifecycleMode::Legacy, desk(), &count)]).await;
    let client = async |subject: &str| {
        let mut client = http(gateway.server());
        client.principal = Some(Principal::new("https://issuer.example", subject));
        client.in_session("2025-11-25").await
    };
    let other = client("bo").await;
    get_prompt(&other).await;
    let mut sessions = Vec::new();
    for _ in 0..12 {
        let session = client("ada").await;
        assert!(get_prompt(&session).await["result"].is_object());
        sessions.push(session);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 9, "eight of one caller, one of another");
    // A session without a connection gets another one.
    assert!(get_prompt(&sessions[0]).await["result"].is_object());
    gateway.close().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_one_call_ends_with_it_also_if_the_call_waits_for_input() {
    let count = ConnectionCount::default();
    let desk = counted("desk", LifecycleMode::Legacy, desk(), &count);
    let gateway = start([desk.sharing(Sharing::Call)]).await;
    let mut legacy = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    for _ in 0..3 {
        let arguments = json!({ "name": "Ada" });
        assert_eq!(
            legacy.call_tool("greet", arguments).await.text(),
            "Hello, Ada!"
        );
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 0);

    let all = json!({ "elicitation": { "form": {} }, "sampling": {} });
    let mut modern = Peer::connect(gateway.server())
        .modern()
        .capabilities(all)
        .await;
    let params = json!({ "name": "sign", "arguments": {} });
    let first = modern
        .request("tools/call", params)
        .await
        .expect_result()
        .clone();
    assert_eq!(first["resultType"], "input_required");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 1);
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    let retry = json!({
        "name": "sign", "arguments": {}, "requestState": first["requestState"],
        "inputResponses": { "q1": accepted },
    });
    let second = modern
        .request("tools/call", retry)
        .await
        .expect_result()
        .clone();
    assert_eq!(
        second["inputRequests"]["q2"]["method"],
        "sampling/createMessage"
    );
    gateway.close().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_no_connection_of_its_own() {
    let count = ConnectionCount::default();
    let desk = counted("desk", LifecycleMode::Legacy, desk(), &count);
    let gateway = start([desk.sharing(Sharing::Call)]).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    for _ in 0..5 {
        let id = peer.start_tool("sleep", json!({})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        peer.cancel(id).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count.open(), 0);
    drop(gateway);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_without_a_kept_connection_are_refused_and_use_no_room() {
    for mode in ERAS {
        let count = ConnectionCount::default();
        let desk = counted("desk", mode, desk(), &count).sharing(Sharing::Call);
        let gateway = start([desk]).await;
        let mut legacy = Peer::connect(gateway.server()).legacy("2025-11-25").await;
        for _ in 0..70 {
            let params = json!({ "uri": "desk://note" });
            let refused = legacy.request("resources/subscribe", params).await;
            refused.expect_error(-32603);
        }
        let mut modern = Peer::connect(gateway.server()).modern().await;
        let filter = json!({ "resourceSubscriptions": ["desk://note"] });
        let params = json!({ "notifications": filter });
        modern.start("subscriptions/listen", params).await;
        let granted = modern
            .expect_notification("notifications/subscriptions/acknowledged")
            .await;
        let granted = &granted["notifications"]["resourceSubscriptions"];
        assert!(granted.is_null(), "{mode:?} {granted}");

        let called = legacy.call_tool("greet", json!({ "name": "Ada" })).await;
        assert_eq!(called.text(), "Hello, Ada!", "{mode:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count.open(), 0, "{mode:?}");
    }
}
