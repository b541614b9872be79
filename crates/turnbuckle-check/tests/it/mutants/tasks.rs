//! Calls that become tasks: not quite right.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{Mutant, OutgoingMessage};

/// The key under which a message says to which task it belongs.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The name of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub(super) fn mutants() -> Vec<Mutant> {
    [
        is_response_to(),
        asked_messages(),
        asked_methods(),
        extension_mutants(),
        offered_methods(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How tasks of 2025-11-25 begin and end.
fn is_response_to() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.created", "does the work at once").map_sent(|outgoing| {
            if outgoing.message["result"]["task"].is_object() {
                outgoing.message["result"] = json!({ "content": [] });
            }
        }),
        Mutant::new("tasks.begins-working", "is done before it begins").map_sent(|outgoing| {
            if let Some(status) = outgoing.message.pointer_mut("/result/task/status") {
                *status = "completed".into();
            }
        }),
        Mutant::new("tasks.valid-steps", "comes back to life").map_sent(reappears()),
        Mutant::new("tasks.ids-differ", "one id for all").map_sent(one_for_all()),
        numbered(),
        Mutant::new("tasks.only-as-task", "works without a task after all").map_sent(|outgoing| {
            let asked = outgoing.request.as_ref().map(|asked| &asked["params"]);
            if asked.is_some_and(|asked| asked["name"] == "work_hard" && asked["task"].is_null()) {
                outgoing.message = done(&outgoing.message["id"]);
            }
        }),
        Mutant::new("tasks.never-as-task", "takes no notice").map_sent(|outgoing| {
            let asked = outgoing
                .request
                .as_ref()
                .map(|asked| &asked["params"]["task"]);
            let as_task = asked.is_some_and(|task| !task.is_null());
            if as_task && outgoing.message.get("error").is_some() {
                outgoing.message = done(&outgoing.message["id"]);
            }
        }),
        Mutant::new(
            "tasks.undeclared-ignored",
            "makes tasks and does not say so",
        )
        .map_response_to("initialize", |message| {
            remove(message, "/result/capabilities", "tasks");
        })
        .in_revision(Revision::V2025_11_25),
        Mutant::new("tasks.result", "says how the task is doing instead").map_response_to(
            "tasks/result",
            |message| {
                if let Some(result) = message.get_mut("result") {
                    *result = json!({ "status": "completed", "_meta": result["_meta"] });
                }
            },
        ),
        Mutant::new("tasks.result-waits", "answers before it is done").map_response_to(
            "tasks/get",
            |message| {
                turn(message, "completed", "working");
            },
        ),
        Mutant::new("tasks.failed-with-tool", "calls it a success").map_sent(calls_it_a_success()),
        Mutant::new("tasks.failure-explained", "fails without a word")
            .map_response_to("tasks/get", |message| {
                remove(message, "/result", "statusMessage");
            })
            .in_revision(Revision::V2025_11_25),
        Mutant::new("tasks.extension-is-for-later", "makes tasks of everything")
            .map_sent(makes_tasks()),
    ]
}

/// What is said about tasks of 2025-11-25.
fn asked_messages() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.result-related", "does not say of what").map_response_to(
            "tasks/result",
            |message| {
                remove(message, "/result/_meta", RELATED);
            },
        ),
        Mutant::new("tasks.messages-related", "asks and does not say for what").map_sent(
            |outgoing| {
                if outgoing.message["method"] == "elicitation/create" {
                    remove(&mut outgoing.message, "/params", "_meta");
                }
            },
        ),
        Mutant::new("tasks.methods-unrelated", "says everything twice").map_response_to(
            "tasks/get",
            |message| {
                if let Some(result) = message.get_mut("result") {
                    result["_meta"] = json!({ RELATED: { "taskId": result["taskId"] } });
                }
            },
        ),
        Mutant::new("tasks.parameter-wins", "believes `_meta`").map_received(|incoming| {
            let related = incoming
                .message
                .pointer("/params/_meta")
                .and_then(|meta| meta.get(RELATED));
            if let Some(related) = related.cloned() {
                incoming.message["params"]["taskId"] = related["taskId"].clone();
            }
        }),
        Mutant::new("tasks.progress-ends", "goes on and on")
            .on_ndjson()
            .map_sent(goes_on()),
        Mutant::new("tasks.get-is-no-stream", "a stream for one answer").response(
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

/// Lists and cancellations of 2025-11-25.
fn asked_methods() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.list", "lists nothing").map_response_to("tasks/list", |message| {
            if message.get("result").is_some() {
                message["result"]["tasks"] = json!([]);
            }
        }),
        Mutant::new("tasks.list-cursor", "takes any cursor").map_response_to(
            "tasks/list",
            |message| {
                if message.get("error").is_some() {
                    let result = json!({ "tasks": [] });
                    *message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                }
            },
        ),
        Mutant::new("tasks.unknown-id", "has another word for it").map_sent(|outgoing| {
            let asked = outgoing
                .request
                .as_ref()
                .map(|asked| &asked["params"]["taskId"]);
            if asked.is_some_and(|id| id == "check-no-such-task") && is(outgoing, "tasks/get") {
                outgoing.message["error"]["code"] = (-32603).into();
            }
        }),
        Mutant::new("tasks.unknown-id-elsewhere", "acknowledges whatever it is").map_sent(
            |outgoing| {
                let asked = outgoing
                    .request
                    .as_ref()
                    .map(|asked| &asked["params"]["taskId"]);
                if asked.is_some_and(|id| id == "check-no-such-task")
                    && is(outgoing, "tasks/cancel")
                {
                    let result = json!({ "resultType": "complete" });
                    outgoing.message =
                        json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "result": result });
                }
            },
        ),
        Mutant::new("tasks.cancel-when-over", "an internal error").map_sent(|outgoing| {
            let asked = outgoing
                .request
                .as_ref()
                .map(|asked| &asked["params"]["taskId"]);
            let known =
                asked.is_some_and(|id| id != "check-no-such-task") && is(outgoing, "tasks/cancel");
            if let (Some(code), true) = (outgoing.message.pointer_mut("/error/code"), known) {
                *code = (-32603).into();
            }
        }),
        Mutant::new("tasks.cancel", "is still at work").map_response_to(
            "tasks/cancel",
            |message| {
                turn(message, "cancelled", "working");
            },
        ),
    ]
}

