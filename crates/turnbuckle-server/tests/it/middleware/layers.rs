//! Layers around requests: order, rejections and outcomes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::RpcError;
use turnbuckle_server::{
    Context, Elicitation, Prompt, RequestError, Resource, Server, Tool, ToolError,
    middleware::{Next, Operation, OperationOutcome, OperationResponse, Timing},
};

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::{Peer, modern, modern_with},
};

/// Notes of layers, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Records the method and outcome of each operation.
    pub(crate) fn endings(&self) -> Timing {
        let notes = self.clone();
        Timing::new(move |operation, ending, _| {
            notes.note(format!("{} {ending}", operation.method()));
        })
    }

    /// Waits for the next note.
    pub(crate) async fn next(&self) -> String {
        for _ in 0..1000 {
            if let Some(note) = self.take().pop() {
                return note;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("nothing was noted");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

/// A server with a tool for each outcome.
pub(crate) fn server() -> Server {
    Server::new("layers", "1")
        .tool(Tool::new("ok", async || Ok("fine".to_owned())))
        .tool(Tool::new("wrong", async || {
            Err::<String, _>(ToolError::new("no"))
        }))
        .tool(Tool::new("count", async |args: Count| {
            Ok(args.count.to_string())
        }))
        .tool(Tool::new("panic", async || {
            if true {
                panic!("on purpose");
            }
            Ok(String::new())
        }))
        .tool(Tool::new("sleep", async || {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok("awake".to_owned())
        }))
        .tool(Tool::new("ask", async |cx: Context| {
            let name = cx
                .elicit(Elicitation::form::<Name>("Who?").key("name"))
                .await?
                .accepted();
            Ok(name.map_or("missing".to_owned(), |it| it.name))
        }))
        .prompt(Prompt::new("greet", async || Ok("Hello".to_owned())))
        .resource(Resource::text("test://a", "a", "content"))
}

pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

/// A layer that records when it is entered and left.
fn passing(notes: &Notes, name: &'static str) -> impl turnbuckle_server::middleware::Middleware {
    let notes = notes.clone();
    move |_: Operation, next: Next| {
        let notes = notes.clone();
        async move {
            notes.note(format!("{name} in"));
            let response = next.run().await;
            notes.note(format!("{name} out"));
            response
        }
    }
}

#[tokio::test]
async fn layers_run_in_the_order_in_which_they_were_added() {
    let notes = Notes::default();
    let inside = notes.clone();
    let server = Server::new("order", "1")
        .layer(passing(&notes, "first"))
        .layer(passing(&notes, "second"))
        .tool(Tool::new("ok", move || {
            let inside = inside.clone();
            async move {
                inside.note("handler");
                Ok(String::new())
            }
        }));
    let mut peer = Peer::new(server);

    peer.call_modern("tools/call", tool("ok")).await;

    let order = [
        "first in",
        "second in",
        "handler",
        "second out",
        "first out",
    ];
    assert_eq!(notes.take(), order);
}

#[tokio::test]
async fn a_rejected_request_does_not_start_its_handler() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let refuse = async |_: Operation, _: Next| -> OperationResponse {
        RpcError::new(4711, "not today").into()
    };
    // Not an async function: this runs before the future is polled.
    let eager = Tool::new("eager", move |_: Count| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(String::new()) }
    });
    let server = Server::new("refusing", "1").layer(refuse).tool(eager);
    let params = json!({ "name": "eager", "arguments": { "count": 1 } });
    let mut legacy = Peer::initialized(server.clone(), "2025-06-18", json!({})).await;
    let mut peer = Peer::new(server);

    let responses = [
        peer.call_modern("tools/call", params.clone()).await,
        legacy.call("tools/call", params).await,
        peer.call_modern("tools/list", json!({})).await,
        peer.call_modern("tools/call", tool("unknown")).await,
    ];

    for response in responses {
        assert_eq!(response["error"]["code"], 4711, "{response}");
    }
    assert_eq!(started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_operation_has_target_and_caller() {
    let seen = Notes::default();
    let notes = seen.clone();
    let look = move |operation: Operation, next: Next| {
        notes.note(format!(
            "{} {:?} {:?} {:?} {} {} {:?}",
            operation.method(),
            operation.target(),
            operation.registered_name(),
            operation.arguments(),
            operation.request_id(),
            operation.protocol_version(),
            operation.client().map(|client| client.name.clone()),
        ));
        next.run()
    };
    let mut peer = Peer::new(server().layer(look));

    peer.call_modern(
        "tools/call",
        json!({ "name": "count", "arguments": { "count": 3 } }),
    )
    .await;
    peer.call_modern("tools/call", json!({ "name": "unknown" }))
        .await;
    peer.call_modern("resources/read", json!({ "uri": "test://a" }))
        .await;
    peer.call_modern("tools/list", json!({})).await;

    assert_eq!(
        seen.take(),
        [
            r#"tools/call Some("count") Some("count") Some("{\"count\":3}") 101 2026-07-28 Some("peer")"#,
            r#"tools/call Some("unknown") None None 102 2026-07-28 Some("peer")"#,
            r#"resources/read Some("test://a") None None 103 2026-07-28 Some("peer")"#,
            r#"tools/list None None None 104 2026-07-28 Some("peer")"#,
        ]
    );
}

#[tokio::test]
async fn layers_see_http_headers_and_peer() {
    let seen = Notes::default();
    let notes = seen.clone();
    let look = move |operation: Operation, next: Next| {
        let headers = operation.get::<http::HeaderMap>().cloned();
        let host = headers.and_then(|headers| headers.get("host").cloned());
        let who = operation.principal().map(|who| who.subject.clone());
        notes.note(format!("{host:?} {who:?}"));
        next.run()
    };
    let mut caller = HttpTestClient::new(server().layer(look));
    caller.principal = Some(turnbuckle_protocol::Principal::new("issuer", "ada"));

    caller.modern_tool("ok", json!({})).await.json().await;

    assert_eq!(seen.take(), [r#"Some("localhost:8080") Some("ada")"#]);
}

#[tokio::test]
async fn every_handled_request_passes_the_layers() {
    let notes = Notes::default();
    let mut peer = Peer::new(server().layer(notes.endings()));
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", tool("ok")),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "greet" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "test://a" })),
        ("server/discover", json!({})),
    ] {
        let response = peer.call_modern(method, params).await;
        assert!(response["error"].is_null(), "{response}");
        assert_eq!(notes.take(), [format!("{method} completed")]);
    }
}

#[tokio::test]
async fn a_layer_sees_every_kind_of_failure() {
    let notes = Notes::default();
    for revision in [None, Some("2025-11-25")] {
        let server = server().layer(notes.endings());
        let mut peer = match revision {
            Some(revision) => Peer::initialized(server, revision, json!({})).await,
            None => Peer::new(server),
        };
        for (params, ending) in [
            (tool("ok"), "completed"),
            (tool("wrong"), "tool_error"),
            (tool("count"), "tool_error"),
            (tool("unknown"), "error -32602"),
            (tool("panic"), "error -32603"),
        ] {
            let params = match revision {
                Some(_) => params,
                None => modern(params),
            };
            peer.call("tools/call", params).await;
            assert_eq!(notes.take(), [format!("tools/call {ending}")]);
        }
    }
}

#[tokio::test]
async fn an_input_request_ends_the_round_trip_and_a_layer_sees_it() {
    let notes = Notes::default();
    let mut peer = Peer::new(
        server()
            .layer(notes.endings())
            .layer(passing(&notes, "inner")),
    );
    let can = || json!({ "elicitation": {} });

    let asked = peer
        .call("tools/call", modern_with(tool("ask"), can()))
        .await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(
        notes.take(),
        ["inner in", "inner out", "tools/call input_required"]
    );

    let mut retry = modern_with(tool("ask"), can());
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] =
        json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let response = peer.call("tools/call", retry).await;

    assert_eq!(response["result"]["content"][0]["text"], "Ada");
    assert_eq!(
        notes.take(),
        ["inner in", "inner out", "tools/call completed"]
    );
}

#[tokio::test]
async fn a_layer_that_spawns_the_handler_still_sees_the_input_request() {
    let notes = Notes::default();
    let elsewhere = async |_: Operation, next: Next| -> OperationResponse {
        tokio::spawn(next.run()).await.unwrap()
    };
    // The client request comes from a spawned task, so it does not wake the handler.
    let ask = Tool::new("ask", async |cx: Context| {
        let asking = cx.clone();
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            let _ = asking
                .elicit(Elicitation::form::<Name>("Who?").key("name"))
                .await;
        });
        std::future::pending::<()>().await;
        Ok(String::new())
    });
    let server = Server::new("elsewhere", "1")
        .layer(notes.endings())
        .layer(elsewhere)
        .tool(ask);
    let mut peer = Peer::new(server);

    let params = modern_with(tool("ask"), json!({ "elicitation": {} }));
    let asked = peer.call("tools/call", params).await;

    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(notes.take(), ["tools/call input_required"]);
}

