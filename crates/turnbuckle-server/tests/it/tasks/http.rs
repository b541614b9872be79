//! Tasks over HTTP.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnbuckle_server::{
    Context, Server, TaskSupport, Tool,
    http::{Http, SessionMode},
};
use turnbuckle_spec_coverage::req;

use crate::{
    http::test_client::{HttpTestClient, HttpTestResponse, initialize, modern, modern_headers},
    tasks::test_server::{everything, id, server},
};

async fn session() -> HttpTestClient {
    HttpTestClient::new(server()).in_session("2025-11-25").await
}

async fn post(caller: &HttpTestClient, id: i64, method: &str, params: Value) -> HttpTestResponse {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    caller.post(&message).await
}

async fn start(caller: &HttpTestClient, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    let response = post(caller, 1, "tools/call", params).await.json().await;
    response["result"]["task"].clone()
}

async fn request_with_extension(
    caller: &HttpTestClient,
    method: &str,
    params: Value,
) -> HttpTestResponse {
    let mut message = modern(method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = everything();
    let headers = modern_headers(caller.request(Method::POST), &message);
    caller.send(headers, message.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_task_is_one_json_body() {
    req!("tasks.http.get-no-sse", "tasks.http.comply");
    let caller = session().await;
    let task = start(&caller, "work", json!({ "seconds": 30 })).await;

    let http_response = post(&caller, 2, "tasks/get", id(&task)).await;

    assert!(!http_response.is_stream());
    assert_eq!(http_response.json().await["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn client_requests_of_a_task_arrive_on_the_stream_that_awaits_its_result() {
    req!("tasks.input.related", "tasks.result.block");
    let caller = session().await;
    let task = start(&caller, "ask", json!({})).await;
    // The session is idle in between, without any state in this process.
    sleep(Duration::from_secs(120)).await;

    let mut waiting = post(&caller, 2, "tasks/result", id(&task)).await.stream();
    waiting.prime().await;
    let client_request = waiting.message().await.unwrap();
    assert_eq!(client_request["method"], "elicitation/create");
    let related = &client_request["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, id(&task));
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    let response = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result });
    assert_eq!(caller.post(&response).await.status(), 202);

    let rest = waiting.messages().await;
    let text = &rest.last().unwrap()["result"]["content"][0]["text"];
    assert_eq!(text, "hello Ada");
}

#[tokio::test(start_paused = true)]
async fn status_changes_arrive_on_the_get_stream() {
    req!("tasks.notify.status");
    let caller = session().await;
    let mut general = caller.get(None).await.stream();
    general.prime().await;

    let task = start(&caller, "work", json!({ "seconds": 30 })).await;

    let mut received = Vec::new();
    while received.last() != Some(&json!("completed")) {
        let message = general.message().await.unwrap();
        assert_eq!(message["method"], "notifications/tasks/status");
        assert_eq!(message["params"]["taskId"], task["taskId"]);
        received.push(message["params"]["status"].clone());
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_its_tasks() {
    let server = server();
    let caller = HttpTestClient::new(server.clone())
        .in_session("2025-11-25")
        .await;
    let principal = turnbuckle_protocol::Principal::new("issuer", "ada");
    let mut ada = HttpTestClient::new(server);
    ada.principal = Some(principal);
    let ada = ada.in_session("2025-11-25").await;
    let task = start(&caller, "work", json!({ "seconds": 30 })).await;
    let kept = start(&ada, "work", json!({ "seconds": 30 })).await;

    assert_eq!(caller.delete().await.status(), 204);
    assert_eq!(ada.delete().await.status(), 204);
    sleep(Duration::from_secs(31)).await;

    assert_eq!(post(&caller, 3, "tasks/get", id(&task)).await.status(), 404);
    let mut again = ada;
    (again.session, again.version) = (None, None);
    let again = again.in_session("2025-11-25").await;
    let looked = post(&again, 3, "tasks/get", id(&kept)).await.json().await;
    assert_eq!(looked["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn without_sessions_tasks_are_not_listed() {
    req!("tasks.security.no-list", "tasks.capability.list-method");
    let mut caller = HttpTestClient::with_options(Http::new(server()).sessions(SessionMode::Off));
    let mut hello = initialize("2025-11-25");
    hello["params"]["capabilities"] = json!({});
    let response = caller.post(&hello).await.json().await;
    let declared = &response["result"]["capabilities"]["tasks"];
    assert_eq!(declared["list"], Value::Null);
    assert_eq!(declared["cancel"], json!({}));
    caller.version = Some("2025-11-25".to_owned());

    let task = start(&caller, "work", json!({ "seconds": 30 })).await;

    let looked = post(&caller, 2, "tasks/get", id(&task)).await.json().await;
    assert_eq!(looked["result"]["status"], "working");
    let listed = post(&caller, 3, "tasks/list", json!({})).await.json().await;
    assert_eq!(listed["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_connection_that_created_it() {
    req!("ext-tasks.create.durable");
    let caller = HttpTestClient::new(server());
    let params = json!({ "name": "work", "arguments": { "seconds": 30 } });
    let http_response = request_with_extension(&caller, "tools/call", params).await;
    assert!(!http_response.is_stream());
    let task = http_response.json().await["result"].clone();
    assert_eq!(task["resultType"], "task");

    sleep(Duration::from_secs(31)).await;

    let looked = request_with_extension(&caller, "tasks/get", id(&task))
        .await
        .json()
        .await;
    assert_eq!(looked["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn rejections_have_their_http_status() {
    req!(
        "ext-tasks.error.undeclared",
        "ext-tasks.create.required-error",
        "ext-tasks.legacy.no-result-method"
    );
    let caller = HttpTestClient::new(server());
    let task = json!({ "taskId": "AAAAAAAAAAAAAAAAAAAAAAAA", "inputResponses": {} });

    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let http_response = caller.modern(method, task.clone()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (400, -32021),
            "{method}"
        );
        let http_response = request_with_extension(&caller, method, task.clone()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (200, -32602),
            "{method}"
        );
    }
    let http_response = caller.modern_tool("must", json!({})).await;
    assert_eq!(http_response.status_and_code().await, (400, -32021));
    for method in ["tasks/result", "tasks/list"] {
        let http_response = request_with_extension(&caller, method, task.clone()).await;
        assert_eq!(
            http_response.status_and_code().await,
            (404, -32601),
            "{method}"
        );
    }
    let message = modern("tasks/get", task);
    let headers = modern_headers(caller.request(Method::POST), &message);
    let mut other = message;
    other["params"]["taskId"] = json!("BBBBBBBBBBBBBBBBBBBBBBBB");
    let http_response = caller.send(headers, other.to_string()).await;
    assert_eq!(http_response.status_and_code().await, (400, -32020));
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_ends_its_tasks() {
    let mut limits = turnbuckle_store::StoreLimits::default();
    limits.sessions.idle = Duration::from_secs(60);
    let store = turnbuckle_store::Store::memory_with(limits);
    let tasks = store.tasks.clone();
    let http = Http::new(server().store(store));
    let caller = HttpTestClient::with_options(http)
        .in_session("2025-11-25")
        .await;
    let task = start(&caller, "work", json!({ "seconds": 5000 })).await;
    let id = task["taskId"].as_str().unwrap().parse().unwrap();

    sleep(Duration::from_secs(120)).await;
    // A new client triggers the sweep of expired sessions.
    let mut other = caller.clone();
    (other.session, other.version) = (None, None);
    other.in_session("2025-11-25").await;
    sleep(Duration::from_secs(1)).await;

    let record = tasks.load(&id).await.unwrap().unwrap();
    assert_eq!(
        record.status,
        turnbuckle_protocol::types::TaskStatus::Cancelled
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_handler_may_promote_its_call_to_a_task() {
    let tool = Tool::new("spawn", async |cx: Context| {
        let started = tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            cx.into_task().await
        });
        sleep(Duration::from_secs(60)).await;
        started.await.unwrap()?;
        Ok("done".to_owned())
    });
    let tool = tool.task(TaskSupport::Optional).task_after_input();
    let caller = HttpTestClient::new(Server::new("tasks", "1").tool(tool));
    let began = Instant::now();

    let params = json!({ "name": "spawn", "arguments": {} });
    let http_response = request_with_extension(&caller, "tools/call", params).await;

    let response = http_response.json().await;
    assert_eq!(response["result"]["status"], "working", "{response}");
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}
