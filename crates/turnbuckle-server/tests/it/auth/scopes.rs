//! Scopes that tools, prompts and resources require.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Prompt, Resource, ResourceTemplate, Server, TaskSupport, Tool, Variables,
    http::{Http, SessionMode},
    middleware::Timeout,
    ndjson::NdjsonServer,
};
use turnbuckle_spec_coverage::req;

use crate::{
    auth::test_authenticator::{caller, challenge, with_authenticator},
    http::test_client::{HttpTestClient, HttpTestResponse, modern, modern_headers},
    http_sse::test_client::HttpSseClient,
    ndjson::test_client::Peer,
};

/// A server on which everything but `read` requires a scope.
fn server(ran: &Arc<AtomicUsize>) -> Server {
    let tool = |name: &str| {
        let ran = ran.clone();
        Tool::new(name, move || {
            ran.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok("done".to_owned()))
        })
    };
    let prompt = Prompt::new("review", async |_: ReviewArguments| Ok("Review it."))
        .complete("tone", ["friendly"]);
    let template = ResourceTemplate::new(
        "staff://{name}",
        "file",
        async |_: Variables, _: Context| Ok("a file"),
    )
    .complete("name", ["ada"]);
    Server::new("test", "1.0.0")
        .tool(tool("read"))
        .tool(tool("write").scopes(["files:write", "files:read"]))
        .tool(
            tool("later")
                .task(TaskSupport::Optional)
                .scopes(["files:write"]),
        )
        .prompt(prompt.scopes(["prompts"]))
        .resource(Resource::text("staff://all", "all", "everyone"))
        .resource(
            Resource::text("staff://all/salaries", "salaries", "Ada: 100").scopes(["payroll"]),
        )
        .resource(Resource::text("staff://plans", "plans", "Grow.").scopes(["plans"]))
        .template(template.scopes(["staff"]))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ReviewArguments {
    #[expect(dead_code, reason = "only completed")]
    tone: Option<String>,
}

/// Requests, and the scopes that they require.
fn scoped_requests() -> Vec<(&'static str, Value, &'static str)> {
    let prompt = json!({ "type": "ref/prompt", "name": "review" });
    let template = json!({ "type": "ref/resource", "uri": "staff://{name}" });
    let tone = json!({ "name": "tone", "value": "" });
    let name = json!({ "name": "name", "value": "" });
    vec![
        (
            "tools/call",
            json!({ "name": "write", "arguments": {} }),
            "files:read files:write",
        ),
        (
            "tools/call",
            json!({ "name": "later", "arguments": {} }),
            "files:write",
        ),
        ("prompts/get", json!({ "name": "review" }), "prompts"),
        ("resources/read", json!({ "uri": "staff://plans" }), "plans"),
        ("resources/read", json!({ "uri": "staff://bo" }), "staff"),
        (
            "completion/complete",
            json!({ "ref": prompt, "argument": tone }),
            "prompts",
        ),
        (
            "completion/complete",
            json!({ "ref": template, "argument": name }),
            "staff",
        ),
    ]
}

