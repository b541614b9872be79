//! What a gateway does with the client requests of a legacy server in the call of a modern client, message by message.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing};
use turnbuckle_server::testing::{Peer, PeerResponse};

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted, scripted_as},
    upstreams::{desk, start, upstream},
};

fn form(message: &str) -> Value {
    json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } })
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": {} })
}

fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// A gateway in front of a scripted legacy server, and a modern client.
struct Setup {
    gateway: RunningGateway,
    server: ScriptedServer,
    peer: Peer,
}

impl Setup {
    async fn new(capabilities: Value) -> Self {
        let (upstream, mut server) = scripted(LifecycleMode::Legacy);
        let gateway = start([upstream]).await;
        server.connection().await;
        let peer = Peer::connect(gateway.server())
            .modern()
            .capabilities(capabilities)
            .await;
        Self {
            gateway,
            server,
            peer,
        }
    }

    /// Starts a call. Returns the request of the client, the connection to the server and the request there.
    async fn start(&mut self) -> (i64, ScriptedConnection, Value) {
        let id = self.peer.start("tools/call", call(&[])).await;
        let mut connection = self.server.connection().await;
        let request = connection.expect("tools/call").await;
        (id, connection, request)
    }

    async fn retry(&mut self, result: &Value, responses: Value) -> i64 {
        self.peer
            .start("tools/call", retry(result, responses))
            .await
    }
}

fn call(extra: &[(&str, Value)]) -> Value {
    let mut params = json!({ "name": "x", "arguments": {} });
    for (name, value) in extra {
        params[*name] = value.clone();
    }
    params
}

fn retry(result: &Value, responses: Value) -> Value {
    call(&[
        ("requestState", result["requestState"].clone()),
        ("inputResponses", responses),
    ])
}

fn input_requests(response: &PeerResponse) -> Value {
    let result = response.expect_result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result.clone()
}

