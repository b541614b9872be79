//! Calls of modern clients at legacy servers that request input: the call at the server stays open.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::Gateway;
use turnbuckle_server::{Server, testing::Peer};

use crate::upstreams::{ConnectionCount, counted, desk, gateway, peer_of, upstream};

/// Calls the tool that requests input, and returns its result.
async fn suspended(peer: &mut Peer) -> Value {
    let params = json!({ "name": "sign", "arguments": {} });
    let response = peer.request("tools/call", params).await;
    let result = response.expect_result().clone();
    assert_eq!(result["resultType"], "input_required");
    result
}

/// The retry of a call with the response to its first input request.
fn retry(result: &Value, arguments: &Value) -> Value {
    let requests = result["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    json!({
        "name": "sign",
        "arguments": arguments,
        "requestState": result["requestState"],
        "inputResponses": { (key): accepted },
    })
}

async fn modern_peer(server: Server) -> Peer {
    let all = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
    Peer::connect(server).modern().capabilities(all).await
}

#[tokio::test(start_paused = true)]
async fn every_retry_continues_the_same_call() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = modern_peer(gateway.server()).await;

    let first = suspended(&mut peer).await;
    assert_eq!(first["inputRequests"]["q1"]["method"], "elicitation/create");
    assert!(first["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
    let second = peer.request("tools/call", retry(&first, &json!({}))).await;
    let second = second.expect_result().clone();
    assert_eq!(
        second["inputRequests"]["q2"]["method"],
        "sampling/createMessage"
    );
    let content = json!({ "type": "text", "text": "Yours" });
    let params = json!({
        "name": "sign",
        "arguments": {},
        "requestState": second["requestState"],
        "inputResponses": { "q2": { "role": "assistant", "model": "m", "content": content } },
    });
    let last = peer.request("tools/call", params).await;
    assert_eq!(last.text(), "Yours, Ada");
}

#[tokio::test(start_paused = true)]
async fn a_state_works_once_and_only_with_the_same_arguments() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = modern_peer(gateway.server()).await;

    let first = suspended(&mut peer).await;
    let other = peer
        .request("tools/call", retry(&first, &json!({ "x": 1 })))
        .await;
    other.expect_error(-32602);
    let good = peer.request("tools/call", retry(&first, &json!({}))).await;
    good.expect_result();
    let again = peer.request("tools/call", retry(&first, &json!({}))).await;
    again.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn another_gateway_does_not_accept_the_state() {
    let gateways = [
        gateway(LifecycleMode::Legacy).await,
        gateway(LifecycleMode::Legacy).await,
    ];
    let mut first = modern_peer(gateways[0].server()).await;
    let mut second = modern_peer(gateways[1].server()).await;

    let result = suspended(&mut first).await;
    let response = second
        .request("tools/call", retry(&result, &json!({})))
        .await;
    let error = response.expect_error(-32602);
    assert!(
        error["message"].as_str().unwrap().contains("call again"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_responses_are_requested_again() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = modern_peer(gateway.server()).await;

    let first = suspended(&mut peer).await;
    let params = json!({
        "name": "sign",
        "arguments": {},
        "requestState": first["requestState"],
        "inputResponses": { "q9": { "action": "decline" } },
    });
    let again = peer.request("tools/call", params).await;
    assert_eq!(
        again.expect_result()["inputRequests"],
        first["inputRequests"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_retried_expires() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = modern_peer(gateway.server()).await;

    let first = suspended(&mut peer).await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    let late = peer.request("tools/call", retry(&first, &json!({}))).await;
    late.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_a_limited_number_of_suspended_calls() {
    let gateway = gateway(LifecycleMode::Legacy).await;
    let mut peer = modern_peer(gateway.server()).await;
    for _ in 0..16 {
        suspended(&mut peer).await;
    }
    let params = json!({ "name": "sign", "arguments": {} });
    let response = peer.request("tools/call", params).await;
    response.expect_error(-32603);
}

/// Gateways with a server each, and the same keys.
async fn with_same_keys(mode: LifecycleMode, counts: &[ConnectionCount]) -> Vec<Server> {
    let mut servers = Vec::new();
    // Modern servers accept the states of each other, as instances do.
    let desk = desk();
    for count in counts {
        let gateway = Gateway::new("gateway", "1.0.0")
            .upstream(counted("desk", mode, desk.clone(), count))
            .state_keys(["0123456789abcdef"])
            .unwrap();
        servers.push(gateway.start().await.unwrap().server());
    }
    servers
}

#[tokio::test(start_paused = true)]
async fn a_gateway_with_the_same_keys_continues_a_call_of_a_modern_server() {
    let counts = [ConnectionCount::default(), ConnectionCount::default()];
    let servers = with_same_keys(LifecycleMode::Modern, &counts).await;
    let mut first = modern_peer(servers[0].clone()).await;
    let mut second = modern_peer(servers[1].clone()).await;

    let result = suspended(&mut first).await;
    let key = result["inputRequests"].as_object().unwrap().keys().next();
    assert!(key.is_some(), "{result}");
    let response = second
        .request("tools/call", retry(&result, &json!({})))
        .await;
    // The next round trip.
    assert_eq!(response.expect_result()["resultType"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_with_the_same_keys_never_starts_a_suspended_call_again() {
    let counts = [ConnectionCount::default(), ConnectionCount::default()];
    let servers = with_same_keys(LifecycleMode::Legacy, &counts).await;
    let mut first = modern_peer(servers[0].clone()).await;
    let mut second = modern_peer(servers[1].clone()).await;

    let result = suspended(&mut first).await;
    let response = second
        .request("tools/call", retry(&result, &json!({})))
        .await;
    let error = response.expect_error(-32602);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("call again"), "{error}");
    // It opened no connection for the call: only the one at the start.
    assert_eq!(counts[1].opened(), 1);
    let resumed = first
        .request("tools/call", retry(&result, &json!({})))
        .await;
    assert_eq!(resumed.expect_result()["resultType"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_short_key_is_rejected() {
    assert!(
        Gateway::new("gateway", "1.0.0")
            .state_keys(["short"])
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn all_callers_together_have_a_limited_number_of_suspended_calls() {
    let gateway = Gateway::new("gateway", "1")
        .upstream(upstream("desk", LifecycleMode::Legacy, desk()))
        .max_connections(100);
    let gateway = gateway.start().await.unwrap();
    let all = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
    let connect = async |caller: usize| {
        let peer = peer_of(&gateway, &format!("caller {caller}")).modern();
        peer.capabilities(all.clone()).await
    };
    let mut last = Value::Null;
    let mut kept = Vec::new();
    for caller in 0..64 {
        let mut peer = connect(caller).await;
        for _ in 0..16 {
            last = suspended(&mut peer).await;
        }
        kept.push(peer);
    }
    assert_eq!(gateway.suspended_calls(), 1_024);

    let mut late = connect(64).await;
    let params = json!({ "name": "sign", "arguments": {} });
    let refused = late.request("tools/call", params).await;
    refused.expect_error(-32603);
    assert_eq!(gateway.suspended_calls(), 1_024);

    // The others go on.
    let mut peer = connect(63).await;
    let next = peer.request("tools/call", retry(&last, &json!({}))).await;
    assert_eq!(next.expect_result()["resultType"], "input_required");
}
