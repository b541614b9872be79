//! Tasks of mock servers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_client::{CallError, CallOutcome, Client, ClientBuilder, FormRequest};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{MockReply, MockServer, discover_result, initialize_result};

fn task(status: &str, more: Value) -> Value {
    let mut task = json!({
        "taskId": "t-1", "status": status, "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 2000,
    });
    let Value::Object(more) = more else {
        panic!("members to add");
    };
    task.as_object_mut().unwrap().extend(more);
    task
}

fn created_task() -> Value {
    task("working", json!({ "resultType": "task" }))
}

fn completed_task() -> Value {
    task(
        "completed",
        json!({ "result": { "content": [{ "type": "text", "text": "done" }] } }),
    )
}

fn input_required(keys: &[&str]) -> Value {
    let input_request = json!({
        "method": "elicitation/create",
        "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
    });
    let requests: serde_json::Map<_, _> = keys
        .iter()
        .map(|key| ((*key).to_owned(), input_request.clone()))
        .collect();
    task("input_required", json!({ "inputRequests": requests }))
}

fn modern() -> MockServer {
    let server = MockServer::modern();
    let mut discover_result = discover_result();
    discover_result["capabilities"]["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    server.respond("server/discover", discover_result);
    server.respond("tools/call", created_task());
    server.respond("tasks/update", json!({}));
    server.respond("tasks/cancel", json!({}));
    server
}

fn counting_client(calls: &Arc<AtomicUsize>) -> ClientBuilder {
    let calls = calls.clone();
    Client::builder("test", "1").on_form_elicitation(move |form: FormRequest| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move { form.accept(json!({})) }
    })
}