#[tokio::test(start_paused = true)]
async fn client_requests_that_arrive_together_are_passed_on_together_without_their_ids() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    let mut url = json!({ "mode": "url", "message": "Pay", "url": "https://pay.example", "elicitationId": "e1" });
    url["_meta"] = json!({ "progressToken": 9, "com.example/a": 1 });
    connection.request(1, "elicitation/create", url).await;
    connection
        .request(2, "roots/list", json!({ "_meta": { "progressToken": 10 } }))
        .await;

    let result = input_requests(&setup.peer.finish(id).await);

    let url = &result["inputRequests"]["q1"]["params"];
    assert_eq!(url["_meta"], json!({ "com.example/a": 1 }));
    assert!(url.get("elicitationId").is_none(), "{url}");
    assert_eq!(
        result["inputRequests"]["q2"],
        json!({ "method": "roots/list", "params": {} })
    );
    let responses = json!({ "q1": { "action": "accept" }, "q2": { "roots": [] }, "q7": 5 });
    let id = setup.retry(&result, responses).await;
    assert_eq!(connection.response(1).await["result"]["action"], "accept");
    assert_eq!(connection.response(2).await["result"]["roots"], json!([]));
    connection.respond_text(&request, "done").await;
    assert_eq!(setup.peer.finish(id).await.text(), "done");
    assert_eq!(setup.gateway.suspended_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_client_request_is_rejected_without_the_client() {
    let mut setup = Setup::new(json!({ "elicitation": { "form": {} } })).await;
    let (id, mut connection, request) = setup.start().await;

    connection
        .request(
            1,
            "sampling/createMessage",
            json!({ "messages": [], "maxTokens": 1 }),
        )
        .await;
    assert_eq!(connection.response(1).await["error"]["code"], -32601);
    let url = json!({ "mode": "url", "message": "Pay", "url": "https://pay.example", "elicitationId": "e1" });
    connection.request(2, "elicitation/create", url).await;
    assert_eq!(connection.response(2).await["error"]["code"], -32602);
    connection
        .request(3, "com.example/unknown", json!({}))
        .await;
    assert_eq!(connection.response(3).await["error"]["code"], -32601);

    connection.respond_text(&request, "done").await;
    assert_eq!(setup.peer.finish(id).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn the_message_names_the_server_if_there_are_several() {
    let (upstream_a, mut server) = scripted_as("a", LifecycleMode::Legacy);
    let gateway = start([upstream_a, upstream("desk", LifecycleMode::Legacy, desk())]).await;
    server.connection().await;
    let mut peer = Peer::connect(gateway.server())
        .modern()
        .capabilities(everything())
        .await;
    let id = peer
        .start("tools/call", json!({ "name": "a_x", "arguments": {} }))
        .await;
    let mut connection = server.connection().await;
    let list = connection.expect("tools/list").await;
    let tool = json!({ "name": "x", "inputSchema": { "type": "object" } });
    connection.respond(&list, json!({ "tools": [tool] })).await;
    connection.expect("tools/call").await;

    connection
        .request(1, "elicitation/create", form("Who?"))
        .await;

    let result = input_requests(&peer.finish(id).await);
    assert_eq!(
        result["inputRequests"]["q1"]["params"]["message"],
        "a: Who?"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_retry_leaves_the_call_as_it_is() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let first = input_requests(&setup.peer.finish(id).await);

    // A malformed response, other arguments, something else than an object.
    for (responses, arguments) in [
        (json!({ "q1": { "action": "maybe" } }), json!({})),
        (json!({ "q1": accepted() }), json!({ "n": 1 })),
        (json!([accepted()]), json!({})),
    ] {
        let mut params = retry(&first, responses);
        params["arguments"] = arguments;
        let response = setup.peer.request("tools/call", params).await;
        response.expect_error(-32602);
    }
    let id = setup.retry(&first, json!({ "q1": accepted() })).await;
    connection.response(1).await;
    connection
        .request(2, "elicitation/create", form("Two?"))
        .await;
    let second = input_requests(&setup.peer.finish(id).await);
    assert_eq!(second["inputRequests"]["q2"]["params"]["message"], "Two?");

    // The state of the first round trip is not valid any more, and does not end the call.
    let old = setup
        .peer
        .request("tools/call", retry(&first, json!({ "q1": accepted() })))
        .await;
    let message = old.expect_error(-32602)["message"].to_string();
    assert!(message.contains("call again"), "{message}");
    let id = setup.retry(&second, json!({ "q2": accepted() })).await;
    connection.response(2).await;
    connection.respond_text(&request, "done").await;
    assert_eq!(setup.peer.finish(id).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_state_is_only_valid_for_its_caller() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream]).await;
    server.connection().await;
    let peer = |name: &str| {
        let principal = turnbuckle_protocol::Principal::new("https://issuer.example", name);
        let lines =
            turnbuckle_server::ndjson::NdjsonServer::new(gateway.server()).principal(principal);
        turnbuckle_server::testing::PeerBuilder::ndjson(lines)
            .modern()
            .capabilities(everything())
    };
    let (mut ada, mut eve) = (peer("ada").await, peer("eve").await);
    let id = ada.start("tools/call", call(&[])).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&ada.finish(id).await);

    let stolen = eve
        .start("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    eve.finish(stolen).await.expect_error(-32602);

    let id = ada
        .start("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    connection.response(1).await;
    connection.respond_text(&request, "done").await;
    assert_eq!(ada.finish(id).await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_gets_progress() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, _request) = setup.start().await;
    let mut params = form("One?");
    params["_meta"] = json!({ "progressToken": "t" });
    connection.request(1, "elicitation/create", params).await;
    let result = input_requests(&setup.peer.finish(id).await);
    let started = tokio::time::Instant::now();

    for count in 1..=5 {
        let progress = connection.expect("notifications/progress").await;
        assert_eq!(
            progress["params"],
            json!({ "progressToken": "t", "progress": count })
        );
    }
    assert_eq!(started.elapsed().as_secs(), 50);

    setup.retry(&result, json!({ "q1": accepted() })).await;
    assert_eq!(connection.response(1).await["result"], accepted());
}

#[tokio::test(start_paused = true)]
async fn notifications_of_a_suspended_call_are_kept_for_the_retry() {
    let mut setup = Setup::new(everything()).await;
    let meta = json!({ "progressToken": 5, "io.modelcontextprotocol/logLevel": "info" });
    let id = setup
        .peer
        .start("tools/call", call(&[("_meta", meta.clone())]))
        .await;
    let mut connection = setup.server.connection().await;
    let request = connection.expect("tools/call").await;
    let token = request["params"]["_meta"]["progressToken"].clone();
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&setup.peer.finish(id).await);

    for progress in 1..=3 {
        let params = json!({ "progressToken": token, "progress": progress });
        connection.notify("notifications/progress", params).await;
    }
    for index in 0..100 {
        let params = json!({ "level": "info", "data": format!("{index} {}", "x".repeat(1_000)) });
        connection.notify("notifications/message", params).await;
    }
    connection
        .notify(
            "notifications/message",
            json!({ "level": "debug", "data": "hidden" }),
        )
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    setup.peer.expect_no_message().await;

    let mut params = retry(&result, json!({ "q1": accepted() }));
    let mut meta = meta;
    meta["progressToken"] = json!(6);
    params["_meta"] = meta;
    let id = setup.peer.start("tools/call", params).await;
    connection.response(1).await;
    connection
        .notify(
            "notifications/progress",
            json!({ "progressToken": token, "progress": 2 }),
        )
        .await;
    connection.respond_text(&request, "done").await;
    assert_eq!(setup.peer.finish(id).await.text(), "done");

    let notifications = setup.peer.notifications();
    let progress: Vec<_> = notifications
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"])
        .collect();
    assert_eq!(progress, [&json!({ "progressToken": 6, "progress": 3 })]);
    let logs: Vec<_> = notifications
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .collect();
    assert!((55..=64).contains(&logs.len()), "{}", logs.len());
    let last = logs.last().unwrap()["params"]["data"].as_str().unwrap();
    assert!(last.starts_with("99 "), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_retry_expires_and_is_cancelled() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    connection
        .request(
            2,
            "sampling/createMessage",
            json!({ "messages": [], "maxTokens": 1 }),
        )
        .await;
    let result = input_requests(&setup.peer.finish(id).await);
    let started = tokio::time::Instant::now();

    assert_eq!(connection.response(1).await["result"]["action"], "cancel");
    assert_eq!(started.elapsed().as_secs(), 300);
    assert_eq!(connection.response(2).await["error"]["code"], -32603);
    let cancelled = connection.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(started.elapsed().as_secs(), 305);
    assert_eq!(setup.gateway.suspended_calls(), 0);
    let late = setup
        .peer
        .request("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    late.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn a_result_after_the_expiry_is_kept_for_a_late_retry() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&setup.peer.finish(id).await);
    connection.response(1).await;
    connection.respond_text(&request, "without").await;
    tokio::time::sleep(Duration::from_secs(60)).await;

    let late = setup
        .peer
        .request("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    assert_eq!(late.text(), "without");
    let again = setup
        .peer
        .request("tools/call", retry(&result, json!({})))
        .await;
    again.expect_error(-32602);
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_server_is_kept_for_the_retry() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, _request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&setup.peer.finish(id).await);
    drop(connection);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let response = setup
        .peer
        .request("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    let error = response.expect_error(-32603);
    assert_eq!(error["data"]["kind"], "disconnected", "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_requests_input_for_ever_is_stopped() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, _request) = setup.start().await;
    connection.request(1, "elicitation/create", form("?")).await;
    let mut response = setup.peer.finish(id).await;
    for round_trip in 1..=32 {
        let result = input_requests(&response);
        let id = setup
            .retry(&result, json!({ (format!("q{round_trip}")): accepted() }))
            .await;
        connection
            .request(round_trip + 1, "elicitation/create", form("?"))
            .await;
        response = setup.peer.finish(id).await;
    }
    response.expect_error(-32603);
    connection.expect("notifications/cancelled").await;
    assert_eq!(setup.gateway.suspended_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_client_request_is_not_requested_again() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&setup.peer.finish(id).await);
    connection
        .notify("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    connection.respond_text(&request, "never mind").await;
    tokio::time::sleep(Duration::from_secs(200)).await;

    let late = setup
        .peer
        .request("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    assert_eq!(late.text(), "never mind");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_cancelled_cancels_the_call() {
    let mut setup = Setup::new(everything()).await;
    let (id, mut connection, request) = setup.start().await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&setup.peer.finish(id).await);
    let id = setup.retry(&result, json!({ "q1": accepted() })).await;
    connection.response(1).await;

    setup.peer.cancel(id).await;

    let cancelled = connection.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_per_call_lasts_as_long_as_the_suspended_call() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::Call)]).await;
    server.connection().await;
    let mut peer = Peer::connect(gateway.server())
        .modern()
        .capabilities(everything())
        .await;
    let id = peer.start("tools/call", call(&[])).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    connection
        .request(1, "elicitation/create", form("One?"))
        .await;
    let result = input_requests(&peer.finish(id).await);
    tokio::time::sleep(Duration::from_secs(100)).await;

    let id = peer
        .start("tools/call", retry(&result, json!({ "q1": accepted() })))
        .await;
    connection.response(1).await;
    connection.respond_text(&request, "done").await;
    assert_eq!(peer.finish(id).await.text(), "done");
    assert_eq!(connection.receive().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_message_of_another_caller_is_refused_and_counted() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut ids = Vec::new();
    let mut peers = Vec::new();
    for _ in 0..2 {
        let mut peer = Peer::connect(gateway.server())
            .modern()
            .capabilities(everything())
            .await;
        ids.push(peer.start("tools/call", call(&[])).await);
        peers.push(peer);
    }
    connection.expect("tools/call").await;
    connection.expect("tools/call").await;

    connection
        .request(1, "elicitation/create", form("Who?"))
        .await;

    assert_eq!(connection.response(1).await["error"]["code"], -32603);
    assert_eq!(gateway.status()[0].refused_client_requests, 1);
}
