//! URL elicitation between clients and servers of both eras.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted},
    upstreams::start,
};

const URL: &str = "https://pay.example/7";

fn with_urls() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

fn forms_only() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn elicitation(id: &str) -> Value {
    json!({ "mode": "url", "message": "Pay", "url": URL, "elicitationId": id })
}

fn required(ids: &[&str]) -> Value {
    let elicitations: Vec<_> = ids.iter().map(|id| elicitation(id)).collect();
    json!({ "code": -32042, "message": "pay first", "data": { "elicitations": elicitations } })
}

fn call() -> Value {
    json!({ "name": "x", "arguments": {} })
}

/// Returns a client of a scripted server, and its running call with the request at the server.
async fn calling(
    server_mode: LifecycleMode,
    is_modern: bool,
    capabilities: Value,
) -> (Peer, i64, ScriptedServer, ScriptedConnection, Value) {
    let (upstream, mut server) = scripted(server_mode);
    let gateway = start([upstream]).await;
    let probe = server.connection().await;
    let peer = Peer::connect(gateway.server()).capabilities(capabilities);
    let peer = if is_modern {
        peer.modern()
    } else {
        peer.legacy("2025-11-25")
    };
    let mut peer = peer.await;
    let id = peer.start("tools/call", call()).await;
    let mut connection = match server_mode {
        LifecycleMode::Legacy => server.connection().await,
        _ => probe,
    };
    let request = connection.expect("tools/call").await;
    (peer, id, server, connection, request)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_requires_urls_is_repeated_for_a_modern_client() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Legacy, true, with_urls()).await;
    connection
        .respond_error(&request, required(&["e1", "e2"]))
        .await;

    let result = peer.finish(id).await.expect_result().clone();
    for key in ["q1", "q2"] {
        let params = &result["inputRequests"][key]["params"];
        assert_eq!(
            *params,
            json!({ "mode": "url", "message": "Pay", "url": URL })
        );
    }
    connection
        .notify(
            "notifications/elicitation/complete",
            json!({ "elicitationId": "e1" }),
        )
        .await;
    let mut retry = call();
    retry["requestState"] = result["requestState"].clone();
    retry["inputResponses"] = json!({ "q1": { "action": "accept" }, "q2": { "action": "accept" } });
    let id = peer.start("tools/call", retry).await;
    // Not before both are completed.
    let started = tokio::time::Instant::now();
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    connection
        .notify(
            "notifications/elicitation/complete",
            json!({ "elicitationId": "e2" }),
        )
        .await;
    let repeated = connection.expect("tools/call").await;
    assert_eq!(started.elapsed().as_secs(), 7);
    assert_ne!(repeated["id"], request["id"]);
    assert_eq!(repeated["params"]["arguments"], json!({}));
    connection.respond_text(&repeated, "paid").await;
    assert_eq!(peer.finish(id).await.text(), "paid");
}

#[tokio::test(start_paused = true)]
async fn a_declined_url_ends_the_call() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Legacy, true, with_urls()).await;
    connection.respond_error(&request, required(&["e1"])).await;
    let result = peer.finish(id).await.expect_result().clone();
    let mut retry = call();
    retry["requestState"] = result["requestState"].clone();
    retry["inputResponses"] = json!({ "q1": { "action": "decline" } });

    let response = peer.request("tools/call", retry).await;

    assert!(
        response
            .expect_tool_error()
            .contains("did not open the URL")
    );
    assert_eq!(response.expect_result()["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_client_without_urls_is_told_the_url() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Legacy, true, forms_only()).await;
    connection.respond_error(&request, required(&["e1"])).await;
    let response = peer.finish(id).await;
    assert!(response.expect_tool_error().contains(URL));

    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Modern, false, forms_only()).await;
    let params = json!({ "mode": "url", "message": "Pay", "url": URL });
    let input = json!({ "a": { "method": "elicitation/create", "params": params } });
    let result =
        json!({ "resultType": "input_required", "inputRequests": input, "requestState": "s" });
    connection.respond(&request, result).await;
    let response = peer.finish(id).await;
    assert!(response.expect_tool_error().contains(URL));
}

#[tokio::test(start_paused = true)]
async fn between_legacy_peers_the_error_and_the_completion_pass() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Legacy, false, with_urls()).await;
    connection.respond_error(&request, required(&["e1"])).await;
    let response = peer.finish(id).await;
    let error = response.expect_error(-32042);
    assert_eq!(error["data"]["elicitations"][0], elicitation("e1"));

    let completed = json!({ "elicitationId": "e1" });
    connection
        .notify(
            "notifications/elicitation/complete",
            json!({ "elicitationId": "other" }),
        )
        .await;
    connection
        .notify("notifications/elicitation/complete", completed.clone())
        .await;

    let notification = peer
        .expect_notification("notifications/elicitation/complete")
        .await;
    assert_eq!(notification, completed);
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn between_legacy_peers_the_request_and_the_completion_pass() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Legacy, false, with_urls()).await;
    connection
        .request(1, "elicitation/create", elicitation("e1"))
        .await;
    let received = peer.expect_request("elicitation/create").await;
    assert_eq!(received.params["elicitationId"], "e1");
    peer.respond(&received, json!({ "action": "accept" })).await;
    assert_eq!(connection.response(1).await["result"]["action"], "accept");

    connection
        .notify(
            "notifications/elicitation/complete",
            json!({ "elicitationId": "e1" }),
        )
        .await;
    peer.expect_notification("notifications/elicitation/complete")
        .await;
    connection.respond_text(&request, "paid").await;
    assert_eq!(peer.finish(id).await.text(), "paid");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_of_a_modern_server_gets_an_id_and_its_completion() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Modern, false, with_urls()).await;
    let params = json!({ "mode": "url", "message": "Pay", "url": URL });
    let input = json!({ "a": { "method": "elicitation/create", "params": params } });
    let result =
        json!({ "resultType": "input_required", "inputRequests": input, "requestState": "s" });
    connection.respond(&request, result).await;
    let received = peer.expect_request("elicitation/create").await;
    let elicitation_id = received.params["elicitationId"].clone();
    assert!(elicitation_id.is_string(), "{elicitation_id}");
    peer.respond(&received, json!({ "action": "accept" })).await;

    let retry = connection.expect("tools/call").await;
    assert_eq!(retry["params"]["requestState"], "s");
    assert_eq!(retry["params"]["inputResponses"]["a"]["action"], "accept");
    peer.expect_no_message().await;
    let content = json!([{ "type": "text", "text": "paid" }]);
    connection
        .respond(
            &retry,
            json!({ "resultType": "complete", "content": content }),
        )
        .await;
    let completed = peer
        .expect_notification("notifications/elicitation/complete")
        .await;
    assert_eq!(completed["elicitationId"], elicitation_id);
    assert_eq!(peer.finish(id).await.text(), "paid");
}

#[tokio::test(start_paused = true)]
async fn between_modern_peers_the_request_passes() {
    let (mut peer, id, _server, mut connection, request) =
        calling(LifecycleMode::Modern, true, with_urls()).await;
    let params = json!({ "mode": "url", "message": "Pay", "url": URL });
    let input = json!({ "a": { "method": "elicitation/create", "params": params } });
    let result =
        json!({ "resultType": "input_required", "inputRequests": input, "requestState": "s" });
    connection.respond(&request, result).await;

    let response = peer.finish(id).await;

    assert_eq!(response.expect_result()["inputRequests"], input);
}
