//! Task mutants.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

/// The `_meta` key of the related task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The name of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub(super) fn mutants() -> Vec<Mutant> {
    [
        is_response_to(),
        legacy_messages(),
        legacy_methods(),
        extension_mutants(),
        extension_methods(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns mutants of creation and results in 2025-11-25.
fn is_response_to() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.created", "returns the result instead of a task").map_sent(|outgoing| {
            if outgoing.message["result"]["task"].is_object() {
                outgoing.message["result"] = json!({ "content": [] });
            }
        }),
        Mutant::new("tasks.begins-working", "starts with `completed`").map_sent(|outgoing| {
            if let Some(status) = outgoing.message.pointer_mut("/result/task/status") {
                *status = "completed".into();
            }
        }),
        Mutant::new("tasks.valid-steps", "a finished task works again")
            .for_requirement("tasks.status.terminal")
            .map_sent(unfinished_again()),
        Mutant::new("tasks.ids-differ", "one id for all tasks").map_sent(same_id_for_all()),
        numbered(),
        Mutant::new("tasks.only-as-task", "accepts a plain call").map_sent(|outgoing| {
            let request = outgoing.request.as_ref().map(|request| &request["params"]);
            if request
                .is_some_and(|request| request["name"] == "work_hard" && request["task"].is_null())
            {
                outgoing.message = success(&outgoing.message["id"]);
            }
        }),
        Mutant::new("tasks.never-as-task", "ignores `task`").map_sent(|outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["task"]);
            let as_task = request.is_some_and(|task| !task.is_null());
            if as_task && outgoing.message.get("error").is_some() {
                outgoing.message = success(&outgoing.message["id"]);
            }
        }),
        Mutant::new("tasks.undeclared-ignored", "creates undeclared tasks")
            .for_requirement("tasks.capability.ignore-undeclared")
            .map_response_to("initialize", |message| {
                remove(message, "/result/capabilities", "tasks");
            })
            .in_revision(Revision::V2025_11_25),
        Mutant::new("tasks.result", "returns the task instead of the result")
            .for_requirement("tasks.result.success")
            .map_response_to("tasks/result", |message| {
                if let Some(result) = message.get_mut("result") {
                    *result = json!({ "status": "completed", "_meta": result["_meta"] });
                }
            }),
        Mutant::new("tasks.result-waits", "responds before the end").map_response_to(
            "tasks/get",
            |message| {
                replace_status(message, "completed", "working");
            },
        ),
        Mutant::new("tasks.failed-with-tool", "`completed` for a failed tool")
            .map_sent(completed_after_failure()),
        Mutant::new("tasks.failure-explained", "fails without a message")
            .map_response_to("tasks/get", |message| {
                remove(message, "/result", "statusMessage");
            })
            .in_revision(Revision::V2025_11_25),
        Mutant::new(
            "tasks.extension-is-for-later",
            "creates tasks for all calls",
        )
        .map_sent(task_for_every_call()),
    ]
}

/// Returns mutants of related messages in 2025-11-25.
fn legacy_messages() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.result-related", "no related task").map_response_to(
            "tasks/result",
            |message| {
                remove(message, "/result/_meta", RELATED);
            },
        ),
        Mutant::new("tasks.messages-related", "requests without a related task")
            .for_requirement("tasks.input.related")
            .map_sent(|outgoing| {
                if outgoing.message["method"] == "elicitation/create" {
                    remove(&mut outgoing.message, "/params", "_meta");
                }
            }),
        Mutant::new("tasks.methods-unrelated", "repeats the task id in `_meta`")
            .for_requirement("tasks.related.not-on-methods")
            .map_response_to("tasks/get", |message| {
                if let Some(result) = message.get_mut("result") {
                    result["_meta"] = json!({ RELATED: { "taskId": result["taskId"] } });
                }
            }),
        Mutant::new("tasks.parameter-wins", "believes `_meta`").map_received(|incoming| {
            let related = incoming
                .message
                .pointer("/params/_meta")
                .and_then(|meta| meta.get(RELATED));
            if let Some(related) = related.cloned() {
                incoming.message["params"]["taskId"] = related["taskId"].clone();
            }
        }),
        Mutant::new("tasks.progress-ends", "progress after the end")
            .for_requirement("progress.task.stop")
            .on_ndjson()
            .map_sent(progress_after_result()),
        Mutant::new("tasks.get-is-no-stream", "a stream for `tasks/get`").response(
            |_, outgoing_response| {
                let body = String::from_utf8(outgoing_response.body.clone().unwrap_or_default())
                    .unwrap_or_default();
                if body.contains("\"taskId\"")
                    && body.contains("\"lastUpdatedAt\"")
                    && !body.contains("\"task\"")
                {
                    let kind = ::http::HeaderValue::from_static("text/event-stream");
                    outgoing_response.head.headers.insert("content-type", kind);
                    outgoing_response.body = Some(format!("data: {body}\n\n").into_bytes());
                }
            },
        ),
    ]
}

