//! Several clients on one connection to a server: each gets only what belongs to it.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::Sharing;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::testing::Peer;

use crate::{
    scripted::{ScriptedConnection, scripted},
    upstreams::start,
};

fn call(name: &str, meta: &Value) -> Value {
    json!({ "name": name, "arguments": {}, "_meta": meta })
}

fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } })
}

/// Returns the token that the gateway has put into a request.
fn token(request: &Value) -> Value {
    request["params"]["_meta"]["progressToken"].clone()
}

async fn report(connection: &mut ScriptedConnection, token: &Value, progress: f64) {
    let params = json!({ "progressToken": token, "progress": progress });
    connection.notify("notifications/progress", params).await;
}

#[tokio::test(start_paused = true)]
async fn fifty_clients_with_equal_ids_and_tokens_get_only_their_own() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut peers = Vec::new();
    for index in 0..50 {
        let peer = Peer::connect(gateway.server());
        let peer = if index % 2 == 0 {
            peer.modern()
        } else {
            peer.legacy("2025-11-25")
        };
        let mut peer = peer.await;
        // The ids of both eras differ by the handshake.
        let id = peer
            .start(
                "tools/call",
                call(&format!("t{index}"), &json!({ "progressToken": "p" })),
            )
            .await;
        peers.push((peer, id));
    }
    let mut requests = Vec::new();
    for _ in 0..50 {
        requests.push(connection.expect("tools/call").await);
    }
    for request in &requests {
        let name = request["params"]["name"].as_str().unwrap();
        let number: f64 = name[1..].parse().unwrap();
        report(&mut connection, &token(request), number + 1.0).await;
    }
    for request in requests.iter().rev() {
        let name = request["params"]["name"].as_str().unwrap().to_owned();
        connection.respond_text(request, &name).await;
    }

    for (index, (peer, id)) in peers.iter_mut().enumerate() {
        assert_eq!(peer.finish(*id).await.text(), format!("t{index}"));
        let progress = peer.expect_notification("notifications/progress").await;
        assert_eq!(progress["progressToken"], "p");
        assert_eq!(progress["progress"].as_f64(), Some(index as f64 + 1.0));
        assert!(peer.notifications().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn progress_increases_and_belongs_to_a_running_call() {
    for is_modern in [false, true] {
        let (upstream, mut server) = scripted(LifecycleMode::Legacy);
        let gateway = start([upstream.sharing(Sharing::All)]).await;
        let mut connection = server.connection().await;
        let peer = Peer::connect(gateway.server());
        let mut peer = if is_modern {
            peer.modern()
        } else {
            peer.legacy("2025-11-25")
        }
        .await;
        let id = peer
            .start("tools/call", call("x", &json!({ "progressToken": "p" })))
            .await;
        let request = connection.expect("tools/call").await;
        let own = token(&request);
        for (token, progress) in [
            (&own, 1.0),
            (&own, 1.0),
            (&own, 0.5),
            (&json!("foreign"), 5.0),
            (&json!(own.as_i64().unwrap() + 1), 6.0),
            (&own, 2.0),
        ] {
            report(&mut connection, token, progress).await;
        }
        connection.respond_text(&request, "done").await;
        assert_eq!(peer.finish(id).await.text(), "done");
        report(&mut connection, &own, 3.0).await;

        let values: Vec<_> = peer
            .notifications()
            .iter()
            .map(|message| message["params"]["progress"].as_f64().unwrap())
            .collect();
        assert_eq!(values, [1.0, 2.0]);
        peer.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_one_at_a_time_can_request_input_on_a_shared_connection() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All).one_at_a_time(true)]).await;
    server.connection().await;
    let mut peers = Vec::new();
    for _ in 0..2 {
        let capabilities = json!({ "elicitation": { "form": {} } });
        peers.push(
            Peer::connect(gateway.server())
                .modern()
                .capabilities(capabilities)
                .await,
        );
    }
    let first = peers[0].start("tools/call", call("a", &json!({}))).await;
    let mut connection = server.connection().await;
    assert!(connection.handshake["capabilities"]["elicitation"].is_object());
    let request = connection.expect("tools/call").await;
    let second = peers[1].start("tools/call", call("b", &json!({}))).await;
    connection.request(1, "elicitation/create", form()).await;
    let result = peers[0].finish(first).await.expect_result().clone();
    assert_eq!(result["resultType"], "input_required");

    let mut retry = call("a", &json!({}));
    retry["requestState"] = result["requestState"].clone();
    retry["inputResponses"] = json!({ "q1": { "action": "decline" } });
    let first = peers[0].start("tools/call", retry).await;
    // The other call is sent after the first one.
    let next = connection.receive().await.unwrap();
    assert_eq!(next["result"]["action"], "decline", "{next}");
    connection.respond_text(&request, "one").await;
    assert_eq!(peers[0].finish(first).await.text(), "one");
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "two").await;
    assert_eq!(peers[1].finish(second).await.text(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_server_has_the_most_verbose_log_level_of_its_users() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream.sharing(Sharing::All)]).await;
    let mut connection = server.connection().await;
    let mut responder = tokio::spawn(async move {
        let mut levels = Vec::new();
        while levels.len() < 3 {
            let request = connection.expect("logging/setLevel").await;
            levels.push(request["params"]["level"].clone());
            connection.respond(&request, json!({})).await;
        }
        levels
    });
    let connect = |level| {
        Peer::connect(gateway.server())
            .legacy("2025-11-25")
            .log_level(level)
    };
    let _quiet = connect(LogLevel::Warning).await;
    let verbose = connect(LogLevel::Debug).await;
    let _other = connect(LogLevel::Error).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!responder.is_finished());

    drop(verbose);

    let levels = (&mut responder).await.unwrap();
    assert_eq!(levels, ["warning", "debug", "warning"]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_sets_the_log_level_of_a_legacy_server() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let gateway = start([upstream]).await;
    server.connection().await;
    let mut peer = Peer::connect(gateway.server())
        .modern()
        .log_level(LogLevel::Info)
        .await;
    let id = peer.start("tools/call", call("x", &json!({}))).await;
    let mut connection = server.connection().await;
    let set = connection.expect("logging/setLevel").await;
    assert_eq!(set["params"]["level"], "info");
    connection.respond(&set, json!({})).await;
    let request = connection.expect("tools/call").await;
    connection
        .notify(
            "notifications/message",
            json!({ "level": "info", "data": "seen" }),
        )
        .await;
    connection
        .notify(
            "notifications/message",
            json!({ "level": "debug", "data": "hidden" }),
        )
        .await;
    connection.respond_text(&request, "done").await;
    assert_eq!(peer.finish(id).await.text(), "done");

    let logged = peer.expect_notification("notifications/message").await;
    assert_eq!(logged["data"], "seen");
    assert!(peer.notifications().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_cancels_the_open_client_requests() {
    let (upstream, mut server) = scripted(LifecycleMode::Modern);
    let gateway = start([upstream]).await;
    let mut connection = server.connection().await;
    let capabilities = json!({ "elicitation": { "form": {} }, "roots": {} });
    let mut peer = Peer::connect(gateway.server())
        .legacy("2025-11-25")
        .capabilities(capabilities)
        .await;
    let id = peer.start("tools/call", call("x", &json!({}))).await;
    let request = connection.expect("tools/call").await;
    let inputs = json!({
        "a": { "method": "elicitation/create", "params": form() },
        "b": { "method": "roots/list" },
    });
    let result =
        json!({ "resultType": "input_required", "inputRequests": inputs, "requestState": "s" });
    connection.respond(&request, result).await;
    let elicitation = peer.expect_request("elicitation/create").await;
    let roots = peer.expect_request("roots/list").await;

    peer.cancel(id).await;

    let mut cancelled = Vec::new();
    for _ in 0..2 {
        let params = peer.expect_notification("notifications/cancelled").await;
        cancelled.push(params["requestId"].clone());
    }
    assert!(cancelled.contains(&elicitation.id) && cancelled.contains(&roots.id));
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn an_input_request_that_was_not_declared_sends_nothing_to_the_client() {
    let (upstream, mut server) = scripted(LifecycleMode::Modern);
    let gateway = start([upstream]).await;
    let mut connection = server.connection().await;
    let capabilities = json!({ "elicitation": { "form": {} } });
    let mut peer = Peer::connect(gateway.server())
        .legacy("2025-11-25")
        .capabilities(capabilities)
        .await;
    let id = peer.start("tools/call", call("x", &json!({}))).await;
    let request = connection.expect("tools/call").await;
    let inputs = json!({
        "a": { "method": "elicitation/create", "params": form() },
        "b": { "method": "roots/list" },
    });
    let result =
        json!({ "resultType": "input_required", "inputRequests": inputs, "requestState": "s" });
    connection.respond(&request, result).await;

    let failed = peer.finish(id).await;

    assert!(failed.expect_tool_error().contains("roots/list"));
    peer.expect_no_message().await;
}
