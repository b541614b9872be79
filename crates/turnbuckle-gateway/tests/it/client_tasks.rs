//! Tasks of 2025-11-25 that a server requests of a client, and the status of tasks.

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{RunningGateway, Sharing, Upstream};
use turnbuckle_protocol::Revision;
use turnbuckle_server::testing::{Combination, Peer, TransportKind, http};

use crate::{
    scripted::{ScriptedConnection, ScriptedServer, scripted, scripted_as, scripted_with},
    upstreams::start,
};

fn capabilities() -> Value {
    let requests = json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } });
    json!({
        "elicitation": {}, "sampling": {},
        "tasks": { "list": {}, "cancel": {}, "requests": requests },
    })
}

fn sampling() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "messages": [message], "maxTokens": 5, "task": { "ttl": 60_000 } })
}

fn task(id: &str, status: &str) -> Value {
    let now = "2026-11-19T00:00:00Z";
    json!({ "taskId": id, "status": status, "createdAt": now, "lastUpdatedAt": now, "ttl": 60_000 })
}

/// A scripted legacy server with tasks of its own.
fn workshop() -> (Upstream, ScriptedServer) {
    let tasks = json!({ "requests": { "tools": { "call": {} } } });
    scripted_with(
        "workshop",
        LifecycleMode::Legacy,
        &json!({ "tasks": tasks }),
    )
}

/// A legacy client of a scripted legacy server.
async fn connect(gateway: &RunningGateway, transport: TransportKind) -> Peer {
    let combination = Combination::new(transport, Revision::V2025_11_25);
    let peer = combination.connect(gateway.server());
    peer.capabilities(capabilities()).await
}

/// Completes a call of the client, and returns the connection that it has opened.
async fn open(peer: &mut Peer, server: &mut ScriptedServer, name: &str) -> ScriptedConnection {
    let id = peer.start_tool(name, json!({})).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    connection.respond_text(&request, "done").await;
    peer.finish(id).await.expect_result();
    connection
}

