//! An array in place of an object is rejected in every message.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{
    Context, Elicitation, Extension, Prompt, Resource, ResourceTemplate, SamplingBuilder, Server,
    TaskSupport, Tool, Variables,
};

use crate::{
    ndjson::test_client::{LEGACY, Peer, initialize},
    spec::revision_client::{EVERY, MODERN, RevisionClient},
};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    leg: Option<Leg>,
}

#[derive(Deserialize, JsonSchema)]
struct Leg {
    days: u8,
}

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

fn server() -> Server {
    let plan = Tool::new("plan", async |trip: Trip| {
        let days = trip.leg.map_or(0, |leg| leg.days);
        Ok(format!("{days} days in {}", trip.city))
    });
    let later = Tool::new("later", async || Ok("done".to_owned())).task(TaskSupport::Optional);
    let ask = Tool::new("ask", async |cx: Context| {
        let response = cx
            .elicit(Elicitation::form::<City>("Where?").key("k"))
            .await?;
        Ok(response.accepted().map_or_else(String::new, |it| it.city))
    });
    let think = Tool::new("think", async |cx: Context| {
        Ok(cx.sample("k", SamplingBuilder::text("?")).await?.model)
    });
    let roots = Tool::new("roots", async |cx: Context| Ok(cx.roots("k").await?.len()));
    let prompt = Prompt::new("trip", async |place: City| {
        Ok(format!("Plan {}", place.city))
    })
    .complete("city", ["Oslo", "Rome"]);
    let day = ResourceTemplate::new("log://{day}", "log", async |_: Variables, _: Context| {
        Ok("text")
    });
    let extension = Extension::new("example.com/trips").method("trips/book", async |trip: Trip| {
        Ok(json!({ "city": trip.city }))
    });
    Server::new("objects", "1")
        .tool(plan)
        .tool(later)
        .tool(ask)
        .tool(think)
        .tool(roots)
        .prompt(prompt)
        .template(day)
        .resource(Resource::text("note://a", "a", "A"))
        .extension(extension)
}

/// Capabilities with every object filled in.
fn capabilities() -> Value {
    json!({
        "experimental": { "x": {} },
        "roots": { "listChanged": true },
        "sampling": { "tools": {}, "context": {} },
        "elicitation": { "form": {}, "url": {} },
        "tasks": { "list": {}, "cancel": {}, "requests": { "elicitation": { "create": {} } } },
        "extensions": { "io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/tasks": {} },
    })
}

fn requests(revision: &str) -> Vec<(&'static str, Value)> {
    let meta = json!({ "progressToken": 1 });
    let completing = json!({
        "ref": { "type": "ref/prompt", "name": "trip" },
        "argument": { "name": "city", "value": "" },
        "context": { "arguments": { "a": "b" } },
        "_meta": meta,
    });
    let city = json!({ "city": "Oslo" });
    let trip = json!({ "city": "Oslo", "leg": { "days": 2 } });
    let plan = json!({ "name": "plan", "arguments": trip, "_meta": meta });
    let mut requests = vec![
        ("tools/list", json!({ "_meta": meta })),
        ("tools/call", plan),
        ("resources/list", json!({ "_meta": meta })),
        ("resources/templates/list", json!({ "_meta": meta })),
        (
            "resources/read",
            json!({ "uri": "note://a", "_meta": meta }),
        ),
        ("prompts/list", json!({ "_meta": meta })),
        (
            "prompts/get",
            json!({ "name": "trip", "arguments": city, "_meta": meta }),
        ),
        ("completion/complete", completing),
        ("trips/book", trip.clone()),
    ];
    if revision == MODERN {
        let filter = json!({ "toolsListChanged": true });
        requests.push(("server/discover", json!({})));
        requests.push(("subscriptions/listen", json!({ "notifications": filter })));
        let responses = json!({ "k": { "action": "accept", "content": { "city": "Oslo" } } });
        let params = json!({ "name": "ask", "arguments": {}, "inputResponses": responses });
        requests.push(("tools/call", params));
        let params = json!({ "taskId": "t", "inputResponses": responses });
        requests.push(("tasks/update", params));
    } else {
        requests.push(("ping", json!({ "_meta": meta })));
        requests.push((
            "resources/subscribe",
            json!({ "uri": "note://a", "_meta": meta }),
        ));
        requests.push((
            "logging/setLevel",
            json!({ "level": "info", "_meta": meta }),
        ));
    }
    if revision == "2025-11-25" {
        let task = json!({ "ttl": 1000 });
        let params = json!({ "name": "later", "arguments": {}, "task": task });
        requests.push(("tools/call", params));
        requests.push(("tasks/get", json!({ "taskId": "t", "_meta": meta })));
        requests.push(("tasks/result", json!({ "taskId": "t", "_meta": meta })));
        requests.push(("tasks/cancel", json!({ "taskId": "t", "_meta": meta })));
    }
    requests
}

