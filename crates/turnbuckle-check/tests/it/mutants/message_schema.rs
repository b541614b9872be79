//! Mutants with messages that do not match the schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Prompt, Server};

use crate::{good, mutant::Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    [
        envelopes(),
        results(),
        lists(),
        contents(),
        server_messages(),
    ]
    .concat()
}

fn envelopes() -> Vec<Mutant> {
    vec![
        Mutant::new("shapes.envelope", "no `jsonrpc`")
            .for_requirement("base.jsonrpc.version-field")
            .map_response_to("tools/list", |message| remove(message, "/", "jsonrpc")),
        Mutant::new("shapes.envelope", "`jsonrpc` is a number")
            .for_requirement("base.jsonrpc.version-field")
            .map_response_to("tools/list", |message| {
                set(message, "/", "jsonrpc", 2.0.into());
            }),
        Mutant::new("shapes.envelope", "both a result and an error")
            .for_requirement("base.response.one-of")
            .map_response_to("prompts/list", |message| {
                set(
                    message,
                    "/",
                    "error",
                    json!({ "code": -32603, "message": "No" }),
                );
            }),
        Mutant::new("shapes.envelope", "a batch in a revision without batches")
            .for_requirement("base.batch.removed")
            .on_ndjson()
            .in_revision(Revision::V2025_06_18)
            .map_sent(|outgoing| {
                if is_answer(&outgoing.request, "tools/list") {
                    let server_messages =
                        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                    outgoing.before.push(json!([server_messages]));
                }
            }),
        Mutant::new("shapes.envelope", "neither a result nor an error")
            .for_requirement("base.jsonrpc.conform")
            .map_sent(|outgoing| {
                if is_answer(&outgoing.request, "tools/list") {
                    outgoing.before.push(json!({ "jsonrpc": "2.0" }));
                }
            })
            .on_ndjson(),
        Mutant::new("shapes.errors", "an error without a message")
            .for_requirement("base.error.code-message")
            .map_sent(|outgoing| {
                if outgoing.message.get("error").is_some() {
                    remove(&mut outgoing.message, "/error", "message");
                }
            }),
        Mutant::new("shapes.errors", "a message that is an object")
            .for_requirement("base.error.code-message")
            .map_sent(|outgoing| {
                set(
                    &mut outgoing.message,
                    "/error",
                    "message",
                    json!({ "en": "No" }),
                );
            }),
    ]
}

/// Returns mutants of result members.
fn results() -> Vec<Mutant> {
    let modern = Revision::V2026_07_28;
    vec![
        Mutant::new("shapes.initialize", "experiments are a list").map_response_to(
            "initialize",
            |message| {
                set(message, "/result/capabilities", "experimental", json!([]));
            },
        ),
        Mutant::new("shapes.initialize", "instructions are null")
            .in_revision(Revision::V2024_10_07)
            .map_response_to("initialize", |message| {
                set(message, "/result", "instructions", Value::Null);
            }),
        Mutant::new("shapes.discover", "a capability is `true`").map_response_to(
            "server/discover",
            |message| {
                set(message, "/result/capabilities", "logging", true.into());
            },
        ),
        Mutant::new("shapes.discover", "instructions are null").map_response_to(
            "server/discover",
            |message| {
                set(message, "/result", "instructions", Value::Null);
            },
        ),
        Mutant::new("shapes.server-info", "the version is a number")
            .in_revision(Revision::V2025_03_26)
            .map_response_to("initialize", |message| {
                set(message, "/result/serverInfo", "version", 1.into());
            }),
        Mutant::new("shapes.server-info", "a server without a name").map_sent(|outgoing| {
            remove(
                &mut outgoing.message,
                "/result/_meta/io.modelcontextprotocol~1serverInfo",
                "name",
            );
        }),
        Mutant::new("shapes.result-type", "no type")
            .for_requirement("base.result-type.present")
            .map_response_to("tools/list", |message| {
                remove(message, "/result", "resultType");
            }),
        Mutant::new("shapes.result-type", "an unknown type")
            .for_requirement("base.result-type.allowed-set")
            .map_response_to("prompts/list", |message| {
                set(message, "/result", "resultType", "done".into());
            }),
        Mutant::new("shapes.result-type", "a list that is a task")
            .for_requirement("base.result-type.allowed-set")
            .map_response_to("resources/templates/list", |message| {
                set_result(message, json!({ "resultType": "task", "taskId": "x" }));
            }),
        Mutant::new("shapes.caching", "no time")
            .for_requirement("caching.hints.required")
            .map_response_to("tools/list", |message| remove(message, "/result", "ttlMs")),
        Mutant::new("shapes.caching", "a negative time")
            .for_requirement("caching.ttl.non-negative")
            .map_response_to("prompts/list", |message| {
                set(message, "/result", "ttlMs", (-1).into());
            }),
        Mutant::new("shapes.caching", "an unknown scope")
            .for_requirement("caching.scope.value")
            .map_response_to("resources/read", |message| {
                set(message, "/result", "cacheScope", "shared".into());
            }),
        Mutant::new("shapes.meta", "`_meta` is a list")
            .in_revision(Revision::V2025_11_25)
            .map_response_to("tools/list", |message| {
                set(message, "/result", "_meta", json!([]));
            }),
        Mutant::new("shapes.meta", "`_meta` is null")
            .in_revision(modern)
            .map_response_to("tools/list", |message| {
                set(message, "/result", "_meta", Value::Null);
            }),
        Mutant::new("shapes.empty-results", "a pong").map_response_to("ping", |message| {
            set_result(message, "pong".into());
        }),
        Mutant::new("shapes.empty-results", "null instead of an omitted member")
            .in_revision(Revision::V2024_11_05)
            .map_response_to("ping", |message| set_result(message, Value::Null)),
    ]
}

