//! What a client declares, and what it does for a server because of it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client, ClientBuilder, Roots};
use turnbuckle_protocol::types::CreateMessageResult;
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{FakeServer, LEGACY};

fn client() -> ClientBuilder {
    Client::builder("offers", "1")
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
async fn what_the_client_does_not_declare_it_does_not_do() {
    req!(
        "lifecycle.operation.capabilities-must",
        "lifecycle.capabilities.advertise"
    );
    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let roots = Roots::new(["file:///home/ada"]).unwrap();

        let _client = server.connect_as(client().roots(roots)).await;

        let declared = server.next("initialize").await["params"]["capabilities"].take();
        assert!(declared["roots"].is_object(), "{declared}");
        assert!(declared.get("sampling").is_none(), "{declared}");
        assert!(declared.get("elicitation").is_none(), "{declared}");
        let listed = server.ask("roots/list", json!({})).await;
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
            let refused = server.ask(method, params).await;
            assert_eq!(refused["error"]["code"], -32601, "{revision}: {refused}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_older_revisions_do_not_have_is_not_done_under_them() {
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
        let server = FakeServer::legacy(revision);
        let client = client().on_form_elicitation(|form| async move { form.decline() });
        let _client = server.connect_as(client).await;

        let answer = server.ask("elicitation/create", form()).await;

        if has_forms {
            assert_eq!(
                answer["result"]["action"], "decline",
                "{revision}: {answer}"
            );
        } else {
            assert_eq!(answer["error"]["code"], -32601, "{revision}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_that_do_not_fit_are_refused() {
    req!("base.error.invalid-params", "base.error.id-echo");

    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let asked = Arc::new(Mutex::new(0));
        let count = {
            let asked = asked.clone();
            move || *asked.lock().unwrap() += 1
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
        let _client = server.connect_as(client).await;

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
                json!({ "messages": [{ "role": "nobody" }], "maxTokens": 1 }),
            ),
        ] {
            if method == "elicitation/create" && revision < "2025-06-18" {
                continue;
            }
            let refused = server.ask(method, params.clone()).await;

            assert_eq!(
                refused["error"]["code"], -32602,
                "{method} {params}: {refused}"
            );
        }
        assert_eq!(*asked.lock().unwrap(), 0, "nobody was asked");
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_breaks_is_an_internal_error_and_no_more() {
    req!("base.error.internal", "base.error.id-echo");

    for revision in LEGACY {
        let server = FakeServer::legacy(revision);
        let client = client()
            .on_sampling(|_| async { panic!("the model is on fire") })
            .on_form_elicitation(
                |_| -> std::future::Ready<turnbuckle_protocol::types::ElicitResult> {
                    panic!("so is the form")
                },
            );
        let client = server.connect_as(client).await;
        server.answer("tools/list", json!({ "tools": [] }));

        let mut asked = vec![("sampling/createMessage", sample())];
        asked.extend((revision >= "2025-06-18").then(|| ("elicitation/create", form())));
        for (method, params) in asked {
            let failed = server.ask(method, params).await;

            assert_eq!(failed["error"]["code"], -32603, "{method}: {failed}");
            assert!(!failed.to_string().contains("fire"), "{failed}");
        }
        client.tools().all().await.unwrap();
    }
}

/// Requests of the server's never become tasks: the capability for it is not declared.
#[tokio::test(start_paused = true)]
async fn a_wish_for_a_task_is_passed_over() {
    req!(
        "tasks.capability",
        "tasks.capability.ignore-undeclared",
        "tasks.capability.list-method"
    );
    let server = FakeServer::legacy("2025-11-25");
    let client = client()
        .on_form_elicitation(|form| async move { form.decline() })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("m", "!")) });
    let _client = server.connect_as(client).await;
    let declared = server.next("initialize").await["params"]["capabilities"].take();
    assert_eq!(declared.get("tasks"), None, "{declared}");

    for (method, mut params, member) in [
        ("elicitation/create", form(), "action"),
        ("sampling/createMessage", sample(), "model"),
    ] {
        params["task"] = json!({ "ttl": 60_000 });
        let answer = server.ask(method, params).await;

        assert!(
            answer["result"][member].is_string(),
            "an ordinary result: {answer}"
        );
        assert_eq!(answer["result"].get("task"), None, "{answer}");
    }
    for method in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = server.ask(method, json!({ "taskId": "t" })).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_a_task_where_none_can_be_is_refused() {
    req!("versioning.extension.fallback");
    let server = FakeServer::modern();
    server.answer("tools/list", json!({ "resultType": "task", "taskId": "t" }));
    server.answer("prompts/list", json!({ "resultType": "org.example/else" }));
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
    let server = FakeServer::modern();

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