/// Passes a request of the server on to the client, with its response.
async fn exchange(
    peer: &mut Peer,
    connection: &mut ScriptedConnection,
    (id, method, params): (i64, &str, Value),
    result: Value,
) -> (Value, Value) {
    connection.request(id, method, params).await;
    let request = peer.expect_request(method).await;
    peer.respond(&request, result).await;
    (
        request.params,
        connection.response(id).await["result"].clone(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_client_runs_for_the_server_of_its_session() {
    for transport in [TransportKind::Ndjson, TransportKind::Http] {
        let (upstream, mut server) = scripted(LifecycleMode::Legacy);
        let gateway = start([upstream]).await;
        drop(server.connection().await);
        let mut peer = connect(&gateway, transport).await;
        let mut connection = open(&mut peer, &mut server, "x").await;
        assert_eq!(
            connection.handshake["capabilities"]["tasks"],
            capabilities()["tasks"]
        );

        let request = (1, "sampling/createMessage", sampling());
        let created = json!({ "task": task("t1", "working") });
        let (params, result) = exchange(&mut peer, &mut connection, request, created.clone()).await;
        assert_eq!(params["task"], json!({ "ttl": 60_000 }));
        assert_eq!(result, created);

        let of_task = json!({ "taskId": "t1" });
        let working = task("t1", "working");
        let request = (2, "tasks/get", of_task.clone());
        let (_, result) = exchange(&mut peer, &mut connection, request, working.clone()).await;
        assert_eq!(result, working);
        let list = json!({ "tasks": [task("t0", "working"), working], "nextCursor": "c" });
        let request = (3, "tasks/list", json!({}));
        let (_, result) = exchange(&mut peer, &mut connection, request, list).await;
        assert_eq!(
            result["tasks"],
            json!([working]),
            "only those of this server"
        );
        assert_eq!(result["nextCursor"], "c");

        peer.notify("notifications/tasks/status", task("t0", "completed"))
            .await;
        peer.notify("notifications/tasks/status", task("t1", "completed"))
            .await;
        let status = connection.expect("notifications/tasks/status").await;
        assert_eq!(status["params"], task("t1", "completed"));

        // Longer than other client requests may take.
        connection.request(4, "tasks/result", of_task.clone()).await;
        let request = peer.expect_request("tasks/result").await;
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        let text = json!({ "type": "text", "text": "Yours" });
        let message = json!({ "role": "assistant", "model": "m", "content": text });
        peer.respond(&request, message.clone()).await;
        assert_eq!(connection.response(4).await["result"], message);
        let request = (5, "tasks/cancel", of_task);
        let cancelled = task("t1", "cancelled");
        let (_, result) = exchange(&mut peer, &mut connection, request, cancelled.clone()).await;
        assert_eq!(result, cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_cannot_use_the_tasks_of_another() {
    let (upstream_a, mut server_a) = scripted_as("a", LifecycleMode::Legacy);
    let (upstream_b, mut server_b) = scripted_as("b", LifecycleMode::Legacy);
    let gateway = start([upstream_a, upstream_b]).await;
    drop((server_a.connection().await, server_b.connection().await));
    let mut peer = connect(&gateway, TransportKind::Ndjson).await;
    let id = peer.start("tools/list", json!({})).await;
    let (mut a, mut b) = (server_a.connection().await, server_b.connection().await);
    for connection in [&mut a, &mut b] {
        let request = connection.expect("tools/list").await;
        connection.respond(&request, json!({ "tools": [] })).await;
    }
    peer.finish(id).await.expect_result();
    let request = (1, "sampling/createMessage", sampling());
    let created = json!({ "task": task("t1", "working") });
    exchange(&mut peer, &mut a, request, created).await;

    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        b.request(1, method, json!({ "taskId": "t1" })).await;
        assert_eq!(b.response(1).await["error"]["code"], -32602, "{method}");
    }
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn no_task_is_requested_of_a_client_without_a_connection_of_its_own() {
    let (upstream, mut server) = scripted(LifecycleMode::Legacy);
    let upstream = upstream.sharing(Sharing::Principal);
    let gateway = start([upstream]).await;
    drop(server.connection().await);
    let mut peer = connect(&gateway, TransportKind::Ndjson).await;
    let id = peer.start_tool("x", json!({})).await;
    let mut connection = server.connection().await;
    let call = connection.expect("tools/call").await;
    assert!(connection.handshake["capabilities"].get("tasks").is_none());

    connection
        .request(1, "sampling/createMessage", sampling())
        .await;
    let request = peer.expect_request("sampling/createMessage").await;
    assert!(request.params.get("task").is_none(), "{}", request.params);
    for method in ["tasks/get", "tasks/list"] {
        connection
            .request(2, method, json!({ "taskId": "t1" }))
            .await;
        assert_eq!(
            connection.response(2).await["error"]["code"],
            -32601,
            "{method}"
        );
    }
    connection.respond_text(&call, "done").await;
    peer.finish(id).await.expect_result();
}

#[tokio::test(start_paused = true)]
async fn tasks_of_clients_are_not_declared_to_a_modern_server() {
    let (upstream, mut server) = scripted(LifecycleMode::Modern);
    let gateway = start([upstream.sharing(Sharing::Session)]).await;
    drop(server.connection().await);
    let mut peer = connect(&gateway, TransportKind::Ndjson).await;
    let id = peer.start_tool("x", json!({})).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    let declared = "io.modelcontextprotocol/clientCapabilities";
    for meta in [&connection.handshake["_meta"], &request["params"]["_meta"]] {
        assert!(meta[declared]["sampling"].is_object());
        assert!(meta[declared].get("tasks").is_none(), "{meta}");
    }
    connection
        .respond(&request, json!({ "resultType": "complete", "content": [] }))
        .await;
    peer.finish(id).await.expect_result();
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_task_reaches_the_session_that_requested_it() {
    for sharing in [Sharing::Auto, Sharing::All] {
        let (upstream, mut server) = workshop();
        let gateway = start([upstream.sharing(sharing)]).await;
        let mut connection = server.connection().await;
        let mut peer = connect(&gateway, TransportKind::Http).await;
        let mut other = connect(&gateway, TransportKind::Http).await;
        let params = json!({ "name": "x", "arguments": {}, "task": {} });
        let id = peer.start("tools/call", params).await;
        if sharing == Sharing::Auto {
            connection = server.connection().await;
        }
        let request = connection.expect("tools/call").await;
        let created = json!({ "task": task("t1", "working") });
        connection.respond(&request, created).await;
        let created = peer.finish(id).await.expect_result().clone();
        let known = &created["task"]["taskId"];
        assert_ne!(known, "t1");

        let unknown = task("t2", "working");
        connection
            .notify("notifications/tasks/status", unknown)
            .await;
        let completed = task("t1", "completed");
        connection
            .notify("notifications/tasks/status", completed)
            .await;

        let status = peer.expect_notification("notifications/tasks/status").await;
        assert_eq!(&status["taskId"], known);
        assert_eq!(status["status"], "completed");
        peer.expect_no_message().await;
        other.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_task_is_not_sent_with_a_response_about_it() {
    let (upstream, mut server) = workshop();
    let gateway = start([upstream]).await;
    drop(server.connection().await);
    let client = http(gateway.server()).in_session("2025-11-25").await;
    let request = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let params = json!({ "name": "x", "arguments": {}, "task": {} });
    let call = request(1, "tools/call", params);
    let (created, mut connection) = tokio::join!(client.post(&call), async {
        let mut connection = server.connection().await;
        let request = connection.expect("tools/call").await;
        let created = json!({ "task": task("t1", "working") });
        connection.respond(&request, created).await;
        connection
    });
    let created = created.json().await;

    let params = json!({ "taskId": created["result"]["task"]["taskId"] });
    let get = request(2, "tasks/get", params);
    let (state, ()) = tokio::join!(client.post(&get), async {
        let request = connection.expect("tasks/get").await;
        let completed = task("t1", "completed");
        connection
            .notify("notifications/tasks/status", completed.clone())
            .await;
        connection.respond(&request, completed).await;
    });

    assert!(!state.is_stream());
    assert_eq!(state.json().await["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_client_request_of_a_task_names_the_task_outside_of_calls() {
    let (upstream, mut server) = workshop();
    let gateway = start([upstream]).await;
    drop(server.connection().await);
    let mut peer = connect(&gateway, TransportKind::Http).await;
    let params = json!({ "name": "x", "arguments": {}, "task": {} });
    let id = peer.start("tools/call", params).await;
    let mut connection = server.connection().await;
    let request = connection.expect("tools/call").await;
    let created = json!({ "task": task("t1", "working") });
    connection.respond(&request, created).await;
    let created = peer.finish(id).await.expect_result().clone();

    let related = "io.modelcontextprotocol/related-task";
    for (id, known) in [("t1", &created["task"]["taskId"]), ("t2", &Value::Null)] {
        let mut params = sampling();
        params["_meta"] = json!({ (related): { "taskId": id } });
        connection
            .request(1, "sampling/createMessage", params)
            .await;
        let request = peer.expect_request("sampling/createMessage").await;
        assert_eq!(&request.params["_meta"][related]["taskId"], known);
        peer.respond_error(&request, -1, "no").await;
        assert_eq!(connection.response(1).await["error"]["code"], -1);
    }
}