#[tokio::test]
async fn a_client_request_in_a_session_is_part_of_the_call() {
    let notes = Notes::default();
    let server = server().layer(notes.endings());
    let mut peer = Peer::initialized(server, "2025-06-18", json!({ "elicitation": {} })).await;
    peer.request("tools/call", tool("ask")).await;
    let client_request = peer.next().await;
    assert_eq!(client_request["method"], "elicitation/create");
    assert!(notes.take().is_empty());

    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result }))
        .await;

    assert_eq!(peer.next().await["result"]["content"][0]["text"], "Ada");
    assert_eq!(notes.take(), ["tools/call completed"]);
}

#[tokio::test]
async fn a_layer_sees_that_a_call_was_cancelled() {
    let notes = Notes::default();
    for revision in [None, Some("2025-11-25")] {
        let server = server().layer(notes.endings());
        let mut peer = match revision {
            Some(revision) => Peer::initialized(server, revision, json!({})).await,
            None => Peer::new(server),
        };
        let params = match revision {
            Some(_) => tool("sleep"),
            None => modern(tool("sleep")),
        };
        let id = peer.request("tools/call", params).await;

        peer.cancel(id).await;

        assert_eq!(notes.next().await, "tools/call cancelled");
    }
}

#[tokio::test]
async fn a_layer_sees_that_the_client_disconnected() {
    let notes = Notes::default();
    let caller = HttpTestClient::new(server().layer(notes.endings()));
    let call =
        tokio::spawn(async move { caller.modern_tool("sleep", json!({})).await.json().await });
    tokio::task::yield_now().await;

    call.abort();

    assert_eq!(notes.next().await, "tools/call cancelled");
}