async fn start_task(client: &Client) -> turnbuckle_client::Task {
    match client.call_tool_as_task("work", json!({})).await.unwrap() {
        CallOutcome::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_tasks_extension_is_declared_with_every_request() {
    req!("ext-tasks.declare");
    let server = modern();
    server.respond_in_order("tasks/get", [task("working", json!({})), completed_task()]);
    let client = server.connect().await;

    client.call_tool("work", json!({})).await.unwrap();

    for method in ["tools/call", "tasks/get", "tasks/get"] {
        let request = server.next(method).await;
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(
            declared["extensions"],
            json!({ "io.modelcontextprotocol/tasks": {} }),
            "{method}"
        );
        assert_eq!(request["params"].get("task"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_at_the_interval_of_the_server() {
    req!("ext-tasks.poll.interval", "tasks.get.poll-interval");
    for (interval, expected) in [
        (json!(2000), 2000),
        (json!(7000), 7000),
        (json!(0), 100),
        (Value::Null, 1000),
    ] {
        let server = modern();
        let working = task("working", json!({ "pollIntervalMs": interval }));
        server.respond_in_order("tasks/get", [working.clone(), working, completed_task()]);
        let client = server.connect().await;
        let started_at = Instant::now();

        start_task(&client).await.wait().await.unwrap();

        assert_eq!(started_at.elapsed().as_millis(), 2 * expected, "{interval}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_notification_triggers_a_poll() {
    req!("ext-tasks.notify.poll-too");
    let server = modern();
    server.respond_in_order(
        "tasks/get",
        [
            task("working", json!({ "pollIntervalMs": 600_000 })),
            completed_task(),
        ],
    );
    let client = server.connect().await;
    let task = start_task(&client).await;
    let started_at = Instant::now();
    let waiting = tokio::spawn(async move { task.wait().await });
    server.next("tasks/get").await;

    let mut other = completed_task();
    other["taskId"] = json!("t-2");
    server.notify("notifications/tasks", other).await;
    server.expect_no_message().await;
    server.notify("notifications/tasks", completed_task()).await;

    waiting.await.unwrap().unwrap();
    assert!(
        started_at.elapsed() < Duration::from_secs(3),
        "{:?}",
        started_at.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn many_status_notifications_do_not_cause_many_polls() {
    let server = modern();
    server.on("tasks/get", |_| {
        task("working", json!({ "pollIntervalMs": 600_000 }))
    });
    let client = server.connect().await;
    let task = start_task(&client).await;
    let waiting = tokio::spawn(async move { task.wait().await });

    for _ in 0..1000 {
        server.notify("notifications/tasks", completed_task()).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    assert!(
        server.count("tasks/get") <= 12,
        "{}",
        server.count("tasks/get")
    );
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn an_input_request_of_a_task_is_resolved_once() {
    req!(
        "ext-tasks.input.dedupe",
        "ext-tasks.update.keys",
        "ext-tasks.input.continue"
    );
    let server = modern();
    server.respond_in_order(
        "tasks/get",
        [
            input_required(&["a", "b"]),
            // Not polled yet.
            input_required(&["a", "b"]),
            input_required(&["b", "c"]),
            completed_task(),
        ],
    );
    let resolved = Arc::new(AtomicUsize::new(0));
    let client = server.connect_with(counting_client(&resolved)).await;

    start_task(&client).await.wait().await.unwrap();

    let keys = |update: &Value| -> Vec<String> {
        update["params"]["inputResponses"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let first = server.next("tasks/update").await;
    assert_eq!(first["params"]["taskId"], "t-1");
    assert_eq!(
        first["params"]["inputResponses"]["a"],
        json!({ "action": "accept", "content": {} })
    );
    assert_eq!(keys(&first), ["a", "b"]);
    assert_eq!(keys(&server.next("tasks/update").await), ["c"]);
    assert_eq!(
        (
            server.count("tasks/update"),
            resolved.load(Ordering::Relaxed)
        ),
        (2, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn the_round_trips_of_a_task_are_limited() {
    let server = modern();
    let mut at = 0;
    server.on("tasks/get", move |_| {
        at += 1;
        input_required(&[&at.to_string()])
    });
    let resolved = Arc::new(AtomicUsize::new(0));
    let client = server.connect_with(counting_client(&resolved)).await;

    let error = client.call_tool("work", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::TooManyRoundTrips { limit: 10, .. }),
        "{error}"
    );
    assert_eq!(resolved.load(Ordering::Relaxed), 10);
    // The wait was dropped.
    assert_eq!(server.next("tasks/cancel").await["params"]["taskId"], "t-1");
}

#[tokio::test(start_paused = true)]
async fn input_responses_can_be_sent_manually() {
    let server = modern();
    server.respond_in_order(
        "tasks/get",
        [
            input_required(&["a"]),
            input_required(&["a"]),
            completed_task(),
        ],
    );
    let client = server
        .connect_with(Client::builder("test", "1").max_round_trips(0))
        .await;
    let task = start_task(&client).await;

    let error = task.wait().await.unwrap_err();
    let CallError::InputRequired { result, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(result.input_requests["a"].method(), "elicitation/create");
    let looked = task.poll().await.unwrap();
    assert_eq!(looked.input_requests.unwrap().len(), 1);
    let declined = json!({ "action": "decline" });
    let responses = [
        ("a".to_owned(), declined.clone()),
        ("z".to_owned(), declined),
    ];
    task.send_input(responses.into_iter().collect())
        .await
        .unwrap();

    let update = server.next("tasks/update").await;
    assert_eq!(
        update["params"]["inputResponses"],
        json!({ "a": { "action": "decline" } })
    );
    task.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unresolved_input_request_ends_the_wait_but_not_the_task() {
    let server = modern();
    server.respond("tasks/get", input_required(&["a"]));
    let client = server.connect().await;

    let error = start_task(&client).await.wait().await.unwrap_err();

    assert!(
        matches!(&error, CallError::InputFailed { source, .. } if source.code == -32601),
        "{error}"
    );
    server.expect_no_message().await;
    assert_eq!(
        server.count("tasks/update") + server.count("tasks/cancel"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn an_open_input_request_is_resolved_by_the_next_wait() {
    let server = modern();
    let mut looks = 0;
    server.on("tasks/get", move |_| {
        looks += 1;
        match looks {
            ..=3 => input_required(&["a"]),
            _ => completed_task(),
        }
    });
    let resolved = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&resolved);
    let hesitating = Client::builder("test", "1").on_form_elicitation(move |form: FormRequest| {
        let first = times.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            form.accept(json!({}))
        }
    });
    let client = server.connect_with(hesitating).await;
    let task = start_task(&client).await;

    let given_up = tokio::time::timeout(Duration::from_secs(30), task.wait()).await;
    assert!(given_up.is_err());
    task.wait().await.unwrap();

    assert_eq!(resolved.load(Ordering::Relaxed), 2);
    assert_eq!(server.count("tasks/update"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_input_response_that_was_not_delivered_is_sent_again() {
    let server = modern();
    let mut looks = 0;
    server.on("tasks/get", move |_| {
        looks += 1;
        match looks {
            ..=3 => input_required(&["a"]),
            _ => completed_task(),
        }
    });
    let mut updates = 0;
    server.on("tasks/update", move |_| {
        updates += 1;
        match updates {
            1 => MockReply::error(-32603, "not now"),
            _ => MockReply::Result(json!({})),
        }
    });
    let resolved = Arc::new(AtomicUsize::new(0));
    let client = server
        .connect_with(counting_client(&resolved).max_round_trips(1))
        .await;
    let task = start_task(&client).await;

    task.wait().await.unwrap_err();
    task.wait().await.unwrap();

    assert_eq!(server.count("tasks/update"), 2);
}

#[tokio::test(start_paused = true)]
async fn progress_continues_after_a_call_becomes_a_task() {
    req!("progress.task.token");
    let calls = json!({ "requests": { "tools": { "call": {} } } });
    let server = legacy_server(calls, json!("optional"));
    server.withhold("tasks/get");
    server.respond("tasks/result", json!({ "content": [] }));
    let client = server.connect().await;
    let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let started = client
        .call_tool_as_task("work", json!({}))
        .on_progress(move |progress| sender.send(progress.progress).unwrap())
        .await
        .unwrap();
    let call = server.next("tools/call").await;
    let CallOutcome::Task(task) = started else {
        panic!("a task was requested");
    };

    let wait = tokio::spawn(async move { task.result().await });
    let look = server.next("tasks/get").await;
    server.progress(&call, 1.0).await;
    let completed_task = json!({
        "taskId": "t-1", "status": "completed", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttl": null,
    });
    server.reply(&look, completed_task).await;
    wait.await.unwrap().unwrap();

    assert_eq!(progress.recv().await, Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_the_task_that_it_became() {
    req!("ext-tasks.cancel.no-notification");
    let server = modern();
    server.on("tasks/get", |_| task("working", json!({})));
    server.respond("tools/list", json!({ "tools": [] }));
    server.respond("tasks/cancel", json!({}));
    let client = server.connect().await;
    let call = tokio::spawn(client.call_tool("work", json!({})).into_future());
    server.next("tasks/get").await;

    call.abort();

    assert_eq!(server.next("tasks/cancel").await["params"]["taskId"], "t-1");
    // Messages that follow from the drop arrive before this one.
    client.tools().all().await.unwrap();
    server.expect_no_message().await;
    let messages = server.received();
    let call = messages
        .iter()
        .find(|it| it["method"] == "tools/call")
        .unwrap();
    assert!(!messages.iter().any(|message| {
        message["method"] == "notifications/cancelled"
            && message["params"]["requestId"] == call["id"]
    }));

    let task = match client.call_tool_as_task("work", json!({})).await.unwrap() {
        CallOutcome::Task(task) => task,
        other => panic!("{other:?}"),
    };
    let before = server.count("notifications/cancelled");
    task.cancel().await.unwrap();
    assert_eq!(server.next("tasks/cancel").await["params"]["taskId"], "t-1");
    client.tools().all().await.unwrap();
    assert_eq!(server.count("notifications/cancelled"), before);
}

#[tokio::test(start_paused = true)]
async fn a_task_created_after_its_call_was_dropped_is_cancelled() {
    let calls = json!({ "requests": { "tools": { "call": {} } } });
    let older_task = json!({ "task": {
        "taskId": "t-1", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttl": null,
    } });
    for (server, created_task) in [
        (modern(), created_task()),
        (legacy_server(calls, json!("optional")), older_task),
    ] {
        server.withhold("tools/call");
        let client = server.connect().await;
        let call = tokio::spawn(client.call_tool_as_task("work", json!({})).into_future());
        let requested = server.next("tools/call").await;

        call.abort();
        server.next("notifications/cancelled").await;
        server.reply(&requested, created_task).await;

        assert_eq!(server.next("tasks/cancel").await["params"]["taskId"], "t-1");
        let plain = tokio::spawn(client.call_tool("work", json!({})).into_future());
        let requested = server.next("tools/call").await;
        plain.abort();
        server.next("notifications/cancelled").await;
        server.reply(&requested, json!({ "content": [] })).await;
        server.expect_no_message().await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_task_ends_with_its_lifetime() {
    req!("ext-tasks.ttl.client");
    let server = modern();
    server.on("tasks/get", |_| task("working", json!({ "ttlMs": 5000 })));
    let client = server.connect().await;

    let error = start_task(&client).await.wait().await.unwrap_err();

    assert!(matches!(error, CallError::TaskExpired { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_task_is_an_invalid_response() {
    let mut unknown = completed_task();
    unknown["taskId"] = json!("t-2");
    for looked in [
        unknown,
        task("completed", json!({})),
        task("failed", json!({})),
        task("dancing", json!({})),
        task("working", json!({ "resultType": "task" })),
        json!({}),
    ] {
        let server = modern();
        server.respond("tasks/get", looked.clone());
        let client = server.connect().await;

        let error = start_task(&client).await.result().await.unwrap_err();

        assert!(
            matches!(error, CallError::InvalidResponse { .. }),
            "{looked}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_tool_calls_become_tasks() {
    req!("ext-tasks.create.unsupported-method");
    let server = modern();
    server.respond("prompts/get", created_task());
    server.respond("resources/read", created_task());
    server.respond("tools/list", created_task());
    let client = server.connect().await;

    let none: [(&str, &str); 0] = [];
    let errors = [
        client.get_prompt("p", none).await.unwrap_err(),
        client.read_resource("file:///x").await.unwrap_err(),
        client.list_tools(None).await.unwrap_err(),
    ];

    for error in errors {
        assert!(
            matches!(error, CallError::InvalidResponse { .. }),
            "{error}"
        );
    }
    assert_eq!(server.count("tasks/get"), 0);
}

/// A server of 2025-11-25 with one tool.
fn legacy_server(tasks: Value, support: Value) -> MockServer {
    let server = MockServer::legacy("2025-11-25");
    let mut initialize_result = initialize_result("2025-11-25");
    initialize_result["capabilities"]["tasks"] = tasks;
    server.respond("initialize", initialize_result);
    let mut tool = json!({ "name": "work", "inputSchema": { "type": "object" } });
    if !support.is_null() {
        tool["execution"]["taskSupport"] = support;
    }
    server.respond("tools/list", json!({ "tools": [tool] }));
    server.on("tools/call", |call| match call["params"].get("task") {
        Some(_) => MockReply::Result(json!({ "task": {
            "taskId": "t-1", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttl": null, "pollInterval": 2000,
        } })),
        None => MockReply::Result(json!({ "content": [] })),
    });
    server
}

#[tokio::test(start_paused = true)]
async fn a_task_is_requested_only_if_server_and_tool_allow_it() {
    req!(
        "tasks.tool.no-server-capability",
        "tasks.tool.forbidden-client",
        "tasks.capability.augment-only-declared"
    );
    let calls = json!({ "requests": { "tools": { "call": {} } } });
    for (tasks, support, requested) in [
        (calls.clone(), json!("optional"), true),
        (calls.clone(), json!("required"), true),
        (calls.clone(), json!("forbidden"), false),
        (calls, Value::Null, false),
        (json!({ "list": {} }), json!("optional"), false),
        (Value::Null, json!("required"), false),
    ] {
        let server = legacy_server(tasks.clone(), support.clone());
        let client = server.connect().await;

        let started = client
            .call_tool_as_task("work", json!({}))
            .lifetime(Duration::from_secs(60))
            .await
            .unwrap();

        assert_eq!(
            matches!(started, CallOutcome::Task(_)),
            requested,
            "{tasks} {support}"
        );
        let call = server.next("tools/call").await;
        let requested_task = call["params"].get("task");
        assert_eq!(
            requested_task,
            requested.then_some(&json!({ "ttl": 60_000 })),
            "{tasks} {support}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_declares_no_tasks() {
    req!("tasks.capability", "tasks.capability.ignore-undeclared");
    let server = legacy_server(Value::Null, Value::Null);
    let resolved = Arc::new(AtomicUsize::new(0));
    let _client = server.connect_with(counting_client(&resolved)).await;
    let handshake = server.next("initialize").await;
    assert_eq!(handshake["params"]["capabilities"].get("tasks"), None);

    let mut form = input_required(&["a"])["inputRequests"]["a"]["params"].clone();
    form["task"] = json!({ "ttl": 1000 });
    let response = server.call_client("elicitation/create", form).await;

    assert_eq!(
        response["result"],
        json!({ "action": "accept", "content": {} })
    );
}

#[tokio::test(start_paused = true)]
async fn cursors_of_task_lists_are_sent_back_unchanged() {
    req!("tasks.list.opaque");
    let server = legacy_server(json!({ "list": {} }), Value::Null);
    let cursor = "{\"a\": 1.0 }\u{0}é";
    server.respond_in_order(
        "tasks/list",
        [
            json!({ "tasks": [], "nextCursor": cursor }),
            json!({ "tasks": [] }),
        ],
    );
    let client = server.connect().await;

    client.tasks().all().await.unwrap();

    server.next("tasks/list").await;
    assert_eq!(server.next("tasks/list").await["params"]["cursor"], cursor);
}