/// Tasks of the extension.
fn extension_mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.undeclared-extension", "believes the parameter").map_sent(|outgoing| {
            let asked = outgoing.request.as_ref().map(|asked| &asked["params"]["task"]);
            if asked.is_some_and(|task| !task.is_null()) {
                outgoing.message = task(&outgoing.message["id"]);
            }
        }),
        Mutant::new("tasks.needs-extension", "does not say what it needs").map_sent(|outgoing| {
            let called = is_call_of(outgoing.request.as_ref(), "work_hard");
            let required = outgoing.message.pointer_mut("/error/data/requiredCapabilities");
            if let (Some(required), true) = (required, called) {
                *required = json!({ "roots": {} });
            }
        }),
        Mutant::new("tasks.found-at-once", "has not heard of it yet").map_sent(not_at_first()),
        Mutant::new("tasks.outcome", "calls it a failure").map_response_to("tasks/get", |message| {
            let failed = message.pointer("/result/result/isError") == Some(&Value::Bool(true));
            if let Some(task) = message.get_mut("result").filter(|_| failed) {
                task["status"] = "failed".into();
                task["statusMessage"] = "it comes to nothing".into();
                task["error"] = json!({ "code": -32603, "message": "it comes to nothing" });
            }
            if failed {
                remove(message, "/result", "result");
            }
        }),
        Mutant::new("tasks.questions", "waits and does not say for what").map_response_to("tasks/get", |message| {
            if message["result"]["status"] == "input_required" {
                message["result"]["inputRequests"] = json!({});
            }
        }),
        Mutant::new("tasks.no-progress", "reports what it is doing").on_ndjson().map_sent(|outgoing| {
            if outgoing.message["result"]["resultType"] == "task" {
                let asked = outgoing.request.clone().unwrap_or_default();
                let token = &asked["params"]["_meta"]["progressToken"];
                let params = json!({ "progressToken": token, "progress": 1 });
                outgoing.after.push(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
            }
        }),
    ]
}