/// The paths of all objects in a value, the value itself included.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(members) = value else {
        return;
    };
    found.push(path.to_owned());
    for (name, value) in members {
        let name = name.replace('~', "~0").replace('/', "~1");
        objects(value, &format!("{path}/{name}"), found);
    }
}

/// All variants with an array of its values in place of one object.
fn with_arrays(value: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    objects(value, "", &mut paths);
    let replaced = paths.into_iter().map(|path| {
        let mut value = value.clone();
        let place = value.pointer_mut(&path).unwrap();
        let Value::Object(members) = place.take() else {
            unreachable!("only objects are listed");
        };
        *place = members.into_iter().map(|(_, value)| value).collect();
        (path, value)
    });
    replaced.collect()
}

/// The message that the client gets.
fn in_json_words(message: &str) {
    let foreign = [
        "struct ", "sequence", " map", "element", " line ", "enum ", "u8",
    ];
    for word in foreign {
        assert!(!message.contains(word), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_array_in_place_of_any_object_of_a_request_is_rejected() {
    for revision in EVERY {
        let mut client = RevisionClient::with(revision, server(), capabilities()).await;
        for (method, params) in requests(revision) {
            let params = client.params(params);
            for (path, wrong) in with_arrays(&params) {
                let id = client.peer.request(method, wrong.clone()).await;
                let answers = client.until_answered(id).await;
                let response = answers.last().unwrap();
                let context = format!("{revision} {method} {path}: {response}");
                let is_argument = method == "tools/call" && path.starts_with("/arguments/");
                let message = if is_argument {
                    // An error that a model can correct is a tool result.
                    assert_eq!(response["result"]["isError"], true, "{context}");
                    response["result"]["content"][0]["text"].as_str().unwrap()
                } else {
                    assert_eq!(response["error"]["code"], -32602, "{context}");
                    response["error"]["message"].as_str().unwrap()
                };
                in_json_words(message);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_array_in_place_of_any_object_of_initialize_is_rejected() {
    for revision in LEGACY {
        let mut params = initialize(revision, capabilities());
        params["_meta"] = json!({});
        for (path, wrong) in with_arrays(&params) {
            let mut peer = Peer::new(server());

            let response = peer.call("initialize", wrong).await;

            assert_eq!(
                response["error"]["code"], -32602,
                "{revision} {path}: {response}"
            );
            in_json_words(response["error"]["message"].as_str().unwrap());
        }
    }
}

/// Responses of a client to the requests of the tools.
fn answers() -> [(&'static str, Value); 3] {
    let said = json!({ "type": "text", "text": "yes", "annotations": { "priority": 1 } });
    let root = json!({ "uri": "file:///a", "_meta": {} });
    [
        (
            "ask",
            json!({ "action": "accept", "content": { "city": "Oslo" }, "_meta": {} }),
        ),
        (
            "think",
            json!({ "role": "assistant", "model": "m", "content": said, "_meta": {} }),
        ),
        ("roots", json!({ "roots": { "0": root }, "_meta": {} })),
    ]
}

/// A response with an array in place of one object. The list of roots is an array anyway.
fn wrong_answers(tool: &str, response: &Value) -> Vec<(String, Value)> {
    let mut wrong = with_arrays(response);
    if tool == "roots" {
        wrong.retain(|(path, _)| path != "/roots");
        for (_, response) in &mut wrong {
            if let Some(Value::Object(roots)) = response.get_mut("roots").map(Value::take) {
                response["roots"] = roots.into_iter().map(|(_, root)| root).collect();
            }
        }
    }
    wrong
}

#[tokio::test(start_paused = true)]
async fn an_array_in_place_of_any_object_of_a_client_response_is_rejected() {
    for revision in EVERY {
        for (tool, response) in answers() {
            if tool == "ask" && revision < "2025-06-18" {
                continue;
            }
            for (path, wrong) in wrong_answers(tool, &response) {
                let mut client = RevisionClient::with(revision, server(), capabilities()).await;
                let mut params = json!({ "name": tool, "arguments": {} });
                let id = client.request("tools/call", params.clone()).await;
                let client_request = client.peer.next().await;
                let http_response = if client.is_modern() {
                    params["requestState"] = client_request["result"]["requestState"].clone();
                    params["inputResponses"] = json!({ "k": wrong });
                    client.call("tools/call", params).await
                } else {
                    let response =
                        json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": wrong });
                    client.peer.send(response).await;
                    client.until_answered(id).await.pop().unwrap()
                };
                let context = format!("{revision} {tool} {path}: {http_response}");
                let message = if client.is_modern() {
                    assert_eq!(http_response["error"]["code"], -32602, "{context}");
                    http_response["error"]["message"].as_str().unwrap()
                } else {
                    assert_eq!(http_response["result"]["isError"], true, "{context}");
                    http_response["result"]["content"][0]["text"]
                        .as_str()
                        .unwrap()
                };
                assert!(message.contains("expected object"), "{context}");
                in_json_words(message);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failure_messages_have_location_expectation_and_actual_value() {
    let mut client = RevisionClient::new(MODERN, server()).await;
    let completing = json!({
        "ref": { "type": "ref/prompt", "name": "trip" }, "argument": ["city", "f"],
    });
    for (method, params, message) in [
        (
            "completion/complete",
            completing,
            "`argument`: invalid type: array, expected object",
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/tool", "name": "x" }, "argument": { "name": "city", "value": "" } }),
            r#"`ref.type`: invalid value: string "ref/tool", expected "ref/prompt" or "ref/resource""#,
        ),
        ("completion/complete", json!({}), "missing field `ref`"),
        (
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": "yes" } }),
            r#"`notifications.toolsListChanged`: invalid type: string "yes", expected boolean"#,
        ),
        (
            "trips/book",
            json!({ "city": 7 }),
            "`city`: invalid type: number `7`, expected string",
        ),
        (
            "prompts/get",
            json!({ "name": "trip", "arguments": ["Oslo"] }),
            "`arguments` must be an object",
        ),
    ] {
        let response = client.call(method, params).await;

        assert_eq!(response["error"]["code"], -32602, "{response}");
        assert_eq!(response["error"]["message"], message);
    }

    let mut params = client.params(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!([{}, {}]);
    let response = client.peer.call("tools/list", params).await;
    assert_eq!(
        response["error"]["message"],
        "`clientCapabilities`: invalid type: array, expected object"
    );
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_that_is_answered_by_an_array_is_explained() {
    let mut peer = Peer::initialized(server(), "2025-11-25", capabilities()).await;
    let id = peer
        .request("tools/call", json!({ "name": "ask", "arguments": {} }))
        .await;
    let client_request = peer.next().await;

    let result = json!(["accept", { "city": "Oslo" }]);
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
        .await;

    let response = peer.next().await;
    assert_eq!(response["id"], id);
    assert_eq!(response["result"]["isError"], true);
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.ends_with("invalid type: array, expected object"),
        "{text}"
    );
}
