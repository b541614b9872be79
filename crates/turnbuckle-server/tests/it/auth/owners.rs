//! Sessions, streams and tasks of one caller do not exist for another, even if the id is known.

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{Context, Elicitation, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::{
    auth::test_authenticator::{caller, with_authenticator},
    http::test_client::{
        HttpTestClient, HttpTestResponse, SESSIONS, modern, modern_headers, server,
    },
    http_sse::test_client::ping,
    tasks::test_server::{self, everything, id},
};

/// Status and body, without the name of the requested item.
async fn said(http_response: HttpTestResponse, name: &str) -> (u16, String) {
    let status = http_response.status().as_u16();
    let body = String::from_utf8(http_response.bytes().await.to_vec()).unwrap();
    (status, body.replace(name, "…"))
}

async fn able(caller: &HttpTestClient, method: &str, params: Value) -> HttpTestResponse {
    let mut message = modern(method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = everything();
    let headers = modern_headers(caller.request(Method::POST), &message);
    caller.send(headers, message.to_string()).await
}

#[tokio::test]
async fn a_session_of_another_caller_is_answered_like_an_unknown_one() {
    req!("http.session.bind-user", "http.session.not-auth");

    for revision in SESSIONS {
        let ada = caller(server(), "ada").in_session(revision).await;
        let (_, event) = ada.opened().await;
        let bo = ada.named("bo");
        let mut invented = bo.clone();
        // Another one that was valid before.
        let ended = ada.named("bo").in_session(revision).await;
        assert_eq!(ended.delete().await.status(), 204);
        invented.session = ended.session.clone();

        for (foreign, unknown) in [
            (bo.post(&ping(1)).await, invented.post(&ping(1)).await),
            (bo.get(None).await, invented.get(None).await),
            (bo.get(Some(&event)).await, invented.get(Some(&event)).await),
            (bo.delete().await, invented.delete().await),
        ] {
            let foreign = said(foreign, "").await;
            assert_eq!(foreign, said(unknown, "").await);
            assert_eq!(foreign.0, 404);
        }
        assert_eq!(ada.post(&ping(2)).await.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_cannot_be_resumed_by_another_caller() {
    let ada = caller(server(), "ada").in_session("2025-11-25").await;
    let mut stream = ada
        .tool(1, "progress", json!({ "steps": 3 }))
        .await
        .stream();
    let event = stream.prime().await;
    drop(stream);
    let bo = ada.named("bo");
    let mut own = bo.clone().in_session("2025-11-25").await;

    // With the session of the other caller, and with its own.
    assert_eq!(bo.get(Some(&event)).await.status(), 404);
    own.timeout = std::time::Duration::from_secs(5);
    let refused = own.get(Some(&event)).await;
    assert_ne!(refused.status(), 200);

    let messages = ada.get(Some(&event)).await.stream().messages().await;
    assert_eq!(messages.len(), 4, "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_caller_is_answered_like_an_unknown_one() {
    req!(
        "tasks.security.bind",
        "tasks.security.reject-foreign",
        "ext-tasks.security.auth",
        "security.handle.not-auth"
    );
    let ada = HttpTestClient::with_options(with_authenticator(test_server::server())).named("ada");
    let bo = ada.named("bo");
    let params = json!({ "name": "work", "arguments": { "seconds": 30 } });

    let started = able(&ada, "tools/call", params.clone()).await.json().await;
    let task = started["result"]["taskId"].as_str().unwrap().to_owned();
    for method in ["tasks/get", "tasks/cancel"] {
        let foreign = able(&bo, method, json!({ "taskId": task })).await;
        let unknown = able(&bo, method, json!({ "taskId": "nonsense" })).await;
        assert_eq!(said(foreign, &task).await, said(unknown, "nonsense").await);
    }
    let own = able(&ada, "tasks/get", json!({ "taskId": task })).await;
    assert_eq!(own.json().await["result"]["status"], "working");

    let ada = ada.in_session("2025-11-25").await;
    let bo = bo.in_session("2025-11-25").await;
    let mut params = params;
    params["task"] = json!({});
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let task = ada.post(&call).await.json().await["result"]["task"].clone();
    let get = |params: Value| json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": params });
    let foreign = bo.post(&get(id(&task))).await;
    let unknown = bo.post(&get(json!({ "taskId": "nonsense" }))).await;
    assert_eq!(
        said(foreign, task["taskId"].as_str().unwrap()).await,
        said(unknown, "nonsense").await
    );
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tasks/list" });
    let listed = bo.post(&list).await.json().await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    let own = ada.post(&get(id(&task))).await.json().await;
    assert_eq!(own["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn task_notifications_are_sent_only_to_the_owner() {
    let ada = HttpTestClient::with_options(with_authenticator(test_server::server())).named("ada");
    let params = json!({ "name": "work", "arguments": { "seconds": 1 } });
    let started = able(&ada, "tools/call", params).await.json().await;
    let task = started["result"]["taskId"].clone();
    let filter = json!({ "notifications": { "taskIds": [task] } });

    let listen = |who: &HttpTestClient| {
        let (who, filter) = (who.clone(), filter.clone());
        async move { able(&who, "subscriptions/listen", filter).await }
    };
    let foreign = listen(&ada.named("bo"))
        .await
        .stream()
        .message()
        .await
        .unwrap();
    let own = listen(&ada).await.stream().message().await.unwrap();

    assert_eq!(own["params"]["notifications"]["taskIds"], json!([task]));
    assert_eq!(
        foreign["params"]["notifications"].get("taskIds"),
        Some(&json!([]))
    );
}

fn asker() -> Server {
    Server::new("test", "1.0.0").tool(Tool::new("ask", async |cx: Context| {
        let response = cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?;
        let name = response
            .accepted()
            .map_or("missing".to_owned(), |it| it.name);
        Ok(format!("hello {name}"))
    }))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tokio::test]
async fn a_state_of_another_request_is_answered_like_an_invented_one() {
    req!("mrtr.state.principal", "security.handle.not-auth");
    let ada = HttpTestClient::with_options(with_authenticator(asker())).named("ada");
    let call = json!({ "name": "ask", "arguments": {} });
    let asked = able(&ada, "tools/call", call.clone()).await.json().await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let round = |state: &str| {
        let mut call = call.clone();
        call["requestState"] = json!(state);
        call["inputResponses"] =
            json!({ "name": { "action": "accept", "content": { "name": "Bo" } } });
        call
    };

    let foreign = able(&ada.named("bo"), "tools/call", round(&state)).await;
    let invented = able(&ada.named("bo"), "tools/call", round("nonsense")).await;

    let foreign = foreign.json().await;
    assert_eq!(
        foreign["error"]["code"],
        invented.json().await["error"]["code"]
    );
    let own = able(&ada, "tools/call", round(&state)).await.json().await;
    assert_eq!(own["result"]["content"][0]["text"], "hello Bo");
}