fn assert_lacking(http_response: &HttpTestResponse, scopes: &str) {
    assert_eq!(http_response.status(), 403, "{scopes}");
    assert!(!http_response.is_stream());
    let more = format!(r#"error="insufficient_scope", scope="{scopes}", "#);
    assert_eq!(
        http_response.header("www-authenticate"),
        Some(&*challenge(&more))
    );
}

fn legacy(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

#[tokio::test]
async fn missing_scopes_are_named_in_one_challenge_in_both_eras() {
    req!(
        "auth.status-codes",
        "auth.scope.challenge",
        "auth.scope.403",
        "auth.scope.403-include",
        "auth.scope.403-single"
    );
    let ran = Arc::default();
    let ada = caller(server(&ran), "ada:files:read");
    let session = ada.clone().in_session("2025-11-25").await;
    let forgotten = with_authenticator(server(&ran)).sessions(SessionMode::Off);
    let mut forgotten = HttpTestClient::with_options(forgotten).named("ada");
    forgotten.version = Some("2025-06-18".to_owned());

    for (method, params, scopes) in scoped_requests() {
        let http_response = ada.modern(method, params.clone()).await;
        assert_lacking(&http_response, scopes);
        let error = http_response.json().await;
        assert_eq!(error["id"], 7);
        assert_eq!(error["error"]["code"], -32600);
        let named = error["error"]["data"]["requiredScopes"].as_array().unwrap();
        assert_eq!(named.len(), scopes.split(' ').count());

        assert_lacking(&session.post(&legacy(method, &params)).await, scopes);
        assert_lacking(&forgotten.post(&legacy(method, &params)).await, scopes);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_caller_with_the_scopes_is_served() {
    let ran = Arc::default();
    let ada = caller(server(&ran), "ada");
    let session = ada.clone().in_session("2025-11-25").await;

    for (method, params, scopes) in scoped_requests() {
        // Additional scopes during a session: a step-up.
        let name = format!("ada:{}", scopes.replace(' ', "+"));
        let response = ada.named(&name).modern(method, params.clone()).await;
        assert!(response.json().await["result"].is_object(), "{method}");
        let response = session.named(&name).post(&legacy(method, &params)).await;
        assert!(response.json().await["result"].is_object(), "{method}");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn lists_include_items_with_missing_scopes() {
    let ada = caller(server(&Arc::default()), "ada");

    for (method, member, count) in [
        ("tools/list", "tools", 3),
        ("prompts/list", "prompts", 1),
        ("resources/list", "resources", 3),
        ("resources/templates/list", "resourceTemplates", 1),
    ] {
        let response = ada.modern(method, json!({})).await.json().await;
        assert_eq!(response["result"][member].as_array().unwrap().len(), count);
    }
}

#[tokio::test]
async fn results_that_require_scopes_are_private() {
    let hint = turnbuckle_server::CacheHint::public(std::time::Duration::from_secs(60));
    let plans = Resource::text("staff://plans", "plans", "Grow.")
        .cache(hint)
        .scopes(["plans"]);
    let ada = caller(Server::new("test", "1.0.0").resource(plans), "ada:plans");

    let read = ada
        .modern("resources/read", json!({ "uri": "staff://plans" }))
        .await;

    assert_eq!(read.json().await["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn subscribing_requires_the_scopes_of_reading() {
    let ran = Arc::default();
    let ada = caller(server(&ran), "ada");
    let session = ada.clone().in_session("2025-11-25").await;

    let subscribe = legacy("resources/subscribe", &json!({ "uri": "staff://plans" }));
    assert_lacking(&session.post(&subscribe).await, "plans");
    assert_eq!(
        session.named("ada:plans").post(&subscribe).await.status(),
        200
    );

    let filter = json!({ "resourceSubscriptions": ["staff://plans", "staff://all", "staff://bo"] });
    let listen = json!({ "notifications": filter });
    let http_response = ada.modern("subscriptions/listen", listen.clone()).await;
    assert_lacking(&http_response, "plans staff");
    let http_response = ada
        .named("ada:plans+staff")
        .modern("subscriptions/listen", listen)
        .await;
    assert!(http_response.is_stream());
}

#[tokio::test]
async fn folder_subscriptions_do_not_reveal_items_with_required_scopes() {
    let server = server(&Arc::default());
    let ada = caller(server.clone(), "ada");
    let filter = json!({ "notifications": { "resourceSubscriptions": ["staff://all"] } });
    let mut poor = ada
        .modern("subscriptions/listen", filter.clone())
        .await
        .stream();
    let rich = ada
        .named("ada:payroll")
        .modern("subscriptions/listen", filter)
        .await;
    let mut rich = rich.stream();
    poor.message().await.unwrap();
    rich.message().await.unwrap();

    server.resource_updated("staff://all/salaries");
    server.resource_updated("staff://all");

    assert_eq!(
        rich.message().await.unwrap()["params"]["uri"],
        "staff://all/salaries"
    );
    assert_eq!(
        poor.message().await.unwrap()["params"]["uri"],
        "staff://all"
    );
}

#[tokio::test]
async fn a_call_in_a_batch_fails_alone() {
    let ran = Arc::default();
    let session = caller(server(&ran), "ada").in_session("2025-03-26").await;
    let batch = json!([
        legacy("tools/call", &json!({ "name": "write" })),
        { "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "read" } },
    ]);

    let http_response = session.post(&batch).await;

    assert_eq!(http_response.status(), 200);
    let responses = http_response.json().await;
    assert_eq!(
        responses[0]["error"]["data"]["requiredScopes"],
        json!(["files:read", "files:write"])
    );
    assert_eq!(responses[1]["result"]["content"][0]["text"], "done");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_caller_without_scopes_cannot_create_a_task() {
    let ran = Arc::default();
    let ada = caller(server(&ran), "ada");
    let session = ada.clone().in_session("2025-11-25").await;

    let asked = json!({ "name": "later", "arguments": {}, "task": {} });
    assert_lacking(
        &session.post(&legacy("tools/call", &asked)).await,
        "files:write",
    );
    let tasks = session
        .post(&legacy("tasks/list", &json!({})))
        .await
        .json()
        .await;
    assert_eq!(tasks["result"]["tasks"], json!([]));
}

#[tokio::test]
async fn layers_see_the_rejection_and_keep_the_challenge() {
    let server = server(&Arc::default()).layer(Timeout::new(std::time::Duration::from_secs(1)));
    let ada = caller(server, "ada");

    let http_response = ada.modern_tool("write", json!({})).await;

    assert_lacking(&http_response, "files:read files:write");
}

#[tokio::test]
async fn on_http_sse_missing_scopes_are_reported_on_the_stream() {
    let ran = Arc::default();
    let http = with_authenticator(server(&ran)).http_sse(turnbuckle_server::http::HttpSse::new());
    let caller = HttpTestClient::with_options(http).named("ada");
    let mut peer = HttpSseClient::initialized(&caller, "2024-11-05").await;

    let response = peer
        .request(&legacy("tools/call", &json!({ "name": "write" })))
        .await;

    assert_eq!(response["error"]["code"], -32600);
    assert_eq!(
        response["error"]["data"]["requiredScopes"],
        json!(["files:read", "files:write"])
    );
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn without_an_authenticator_scopes_are_not_granted() {
    let ran = Arc::default();
    let caller = HttpTestClient::with_options(Http::new(server(&ran)));

    let http_response = caller.modern_tool("write", json!({})).await;

    assert_eq!(http_response.status(), 403);
    assert_eq!(http_response.header("www-authenticate"), None);
    let response = http_response.json().await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("the server does not authenticate callers"),
        "{message}"
    );
    assert_eq!(ran.load(Ordering::Relaxed), 0);

    // A custom layer may set the principal and its scopes.
    let mut known = caller.clone();
    let mut ada = Principal::new("here", "ada");
    known.principal = Some(ada.clone());
    assert_eq!(known.modern_tool("write", json!({})).await.status(), 403);
    ada.scopes
        .extend(["files:write".to_owned(), "files:read".to_owned()]);
    known.principal = Some(ada);
    assert_eq!(known.modern_tool("write", json!({})).await.status(), 200);
}

#[tokio::test]
async fn on_stdio_scopes_apply_only_to_a_named_principal() {
    req!("auth.stdio.environment");
    let ran = Arc::default();
    let call = json!({ "name": "write", "arguments": {} });

    let mut user = Peer::new(server(&ran));
    assert!(user.call_modern("tools/call", call.clone()).await["result"].is_object());
    let mut named =
        Peer::with(NdjsonServer::new(server(&ran)).principal(Principal::new("here", "ada")));
    assert_eq!(
        named.call_modern("tools/call", call).await["error"]["code"],
        -32600
    );

    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
#[should_panic(expected = "is not a scope")]
fn two_scopes_in_one_string_are_rejected() {
    let _ = Tool::new("write", async || Ok(String::new())).scopes(["a b"]);
}

#[tokio::test]
async fn a_mounted_tool_keeps_its_required_scopes() {
    let inner = server(&Arc::default());
    let outer = Server::new("outer", "1.0.0").mount("desk", inner);
    let ada = caller(outer, "ada");
    let listed = ada.modern("tools/list", json!({})).await.json().await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let name = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    let name = name
        .into_iter()
        .find(|name| name.ends_with("write"))
        .unwrap();

    let call = modern("tools/call", json!({ "name": name, "arguments": {} }));
    let headers = modern_headers(ada.request(http::Method::POST), &call);
    let http_response = ada.send(headers, call.to_string()).await;

    assert_lacking(&http_response, "files:read files:write");
}