/// Returns mutants of lists and cancellation in 2025-11-25.
fn legacy_methods() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.list", "lists nothing")
            .for_requirement("tasks.list.complete")
            .map_response_to("tasks/list", |message| {
                if message.get("result").is_some() {
                    message["result"]["tasks"] = json!([]);
                }
            }),
        Mutant::new("tasks.list-cursor", "accepts any cursor").map_response_to(
            "tasks/list",
            |message| {
                if message.get("error").is_some() {
                    let result = json!({ "tasks": [] });
                    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                }
            },
        ),
        Mutant::new("tasks.unknown-id", "another error code").map_sent(|outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["taskId"]);
            if request.is_some_and(|id| id == "check-no-such-task") && is(outgoing, "tasks/get") {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new("tasks.unknown-id-elsewhere", "accepts any task id").map_sent(|outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["taskId"]);
            if request.is_some_and(|id| id == "check-no-such-task") && is(outgoing, "tasks/cancel")
            {
                let result = json!({ "resultType": "complete" });
                outgoing.message =
                    json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "result": result });
            }
        }),
        Mutant::new("tasks.cancel-when-over", "an internal error").map_sent(|outgoing| {
            let request = outgoing
                .request
                .as_ref()
                .map(|request| &request["params"]["taskId"]);
            let known = request.is_some_and(|id| id != "check-no-such-task")
                && is(outgoing, "tasks/cancel");
            if let (Some(code), true) = (outgoing.message.pointer_mut("/error/code"), known) {
                *code = (-32603).into();
            }
        }),
        Mutant::new("tasks.cancel", "still `working` after the cancellation")
            .for_requirement("tasks.cancel.before-response")
            .map_response_to("tasks/cancel", |message| {
                replace_status(message, "cancelled", "working");
            }),
    ]
}

/// Returns mutants of tasks of the extension.
fn extension_mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.undeclared-extension", "creates a task for the parameter `task`").for_requirement("ext-tasks.legacy.old-client").map_sent(|outgoing| {
            let request = outgoing.request.as_ref().map(|request| &request["params"]["task"]);
            if request.is_some_and(|task| !task.is_null()) {
                outgoing.message = task(&outgoing.message["id"]);
            }
        }),
        Mutant::new("tasks.needs-extension", "no `requiredCapabilities`").map_sent(|outgoing| {
            let called = is_call_of(outgoing.request.as_ref(), "work_hard");
            let required = outgoing.message.pointer_mut("/error/data/requiredCapabilities");
            if let (Some(required), true) = (required, called) {
                *required = json!({ "roots": {} });
            }
        }),
        Mutant::new("tasks.found-at-once", "the first `tasks/get` fails").map_sent(missing_at_first()),
        Mutant::new("tasks.outcome", "`failed` for a tool error").for_requirement("ext-tasks.status.tool-error-completed").map_response_to("tasks/get", |message| {
            let failed = message.pointer("/result/result/isError") == Some(&Value::Bool(true));
            if let Some(task) = message.get_mut("result").filter(|_| failed) {
                task["status"] = "failed".into();
                task["statusMessage"] = "it fails".into();
                task["error"] = json!({ "code": -32603, "message": "it fails" });
            }
            if failed {
                remove(message, "/result", "result");
            }
        }),
        Mutant::new("tasks.questions", "waits without input requests").for_requirement("ext-tasks.get.input-required").map_response_to("tasks/get", |message| {
            if message["result"]["status"] == "input_required" {
                message["result"]["inputRequests"] = json!({});
            }
        }),
        Mutant::new("tasks.no-progress", "reports progress").on_ndjson().map_sent(|outgoing| {
            if outgoing.message["result"]["resultType"] == "task" {
                let request = outgoing.request.clone().unwrap_or_default();
                let token = &request["params"]["_meta"]["progressToken"];
                let params = json!({ "progressToken": token, "progress": 1 });
                outgoing.after.push(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
            }
        }),
    ]
}

