//! Results that require input.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::Barrier;
use turnbuckle_client::{CallError, Client, ClientBuilder, FormRequest, Roots};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{MockReply, MockServer};

/// A request state that parsing and serializing would change.
const STATE: &str = "{\"a\": 1.0, \"é\": \"\\u0000 / \u{10ffff}\"}  ";

fn form(name: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form", "message": name,
            "requestedSchema": { "type": "object", "properties": { "it": { "type": "string" } } },
        },
    })
}

fn input_required(server_requests: Value, state: Value) -> Value {
    let mut result = json!({ "resultType": "input_required" });
    for (name, value) in [("inputRequests", server_requests), ("requestState", state)] {
        if !value.is_null() {
            result[name] = value;
        }
    }
    result
}

fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}

/// A client that fills in each form with the message of the form.
fn form_client() -> ClientBuilder {
    let roots = Roots::new(["file:///a"]).unwrap();
    Client::builder("test", "1")
        .roots(roots)
        .on_form_elicitation(|form: FormRequest| async move {
            form.accept(json!({ "it": form.message() }))
        })
}

#[tokio::test(start_paused = true)]
async fn input_requests_are_resolved_and_the_call_is_sent_again() {
    req!(
        "mrtr.client.construct",
        "mrtr.client.new-id",
        "mrtr.client.same-params",
        "mrtr.client.echo-state",
        "mrtr.client.state-opaque",
        "mrtr.client.no-state",
        "mrtr.input-response.shape"
    );
    let server = MockServer::modern();
    let roots = json!({ "method": "roots/list" });
    server.respond_in_order(
        "tools/call",
        [
            input_required(
                json!({ "one": form("1"), "two": form("2"), "where": roots }),
                json!(STATE),
            ),
            input_required(json!({ "three": form("3") }), Value::Null),
            done(),
        ],
    );
    let client = server.connect_with(form_client()).await;

    let output = client
        .call_tool("ask", json!({ "deep": [1, { "x": null }] }))
        .await
        .unwrap();

    assert_eq!(output.content[0].as_text(), Some("done"));
    let accepted = |it: &str| json!({ "action": "accept", "content": { "it": it } });
    let calls = [
        server.next("tools/call").await,
        server.next("tools/call").await,
        server.next("tools/call").await,
    ];
    for call in &calls {
        assert_eq!(call["params"]["name"], "ask");
        assert_eq!(
            call["params"]["arguments"],
            json!({ "deep": [1, { "x": null }] })
        );
    }
    assert_eq!(calls[0]["params"].get("inputResponses"), None);
    assert_eq!(calls[0]["params"].get("requestState"), None);
    assert_eq!(
        calls[1]["params"]["inputResponses"],
        json!({ "one": accepted("1"), "two": accepted("2"), "where": { "roots": [{ "uri": "file:///a" }] } })
    );
    assert_eq!(calls[1]["params"]["requestState"], STATE);
    assert_eq!(
        calls[2]["params"]["inputResponses"],
        json!({ "three": accepted("3") })
    );
    assert_eq!(calls[2]["params"].get("requestState"), None);
    let mut ids: Vec<_> = calls
        .iter()
        .map(|call| call["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_may_require_input() {
    let server = MockServer::modern();
    server.respond_in_order(
        "prompts/get",
        [
            input_required(json!({ "q": form("1") }), json!("s")),
            json!({ "messages": [] }),
        ],
    );
    server.respond_in_order(
        "resources/read",
        [
            input_required(json!({ "q": form("1") }), json!("s")),
            json!({ "contents": [] }),
        ],
    );
    let client = server.connect_with(form_client()).await;

    client.get_prompt("p", [("a", "b")]).await.unwrap();
    client.read_resource("file:///x").await.unwrap();

    for method in ["prompts/get", "resources/read"] {
        let first = server.next(method).await;
        let repeated = server.next(method).await;
        assert_eq!(repeated["params"]["requestState"], "s");
        assert_eq!(first["params"]["name"], repeated["params"]["name"]);
        assert_eq!(first["params"]["uri"], repeated["params"]["uri"]);
        assert_eq!(
            first["params"]["arguments"],
            repeated["params"]["arguments"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_state_without_input_requests_is_sent_back() {
    req!("mrtr.client.immediate");
    let server = MockServer::modern();
    server.respond_in_order(
        "tools/call",
        [input_required(Value::Null, json!(STATE)), done()],
    );
    let client = server.connect().await;

    client.call_tool("ask", json!({})).await.unwrap();

    server.next("tools/call").await;
    let repeated = server.next("tools/call").await;
    assert_eq!(repeated["params"]["requestState"], STATE);
    assert_eq!(repeated["params"].get("inputResponses"), None);
}

#[tokio::test(start_paused = true)]
async fn input_responses_and_state_are_sent_only_with_their_call() {
    req!("mrtr.client.scope");
    let server = MockServer::modern();
    server.withhold("tools/call");
    let client = server.connect_with(form_client()).await;
    let asking = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    let first = server.next("tools/call").await;
    let other = tokio::spawn(client.call_tool("other", json!({})).into_future());
    let other_call = server.next("tools/call").await;

    server
        .reply(
            &first,
            input_required(json!({ "q": form("1") }), json!("s")),
        )
        .await;
    let repeated = server.next("tools/call").await;
    let third = tokio::spawn(client.call_tool("third", json!({})).into_future());
    let after = server.next("tools/call").await;

    assert_eq!(repeated["params"]["requestState"], "s");
    for call in [&other_call, &after] {
        assert_eq!(call["params"].get("requestState"), None);
        assert_eq!(call["params"].get("inputResponses"), None);
    }
    for request in [&repeated, &other_call, &after] {
        server.reply(request, done()).await;
    }
    for call in [asking, other, third] {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_input_requests_of_one_result_are_resolved_concurrently() {
    let server = MockServer::modern();
    let server_requests = json!({ "a": form("1"), "b": form("2"), "c": form("3") });
    server.respond_in_order(
        "tools/call",
        [input_required(server_requests, Value::Null), done()],
    );
    let together = Arc::new(Barrier::new(3));
    let builder = Client::builder("test", "1").on_form_elicitation(move |form: FormRequest| {
        let together = together.clone();
        async move {
            together.wait().await;
            form.decline()
        }
    });
    let client = server.connect_with(builder).await;

    client.call_tool("ask", json!({})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn round_trips_are_limited() {
    let server = MockServer::modern();
    server.on("tools/call", |_| {
        input_required(json!({ "q": form("again") }), json!("s"))
    });
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let builder = Client::builder("test", "1").on_form_elicitation(move |form: FormRequest| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { form.decline() }
    });
    let client = server.connect_with(builder).await;

    let error = client.call_tool("ask", json!({})).await.unwrap_err();

    assert!(
        matches!(error, CallError::TooManyRoundTrips { limit: 10, .. }),
        "{error}"
    );
    assert_eq!(
        (calls.load(Ordering::Relaxed), server.count("tools/call")),
        (10, 11)
    );
    let error = client
        .call_tool("ask", json!({}))
        .max_round_trips(1)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::TooManyRoundTrips { limit: 1, .. }),
        "{error}"
    );
    assert_eq!(
        (calls.load(Ordering::Relaxed), server.count("tools/call")),
        (11, 13)
    );
}

#[tokio::test(start_paused = true)]
async fn round_trips_can_be_disabled() {
    let server = MockServer::modern();
    server.respond(
        "tools/call",
        input_required(json!({ "q": form("1") }), json!("s")),
    );
    let client = server.connect_with(form_client().max_round_trips(0)).await;

    let error = client.call_tool("ask", json!({})).await.unwrap_err();

    let CallError::InputRequired { result, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(result.request_state.as_deref(), Some("s"));
    assert_eq!(result.input_requests["q"].method(), "elicitation/create");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_input_request_that_cannot_be_resolved_ends_the_call() {
    for (input_request, code) in [
        (
            json!({ "method": "dance/now", "params": { "steps": 3 } }),
            -32601,
        ),
        (
            json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } }),
            -32601,
        ),
        (
            json!({ "method": "elicitation/create", "params": { "message": 7 } }),
            -32602,
        ),
    ] {
        let server = MockServer::modern();
        server.respond(
            "tools/call",
            input_required(
                json!({ "q": input_request, "fine": form("1") }),
                Value::Null,
            ),
        );
        let client = server.connect_with(form_client()).await;

        let error = client.call_tool("ask", json!({})).await.unwrap_err();

        let CallError::InputFailed {
            input_method,
            source,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (&**input_method, source.code),
            (input_request["method"].as_str().unwrap(), code)
        );
        assert_eq!(server.count("tools/call"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_input_requests_are_an_invalid_response() {
    let many: serde_json::Map<_, _> = (0..65).map(|at| (at.to_string(), form("1"))).collect();
    for result in [
        json!({ "resultType": "input_required" }),
        input_required(json!([form("1")]), Value::Null),
        input_required(json!({ "q": { "params": {} } }), Value::Null),
        input_required(Value::Null, json!(7)),
        input_required(many.into(), Value::Null),
    ] {
        let server = MockServer::modern();
        server.on("tools/call", move |_| MockReply::Exactly(result.clone()));
        let client = server.connect_with(form_client()).await;

        let error = client.call_tool("ask", json!({})).await.unwrap_err();

        assert!(
            matches!(error, CallError::InvalidResponse { .. }),
            "{error}"
        );
        assert_eq!(server.count("tools/call"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn other_methods_must_not_require_input() {
    let server = MockServer::modern();
    server.respond(
        "tools/list",
        input_required(json!({ "q": form("1") }), json!("s")),
    );
    let client = server.connect_with(form_client()).await;

    let error = client.list_tools(None).await.unwrap_err();

    assert!(
        matches!(error, CallError::InvalidResponse { .. }),
        "{error}"
    );
    assert_eq!(server.count("tools/list"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_of_the_modern_era_gets_no_response() {
    let server = MockServer::modern();
    let _client = server.connect_with(form_client()).await;

    server
        .request("elicitation/create", form("1")["params"].clone())
        .await;

    server.expect_no_message().await;
}
