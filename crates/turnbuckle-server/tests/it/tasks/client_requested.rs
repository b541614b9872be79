//! Tasks requested by the client (2025-11-25).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_server::{Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer},
    tasks::test_server::{
        client_in_session, everything, id, request_with_notifications, response_to, server, start,
    },
};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn a_server_with_task_tools_declares_the_capability() {
    req!("tasks.capability", "tasks.capability.list-method");
    let mut peer = Peer::new(server());
    let params = crate::ndjson::test_client::initialize("2025-11-25", json!({}));

    let response = peer.call("initialize", params).await;

    let declared = &response["result"]["capabilities"]["tasks"];
    let expected = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(declared, &expected);
    peer.notify("notifications/initialized", json!({})).await;
    let tools = peer.call("tools/list", json!({})).await;
    let support = |name: &str| {
        let tools = tools["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(support("work"), "optional");
    assert_eq!(support("must"), "required");
    assert_eq!(support("plain"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_and_its_result_is_fetched() {
    req!(
        "tasks.create.result",
        "tasks.create.prompt",
        "tasks.id.string",
        "tasks.id.receiver",
        "tasks.status.initial",
        "tasks.get.created-at",
        "tasks.get.updated-at",
        "tasks.get.ttl",
        "tasks.get.poll-interval-send",
        "tasks.result.terminal",
        "tasks.result.success",
        "tasks.result.related",
        "tasks.related.not-on-methods"
    );
    let mut peer = client_in_session().await;

    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;
    assert_eq!(task["status"], "working");
    assert_eq!(task["taskId"].as_str().unwrap().len(), 24);
    assert_eq!(task["ttl"], 3_600_000);
    assert_eq!(task["pollInterval"], 1000);
    for time in ["createdAt", "lastUpdatedAt"] {
        let time = task[time].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    }

    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "working");
    assert_eq!(looked["result"]["statusMessage"], "half way");
    assert_eq!(looked["result"]["_meta"], Value::Null);
    sleep(Duration::from_secs(31)).await;
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");

    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;
    let result = &response["result"];
    assert_eq!(result["content"][0]["text"], "worked 30 s");
    assert_eq!(result["_meta"][RELATED], id(&task));
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_while_the_result_is_awaited() {
    req!(
        "tasks.result.block",
        "tasks.related.all",
        "tasks.notify.status",
        "tasks.notify.no-related",
        "tasks.http.comply",
        "progress.task.token",
        "progress.task.stop"
    );
    let mut peer = client_in_session().await;
    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;

    let (response, notified) =
        request_with_notifications(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(response["result"]["content"][0]["text"], "worked 30 s");
    let progress = notified
        .iter()
        .find(|message| message["method"] == "notifications/progress")
        .unwrap();
    assert_eq!(progress["params"]["progressToken"], 5);
    assert_eq!(progress["params"]["progress"], 2);
    assert_eq!(progress["params"]["_meta"][RELATED], id(&task));
    let mut received = notified;
    // The last notification may follow the response.
    if let Ok(last) = tokio::time::timeout(Duration::from_secs(1), peer.next()).await {
        received.push(last);
    }
    let last = received
        .iter()
        .rposition(|message| message["method"] == "notifications/progress");
    let ended = |message: &Value| message["params"]["status"] == "completed";
    assert!(last < received.iter().position(ended), "{received:?}");
    let done = received
        .iter()
        .rfind(|message| message["method"] == "notifications/tasks/status")
        .unwrap();
    assert_eq!(done["params"]["taskId"], task["taskId"]);
    assert_eq!(done["params"]["status"], "completed");
    assert_eq!(done["params"]["_meta"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_client_request_is_sent_while_the_result_is_awaited() {
    req!(
        "tasks.input.status",
        "tasks.input.related",
        "tasks.input.leave",
        "tasks.status.transitions"
    );
    let mut peer = client_in_session().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");

    let waiting = peer.request("tasks/result", id(&task)).await;
    let client_request = client_request(&mut peer).await;
    assert_eq!(client_request["method"], "elicitation/create");
    assert_eq!(client_request["params"]["message"], "Who?");
    assert_eq!(client_request["params"]["_meta"][RELATED], id(&task));
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
        .await;

    let (response, notified) = response_to(&mut peer, waiting).await;
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
    let statuses: Vec<_> = notified
        .iter()
        .filter(|message| message["method"] == "notifications/tasks/status")
        .map(|message| message["params"]["status"].as_str().unwrap())
        .collect();
    assert!(!statuses.contains(&"input_required"), "{statuses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_request_fails_the_tool_and_not_the_server() {
    let mut peer = client_in_session().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let waiting = peer.request("tasks/result", id(&task)).await;
    let client_request = client_request(&mut peer).await;

    let error = json!({ "code": -1, "message": "not now" });
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "error": error }))
        .await;

    let (response, _) = response_to(&mut peer, waiting).await;
    assert_eq!(response["result"]["isError"], true);
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not now"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_wait_cancels_its_client_request_and_the_next_wait_sends_it_again() {
    let mut peer = client_in_session().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let waiting = peer.request("tasks/result", id(&task)).await;
    let first = client_request(&mut peer).await;

    peer.cancel(waiting).await;
    let withdrawn = loop {
        let message = peer.next().await;
        if message["method"] == "notifications/cancelled" {
            break message;
        }
    };
    assert_eq!(withdrawn["params"]["requestId"], first["id"]);
    peer.request("tasks/result", id(&task)).await;

    let second = client_request(&mut peer).await;
    assert_eq!(second["params"]["message"], first["params"]["message"]);
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_is_a_failed_task_with_a_result() {
    req!("tasks.status.tool-error-failed", "tasks.get.status-message");
    let mut peer = client_in_session().await;

    let task = start(&mut peer, "fail", json!({})).await;
    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;

    assert_eq!(response["result"]["isError"], true);
    assert_eq!(response["result"]["content"][0]["text"], "no luck");
    assert_eq!(looked["result"]["status"], "failed");
    assert!(looked["result"]["statusMessage"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_protocol_error_is_unchanged_in_the_task_result() {
    req!("tasks.result.error", "tasks.error.internal");
    let mut peer = client_in_session().await;

    let task = start(&mut peer, "break", json!({})).await;
    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;
    let error = json!({ "code": -32050, "message": "broken", "data": "pieces" });
    assert_eq!(response["error"], error);

    let task = start(&mut peer, "panic", json!({ "seconds": 1 })).await;
    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;
    assert_eq!(response["error"]["code"], -32603);
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "failed");
    assert!(looked["result"]["statusMessage"].is_string());
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_reported_by_the_task() {
    let mut peer = client_in_session().await;

    let task = start(&mut peer, "work", json!({ "seconds": "many" })).await;
    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(response["result"]["isError"], true);
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("seconds"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled_and_its_handler_is_dropped() {
    req!(
        "tasks.cancel.before-response",
        "tasks.cancel.final",
        "tasks.cancel.terminal-reject",
        "tasks.status.terminal"
    );
    let mut peer = client_in_session().await;
    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;

    let (cancelled, _) = request_with_notifications(&mut peer, "tasks/cancel", id(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(cancelled["result"]["taskId"], task["taskId"]);
    let (again, _) = request_with_notifications(&mut peer, "tasks/cancel", id(&task)).await;
    assert_eq!(again["error"]["code"], -32602);

    sleep(Duration::from_secs(60)).await;
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "cancelled");
    let (result, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;
    assert_eq!(result["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn the_notification_that_cancels_requests_does_not_cancel_tasks() {
    req!("cancellation.tasks");
    let mut peer = client_in_session().await;
    let params = json!({ "name": "work", "arguments": { "seconds": 30 }, "task": {} });
    let call = peer.request("tools/call", params).await;
    let (response, _) = response_to(&mut peer, call).await;

    peer.cancel(call).await;
    sleep(Duration::from_secs(31)).await;

    let task = &response["result"]["task"];
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(task)).await;
    assert_eq!(looked["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_requested_task_lifetime_is_bounded_and_stored() {
    req!(
        "tasks.create.ttl",
        "tasks.ttl.override",
        "tasks.ttl.delete",
        "tasks.error.unknown-id"
    );
    let longest = Duration::from_secs(100);
    let server = server().task_lifetime(Duration::from_secs(10), longest);
    let mut peer = Peer::initialized(server, "2025-11-25", everything()).await;
    let mut begin = async |ttl: Value| {
        let params = json!({ "name": "work", "arguments": { "seconds": 500 }, "task": ttl });
        request_with_notifications(&mut peer, "tools/call", params)
            .await
            .0["result"]["task"]
            .clone()
    };
    let short = begin(json!({ "ttl": 2000 })).await;
    let usual = begin(json!({})).await;
    let long = begin(json!({ "ttl": 10_000_000 })).await;
    assert_eq!(short["ttl"], 2000);
    assert_eq!(usual["ttl"], 10_000);
    assert_eq!(long["ttl"], 100_000);
    assert_eq!(begin(json!({ "ttl": 0 })).await["ttl"], 1000);

    let waiting = peer.request("tasks/result", id(&short)).await;
    let (response, _) = response_to(&mut peer, waiting).await;

    assert_eq!(response["error"]["code"], -32602, "{response}");
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let (response, _) = request_with_notifications(&mut peer, method, id(&short)).await;
        assert_eq!(response["error"]["code"], -32602);
    }
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", id(&usual)).await;
    assert_eq!(looked["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn waiters_are_notified_that_a_task_expired() {
    let brief = Duration::from_secs(10);
    let server = server().task_lifetime(brief, brief);
    let busy = server.clone();
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_secs(1)).await;
            busy.resource_updated("test://a");
        }
    });
    let mut peer = Peer::initialized(server, "2025-11-25", everything()).await;
    let task = start(&mut peer, "work", json!({ "seconds": 500 })).await;

    let (response, _) = request_with_notifications(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(response["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_page_by_page() {
    req!(
        "tasks.list.paginate",
        "tasks.list.next-cursor",
        "tasks.list.complete",
        "tasks.list.opaque",
        "tasks.error.cursor",
        "tasks.id.unique"
    );
    let server = server().page_size(2);
    let mut peer = Peer::initialized(server, "2025-11-25", everything()).await;
    let mut started = Vec::new();
    for _ in 0..5 {
        let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;
        started.push(task["taskId"].clone());
    }

    let mut listed = Vec::new();
    let mut params = json!({});
    loop {
        let (page, _) = request_with_notifications(&mut peer, "tasks/list", params).await;
        let tasks = page["result"]["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match &page["result"]["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(listed, started);
    started.dedup();
    assert_eq!(started.len(), 5);
    for cursor in ["", "!", "AAAA"] {
        let (response, _) =
            request_with_notifications(&mut peer, "tasks/list", json!({ "cursor": cursor })).await;
        assert_eq!(response["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn tools_declare_their_task_support() {
    req!(
        "tasks.tool.forbidden-server",
        "tasks.tool.required-server",
        "tasks.capability.force"
    );
    let mut peer = client_in_session().await;

    let params = json!({ "name": "plain", "arguments": {}, "task": {} });
    let (response, _) = request_with_notifications(&mut peer, "tools/call", params).await;
    assert_eq!(response["error"]["code"], -32601);
    let (response, _) =
        request_with_notifications(&mut peer, "tools/call", json!({ "name": "must" })).await;
    assert_eq!(response["error"]["code"], -32601);
    let (response, _) =
        request_with_notifications(&mut peer, "tools/call", json!({ "name": "fail" })).await;
    assert_eq!(response["result"]["isError"], true);
    for task in [json!(7), json!({ "ttl": "long" }), json!({ "ttl": 1.5 })] {
        let params = json!({ "name": "fail", "task": task });
        let (response, _) = request_with_notifications(&mut peer, "tools/call", params).await;
        assert_eq!(response["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_task_tools_has_no_task_methods() {
    req!("tasks.capability.ignore-undeclared");
    let plain = Tool::new("plain", async || Ok("plain".to_owned()));
    let server = Server::new("plain", "1").tool(plain);
    let mut peer = Peer::new(server);
    let params = crate::ndjson::test_client::initialize("2025-11-25", json!({}));
    let response = peer.call("initialize", params).await;
    assert_eq!(response["result"]["capabilities"]["tasks"], Value::Null);
    peer.notify("notifications/initialized", json!({})).await;

    let params = json!({ "name": "plain", "arguments": {}, "task": { "ttl": 1 } });
    let (response, _) = request_with_notifications(&mut peer, "tools/call", params).await;

    assert_eq!(response["result"]["content"][0]["text"], "plain");
    let (response, _) =
        request_with_notifications(&mut peer, "tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(response["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn older_sessions_have_no_tasks() {
    for revision in LEGACY.into_iter().filter(|it| *it != "2025-11-25") {
        let mut peer = Peer::new(server());
        let params = crate::ndjson::test_client::initialize(revision, everything());
        let response = peer.call("initialize", params).await;
        assert_eq!(response["result"]["capabilities"]["tasks"], Value::Null);
        assert_eq!(
            response["result"]["capabilities"]["extensions"],
            Value::Null
        );
        peer.notify("notifications/initialized", json!({})).await;

        let params = json!({ "name": "fail", "arguments": {}, "task": {} });
        let (response, _) = request_with_notifications(&mut peer, "tools/call", params).await;
        assert_eq!(response["result"]["isError"], true, "{response}");
        let (response, _) =
            request_with_notifications(&mut peer, "tools/call", json!({ "name": "must" })).await;
        assert_eq!(response["result"]["isError"], true, "{response}");
        let (response, _) = request_with_notifications(&mut peer, "tasks/list", json!({})).await;
        assert_eq!(response["error"]["code"], -32601);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tasks_extension_is_ignored_in_sessions() {
    req!(
        "ext-tasks.legacy.not-in-2025-11-25",
        "tasks.related.param-wins"
    );
    let mut peer = client_in_session().await;
    let (response, _) =
        request_with_notifications(&mut peer, "tools/call", json!({ "name": "fail" })).await;
    assert_eq!(response["result"]["isError"], true, "{response}");

    let one = start(&mut peer, "work", json!({ "seconds": 30 })).await;
    let two = start(&mut peer, "fail", json!({})).await;
    let mut params = id(&one);
    params["_meta"] = json!({ RELATED: id(&two) });
    let (looked, _) = request_with_notifications(&mut peer, "tasks/get", params).await;

    assert_eq!(looked["result"]["taskId"], one["taskId"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_request_without_an_id_is_rejected() {
    req!("tasks.error.informative");
    let mut peer = client_in_session().await;

    for params in [
        json!({}),
        json!({ "taskId": 7 }),
        json!({ "taskId": "" }),
        json!({ "taskId": "AAAAAAAAAAAAAAAAAAAAAAAA" }),
        json!({ "taskId": "x".repeat(100_000) }),
    ] {
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let (response, _) = request_with_notifications(&mut peer, method, params.clone()).await;
            assert_eq!(response["error"]["code"], -32602, "{method} {response}");
            assert!(response["error"]["message"].as_str().unwrap().len() < 500);
        }
    }
    let (response, _) =
        request_with_notifications(&mut peer, "tasks/update", json!({ "taskId": "x" })).await;
    assert_eq!(response["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn frequent_task_updates_are_forwarded_rarely() {
    let mut peer = client_in_session().await;

    let task = start(&mut peer, "chatter", json!({})).await;
    let (looked, received) = request_with_notifications(&mut peer, "tasks/get", id(&task)).await;

    assert_eq!(looked["result"]["statusMessage"], "step 1000");
    assert!(received.len() <= 1, "{received:?}");
}

/// The next request of the server.
async fn client_request(peer: &mut Peer) -> Value {
    loop {
        let message = peer.next().await;
        if message["method"].is_string() && !message["id"].is_null() {
            return message;
        }
    }
}
