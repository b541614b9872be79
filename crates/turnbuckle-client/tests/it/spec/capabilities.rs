//! Declared client capabilities, and the requests that they allow.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientBuilder, Roots};
use turnbuckle_protocol::types::CreateMessageResult;
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{LEGACY, MockServer};

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "message": "?", "requestedSchema": schema })
}

fn sample() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    json!({ "messages": [message], "maxTokens": 1 })
}

#[tokio::test(start_paused = true)]
async fn undeclared_client_capabilities_are_rejected() {
    req!(
        "lifecycle.operation.capabilities-must",
        "lifecycle.capabilities.advertise"
    );
    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let roots = Roots::new(["file:///home/ada"]).unwrap();

        let _client = server.connect_with(client().roots(roots)).await;

        let declared = server.next("initialize").await["params"]["capabilities"].take();
        assert!(declared["roots"].is_object(), "{declared}");
        assert!(declared.get("sampling").is_none(), "{declared}");
        assert!(declared.get("elicitation").is_none(), "{declared}");
        let listed = server.call_client("roots/list", json!({})).await;
        assert_eq!(listed["result"]["roots"][0]["uri"], "file:///home/ada");
        for (method, params) in [
            (
                "sampling/createMessage",
                json!({ "messages": [], "maxTokens": 1 }),
            ),
            (
                "elicitation/create",
                json!({ "message": "?", "requestedSchema": {} }),
            ),
        ] {
            let rejected = server.call_client(method, params).await;
            assert_eq!(rejected["error"]["code"], -32601, "{revision}: {rejected}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn methods_outside_the_revision_are_rejected() {
    req!(
        "lifecycle.operation.version-must",
        "lifecycle.operation.capabilities-must"
    );
    for (revision, has_forms) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
        ("2025-11-25", true),
    ] {
        let server = MockServer::legacy(revision);
        let client = client().on_form_elicitation(|form| async move { form.decline() });
        let _client = server.connect_with(client).await;

        let response = server.call_client("elicitation/create", form()).await;

        if has_forms {
            assert_eq!(
                response["result"]["action"], "decline",
                "{revision}: {response}"
            );
        } else {
            assert_eq!(response["error"]["code"], -32601, "{revision}: {response}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_params_are_rejected() {
    req!("base.error.invalid-params", "base.error.id-echo");

    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let calls = Arc::new(Mutex::new(0));
        let count = {
            let calls = calls.clone();
            move || *calls.lock().unwrap() += 1
        };
        let counted = count.clone();
        let client = client()
            .on_form_elicitation(move |form| {
                count();
                async move { form.decline() }
            })
            .on_sampling(move |_| {
                counted();
                async { Ok(CreateMessageResult::new("m", "!")) }
            });
        let _client = server.connect_with(client).await;

        for (method, params) in [
            ("elicitation/create", json!({})),
            (
                "elicitation/create",
                json!({ "message": 7, "requestedSchema": {} }),
            ),
            (
                "elicitation/create",
                json!({ "message": "?", "requestedSchema": "?" }),
            ),
            ("sampling/createMessage", json!({ "messages": "?" })),
            (
                "sampling/createMessage",
                json!({ "messages": [{ "role": "unknown" }], "maxTokens": 1 }),
            ),
        ] {
            if method == "elicitation/create" && revision < "2025-06-18" {
                continue;
            }
            let rejected = server.call_client(method, params.clone()).await;

            assert_eq!(
                rejected["error"]["code"], -32602,
                "{method} {params}: {rejected}"
            );
        }
        assert_eq!(*calls.lock().unwrap(), 0, "no callback is called");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_callback_is_an_internal_error() {
    req!("base.error.internal", "base.error.id-echo");

    for revision in LEGACY {
        let server = MockServer::legacy(revision);
        let client = client()
            .on_sampling(|_| async { panic!("the model is on fire") })
            .on_form_elicitation(
                |_| -> std::future::Ready<turnbuckle_protocol::types::ElicitResult> {
                    panic!("so is the form")
                },
            );
        let client = server.connect_with(client).await;
        server.respond("tools/list", json!({ "tools": [] }));

        let mut requests = vec![("sampling/createMessage", sample())];
        requests.extend((revision >= "2025-06-18").then(|| ("elicitation/create", form())));
        for (method, params) in requests {
            let failed = server.call_client(method, params).await;

            assert_eq!(failed["error"]["code"], -32603, "{method}: {failed}");
            assert!(!failed.to_string().contains("fire"), "{failed}");
        }
        client.tools().all().await.unwrap();
    }
}

/// Server requests never become tasks: the capability is not declared.
#[tokio::test(start_paused = true)]
async fn a_requested_task_is_ignored() {
    req!(
        "tasks.capability",
        "tasks.capability.ignore-undeclared",
        "tasks.capability.list-method"
    );
    let server = MockServer::legacy("2025-11-25");
    let client = client()
        .on_form_elicitation(|form| async move { form.decline() })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("m", "!")) });
    let _client = server.connect_with(client).await;
    let declared = server.next("initialize").await["params"]["capabilities"].take();
    assert_eq!(declared.get("tasks"), None, "{declared}");

    for (method, mut params, member) in [
        ("elicitation/create", form(), "action"),
        ("sampling/createMessage", sample(), "model"),
    ] {
        params["task"] = json!({ "ttl": 60_000 });
        let response = server.call_client(method, params).await;

        assert!(
            response["result"][member].is_string(),
            "an ordinary result: {response}"
        );
        assert_eq!(response["result"].get("task"), None, "{response}");
    }
    for method in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
        let rejected = server.call_client(method, json!({ "taskId": "t" })).await;
        assert_eq!(rejected["error"]["code"], -32601, "{method}: {rejected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_result_of_another_method_is_an_error() {
    req!("versioning.extension.fallback");
    let server = MockServer::modern();
    server.respond("tools/list", json!({ "resultType": "task", "taskId": "t" }));
    server.respond("prompts/list", json!({ "resultType": "org.example/else" }));
    let client = server.connect().await;

    let errors = [
        client.tools().all().await.map(drop).unwrap_err(),
        client.prompts().all().await.map(drop).unwrap_err(),
    ];

    for error in errors {
        assert!(
            matches!(error, CallError::InvalidResponse { .. }),
            "{error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn extensions_are_declared_by_their_full_names_without_settings() {
    req!(
        "versioning.extension.id-format",
        "versioning.extension.empty-object"
    );
    let server = MockServer::modern();

    let _client = server.connect().await;

    let probe = server.next("server/discover").await;
    let meta = &probe["params"]["_meta"];
    let declared = &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    let declared = declared.as_object().expect("tasks at least");
    assert!(
        declared.contains_key("io.modelcontextprotocol/tasks"),
        "{probe}"
    );
    for (name, settings) in declared {
        let (prefix, name) = name.split_once('/').expect("a prefix");
        assert!(prefix.contains('.') && !name.is_empty(), "{probe}");
        assert_eq!(*settings, json!({}), "{probe}");
    }
}
