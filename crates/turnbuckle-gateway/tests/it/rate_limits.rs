//! Limits on the calls of each caller to each server.

use std::time::Duration;

use serde_json::json;
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{Gateway, RunningGateway};
use turnbuckle_protocol::Principal;
use turnbuckle_server::testing::{self, Peer, TestHttpClient};

use crate::{
    policy::{session_call, stateless_call},
    upstreams::{desk, upstream},
};

const MINUTE: Duration = Duration::from_secs(60);

async fn limited() -> RunningGateway {
    let gateway = Gateway::new("gateway", "1")
        .upstream(upstream("desk", LifecycleMode::Modern, desk()))
        .upstream(upstream("other", LifecycleMode::Legacy, desk()));
    gateway.rate_limit(2, MINUTE).start().await.unwrap()
}

fn caller(gateway: &RunningGateway, name: &str) -> TestHttpClient {
    let mut client = testing::http(gateway.server());
    client.principal = Some(Principal::new("https://issuer.example", name));
    client
}

#[tokio::test(start_paused = true)]
async fn every_caller_has_a_rate_at_every_server() {
    let gateway = limited().await;
    let call = async |name: &str, tool: &str| {
        let response = caller(&gateway, name).post(&stateless_call(tool)).await;
        response.status().as_u16()
    };
    for tool in ["desk_change", "other_change"] {
        for name in ["ada", "eve"] {
            assert_eq!(call(name, tool).await, 200);
            assert_eq!(call(name, tool).await, 200);
            assert_eq!(call(name, tool).await, 503);
        }
    }
    tokio::time::advance(MINUTE / 2).await;
    assert_eq!(call("ada", "desk_change").await, 200);
    assert_eq!(call("ada", "desk_change").await, 503);
}

#[tokio::test(start_paused = true)]
async fn the_response_says_when_to_try_again() {
    let gateway = limited().await;
    let client = caller(&gateway, "ada");
    for _ in 0..2 {
        client.post(&stateless_call("desk_change")).await;
    }
    let response = client.post(&stateless_call("desk_change")).await;
    assert_eq!(response.header("retry-after"), Some("30"));
    let error = response.json().await["error"].take();
    assert_eq!(error["code"], -32603);
    assert_eq!(
        error["data"],
        json!({ "server": "desk", "kind": "rate", "effect": "none", "retryAfterMs": 30_000 })
    );

    let client = client.in_session("2025-11-25").await;
    let response = client.post(&session_call("desk_change")).await;
    assert_eq!(response.status(), 200, "the status of a session request");
    assert_eq!(
        response.json().await["error"]["data"]["retryAfterMs"],
        30_000
    );
}

#[tokio::test(start_paused = true)]
async fn lists_and_refused_requests_do_not_count() {
    let gateway = limited().await;
    let mut peer = Peer::connect(gateway.server()).await;
    for _ in 0..5 {
        peer.request("tools/list", json!({})).await.expect_result();
        let unknown = peer.request("tools/call", json!({ "name": "nothing" }));
        unknown.await.expect_error(-32602);
    }
    for _ in 0..2 {
        peer.call_tool("desk_change", json!({}))
            .await
            .expect_result();
    }
    let refused = peer.request(
        "tools/call",
        json!({ "name": "desk_change", "arguments": {} }),
    );
    refused.await.expect_error(-32603);
}

#[tokio::test(start_paused = true)]
async fn the_limit_can_be_changed_and_the_same_one_goes_on_counting() {
    let gateway = limited().await;
    let call = async || {
        let client = caller(&gateway, "ada");
        let response = client.post(&stateless_call("desk_change")).await;
        response.status().as_u16()
    };
    assert_eq!((call().await, call().await, call().await), (200, 200, 503));

    assert!(!gateway.set_rate_limit(Some((2, MINUTE))));
    assert_eq!(call().await, 503);
    assert!(gateway.set_rate_limit(Some((1, MINUTE))));
    assert_eq!((call().await, call().await), (200, 503));
    assert!(gateway.set_rate_limit(None));
    for _ in 0..5 {
        assert_eq!(call().await, 200);
    }
}