#[tokio::test]
async fn a_panic_in_a_layer_is_an_internal_error() {
    let notes = Notes::default();
    let broken = async |operation: Operation, next: Next| -> OperationResponse {
        assert!(operation.tool() != Some("ok"), "on purpose");
        next.run().await
    };
    let mut peer = Peer::new(server().layer(notes.endings()).layer(broken));

    let response = peer.call_modern("tools/call", tool("ok")).await;

    assert_eq!(response["error"]["code"], -32603);
    assert_eq!(notes.take(), ["tools/call error -32603"]);
    let response = peer.call_modern("tools/call", tool("wrong")).await;
    assert_eq!(response["result"]["isError"], true);
}

#[tokio::test]
async fn a_layer_may_respond_instead_of_the_handler() {
    let instead = async |operation: Operation, next: Next| -> OperationResponse {
        match operation.method() {
            "tools/call" => operation.tool_error("closed for today"),
            "resources/read" => operation.reject(RequestError::not_found()),
            _ => next.run().await,
        }
    };
    let notes = Notes::default();
    let server = server().layer(notes.endings()).layer(instead);
    let mut peer = Peer::new(server.clone());
    let mut legacy = Peer::initialized(server, "2024-11-05", json!({})).await;

    let closed = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(closed["result"]["isError"], true);
    assert_eq!(closed["result"]["content"][0]["text"], "closed for today");
    assert_eq!(closed["result"]["resultType"], "complete");
    let closed = legacy.call("tools/call", tool("ok")).await;
    assert_eq!(closed["result"]["isError"], true);
    assert!(closed["result"]["resultType"].is_null());
    let uri = json!({ "uri": "test://a" });
    let gone = legacy.call("resources/read", uri).await;
    assert_eq!(gone["error"]["code"], -32002);
    assert_eq!(gone["error"]["data"]["uri"], "test://a");
    assert_eq!(
        notes.take(),
        [
            "tools/call tool_error",
            "tools/call tool_error",
            "resources/read error -32002"
        ]
    );
}

#[test]
fn an_outcome_has_names_for_logs_and_telemetry() {
    for (ending, name, kind) in [
        (OperationOutcome::Completed, "completed", None),
        (OperationOutcome::InputRequired, "input_required", None),
        (
            OperationOutcome::ToolError,
            "tool_error",
            Some("tool_error"),
        ),
        (OperationOutcome::Cancelled, "cancelled", Some("cancelled")),
        (
            OperationOutcome::Error { code: -32602 },
            "error",
            Some("-32602"),
        ),
    ] {
        assert_eq!(ending.as_str(), name);
        assert_eq!(ending.error_type().as_deref(), kind);
    }
}

#[tokio::test]
async fn a_layer_that_panics_at_the_end_of_a_session_affects_no_other_layer() {
    let broken = Timing::new(|_, ending, _| {
        assert!(ending != OperationOutcome::Cancelled, "on purpose");
    });
    let mut peer = Peer::new(server().layer(broken));
    let id = peer.request("tools/call", modern(tool("sleep"))).await;

    peer.cancel(id).await;

    let response = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(response["result"]["content"][0]["text"], "fine");
    let rest = peer.finish().await;
    assert!(rest.is_empty(), "{rest:?}");
}
