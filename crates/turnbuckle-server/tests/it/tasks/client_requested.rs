//! Tasks requested by the client (2025-11-25).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use turnbuckle_server::{Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer},
    tasks::test_server::{answer_of, ask, asking, everything, id, server, start},
};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn a_server_with_task_tools_declares_the_capability() {
    req!("tasks.capability", "tasks.capability.list-method");
    let mut peer = Peer::new(server());
    let params = crate::ndjson::test_client::initialize("2025-11-25", json!({}));

    let answer = peer.call("initialize", params).await;

    let declared = &answer["result"]["capabilities"]["tasks"];
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
    let mut peer = asking().await;

    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;
    assert_eq!(task["status"], "working");
    assert_eq!(task["taskId"].as_str().unwrap().len(), 24);
    assert_eq!(task["ttl"], 3_600_000);
    assert_eq!(task["pollInterval"], 1000);
    for time in ["createdAt", "lastUpdatedAt"] {
        let time = task[time].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    }

    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "working");
    assert_eq!(looked["result"]["statusMessage"], "half way");
    assert_eq!(looked["result"]["_meta"], Value::Null);
    sleep(Duration::from_secs(31)).await;
    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "completed");

    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;
    let result = &answer["result"];
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
    let mut peer = asking().await;
    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;

    let (answer, notified) = ask(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(answer["result"]["content"][0]["text"], "worked 30 s");
    let progress = notified
        .iter()
        .find(|message| message["method"] == "notifications/progress")
        .unwrap();
    assert_eq!(progress["params"]["progressToken"], 5);
    assert_eq!(progress["params"]["progress"], 2);
    assert_eq!(progress["params"]["_meta"][RELATED], id(&task));
    let mut told = notified;
    // The last notification may follow the response.
    if let Ok(last) = tokio::time::timeout(Duration::from_secs(1), peer.next()).await {
        told.push(last);
    }
    let last = told
        .iter()
        .rposition(|message| message["method"] == "notifications/progress");
    let ended = |message: &Value| message["params"]["status"] == "completed";
    assert!(last < told.iter().position(ended), "{told:?}");
    let done = told
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
    let mut peer = asking().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");

    let waiting = peer.request("tasks/result", id(&task)).await;
    let question = question(&mut peer).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who?");
    assert_eq!(question["params"]["_meta"][RELATED], id(&task));
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
        .await;

    let (answer, notified) = answer_of(&mut peer, waiting).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello Ada");
    let statuses: Vec<_> = notified
        .iter()
        .filter(|message| message["method"] == "notifications/tasks/status")
        .map(|message| message["params"]["status"].as_str().unwrap())
        .collect();
    assert!(!statuses.contains(&"input_required"), "{statuses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_request_fails_the_tool_and_not_the_server() {
    let mut peer = asking().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let waiting = peer.request("tasks/result", id(&task)).await;
    let question = question(&mut peer).await;

    let error = json!({ "code": -1, "message": "not now" });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }))
        .await;

    let (answer, _) = answer_of(&mut peer, waiting).await;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not now"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_wait_cancels_its_client_request_and_the_next_wait_sends_it_again() {
    let mut peer = asking().await;
    let task = start(&mut peer, "ask", json!({})).await;
    let waiting = peer.request("tasks/result", id(&task)).await;
    let first = question(&mut peer).await;

    peer.cancel(waiting).await;
    let withdrawn = loop {
        let message = peer.next().await;
        if message["method"] == "notifications/cancelled" {
            break message;
        }
    };
    assert_eq!(withdrawn["params"]["requestId"], first["id"]);
    peer.request("tasks/result", id(&task)).await;

    let second = question(&mut peer).await;
    assert_eq!(second["params"]["message"], first["params"]["message"]);
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_is_a_failed_task_with_a_result() {
    req!("tasks.status.tool-error-failed", "tasks.get.status-message");
    let mut peer = asking().await;

    let task = start(&mut peer, "fail", json!({})).await;
    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;
    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;

    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "no luck");
    assert_eq!(looked["result"]["status"], "failed");
    assert!(looked["result"]["statusMessage"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_protocol_error_is_unchanged_in_the_task_result() {
    req!("tasks.result.error", "tasks.error.internal");
    let mut peer = asking().await;

    let task = start(&mut peer, "break", json!({})).await;
    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;
    let error = json!({ "code": -32050, "message": "broken", "data": "pieces" });
    assert_eq!(answer["error"], error);

    let task = start(&mut peer, "panic", json!({ "seconds": 1 })).await;
    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;
    assert_eq!(answer["error"]["code"], -32603);
    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "failed");
    assert!(looked["result"]["statusMessage"].is_string());
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_reported_by_the_task() {
    let mut peer = asking().await;

    let task = start(&mut peer, "work", json!({ "seconds": "many" })).await;
    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
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
    let mut peer = asking().await;
    let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;

    let (cancelled, _) = ask(&mut peer, "tasks/cancel", id(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(cancelled["result"]["taskId"], task["taskId"]);
    let (again, _) = ask(&mut peer, "tasks/cancel", id(&task)).await;
    assert_eq!(again["error"]["code"], -32602);

    sleep(Duration::from_secs(60)).await;
    let (looked, _) = ask(&mut peer, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "cancelled");
    let (result, _) = ask(&mut peer, "tasks/result", id(&task)).await;
    assert_eq!(result["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn the_notification_that_cancels_requests_does_not_cancel_tasks() {
    req!("cancellation.tasks");
    let mut peer = asking().await;
    let params = json!({ "name": "work", "arguments": { "seconds": 30 }, "task": {} });
    let call = peer.request("tools/call", params).await;
    let (answer, _) = answer_of(&mut peer, call).await;

    peer.cancel(call).await;
    sleep(Duration::from_secs(31)).await;

    let task = &answer["result"]["task"];
    let (looked, _) = ask(&mut peer, "tasks/get", id(task)).await;
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
        ask(&mut peer, "tools/call", params).await.0["result"]["task"].clone()
    };
    let short = begin(json!({ "ttl": 2000 })).await;
    let usual = begin(json!({})).await;
    let long = begin(json!({ "ttl": 10_000_000 })).await;
    assert_eq!(short["ttl"], 2000);
    assert_eq!(usual["ttl"], 10_000);
    assert_eq!(long["ttl"], 100_000);
    assert_eq!(begin(json!({ "ttl": 0 })).await["ttl"], 1000);

    let waiting = peer.request("tasks/result", id(&short)).await;
    let (answer, _) = answer_of(&mut peer, waiting).await;

    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let (answer, _) = ask(&mut peer, method, id(&short)).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
    let (looked, _) = ask(&mut peer, "tasks/get", id(&usual)).await;
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

    let (answer, _) = ask(&mut peer, "tasks/result", id(&task)).await;

    assert_eq!(answer["error"]["code"], -32602);
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
    let mut begun = Vec::new();
    for _ in 0..5 {
        let task = start(&mut peer, "work", json!({ "seconds": 30 })).await;
        begun.push(task["taskId"].clone());
    }

    let mut listed = Vec::new();
    let mut params = json!({});
    loop {
        let (page, _) = ask(&mut peer, "tasks/list", params).await;
        let tasks = page["result"]["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        listed.extend(tasks.iter().map(|task| task["taskId"].clone()));
        match &page["result"]["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(listed, begun);
    begun.dedup();
    assert_eq!(begun.len(), 5);
    for cursor in ["", "!", "AAAA"] {
        let (answer, _) = ask(&mut peer, "tasks/list", json!({ "cursor": cursor })).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn tools_declare_their_task_support() {
    req!(
        "tasks.tool.forbidden-server",
        "tasks.tool.required-server",
        "tasks.capability.force"
    );
    let mut peer = asking().await;

    let params = json!({ "name": "plain", "arguments": {}, "task": {} });
    let (answer, _) = ask(&mut peer, "tools/call", params).await;
    assert_eq!(answer["error"]["code"], -32601);
    let (answer, _) = ask(&mut peer, "tools/call", json!({ "name": "must" })).await;
    assert_eq!(answer["error"]["code"], -32601);
    let (answer, _) = ask(&mut peer, "tools/call", json!({ "name": "fail" })).await;
    assert_eq!(answer["result"]["isError"], true);
    for task in [json!(7), json!({ "ttl": "long" }), json!({ "ttl": 1.5 })] {
        let params = json!({ "name": "fail", "task": task });
        let (answer, _) = ask(&mut peer, "tools/call", params).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_task_tools_has_no_task_methods() {
    req!("tasks.capability.ignore-undeclared");
    let plain = Tool::new("plain", async || Ok("plain".to_owned()));
    let server = Server::new("plain", "1").tool(plain);
    let mut peer = Peer::new(server);
    let params = crate::ndjson::test_client::initialize("2025-11-25", json!({}));
    let answer = peer.call("initialize", params).await;
    assert_eq!(answer["result"]["capabilities"]["tasks"], Value::Null);
    peer.notify("notifications/initialized", json!({})).await;

    let params = json!({ "name": "plain", "arguments": {}, "task": { "ttl": 1 } });
    let (answer, _) = ask(&mut peer, "tools/call", params).await;

    assert_eq!(answer["result"]["content"][0]["text"], "plain");
    let (answer, _) = ask(&mut peer, "tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn older_sessions_have_no_tasks() {
    for revision in LEGACY.into_iter().filter(|it| *it != "2025-11-25") {
        let mut peer = Peer::new(server());
        let params = crate::ndjson::test_client::initialize(revision, everything());
        let answer = peer.call("initialize", params).await;
        assert_eq!(answer["result"]["capabilities"]["tasks"], Value::Null);
        assert_eq!(answer["result"]["capabilities"]["extensions"], Value::Null);
        peer.notify("notifications/initialized", json!({})).await;

        let params = json!({ "name": "fail", "arguments": {}, "task": {} });
        let (answer, _) = ask(&mut peer, "tools/call", params).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let (answer, _) = ask(&mut peer, "tools/call", json!({ "name": "must" })).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let (answer, _) = ask(&mut peer, "tasks/list", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tasks_extension_is_ignored_in_sessions() {
    req!(
        "ext-tasks.legacy.not-in-2025-11-25",
        "tasks.related.param-wins"
    );
    let mut peer = asking().await;
    let (answer, _) = ask(&mut peer, "tools/call", json!({ "name": "fail" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");

    let one = start(&mut peer, "work", json!({ "seconds": 30 })).await;
    let two = start(&mut peer, "fail", json!({})).await;
    let mut params = id(&one);
    params["_meta"] = json!({ RELATED: id(&two) });
    let (looked, _) = ask(&mut peer, "tasks/get", params).await;

    assert_eq!(looked["result"]["taskId"], one["taskId"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_request_without_an_id_is_rejected() {
    req!("tasks.error.informative");
    let mut peer = asking().await;

    for params in [
        json!({}),
        json!({ "taskId": 7 }),
        json!({ "taskId": "" }),
        json!({ "taskId": "AAAAAAAAAAAAAAAAAAAAAAAA" }),
        json!({ "taskId": "x".repeat(100_000) }),
    ] {
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let (answer, _) = ask(&mut peer, method, params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().len() < 500);
        }
    }
    let (answer, _) = ask(&mut peer, "tasks/update", json!({ "taskId": "x" })).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn frequent_task_updates_are_forwarded_rarely() {
    let mut peer = asking().await;

    let task = start(&mut peer, "chatter", json!({})).await;
    let (looked, told) = ask(&mut peer, "tasks/get", id(&task)).await;

    assert_eq!(looked["result"]["statusMessage"], "step 1000");
    assert!(told.len() <= 1, "{told:?}");
}

/// The next request of the server.
async fn question(peer: &mut Peer) -> Value {
    loop {
        let message = peer.next().await;
        if message["method"].is_string() && !message["id"].is_null() {
            return message;
        }
    }
}
