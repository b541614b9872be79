//! Tasks created by the server (the extension of 2026-07-28).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_server::{Server, TaskSupport, Tool};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::Store;

use crate::{
    ndjson::test_client::{Peer, modern_with},
    tasks::test_server::{
        everything, id, request_with_extension, request_with_notifications, server,
        start_server_directed,
    },
};

#[tokio::test(start_paused = true)]
async fn the_extension_is_declared_and_the_old_capability_is_not() {
    req!("ext-tasks.declare", "ext-tasks.legacy.no-old-capability");
    let mut peer = Peer::new(server());

    let response = request_with_extension(&mut peer, "server/discover", json!({})).await;

    let capabilities = &response["result"]["capabilities"];
    let extension = &capabilities["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!(*extension, json!({}));
    assert_eq!(capabilities["tasks"], Value::Null);
    let tools = request_with_extension(&mut peer, "tools/list", json!({})).await;
    assert!(!tools.to_string().contains("taskSupport"));
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_that_carries_its_result() {
    req!(
        "ext-tasks.create.discretion",
        "ext-tasks.result-type.task",
        "ext-tasks.result-type.get",
        "ext-tasks.result-type.only-create",
        "ext-tasks.create.flat",
        "ext-tasks.create.durable",
        "ext-tasks.get.working",
        "ext-tasks.get.completed",
        "ext-tasks.notify.no-progress"
    );
    let mut peer = Peer::new(server());

    let task = start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await;
    assert_eq!(task["status"], "working");
    assert_eq!(task["ttlMs"], 3_600_000);
    assert_eq!(task["pollIntervalMs"], 1000);
    for absent in [
        "task",
        "ttl",
        "pollInterval",
        "result",
        "error",
        "inputRequests",
        "requestState",
    ] {
        assert_eq!(task[absent], Value::Null, "{absent}");
    }

    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["resultType"], "complete");
    assert_eq!(looked["result"]["status"], "working");
    assert_eq!(looked["result"]["statusMessage"], "half way");
    assert_eq!(looked["result"]["createdAt"], task["createdAt"]);
    sleep(Duration::from_secs(31)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");
    let result = &looked["result"]["result"];
    assert_eq!(result["content"][0]["text"], "worked 30 s");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"],
        Value::Null
    );
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn only_a_request_that_declares_the_extension_gets_a_task() {
    req!(
        "ext-tasks.create.undeclared",
        "ext-tasks.create.required-error",
        "ext-tasks.create.only-tools-call",
        "ext-tasks.error.undeclared",
        "ext-tasks.legacy.old-client",
        "ext-tasks.legacy.ignore-task-param"
    );
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await;
    let old = json!({ "tasks": { "requests": { "tools": { "call": {} } } } });

    for capabilities in [json!({}), old] {
        let params = json!({ "name": "fail", "arguments": {}, "task": { "ttl": 1 } });
        let (response, _) = request_with_notifications(
            &mut peer,
            "tools/call",
            modern_with(params, capabilities.clone()),
        )
        .await;
        assert_eq!(response["result"]["resultType"], "complete");
        let params = json!({ "name": "must", "arguments": {} });
        let (response, _) = request_with_notifications(
            &mut peer,
            "tools/call",
            modern_with(params, capabilities.clone()),
        )
        .await;
        assert_eq!(response["error"]["code"], -32021);
        let needed = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        assert_eq!(response["error"]["data"]["requiredCapabilities"], needed);
        for named in [id(&task), json!({ "taskId": "unknown" })] {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = modern_with(named.clone(), capabilities.clone());
                let (response, _) = request_with_notifications(&mut peer, method, params).await;
                assert_eq!(response["error"]["code"], -32021, "{method}");
            }
        }
    }
    let response = request_with_extension(
        &mut peer,
        "tools/call",
        json!({ "name": "plain", "task": {} }),
    )
    .await;
    assert_eq!(response["result"]["content"][0]["text"], "plain");
}

#[tokio::test(start_paused = true)]
async fn the_task_methods_of_2025_11_25_are_unknown() {
    req!("ext-tasks.legacy.no-result-method");
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "fail", json!({})).await;

    for method in ["tasks/result", "tasks/list"] {
        let response = request_with_extension(&mut peer, method, id(&task)).await;
        assert_eq!(response["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn pending_input_requests_are_answered_one_by_one() {
    req!(
        "ext-tasks.get.input-required",
        "ext-tasks.update.ack",
        "ext-tasks.update.partial",
        "ext-tasks.update.ignore-keys",
        "ext-tasks.update.eventual",
        "ext-tasks.result-type.update",
        "ext-tasks.input.key-unique"
    );
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "ask_twice", json!({})).await;
    let keys = |looked: &Value| -> Vec<String> {
        let open = looked["result"]["inputRequests"].as_object();
        open.map_or(vec![], |open| open.keys().cloned().collect())
    };
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");
    assert_eq!(keys(&looked), ["first", "second"]);
    let client_request = &looked["result"]["inputRequests"]["first"];
    assert_eq!(client_request["method"], "elicitation/create");
    assert_eq!(client_request["params"]["message"], "First?");

    let accepted = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    let response = update(
        &mut peer,
        &task,
        json!({ "second": accepted("Bob"), "other": accepted("Eve") }),
    )
    .await;
    let result = response["result"].as_object().unwrap();
    assert_eq!(result["resultType"], "complete");
    assert!(
        result
            .keys()
            .all(|key| key == "resultType" || key == "_meta")
    );
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(keys(&looked), ["first"]);
    update(
        &mut peer,
        &task,
        json!({ "first": accepted("Ada"), "second": accepted("Eve") }),
    )
    .await;

    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(keys(&looked), ["thought"]);
    let message =
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "!" } });
    update(&mut peer, &task, json!({ "thought": message })).await;
    sleep(Duration::from_millis(1)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");
    assert_eq!(
        looked["result"]["result"]["content"][0]["text"],
        "Ada Bob m"
    );
}

