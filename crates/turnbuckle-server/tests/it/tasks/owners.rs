//! Ownership and limits of tasks.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::ndjson::NdjsonServer;
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{Store, StoreLimits};

use crate::{
    ndjson::test_client::Peer,
    tasks::test_server::{
        everything, id, request_with_extension, request_with_notifications, server, start,
        start_server_directed,
    },
};

fn client_of(server: &turnbuckle_server::Server, subject: &str) -> Peer {
    let principal = Principal::new("https://issuer.example", subject);
    Peer::with(NdjsonServer::new(server.clone()).principal(principal))
}

#[tokio::test(start_paused = true)]
async fn a_task_belongs_to_its_principal() {
    req!(
        "ext-tasks.security.auth",
        "tasks.security.bind",
        "tasks.security.reject-foreign"
    );
    let server = server();
    let (mut ada, mut again, mut eve) = (
        client_of(&server, "ada"),
        client_of(&server, "ada"),
        client_of(&server, "eve"),
    );
    let mut anonymous = Peer::new(server.clone());
    let task = start_server_directed(&mut ada, "work", json!({ "seconds": 30 })).await;

    let looked = request_with_extension(&mut again, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "working");
    let unknown = json!({ "taskId": "AAAAAAAAAAAAAAAAAAAAAAAA" });
    for other in [&mut eve, &mut anonymous] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let mut params = id(&task);
            params["inputResponses"] = json!({});
            let foreign = request_with_extension(other, method, params.clone()).await;
            params["taskId"] = unknown["taskId"].clone();
            let never = request_with_extension(other, method, params).await;
            assert_eq!(foreign["error"], never["error"], "{method}");
            assert_eq!(foreign["error"]["code"], -32602);
        }
    }
    let looked = request_with_extension(&mut ada, "tasks/get", id(&task)).await;
    assert_eq!(looked["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn sessions_see_the_tasks_of_their_principal_only() {
    req!("tasks.security.list-scope");
    let server = server();
    let (mut ada, mut eve) = (client_of(&server, "ada"), client_of(&server, "eve"));
    for peer in [&mut ada, &mut eve] {
        peer.initialize_session("2025-11-25", everything()).await;
    }
    let task = start(&mut ada, "work", json!({ "seconds": 30 })).await;

    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let (response, _) = request_with_notifications(&mut eve, method, id(&task)).await;
        assert_eq!(response["error"]["code"], -32602, "{method}");
    }
    let (listed, received) = request_with_notifications(&mut eve, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    assert_eq!(received, Vec::<Value>::new());
    let (listed, _) = request_with_notifications(&mut ada, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_principal_a_task_belongs_to_its_session() {
    let server = server();
    let mut one = Peer::initialized(server.clone(), "2025-11-25", everything()).await;
    let mut two = Peer::initialized(server, "2025-11-25", everything()).await;
    let task = start(&mut one, "work", json!({ "seconds": 30 })).await;

    let (response, _) = request_with_notifications(&mut two, "tasks/get", id(&task)).await;
    assert_eq!(response["error"]["code"], -32602);
    let (listed, _) = request_with_notifications(&mut two, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
    // The two task models do not share tasks.
    let params = crate::ndjson::test_client::modern_with(id(&task), everything());
    let (response, _) = request_with_notifications(&mut one, "tasks/get", params).await;
    assert_eq!(response["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn ids_cannot_be_guessed() {
    req!("ext-tasks.security.entropy", "tasks.security.entropy");
    let mut peer = Peer::new(server());
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let task = start_server_directed(&mut peer, "fail", json!({})).await;
        ids.insert(task["taskId"].as_str().unwrap().to_owned());
    }
    assert_unguessable(&ids);

    let mut peer = Peer::initialized(server(), "2025-11-25", everything()).await;
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let call = json!({ "name": "fail", "arguments": {}, "task": {} });
        let (response, _) = request_with_notifications(&mut peer, "tools/call", call).await;
        let id = &response["result"]["task"]["taskId"];
        ids.insert(id.as_str().unwrap().to_owned());
    }
    assert_unguessable(&ids);
}

fn assert_unguessable(ids: &HashSet<String>) {
    // 24 characters of base64url: 144 bits, without a character common to all.
    assert_eq!(ids.len(), 100);
    for at in 0..24 {
        let seen: HashSet<_> = ids.iter().map(|id| id.as_bytes()[at]).collect();
        assert!(seen.len() > 10, "position {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_tasks_is_limited() {
    let mut limits = StoreLimits::default();
    limits.tasks.max_tasks = 3;
    limits.tasks.max_task_bytes = 200;
    let server = server().store(Store::memory_with(limits));
    let mut peer = Peer::new(server);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(start_server_directed(&mut peer, "work", json!({ "seconds": 30 })).await);
    }

    let params = json!({ "name": "work", "arguments": { "seconds": 1 } });
    let response = request_with_extension(&mut peer, "tools/call", params).await;

    assert_eq!(response["error"]["code"], -32603);
    // A result that is too large to store is an error.
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    let looked = request_with_extension(&mut peer, "tasks/get", id(&tasks[0])).await;
    assert!(["completed", "failed"].contains(&looked["result"]["status"].as_str().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn another_process_responds_to_and_cancels_a_task_of_this_one() {
    let store = Store::memory();
    let (here, there) = (server().store(store.clone()), server().store(store));
    let (mut here, mut there) = (Peer::new(here), Peer::new(there));
    let asks = start_server_directed(&mut here, "ask", json!({})).await;
    let works = start_server_directed(&mut here, "work", json!({ "seconds": 500 })).await;

    let mut params = id(&asks);
    params["inputResponses"] =
        json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    request_with_extension(&mut there, "tasks/update", params).await;
    request_with_extension(&mut there, "tasks/cancel", id(&works)).await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;

    let looked = request_with_extension(&mut here, "tasks/get", id(&asks)).await;
    assert_eq!(
        looked["result"]["result"]["content"][0]["text"],
        "hello Ada"
    );
    let looked = request_with_extension(&mut here, "tasks/get", id(&works)).await;
    assert_eq!(looked["result"]["status"], "cancelled");
}
