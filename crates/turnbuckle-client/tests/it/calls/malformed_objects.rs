//! Malformed objects: arrays in their place, and malformed items of lists.

use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use turnbuckle_client::{
    Anomaly, CallError, Client, ClientBuilder, ElicitationAction, FormRequest, ListItemKind, Roots,
};
use turnbuckle_protocol::types::{
    CompleteParams, CompletionReference, CreateMessageResult, LogLevel,
};

use crate::servers::mock_ndjson::{
    EVERY, LEGACY, MODERN, MockReply, MockServer, discover_result, initialize_result,
};

const NO_ARGUMENTS: [(&str, &str); 0] = [];

/// Results of all methods that a client calls, with all optional objects.
fn results(revision: &str) -> Vec<(&'static str, Value)> {
    let annotations = json!({ "priority": 1 });
    let icon = json!([{ "src": "data:,", "mimeType": "image/png" }]);
    let schema = json!({ "type": "object" });
    let tool = json!({
        "name": "report", "inputSchema": schema, "outputSchema": schema, "annotations": { "title": "t" },
        "icons": icon, "_meta": {},
    });
    let text = json!({ "type": "text", "text": "t", "annotations": annotations, "_meta": {} });
    let late = json!({ "text": "t", "annotations": annotations, "type": "text" });
    let embedded =
        json!({ "type": "resource", "resource": { "uri": "a:b", "text": "t", "_meta": {} } });
    let resource = json!({ "uri": "a:b", "name": "a", "annotations": annotations });
    let template = json!({ "uriTemplate": "a:{b}", "name": "a", "annotations": annotations });
    let prompt = json!({ "name": "p", "arguments": [{ "name": "a" }] });
    let message = json!({ "role": "user", "content": text });
    let mut results = vec![
        ("tools/list", json!({ "tools": [tool], "_meta": {} })),
        (
            "tools/call",
            json!({ "content": [text, late, embedded], "_meta": {} }),
        ),
        (
            "resources/list",
            json!({ "resources": [resource], "_meta": {} }),
        ),
        (
            "resources/templates/list",
            json!({ "resourceTemplates": [template], "_meta": {} }),
        ),
        (
            "resources/read",
            json!({ "contents": [{ "uri": "a:b", "text": "t" }], "_meta": {} }),
        ),
        ("prompts/list", json!({ "prompts": [prompt], "_meta": {} })),
        ("prompts/get", json!({ "messages": [message], "_meta": {} })),
        (
            "completion/complete",
            json!({ "completion": { "values": [] }, "_meta": {} }),
        ),
    ];
    if revision != MODERN {
        results.push(("ping", json!({ "_meta": {} })));
        results.push(("logging/setLevel", json!({ "_meta": {} })));
        results.push(("resources/subscribe", json!({ "_meta": {} })));
    }
    results
}

async fn call(client: &Client, method: &str) -> Result<(), CallError> {
    let reference = CompletionReference::prompt("p");
    match method {
        "tools/list" => client.list_tools(None).await.map(drop),
        "tools/call" => client.call_tool("plan", json!({})).await.map(drop),
        "resources/list" => client.list_resources(None).await.map(drop),
        "resources/templates/list" => client.list_resource_templates(None).await.map(drop),
        "resources/read" => client.read_resource("a:b").await.map(drop),
        "resources/subscribe" => client.subscribe("a:b").await,
        "prompts/list" => client.list_prompts(None).await.map(drop),
        "prompts/get" => client.get_prompt("p", NO_ARGUMENTS).await.map(drop),
        "completion/complete" => {
            let params = CompleteParams::new(reference, "a", "");
            client.complete(params).await.map(drop)
        }
        "ping" => client.ping().await,
        "logging/setLevel" => client.set_log_level(LogLevel::Info).await,
        other => panic!("no call for {other}"),
    }
}

/// Returns all variants of a value with one object replaced by an array of its values.
fn with_arrays(value: &Value) -> Vec<(String, Value)> {
    fn collect(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                found.push(path.to_owned());
                for (name, value) in members {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    collect(value, &format!("{path}/{name}"), found);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    collect(value, &format!("{path}/{index}"), found);
                }
            }
            _ => {}
        }
    }
    let mut paths = Vec::new();
    collect(value, "", &mut paths);
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

fn assert_json_terms(message: &str) {
    for word in ["struct ", "sequence", " map", "element", " line ", "enum "] {
        assert!(!message.contains(word), "{message}");
    }
}