fn lists() -> Vec<Mutant> {
    vec![
        Mutant::new("shapes.tool-list", "a tool without an input schema")
            .for_requirement("schema.message-valid")
            .map_response_to("tools/list", |message| {
                remove(message, "/result/tools/0", "inputSchema");
            }),
        Mutant::new("shapes.tool-list", "an input schema without a type")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2024_11_05)
            .map_response_to("tools/list", |message| {
                remove(message, "/result/tools/0/inputSchema", "type");
            }),
        Mutant::new("shapes.tool-list", "a description that is null")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2025_06_18)
            .map_response_to("tools/list", |message| {
                set(message, "/result/tools/0", "description", Value::Null);
            }),
        Mutant::new("shapes.tool-list", "an output schema without a type")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2025_11_25)
            .map_response_to("tools/list", |message| {
                remove(message, "/result/tools/0/outputSchema", "type");
            }),
        Mutant::new("shapes.resources", "a resource without a name")
            .for_requirement("schema.message-valid")
            .map_response_to("resources/list", |message| {
                remove(message, "/result/resources/0", "name");
            }),
        Mutant::new(
            "shapes.resources",
            "contents that are neither text nor binary",
        )
        .for_requirement("schema.message-valid")
        .map_response_to("resources/read", |message| {
            remove(message, "/result/contents/0", "text");
        }),
        Mutant::new("shapes.resources", "binary contents in invalid Base64")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2025_03_26)
            .map_response_to("resources/read", |message| {
                remove(message, "/result/contents/0", "text");
                set(message, "/result/contents/0", "blob", "{binary}".into());
            }),
        Mutant::new("shapes.prompts", "an argument without a name").map_response_to(
            "prompts/list",
            |message| {
                set(
                    message,
                    "/result/prompts/0",
                    "arguments",
                    json!([{ "required": false }]),
                );
            },
        ),
        Mutant::new("shapes.prompts", "a message with the role `system`").map_response_to(
            "prompts/get",
            |message| {
                set(message, "/result/messages/0", "role", "system".into());
            },
        ),
    ]
}

fn contents() -> Vec<Mutant> {
    vec![
        Mutant::new("shapes.tool-result", "no content")
            .for_requirement("tools.result.content-array")
            .map_response_to("tools/call", |message| {
                remove(message, "/result", "content");
            }),
        Mutant::new("shapes.tool-result", "`isError` is a string")
            .for_requirement("schema.message-valid")
            .map_response_to("tools/call", |message| {
                if message["result"].get("isError").is_none() {
                    set(message, "/result", "isError", "no".into());
                }
            }),
        Mutant::new("shapes.tool-result", "structured content that is a list")
            .for_requirement("tools.output.structured-object")
            .in_revision(Revision::V2025_06_18)
            .map_response_to("tools/call", |message| {
                if message["result"].get("structuredContent").is_none() {
                    set(message, "/result", "structuredContent", json!([]));
                }
            }),
        Mutant::new("shapes.content", "an unknown type")
            .for_requirement("schema.message-valid")
            .map_response_to("tools/call", |message| {
                set(message, "/result/content/0", "type", "markdown".into());
            }),
        Mutant::new("shapes.content", "audio in a revision without it")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2024_11_05)
            .map_response_to("tools/call", |message| {
                set(message, "/result/content/0", "type", "audio".into());
            }),
        Mutant::new("shapes.content", "an image in invalid Base64")
            .for_requirement("schema.message-valid")
            .in_revision(Revision::V2025_06_18)
            .map_response_to("prompts/get", |message| {
                let image =
                    json!({ "type": "image", "data": "<svg>", "mimeType": "image/svg+xml" });
                set(message, "/result/messages/0", "content", image);
            }),
        Mutant::new("shapes.content", "a priority of ten")
            .for_requirement("schema.message-valid")
            .map_response_to("tools/call", |message| {
                set(
                    message,
                    "/result/content/0",
                    "annotations",
                    json!({ "priority": 10 }),
                );
            }),
    ]
}