/// Returns mutants of methods of the extension.
fn extension_methods() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.result-types", "`resultType` `task` everywhere")
            .for_requirement("ext-tasks.result-type.cancel")
            .map_response_to("tasks/cancel", |message| {
                if message.get("result").is_some() {
                    message["result"]["resultType"] = "task".into();
                }
            }),
        Mutant::new("tasks.acknowledged", "a result that is not empty")
            .for_requirement("ext-tasks.cancel.ack")
            .map_response_to("tasks/cancel", |message| {
                if message.get("result").is_some() {
                    message["result"]["status"] = "cancelled".into();
                }
            }),
        Mutant::new("tasks.surplus-answers", "an error for a surplus response").map_sent(
            |outgoing| {
                let request = outgoing.request.clone().unwrap_or_default();
                if request["params"]["inputResponses"]
                    .get("check_not_requested")
                    .is_some()
                    && is(outgoing, "tasks/update")
                {
                    let error = json!({ "code": -32602, "message": "not requested" });
                    outgoing.message =
                        json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "error": error });
                }
            },
        ),
        Mutant::new("tasks.methods-undeclared", "ignores the capabilities").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32021 && is(outgoing, "tasks/get") {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new("tasks.listen-undeclared", "accepts all listeners").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32021 && is(outgoing, "subscriptions/listen") {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new("tasks.methods-are-gone", "still supports `tasks/result`").map_response_to(
            "tasks/list",
            |message| {
                let result = json!({ "resultType": "complete", "tasks": [] });
                *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            },
        ),
        Mutant::new("tasks.capability-is-gone", "declares both").map_response_to(
            "server/discover",
            |message| {
                message["result"]["capabilities"]["tasks"] = json!({});
            },
        ),
    ]
}

/// A finished task is `working` again at the third `tasks/get`.
fn unfinished_again() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let over = Mutex::new(Vec::<Value>::new());
    move |outgoing| {
        let task = &outgoing.message["result"];
        if is(outgoing, "tasks/get") && task["status"] == "completed" {
            let (id, mut over) = (task["taskId"].clone(), over.lock().unwrap());
            if over.contains(&id) {
                outgoing.message["result"]["status"] = "working".into();
            } else {
                over.push(id);
            }
        }
    }
}

/// Completes the tasks of a tool that always fails.
fn completed_after_failure() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let ids = Mutex::new(Vec::<String>::new());
    move |outgoing| {
        let mut ids = ids.lock().unwrap();
        if is_call_of(outgoing.request.as_ref(), "work_in_vain") {
            store_id(&mut ids, &outgoing.message);
        }
        let id = outgoing
            .message
            .pointer("/result/taskId")
            .and_then(Value::as_str);
        if id.is_some_and(|id| ids.iter().any(|known| known == id)) {
            replace_status(&mut outgoing.message, "failed", "completed");
        }
    }
}

/// Gives every task the id of the first.
fn same_id_for_all() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let ids = Mutex::new(Vec::<String>::new());
    move |outgoing| {
        let mut ids = ids.lock().unwrap();
        store_id(&mut ids, &outgoing.message);
        for id in ids.iter().skip(1) {
            replace(&mut outgoing.message, id, &ids[0]);
        }
    }
}

/// Replaces task ids on the wire with small numbers.
pub(crate) fn numbered() -> Mutant {
    let ids = Arc::new(Mutex::new(Vec::<String>::new()));
    let known = ids.clone();
    Mutant::new("tasks.ids-unguessable", "sequential task ids")
        .in_revision(Revision::V2025_11_25)
        .map_sent(move |outgoing| {
            let mut ids = ids.lock().unwrap();
            store_id(&mut ids, &outgoing.message);
            for (number, id) in ids.iter().enumerate() {
                replace(&mut outgoing.message, id, &format!("task-{number}"));
            }
        })
        .map_received(move |incoming| {
            for (number, id) in known.lock().unwrap().iter().enumerate() {
                replace(&mut incoming.message, &format!("task-{number}"), id);
            }
        })
}

