//! Messages of the server validate against the official schema of the revision.

use std::{collections::HashMap, env, fs, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    Context, Elicitation, Prompt, Resource, ResourceTemplate, SamplingBuilder, Server, Tool,
    ToolError, Variables,
};
use turnbuckle_spec_coverage::req;

use crate::spec::revision_client::{EVERY, MODERN, RevisionClient};

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    /// The city of the forecast.
    city: String,
    days: Option<u8>,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    degrees: f64,
    words: Vec<String>,
}

/// A server that sends many kinds of messages.
fn server() -> Server {
    let weather = Tool::new("weather", async |place: Forecast, cx: Context| {
        cx.progress_message(1, Some(2.0), "looking").await;
        cx.log_as(LogLevel::Error, Some("sky"), json!({ "city": place.city }))
            .await;
        let days = f64::from(place.days.unwrap_or(1));
        Ok(Weather {
            degrees: 20.0 + days,
            words: vec!["warm".to_owned()],
        })
    })
    .title("Weather")
    .description("Looks at the sky")
    .read_only();
    let fails = Tool::new("fails", async || Err::<String, _>(ToolError::new("no")));
    let roots = Tool::new("roots", async |cx: Context| Ok(cx.roots("k").await?.len()));
    let think = Tool::new("think", async |cx: Context| {
        Ok(cx.sample("k", SamplingBuilder::text("?")).await?.model)
    });
    let ask = Tool::new("ask", async |cx: Context| {
        cx.elicit(Elicitation::form::<Forecast>("Where?").key("k"))
            .await?;
        Ok("asked".to_owned())
    });
    let prompt = Prompt::new("trip", async |place: Forecast| {
        Ok(format!("Plan {}", place.city))
    })
    .complete("city", ["Oslo", "Rome"]);
    let log = ResourceTemplate::new("log://{day}", "log", async |_: Variables, _: Context| {
        Ok("text")
    });
    Server::new("schema", "1")
        .title("Schema")
        .instructions("Ask for the weather.")
        .tool(weather)
        .tool(fails)
        .tool(roots)
        .tool(think)
        .tool(ask)
        .prompt(prompt)
        .template(log)
        .resource(Resource::text("note://a", "a", "A").title("A"))
        .resource(Resource::bytes("note://b", "b", "image/png", vec![1]))
}

fn capabilities() -> Value {
    json!({ "roots": {}, "sampling": {}, "elicitation": {} })
}

/// Requests with the definition of their result.
fn requests(revision: &str) -> Vec<(&'static str, Value, &'static str)> {
    let completing = json!({
        "ref": { "type": "ref/prompt", "name": "trip" }, "argument": { "name": "city", "value": "" },
    });
    let weather = json!({
        "name": "weather", "arguments": { "city": "Oslo" },
        "_meta": { "progressToken": 1, "io.modelcontextprotocol/logLevel": "debug" },
    });
    let trip = json!({ "name": "trip", "arguments": { "city": "Oslo" } });
    let mut requests = vec![
        ("tools/list", json!({}), "ListToolsResult"),
        ("tools/call", weather, "CallToolResult"),
        ("tools/call", json!({ "name": "fails" }), "CallToolResult"),
        ("resources/list", json!({}), "ListResourcesResult"),
        (
            "resources/templates/list",
            json!({}),
            "ListResourceTemplatesResult",
        ),
        (
            "resources/read",
            json!({ "uri": "note://a" }),
            "ReadResourceResult",
        ),
        (
            "resources/read",
            json!({ "uri": "note://b" }),
            "ReadResourceResult",
        ),
        ("prompts/list", json!({}), "ListPromptsResult"),
        ("prompts/get", trip, "GetPromptResult"),
        ("completion/complete", completing, "CompleteResult"),
        ("no/such", json!({}), ""),
        ("tools/call", json!({}), ""),
        ("resources/read", json!({ "uri": "note://z" }), ""),
    ];
    if revision == MODERN {
        requests.push(("server/discover", json!({}), "DiscoverResult"));
        for name in ["roots", "think", "ask"] {
            requests.push(("tools/call", json!({ "name": name }), "InputRequiredResult"));
        }
    } else {
        requests.push(("ping", json!({}), "EmptyResult"));
        requests.push((
            "resources/subscribe",
            json!({ "uri": "note://a" }),
            "EmptyResult",
        ));
        for name in ["roots", "think"] {
            requests.push(("tools/call", json!({ "name": name }), "CallToolResult"));
        }
        if revision >= "2025-06-18" {
            requests.push(("tools/call", json!({ "name": "ask" }), "CallToolResult"));
        }
    }
    requests
}

/// The definition of a request or notification.
fn definition(method: &str) -> &'static str {
    match method {
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        "roots/list" => "ListRootsRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "elicitation/create" => "ElicitRequest",
        other => panic!("an unexpected {other}"),
    }
}

fn client(method: &str) -> Option<Value> {
    Some(match method {
        "roots/list" => json!({ "roots": [] }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "x" },
        }),
        "elicitation/create" => json!({ "action": "decline" }),
        _ => return None,
    })
}