/// Returns mutants of unrequested messages.
fn server_messages() -> Vec<Mutant> {
    let before = |violates, name, said: fn() -> Value| {
        Mutant::new(violates, name)
            .on_ndjson()
            .in_revision(Revision::V2025_11_25)
            .map_sent(move |outgoing| {
                if is_answer(&outgoing.request, "tools/list") {
                    outgoing.before.push(said());
                }
            })
    };
    vec![
        before(
            "shapes.notifications",
            "a log message of an unknown level",
            || {
                let params = json!({ "level": "warn", "data": "careful" });
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
            },
        ).for_requirement("logging.levels"),
        before("shapes.notifications", "a log message without data", || {
            let params = json!({ "level": "info" });
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
        }).for_requirement("logging.message.shape"),
        before(
            "shapes.requests",
            "a request for sampling without `maxTokens`",
            || {
                let params = json!({ "messages": [] });
                json!({ "jsonrpc": "2.0", "id": crate::mutant::unique_id(), "method": "sampling/createMessage", "params": params })
            },
        ).for_requirement("sampling.max-tokens.required"),
        before("shapes.requests", "a form without fields", || {
            let form = json!({ "type": "object" });
            let params = json!({ "message": "Who?", "requestedSchema": form });
            json!({ "jsonrpc": "2.0", "id": crate::mutant::unique_id(), "method": "elicitation/create", "params": params })
        }).for_requirement("schema.message-valid"),
        before("shapes.tasks", "a task without its lifetime", || {
            let params = json!({
                "taskId": "a", "status": "working",
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            });
            json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params })
        }).for_requirement("tasks.get.ttl"),
        Mutant::new("shapes.requests", "a form without a message").for_requirement("schema.message-valid").map_sent(|outgoing| {
            let requests = outgoing.message.pointer_mut("/result/inputRequests");
            for (_, request) in requests
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten()
            {
                remove(request, "/params", "message");
            }
        }),
        Mutant::new("shapes.completion", "values that are objects")
            .server(server_with_completion)
            .map_response_to("completion/complete", |message| {
                set(
                    message,
                    "/result/completion",
                    "values",
                    json!([{ "value": "a" }]),
                );
            }),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// The destination.
    city: String,
}

/// Returns the good server with completions.
fn server_with_completion() -> Server {
    let trip = Prompt::new("trip", async |Trip { city }: Trip| {
        Ok(format!("Plan a trip to {city}."))
    });
    good::server().prompt(trip.complete("city", ["Oslo", "Rome"]))
}

fn is_answer(request: &Option<Value>, method: &str) -> bool {
    request
        .as_ref()
        .is_some_and(|request| request["method"] == method)
}

/// Removes a member of an object, if present.
fn remove(message: &mut Value, object: &str, member: &str) {
    let object = match object {
        "/" => Some(message),
        pointer => message.pointer_mut(pointer),
    };
    if let Some(Value::Object(object)) = object {
        object.remove(member);
    }
}

/// Sets a member of an object, if the object is present.
fn set(message: &mut Value, object: &str, member: &str, value: Value) {
    let object = match object {
        "/" => Some(message),
        pointer => message.pointer_mut(pointer),
    };
    if let Some(Value::Object(object)) = object {
        object.insert(member.to_owned(), value);
    }
}

/// Replaces the result.
fn set_result(message: &mut Value, value: Value) {
    if let Some(result) = message.get_mut("result") {
        *result = value;
    }
}

#[tokio::test(start_paused = true)]
async fn each_envelope_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(envelopes()).await;
}

#[tokio::test(start_paused = true)]
async fn each_result_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(results()).await;
}

#[tokio::test(start_paused = true)]
async fn each_list_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(lists()).await;
}

#[tokio::test(start_paused = true)]
async fn each_content_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(contents()).await;
}

#[tokio::test(start_paused = true)]
async fn each_server_message_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(server_messages()).await;
}