/// Adds the members of modern results, before anything is replaced.
fn with_modern_members(revision: &str, mut result: Value) -> Value {
    if revision == MODERN {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    result
}

#[tokio::test(start_paused = true)]
async fn an_array_instead_of_an_object_in_a_result_is_an_invalid_response() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let client = server.connect().await;
        for (method, result) in results(revision) {
            let result = with_modern_members(revision, result);
            let good = result.clone();
            server.on(method, move |_| MockReply::Exactly(good.clone()));
            call(&client, method).await.unwrap();
            for (path, wrong) in with_arrays(&result) {
                server.on(method, move |_| MockReply::Exactly(wrong.clone()));

                let outcome = call(&client, method).await;

                // A malformed item of a list is left out.
                if path.contains("/0") && method.ends_with("list") {
                    outcome.unwrap();
                    continue;
                }
                let error = outcome.unwrap_err();
                let context = format!("{revision} {method} {path}: {error:?}");
                let CallError::InvalidResponse { reason, .. } = error else {
                    panic!("{context}");
                };
                assert!(reason.contains("expected object"), "{context}");
                assert_json_terms(&reason);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_array_instead_of_an_object_in_the_handshake_is_an_error() {
    for revision in LEGACY {
        for (path, wrong) in with_arrays(&initialize_result(revision)) {
            let server = MockServer::legacy(revision);
            server.on("initialize", move |_| MockReply::Exactly(wrong.clone()));

            let connected = server
                .start_connect(Client::builder("test", "1"))
                .await
                .unwrap();

            let error = connected.unwrap_err();
            assert_json_terms(&format!("{error:?}"));
            assert!(
                format!("{error:?}").contains("expected object"),
                "{path}: {error:?}"
            );
        }
    }
    let discover_result = with_modern_members(MODERN, discover_result());
    for (path, wrong) in with_arrays(&discover_result) {
        // `_meta` is not interpreted.
        if path.starts_with("/_meta/") {
            continue;
        }
        let server = MockServer::modern();
        server.on("server/discover", move |_| {
            MockReply::Exactly(wrong.clone())
        });

        let connected = server
            .start_connect(Client::builder("test", "1"))
            .await
            .unwrap();

        assert!(connected.is_err(), "{path}");
    }
}

fn client_with_callbacks() -> ClientBuilder {
    Client::builder("test", "1")
        .on_form_elicitation(
            |form: FormRequest| async move { form.accept(json!({ "city": "Oslo" })) },
        )
        .on_url_elicitation(|_| async { ElicitationAction::Decline })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("m", "yes")) })
        .roots(Roots::new(["file:///home"]).unwrap())
}