#[tokio::test(start_paused = true)]
async fn malformed_input_responses_are_rejected_or_reported_to_the_tool() {
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "ask", json!({})).await;

    for wrong in [json!(7), json!([]), json!({ "name": 7 }), json!(null)] {
        let response = update(&mut peer, &task, wrong).await;
        assert_eq!(response["error"]["code"], -32602);
    }
    let response = request_with_extension(&mut peer, "tasks/update", id(&task)).await;
    assert_eq!(response["error"]["code"], -32602);
    update(
        &mut peer,
        &task,
        json!({ "name": { "action": "accept", "content": {} } }),
    )
    .await;
    sleep(Duration::from_millis(1)).await;

    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");
    assert_eq!(looked["result"]["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_client_request_is_cancelled() {
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "impatient", json!({})).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");

    sleep(Duration::from_secs(6)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "working");
    assert_eq!(looked["result"]["inputRequests"], Value::Null);
    sleep(Duration::from_secs(6)).await;

    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["result"]["content"][0]["text"], "declined");
}

#[tokio::test(start_paused = true)]
async fn tool_errors_and_rpc_errors_have_different_task_states() {
    req!(
        "ext-tasks.status.failed-only-jsonrpc",
        "ext-tasks.status.tool-error-completed",
        "ext-tasks.status.failed-error",
        "ext-tasks.get.failed",
        "ext-tasks.get.failed-message",
        "ext-tasks.error.internal"
    );
    let mut peer = Peer::new(server());

    let task = start_server_directed(&mut peer, "fail", json!({})).await;
    sleep(Duration::from_millis(1)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");
    assert_eq!(looked["result"]["result"]["isError"], true);

    let task = start_server_directed(&mut peer, "break", json!({})).await;
    sleep(Duration::from_millis(1)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "failed");
    let error = json!({ "code": -32050, "message": "broken", "data": "pieces" });
    assert_eq!(looked["result"]["error"], error);
    assert_eq!(looked["result"]["result"], Value::Null);
    assert_eq!(looked["result"]["statusMessage"], "broken");

    let task = start_server_directed(&mut peer, "panic", json!({ "seconds": 1 })).await;
    sleep(Duration::from_millis(1)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["error"]["code"], -32603);

    let params = json!({ "name": "work", "arguments": { "seconds": "many" } });
    let response = request_with_extension(&mut peer, "tools/call", params).await;
    assert_eq!(response["result"]["resultType"], "complete");
    assert_eq!(response["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_task_is_acknowledged_in_every_state() {
    req!(
        "ext-tasks.cancel.ack",
        "ext-tasks.result-type.cancel",
        "ext-tasks.get.cancelled",
        "ext-tasks.cancel.cooperative",
        "ext-tasks.update.unknown-task",
        "ext-tasks.error.unknown-get",
        "ext-tasks.error.informative"
    );
    let mut peer = Peer::new(server());
    let task = start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await;

    for _ in 0..2 {
        let response = request_with_extension(&mut peer, "tasks/cancel", id(&task)).await;
        let result = response["result"].as_object().unwrap();
        assert_eq!(result["resultType"], "complete");
        assert!(
            result
                .keys()
                .all(|key| key == "resultType" || key == "_meta")
        );
        sleep(Duration::from_secs(31)).await;
        let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
        assert_eq!(looked["result"]["status"], "cancelled");
        assert_eq!(looked["result"]["error"], Value::Null);
    }
    let unknown = json!({ "taskId": "AAAAAAAAAAAAAAAAAAAAAAAA", "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let response = request_with_extension(&mut peer, method, unknown.clone()).await;
        assert_eq!(response["error"]["code"], -32602, "{method}");
        assert!(response["error"]["message"].is_string());
    }
}

#[tokio::test(start_paused = true)]
async fn input_is_requested_before_the_task_is_created() {
    req!("ext-tasks.create.mrtr-first");
    let mut peer = Peer::new(server());
    let params = json!({ "name": "ask_first", "arguments": {} });
    let response = request_with_extension(&mut peer, "tools/call", params.clone()).await;
    assert_eq!(response["result"]["resultType"], "input_required");
    assert_eq!(response["result"]["taskId"], Value::Null);

    let mut retry = params;
    retry["requestState"] = response["result"]["requestState"].clone();
    retry["inputResponses"] =
        json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let task = request_with_extension(&mut peer, "tools/call", retry).await["result"].clone();
    assert_eq!(task["resultType"], "task");
    assert_eq!(task["requestState"], Value::Null);
    sleep(Duration::from_secs(11)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");
    let response = json!({ "again": { "action": "accept", "content": { "name": "yes" } } });
    update(&mut peer, &task, response).await;
    sleep(Duration::from_millis(1)).await;

    let looked = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    let text = &looked["result"]["result"]["content"][0]["text"];
    assert_eq!(text, "Ada, yes, true");
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_input_first_may_become_a_task_unless_declined() {
    let tool = || Tool::new("a", async || Ok("done".to_owned()));
    for (tool, is_declared) in [
        (tool().task_after_input(), true),
        (
            tool().task(TaskSupport::Forbidden).task_after_input(),
            false,
        ),
    ] {
        let mut peer = Peer::new(Server::new("tasks", "1").tool(tool));
        let response = peer.call_modern("server/discover", json!({})).await;
        let declared = &response["result"]["capabilities"]["extensions"];
        assert_eq!(declared.is_object(), is_declared, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn input_before_a_task_is_a_plain_call_without_task_support() {
    let mut peer = Peer::new(server());
    let declared = json!({ "elicitation": {} });
    let mut params = json!({ "name": "ask_first", "arguments": {} });
    for name in ["Ada", "yes"] {
        let sent = modern_with(params.clone(), declared.clone());
        let (response, _) = request_with_notifications(&mut peer, "tools/call", sent).await;
        let open = response["result"]["inputRequests"].as_object().unwrap();
        let key = open.keys().next().unwrap();
        params["requestState"] = response["result"]["requestState"].clone();
        params["inputResponses"] =
            json!({ key: { "action": "accept", "content": { "name": name } } });
    }
    let (response, _) =
        request_with_notifications(&mut peer, "tools/call", modern_with(params, declared)).await;

    assert_eq!(response["result"]["content"][0]["text"], "Ada, yes, false");
}

#[tokio::test(start_paused = true)]
async fn subscribers_receive_updates_of_the_tasks_they_name() {
    req!(
        "ext-tasks.notify.push",
        "ext-tasks.notify.subscribe",
        "ext-tasks.notify.undeclared"
    );
    let mut peer = Peer::new(server());
    let followed = start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await;
    let other = start_server_directed(&mut peer, "work", json!({ "seconds": 20 })).await;
    let ids = json!([followed["taskId"], "AAAAAAAAAAAAAAAAAAAAAAAA"]);
    let filter = json!({ "notifications": { "taskIds": ids } });

    let listening = peer
        .request(
            "subscriptions/listen",
            modern_with(filter.clone(), everything()),
        )
        .await;
    let acknowledged = peer.next().await;
    let granted = &acknowledged["params"]["notifications"]["taskIds"];
    assert_eq!(*granted, json!([followed["taskId"]]));
    let received = peer.next().await;
    assert_eq!(received["method"], "notifications/tasks");
    assert_eq!(received["params"]["taskId"], followed["taskId"]);
    assert_ne!(received["params"]["taskId"], other["taskId"]);
    assert_eq!(received["params"]["status"], "completed");
    let text = &received["params"]["result"]["content"][0]["text"];
    assert_eq!(text, "worked 30 s");
    let tag = &received["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*tag, listening);

    let refused = peer
        .request("subscriptions/listen", modern_with(filter, json!({})))
        .await;
    let response = peer.next().await;
    assert_eq!(response["id"], refused);
    assert_eq!(response["error"]["code"], -32021);
}

#[tokio::test(start_paused = true)]
async fn subscribers_on_a_shared_store_are_notified_only_of_tasks_that_change() {
    let mut peer = Peer::new(server().store(Store::memory().shared()));
    let ended = start_server_directed(&mut peer, "work", json!({ "seconds": 1 })).await;
    sleep(Duration::from_secs(2)).await;
    let running = start_server_directed(&mut peer, "work", json!({ "seconds": 60 })).await;
    let filter = json!({ "notifications": { "taskIds": [ended["taskId"], running["taskId"]] } });

    let filter = modern_with(filter, everything());
    peer.request("subscriptions/listen", filter).await;
    let acknowledged = peer.next().await;
    let received = peer.next().await;

    let granted = &acknowledged["params"]["notifications"]["taskIds"];
    assert_eq!(granted.as_array().unwrap().len(), 2);
    assert_eq!(received["params"]["taskId"], running["taskId"]);
    assert_eq!(received["params"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn an_expired_task_is_removed_and_its_handler_dropped() {
    req!("ext-tasks.ttl.server");
    let brief = Duration::from_secs(5);
    let mut peer = Peer::new(server().task_lifetime(brief, brief));
    let task = start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await;
    assert_eq!(task["ttlMs"], 5000);

    sleep(Duration::from_secs(6)).await;

    let response = request_with_extension(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(response["error"]["code"], -32602);
}

async fn update(peer: &mut Peer, task: &Value, responses: Value) -> Value {
    let mut params = id(task);
    params["inputResponses"] = responses;
    request_with_extension(peer, "tasks/update", params).await
}