#[tokio::test(start_paused = true)]
async fn every_message_validates_against_the_official_schema_of_its_revision() {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return;
    };
    req!("schema.message-valid");
    // The first revision was published without a schema.
    for revision in &EVERY[1..] {
        let mut judge = OfficialSchema::load(&PathBuf::from(&data), revision);
        let server = server();
        let mut speaker = RevisionClient::with(revision, server.clone(), capabilities()).await;
        for (method, params, result) in requests(revision) {
            let id = speaker.request(method, params).await;
            loop {
                let message = speaker.peer.next().await;
                judge.check("JSONRPCMessage", &message);
                let Some(method) = message["method"].as_str() else {
                    assert_eq!(message["id"], id);
                    match message.get("result") {
                        Some(given) => judge.check(result, given),
                        None => assert_eq!(result, "", "{revision} {method}: {message}"),
                    }
                    break;
                };
                judge.check(definition(method), &message);
                if let Some(result) = client(method) {
                    let response =
                        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                    speaker.peer.send(response).await;
                }
            }
        }
        if speaker.is_modern() {
            let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["note://a"] });
            speaker
                .request("subscriptions/listen", json!({ "notifications": filter }))
                .await;
            judge.check(
                "SubscriptionsAcknowledgedNotification",
                &speaker.peer.next().await,
            );
        }
        server.tools_changed();
        server.resource_updated("note://a");
        for _ in 0..2 {
            let message = speaker.peer.next().await;
            judge.check(definition(message["method"].as_str().unwrap()), &message);
        }
        assert!(judge.checked > 30, "{revision} {}", judge.checked);
    }
}

#[tokio::test(start_paused = true)]
async fn schemas_of_types_are_valid_and_values_conform_to_them() {
    req!("schema.valid", "tools.output.conform");
    for revision in ["2025-06-18", "2025-11-25", MODERN] {
        let mut speaker = RevisionClient::new(revision, server()).await;
        let list = speaker.result("tools/list", json!({})).await;
        for tool in list["tools"].as_array().unwrap() {
            for schema in ["inputSchema", "outputSchema"] {
                if let Some(schema) = tool.get(schema) {
                    assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
                }
            }
        }
        let schema = &list["tools"][0]["outputSchema"];
        let call = json!({ "name": "weather", "arguments": { "city": "Oslo", "days": 3 } });
        let id = speaker.request("tools/call", call).await;
        let response = speaker.until_answered(id).await.pop().unwrap();
        let given = &response["result"];
        assert!(jsonschema::is_valid(schema, &given["structuredContent"]));
    }
}

/// Older dialects write tuples and named types differently: `items` as an array, and `definitions`.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Route {
    ends: (Stop, Stop),
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Stop {
    name: String,
}

#[tokio::test(start_paused = true)]
async fn schemas_of_types_are_written_in_the_dialect_of_2020_12() {
    req!("schema.dialect.recommended");
    for revision in ["2025-11-25", MODERN] {
        let route = Tool::new("route", async |route: Route| Ok(route));
        let mut speaker = RevisionClient::new(revision, Server::new("s", "1").tool(route)).await;

        let list = speaker.result("tools/list", json!({})).await;

        for schema in ["inputSchema", "outputSchema"] {
            let schema = &list["tools"][0][schema];
            assert!(schema["$defs"]["Stop"].is_object(), "{revision} {schema}");
            let ends = schema["properties"]["ends"]["prefixItems"].as_array();
            assert_eq!(ends.map(Vec::len), Some(2), "{revision} {schema}");
            let dialect = "https://json-schema.org/draft/2020-12/schema";
            assert!(schema.get("$schema").is_none_or(|named| named == dialect));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_may_name_its_dialect() {
    req!("schema.dialect.explicit");
    let dialect = "http://json-schema.org/draft-07/schema#";
    for revision in ["2025-11-25", MODERN] {
        let schema = json!({ "$schema": dialect, "type": "object" });
        let tool = Tool::raw(
            "t",
            schema.clone(),
            async |_: Map<String, Value>, _: Context| Ok("called".to_owned()),
        );
        let mut speaker = RevisionClient::new(revision, Server::new("s", "1").tool(tool)).await;

        let list = speaker.result("tools/list", json!({})).await;

        assert_eq!(list["tools"][0]["inputSchema"], schema, "{revision}");
    }
}

/// The official schema of one revision.
struct OfficialSchema {
    schema: Value,
    /// The member that holds the definitions.
    root: &'static str,
    validators: HashMap<String, jsonschema::Validator>,
    checked: usize,
}

impl OfficialSchema {
    fn load(data: &std::path::Path, revision: &str) -> Self {
        let path = data.join(format!("spec/schema/{revision}.json"));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let root = if schema.get("$defs").is_some() {
            "$defs"
        } else {
            "definitions"
        };
        Self {
            schema,
            root,
            validators: HashMap::new(),
            checked: 0,
        }
    }

    #[track_caller]
    fn check(&mut self, definition: &str, message: &Value) {
        if !self.validators.contains_key(definition) {
            let validator = jsonschema::validator_for(&self.only(definition)).unwrap();
            self.validators.insert(definition.to_owned(), validator);
        }
        let errors: Vec<_> = self.validators[definition]
            .iter_errors(message)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{definition} {message}: {errors:?}");
        self.checked += 1;
    }

    /// The schema of one definition with its dependencies: compiling the whole schema is slow.
    fn only(&self, definition: &str) -> Value {
        let mut needed = Map::new();
        let mut open = vec![definition.to_owned()];
        while let Some(name) = open.pop() {
            if !needed.contains_key(&name) {
                let found = &self.schema[self.root][&name];
                assert!(found.is_object(), "{name} is not defined");
                open.extend(references(found));
                needed.insert(name, found.clone());
            }
        }
        let reference = format!("#/{}/{definition}", self.root);
        json!({ "$schema": self.schema["$schema"], "$ref": reference, self.root: needed })
    }
}

fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match value.as_str() {
                Some(path) if name == "$ref" => path
                    .rsplit('/')
                    .next()
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