fn server_requests() -> [(&'static str, Value); 4] {
    let field = json!({ "type": "string" });
    let form = json!({ "type": "object", "properties": { "city": field } });
    let sent = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let preferences = json!({ "hints": [{ "name": "m" }] });
    [
        (
            "elicitation/create",
            json!({ "message": "?", "requestedSchema": form, "_meta": {} }),
        ),
        (
            "elicitation/create",
            json!({ "mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": "1", "_meta": {} }),
        ),
        (
            "sampling/createMessage",
            json!({ "messages": [sent], "maxTokens": 1, "modelPreferences": preferences, "_meta": {} }),
        ),
        ("roots/list", json!({ "_meta": {} })),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_array_instead_of_an_object_in_a_server_request_is_rejected() {
    let server = MockServer::legacy("2025-11-25");
    let _client = server.connect_with(client_with_callbacks()).await;
    for (method, params) in server_requests() {
        let response = server.call_client(method, params.clone()).await;
        assert!(response["result"].is_object(), "{method}: {response}");
        for (path, wrong) in with_arrays(&params) {
            let response = server.call_client(method, wrong).await;

            assert_eq!(
                response["error"]["code"], -32602,
                "{method} {path}: {response}"
            );
            let message = response["error"]["message"].as_str().unwrap();
            assert_json_terms(message);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_array_instead_of_an_object_in_an_input_request_ends_the_call() {
    let server = MockServer::modern();
    let client = server.connect_with(client_with_callbacks()).await;
    for (method, params) in server_requests() {
        let request = json!({ "method": method, "params": params });
        let result = json!({ "resultType": "input_required", "inputRequests": { "k": request } });
        for (path, wrong) in with_arrays(&result) {
            server.on("tools/call", move |_| MockReply::Exactly(wrong.clone()));

            let outcome = client.call_tool("plan", json!({})).await;

            assert!(outcome.is_err(), "{method} {path}");
            assert_json_terms(&format!("{:?}", outcome.unwrap_err()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_names_the_location_and_the_expected_and_found_types() {
    let server = MockServer::modern();
    let client = server.connect().await;
    for (result, expected) in [
        (
            json!({ "content": [["text", "t"]], "resultType": "complete" }),
            "`content[0]`: invalid type: array, expected object",
        ),
        (
            json!({ "content": [{ "type": "text" }], "resultType": "complete" }),
            "`content[0]`: missing field `text`",
        ),
        (
            json!({ "content": {}, "resultType": "complete" }),
            "`content`: invalid type: object, expected array",
        ),
        (json!([[]]), "invalid type: array, expected object"),
    ] {
        server.on("tools/call", move |_| MockReply::Exactly(result.clone()));

        let error = client.call_tool("plan", json!({})).await.unwrap_err();

        let CallError::InvalidResponse { reason, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(reason, expected);
    }
}

/// A list: its method, the kind of its items, their member, a valid item, and malformed ones with the name that is
/// reported.
type ListCase = (
    &'static str,
    ListItemKind,
    &'static str,
    Value,
    Vec<(Value, &'static str)>,
);

fn lists() -> [ListCase; 4] {
    let schema = json!({ "type": "object" });
    [
        (
            "tools/list",
            ListItemKind::Tool,
            "tools",
            json!({ "name": "good", "inputSchema": schema }),
            vec![
                (json!({ "name": "bad", "inputSchema": [] }), "bad"),
                (json!({ "name": "bad" }), "bad"),
                (json!({ "inputSchema": schema }), "tools[1]"),
                (json!(["bad", {}]), "tools[1]"),
                (json!(null), "tools[1]"),
            ],
        ),
        (
            "resources/list",
            ListItemKind::Resource,
            "resources",
            json!({ "uri": "a:good", "name": "good" }),
            vec![(json!({ "uri": "a:bad" }), "a:bad")],
        ),
        (
            "resources/templates/list",
            ListItemKind::ResourceTemplate,
            "resourceTemplates",
            json!({ "uriTemplate": "a:{good}", "name": "good" }),
            vec![(json!({ "uriTemplate": "a:{bad}", "name": 1 }), "a:{bad}")],
        ),
        (
            "prompts/list",
            ListItemKind::Prompt,
            "prompts",
            json!({ "name": "good" }),
            vec![(json!({ "name": "bad", "arguments": {} }), "bad")],
        ),
    ]
}

/// Returns the names of the listed items.
async fn listed_names(client: &Client, method: &str) -> Vec<String> {
    match method {
        "tools/list" => {
            let page = client.list_tools(None).await.unwrap();
            page.tools.into_iter().map(|tool| tool.name).collect()
        }
        "resources/list" => {
            let page = client.list_resources(None).await.unwrap();
            page.resources.into_iter().map(|item| item.name).collect()
        }
        "resources/templates/list" => {
            let page = client.list_resource_templates(None).await.unwrap();
            let items = page.resource_templates.into_iter();
            items.map(|item| item.name).collect()
        }
        _ => {
            let page = client.list_prompts(None).await.unwrap();
            page.prompts.into_iter().map(|item| item.name).collect()
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_item_is_reported_and_does_not_hide_the_others() {
    for revision in EVERY {
        let (sender, mut anomalies) = unbounded_channel();
        let server = MockServer::for_revision(revision);
        let builder = Client::builder("test", "1").on_anomaly(move |anomaly| {
            let _ = sender.send(anomaly);
        });
        let client = server.connect_with(builder).await;
        for (method, expected_kind, member, good, malformed) in lists() {
            for (bad, expected_name) in malformed {
                let mut result = with_modern_members(revision, json!({}));
                result["ttlMs"] = json!(60_000);
                result[member] = json!([good, bad, good]);
                server.on(method, move |_| MockReply::Exactly(result.clone()));

                // The second time, too, because an incomplete page is not cached.
                for _ in 0..2 {
                    let names = listed_names(&client, method).await;

                    assert_eq!(names, ["good", "good"], "{revision} {method} {bad}");
                    let Some(Anomaly::InvalidListItem { kind, name, error }) =
                        anomalies.recv().await
                    else {
                        panic!("{revision} {method} {bad}");
                    };
                    assert_eq!((kind, name.as_str()), (expected_kind, expected_name));
                    assert_json_terms(&error);
                }
            }
        }
        assert!(anomalies.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_malformed_elsewhere_is_an_error() {
    let server = MockServer::modern();
    let client = server.connect().await;
    let result = json!({
        "tools": [{ "name": "bad" }], "nextCursor": 1,
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    });
    server.on("tools/list", move |_| MockReply::Exactly(result.clone()));

    let error = client.list_tools(None).await.unwrap_err();

    assert!(
        matches!(error, CallError::InvalidResponse { .. }),
        "{error}"
    );
}