/// Methods of the extension.
fn offered_methods() -> Vec<Mutant> {
    vec![
        Mutant::new("tasks.result-types", "calls everything a task").map_response_to(
            "tasks/cancel",
            |message| {
                if message.get("result").is_some() {
                    message["result"]["resultType"] = "task".into();
                }
            },
        ),
        Mutant::new("tasks.acknowledged", "says more than that").map_response_to(
            "tasks/cancel",
            |message| {
                if message.get("result").is_some() {
                    message["result"]["status"] = "cancelled".into();
                }
            },
        ),
        Mutant::new("tasks.surplus-answers", "an error for one answer too many").map_sent(
            |outgoing| {
                let asked = outgoing.request.clone().unwrap_or_default();
                if asked["params"]["inputResponses"]
                    .get("check_nobody_asked")
                    .is_some()
                    && is(outgoing, "tasks/update")
                {
                    let error = json!({ "code": -32602, "message": "nobody asked" });
                    outgoing.message =
                        json!({ "jsonrpc": "2.0", "id": outgoing.message["id"], "error": error });
                }
            },
        ),
        Mutant::new("tasks.methods-undeclared", "tells everybody").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32021 && is(outgoing, "tasks/get") {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new("tasks.listen-undeclared", "lets everybody listen").map_sent(|outgoing| {
            if outgoing.message["error"]["code"] == -32021 && is(outgoing, "subscriptions/listen") {
                outgoing.message["error"]["code"] = (-32602).into();
            }
        }),
        Mutant::new("tasks.methods-are-gone", "still has results").map_response_to(
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

/// A task that is over is at work again when it is asked for the third time.
fn reappears() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let over = Mutex::new(Vec::<Value>::new());
    move |outgoing| {
        let task = &outgoing.message["result"];
        if is(outgoing, "tasks/get") && task["status"] == "completed" {
            let (id, mut over) = (task["taskId"].clone(), over.lock().unwrap());
            if over.contains(&id) {
                outgoing.message["result"]["status"] = "working".into()
            } else {
                over.push(id)
            }
        }
    }
}

/// Completes the tasks of a tool that always fails.
fn calls_it_a_success() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let ids = Mutex::new(Vec::<String>::new());
    move |outgoing| {
        let mut ids = ids.lock().unwrap();
        if is_call_of(outgoing.request.as_ref(), "work_in_vain") {
            remember(&mut ids, &outgoing.message);
        }
        let id = outgoing
            .message
            .pointer("/result/taskId")
            .and_then(Value::as_str);
        if id.is_some_and(|id| ids.iter().any(|known| known == id)) {
            turn(&mut outgoing.message, "failed", "completed");
        }
    }
}

/// Gives every task the id of the first.
fn one_for_all() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let ids = Mutex::new(Vec::<String>::new());
    move |outgoing| {
        let mut ids = ids.lock().unwrap();
        remember(&mut ids, &outgoing.message);
        for id in ids.iter().skip(1) {
            replace(&mut outgoing.message, id, &ids[0]);
        }
    }
}

/// Counts its tasks: the ids on the wire are small numbers.
pub(crate) fn numbered() -> Mutant {
    let ids = Arc::new(Mutex::new(Vec::<String>::new()));
    let known = ids.clone();
    Mutant::new("tasks.ids-unguessable", "counts its tasks")
        .in_revision(Revision::V2025_11_25)
        .map_sent(move |outgoing| {
            let mut ids = ids.lock().unwrap();
            remember(&mut ids, &outgoing.message);
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

/// Remembers the id of a new task.
fn remember(ids: &mut Vec<String>, message: &Value) {
    let id = message
        .pointer("/result/task/taskId")
        .and_then(Value::as_str);
    ids.extend(id.map(str::to_owned));
}

/// Replaces a text wherever it stands alone.
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

/// Makes a task of a plain call by a client that knows the extension.
fn makes_tasks() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let knows = Mutex::new(false);
    move |outgoing| {
        let asked = outgoing.request.clone().unwrap_or_default();
        if asked["method"] == "initialize" {
            let extensions = &asked["params"]["capabilities"]["extensions"];
            *knows.lock().unwrap() = extensions.get(EXTENSION).is_some();
        }
        if *knows.lock().unwrap()
            && asked["method"] == "tools/call"
            && asked["params"]["task"].is_null()
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

/// Reports progress of each task after its result.
fn goes_on() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
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

/// Knows no task when it is asked for the first time.
fn not_at_first() -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    let known = Mutex::new(Vec::<Value>::new());
    move |outgoing| {
        let id = outgoing
            .request
            .as_ref()
            .map(|asked| asked["params"]["taskId"].clone());
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

/// Says whether a message answers this method.
fn is(outgoing: &OutgoingMessage, method: &str) -> bool {
    let asked = outgoing.request.as_ref();
    asked.is_some_and(|asked| asked["method"] == method)
}

fn is_call_of(asked: Option<&Value>, tool: &str) -> bool {
    asked.is_some_and(|asked| asked["params"]["name"] == tool)
}

fn done(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } })
}

fn task(id: &Value) -> Value {
    let result = json!({
        "resultType": "task", "taskId": "made-up-out-of-nothing", "status": "working", "ttlMs": null,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Turns one status into another.
fn turn(message: &mut Value, from: &str, to: &str) {
    let status = message.pointer_mut("/result/status");
    if let Some(status) = status.filter(|status| **status == from) {
        *status = to.into();
    }
}

/// Takes a field away.
fn remove(message: &mut Value, from: &str, field: &str) {
    if let Some(object) = message.pointer_mut(from).and_then(Value::as_object_mut) {
        object.remove(field);
    }
}

#[tokio::test(start_paused = true)]
async fn asked_each_trips_its_rule() {
    super::assert_each_trips_its_rule(is_response_to()).await;
}

#[tokio::test(start_paused = true)]
async fn asked_messages_each_trips_its_rule() {
    super::assert_each_trips_its_rule(asked_messages()).await;
}

#[tokio::test(start_paused = true)]
async fn asked_methods_each_trips_its_rule() {
    super::assert_each_trips_its_rule(asked_methods()).await;
}

#[tokio::test(start_paused = true)]
async fn offered_each_trips_its_rule() {
    super::assert_each_trips_its_rule(extension_mutants()).await;
}

#[tokio::test(start_paused = true)]
async fn offered_methods_each_trips_its_rule() {
    super::assert_each_trips_its_rule(offered_methods()).await;
}