/// Stores the id of a new task.
fn store_id(ids: &mut Vec<String>, message: &Value) {
    let id = message
        .pointer("/result/task/taskId")
        .and_then(Value::as_str);
    ids.extend(id.map(str::to_owned));
}

/// Replaces a string value everywhere.
fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace(field, from, to)),
        _ => {}
    }
}

/// Creates a task for a plain call of a client with the extension.
fn task_for_every_call() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let has_extension = Mutex::new(false);
    move |outgoing| {
        let request = outgoing.request.clone().unwrap_or_default();
        if request["method"] == "initialize" {
            let extensions = &request["params"]["capabilities"]["extensions"];
            *has_extension.lock().unwrap() = extensions.get(EXTENSION).is_some();
        }
        if *has_extension.lock().unwrap()
            && request["method"] == "tools/call"
            && request["params"]["task"].is_null()
        {
            let task = json!({
                "taskId": "made-of-everything", "status": "working", "ttl": null,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            });
            let result = json!({ "task": task });
            outgoing.message =
                json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "result": result });
        }
    }
}

/// Sends progress for each task after its result.
fn progress_after_result() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let last = Mutex::new(Value::Null);
    move |outgoing| {
        if outgoing.message["method"] == "notifications/progress" {
            *last.lock().unwrap() = outgoing.message.clone();
        }
        if is(outgoing, "tasks/result") {
            let mut more = last.lock().unwrap().clone();
            let related = outgoing
                .message
                .pointer("/result/_meta")
                .map(|meta| meta[RELATED].clone());
            if more.is_object() && related.as_ref() == more["params"]["_meta"].get(RELATED) {
                more["params"]["progress"] = 99.into();
                outgoing.after.push(more);
            }
        }
    }
}

/// Rejects the first `tasks/get` of each task.
fn missing_at_first() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let known = Mutex::new(Vec::<Value>::new());
    move |outgoing| {
        let id = outgoing
            .request
            .as_ref()
            .map(|request| request["params"]["taskId"].clone());
        let (Some(id), true) = (id, is(outgoing, "tasks/get")) else {
            return;
        };
        let mut known = known.lock().unwrap();
        if outgoing.message.get("result").is_some() && !known.contains(&id) {
            known.push(id);
            let error = json!({ "code": -32602, "message": "unknown task" });
            outgoing.message =
                json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "error": error });
        }
    }
}

/// Returns whether a message responds to this method.
fn is(outgoing: &OutgoingMessage, method: &str) -> bool {
    let request = outgoing.request.as_ref();
    request.is_some_and(|request| request["method"] == method)
}

fn is_call_of(request: Option<&Value>, tool: &str) -> bool {
    request.is_some_and(|request| request["params"]["name"] == tool)
}

fn success(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } })
}

fn task(id: &Value) -> Value {
    let result = json!({
        "resultType": "task", "taskId": "made-up-out-of-nothing", "status": "working", "ttlMs": null,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Replaces a status.
fn replace_status(message: &mut Value, from: &str, to: &str) {
    let status = message.pointer_mut("/result/status");
    if let Some(status) = status.filter(|status| **status == from) {
        *status = to.into();
    }
}

/// Removes a member.
fn remove(message: &mut Value, from: &str, field: &str) {
    if let Some(object) = message.pointer_mut(from).and_then(Value::as_object_mut) {
        object.remove(field);
    }
}

#[tokio::test(start_paused = true)]
async fn each_legacy_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(is_response_to()).await;
}

#[tokio::test(start_paused = true)]
async fn each_legacy_message_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(legacy_messages()).await;
}

#[tokio::test(start_paused = true)]
async fn each_legacy_method_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(legacy_methods()).await;
}

#[tokio::test(start_paused = true)]
async fn each_extension_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(extension_mutants()).await;
}

#[tokio::test(start_paused = true)]
async fn each_extension_method_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(extension_methods()).await;
}
