//! Modern servers that request input, message by message: the state of modern clients, and the retries for legacy ones.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::RunningGateway;
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::{ScriptedConnection, scripted},
    upstreams::{peer_of, start},
};

async fn modern_server() -> (RunningGateway, ScriptedConnection) {
    let (upstream, mut server) = scripted(LifecycleMode::Modern);
    let gateway = start([upstream]).await;
    (gateway, server.connection().await)
}

fn call(arguments: &Value) -> Value {
    json!({ "name": "x", "arguments": arguments })
}

fn input_required(state: &str) -> Value {
    let form =
        json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let request = json!({ "method": "elicitation/create", "params": form });
    json!({ "resultType": "input_required", "inputRequests": { "who": request }, "requestState": state })
}

fn retry(arguments: &Value, state: &Value) -> Value {
    let mut params = call(arguments);
    params["requestState"] = state.clone();
    params["inputResponses"] = json!({ "who": { "action": "accept", "content": {} } });
    params
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_modern_server_is_sealed_for_its_caller_and_arguments() {
    let (gateway, mut connection) = modern_server().await;
    let declared = json!({ "elicitation": { "form": {} } });
    let connect = |name| {
        peer_of(&gateway, name)
            .modern()
            .capabilities(declared.clone())
    };
    let (mut ada, mut eve) = (connect("ada").await, connect("eve").await);
    let id = ada.start("tools/call", call(&json!({ "n": 1 }))).await;
    let request = connection.expect("tools/call").await;
    connection
        .respond(&request, input_required("secret state"))
        .await;
    let result = ada.finish(id).await.expect_result().clone();
    let state = &result["requestState"];
    assert_eq!(
        result["inputRequests"]["who"]["method"],
        "elicitation/create"
    );
    assert!(!result.to_string().contains("secret"), "{result}");

    // Nothing of these reaches the server.
    let forged = json!("secret state");
    for (is_other, params) in [
        (true, retry(&json!({ "n": 1 }), state)),
        (false, retry(&json!({ "n": 2 }), state)),
        (false, retry(&json!({ "n": 1 }), &forged)),
    ] {
        let peer = if is_other { &mut eve } else { &mut ada };
        let refused = peer.request("tools/call", params).await;
        let error = refused.expect_error(-32602);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("call again"), "{message}");
    }
    let mut other = retry(&json!({ "n": 1 }), state);
    other["name"] = json!("y");
    ada.request("tools/call", other).await.expect_error(-32602);

    let id = ada
        .start("tools/call", retry(&json!({ "n": 1 }), state))
        .await;
    let request = connection.expect("tools/call").await;
    assert_eq!(request["params"]["requestState"], "secret state");
    assert_eq!(
        request["params"]["inputResponses"]["who"]["action"],
        "accept"
    );
    connection.respond_text(&request, "done").await;
    assert_eq!(ada.finish(id).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_state_without_requests_is_retried_with_growing_delays_and_ten_times() {
    let (gateway, mut connection) = modern_server().await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    let params = json!({ "name": "x", "arguments": { "n": 1 }, "extra": [null] });
    let id = peer.start("tools/call", params.clone()).await;

    let (mut delays, mut ids, mut last) = (Vec::new(), Vec::new(), Instant::now());
    for round in 0..=10 {
        let request = connection.expect("tools/call").await;
        delays.push(last.elapsed());
        last = Instant::now();
        ids.push(request["id"].clone());
        let sent = &request["params"];
        assert_eq!(sent["arguments"], params["arguments"]);
        assert_eq!(sent["extra"], params["extra"]);
        assert!(sent.get("inputResponses").is_none(), "{sent}");
        if round > 0 {
            assert_eq!(sent["requestState"], format!("state {}", round - 1));
        }
        let state = format!("state {round}");
        let result = json!({ "resultType": "input_required", "requestState": state });
        connection.respond(&request, result).await;
    }

    let failed = peer.finish(id).await;
    assert!(failed.expect_tool_error().contains("too often"));
    let millis = |delay: &Duration| delay.as_millis();
    let expected = [
        250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000,
    ];
    assert_eq!(delays[1..].iter().map(millis).collect::<Vec<_>>(), expected);
    ids.dedup();
    assert_eq!(ids.len(), 11);
    // Nothing is sent after the limit.
    let next = tokio::time::timeout(Duration::from_secs(60), connection.expect("tools/call"));
    assert!(next.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_responds_to_at_most_ten_round_trips() {
    let (gateway, mut connection) = modern_server().await;
    let peer = Peer::connect(gateway.server()).legacy("2025-11-25");
    let mut peer = peer
        .capabilities(json!({ "elicitation": { "form": {} } }))
        .await;
    let id = peer.start("tools/call", call(&json!({}))).await;
    for _ in 0..10 {
        let request = connection.expect("tools/call").await;
        connection.respond(&request, input_required("s")).await;
        let request = peer.expect_request("elicitation/create").await;
        peer.respond(&request, json!({ "action": "decline" })).await;
    }
    // The user is not asked for a response that no retry would have.
    let request = connection.expect("tools/call").await;
    connection.respond(&request, input_required("s")).await;
    let failed = peer.finish(id).await;
    assert!(failed.expect_tool_error().contains("too often"));
}
