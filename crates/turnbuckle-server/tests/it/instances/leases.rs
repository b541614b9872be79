//! The lease of an instance: when it joins, what it does without a lease, and when it leaves.

use std::time::Duration;

use http::request::Builder;
use serde_json::json;
use tokio::time::sleep;
use turnbuckle_server::http::{self as server_http, Http};
use turnbuckle_store::Store;

use super::test_registry::{TestRegistry, TwoInstances};
use crate::http::test_client::{HttpTestClient, initialize, server};

async fn ping(caller: &HttpTestClient) -> u16 {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    caller.post(&ping).await.status().as_u16()
}

async fn readiness(caller: &HttpTestClient) -> u16 {
    let probe = Builder::new().uri("/readyz").header("host", "10.0.0.7");
    caller.send(probe, "").await.status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_server_joins_with_its_first_session() {
    let instances = TwoInstances::new(server);
    let (caller, registry) = (&instances.first, &instances.registry);
    let arguments = json!({ "message": "hello" });
    assert_eq!(caller.modern_tool("echo", arguments).await.status(), 200);
    assert_eq!(registry.joined(), []);

    let instances = instances.in_session("2025-11-25").await;
    for _ in 0..3 {
        assert_eq!(ping(&instances.first).await, 200);
        sleep(Duration::from_secs(60)).await;
    }

    let [id] = instances.registry.joined()[..] else {
        panic!("joined once: {:?}", instances.registry.joined())
    };
    let registry = &instances.store.instances;
    assert!(registry.is_alive(&id).await.unwrap(), "it is renewed");
}

#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_join_once() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (store, registry) = TestRegistry::for_store(&instances.store);
    let mut caller = HttpTestClient::single(Http::new(server().store(store)));
    caller.session.clone_from(&instances.first.session);

    let (one, two, three) = tokio::join!(ping(&caller), ping(&caller), ping(&caller));

    assert_eq!((one, two, three), (200, 200, 200));
    assert_eq!(registry.joined().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_on_an_unshared_store_does_not_join() {
    let store = Store::memory();
    let caller = HttpTestClient::single(Http::new(server().store(store.clone())));
    let caller = caller.in_session("2025-11-25").await;

    assert_eq!(ping(&caller).await, 200);

    let slot = turnbuckle_store::InstanceSlot::default();
    let message = turnbuckle_store::InstanceMessage::ClientMessage {
        session: caller.session.as_deref().unwrap().parse().unwrap(),
        message: "{}".into(),
    };
    assert!(!store.instances.send(slot, message).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_lease_ends_with_the_server() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let [id] = instances.registry.joined()[..] else {
        panic!("joined once")
    };

    drop(instances.first);
    sleep(Duration::from_secs(16)).await;

    let registry = &instances.store.instances;
    assert!(!registry.is_alive(&id).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_renew_rejects_sessions_until_it_can() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (caller, registry) = (&instances.first, &instances.registry);
    assert_eq!(ping(&instances.second).await, 200);
    assert_eq!(readiness(caller).await, 200);
    sleep(Duration::from_millis(5_100)).await;

    registry.cut_off();
    sleep(Duration::from_secs(9)).await;
    assert_eq!(ping(caller).await, 200, "the lease is still certain");
    sleep(Duration::from_secs(1)).await;

    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let rejected = caller.post(&message).await;
    assert_eq!(rejected.status(), 503);
    assert!(rejected.header("retry-after").is_some());
    assert_eq!(rejected.json().await["id"], 1);
    assert_eq!(caller.get(None).await.status(), 503);
    assert_eq!(caller.delete().await.status(), 503);
    assert_eq!(caller.post(&initialize("2025-11-25")).await.status(), 503);
    assert_eq!(readiness(caller).await, 503);
    let arguments = json!({ "message": "hello" });
    let mut modern = caller.clone();
    (modern.session, modern.version) = (None, None);
    let modern = modern.modern_tool("echo", arguments).await;
    assert_eq!(modern.status(), 200, "modern requests need no session");
    assert_eq!(
        ping(&instances.second).await,
        200,
        "the other is not cut off"
    );
    assert_eq!(readiness(&instances.second).await, 200);

    // The lease expires.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(ping(caller).await, 503);
    registry.reconnect();
    sleep(Duration::from_secs(2)).await;

    assert_eq!(ping(caller).await, 200);
    assert_eq!(readiness(caller).await, 200);
    let joined = registry.joined();
    assert_eq!(joined.len(), 2, "it has a new id");
    assert_ne!(joined[0], joined[1]);
    let arguments = json!({ "message": "hello" });
    let result = caller.tool(3, "echo", arguments).await;
    assert_eq!(result.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_short_loss_of_the_registry_keeps_the_id() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    sleep(Duration::from_millis(5_100)).await;

    instances.registry.cut_off();
    sleep(Duration::from_secs(12)).await;
    assert_eq!(ping(&instances.first).await, 503);
    instances.registry.reconnect();
    sleep(Duration::from_secs(2)).await;

    assert_eq!(ping(&instances.first).await, 200);
    assert_eq!(instances.registry.joined().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_join_rejects_sessions_until_it_can() {
    let instances = TwoInstances::new(server);
    instances.registry.cut_off();
    let hello = initialize("2025-11-25");

    assert_eq!(readiness(&instances.first).await, 503);
    assert_eq!(instances.first.post(&hello).await.status(), 503);
    instances.registry.reconnect();

    // A load balancer sends requests only after the check has succeeded.
    assert_eq!(readiness(&instances.first).await, 200);
    assert_eq!(instances.first.post(&hello).await.status(), 200);
    assert_eq!(instances.registry.joined().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_leaves_and_ends_its_tasks() {
    let store = Store::memory().shared();
    let (of_server, registry) = TestRegistry::for_store(&store);
    let server = crate::tasks::test_server::server()
        .state_keys(["the same secret of all instances"])
        .store(of_server);
    let (_connector, listener) = server_http::memory();
    let caller = HttpTestClient::single(Http::new(server.clone()));
    let caller = caller.in_session("2025-11-25").await;
    let params = json!({ "name": "work", "arguments": { "seconds": 3000 }, "task": {} });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let created = caller.post(&message).await.json().await;
    let task = created["result"]["task"]["taskId"].as_str().unwrap();
    let task = task.parse().unwrap();

    let http = Http::new(server);
    let shutdown = sleep(Duration::from_secs(1));
    let serving = http.clone().serve_until(listener, shutdown);
    serving.await.unwrap();
    assert_eq!(registry.left(), [], "another endpoint still serves it");
    drop(caller);
    let (_connector, listener) = server_http::memory();
    let serving = http.serve_until(listener, sleep(Duration::from_secs(1)));
    serving.await.unwrap();

    assert_eq!(registry.left(), registry.joined());
    let record = store.tasks.load(&task).await.unwrap().unwrap();
    let status = turnbuckle_protocol::types::TaskStatus::Failed;
    assert_eq!(record.status, status);
}

#[tokio::test(start_paused = true)]
async fn a_server_on_a_shared_store_needs_the_keys_of_all_instances() {
    let server = server().store(Store::memory().shared());
    let serve = |server| {
        let (_connector, listener) = server_http::memory();
        Http::new(server).serve_until(listener, sleep(Duration::from_secs(1)))
    };

    let error = serve(server.clone()).await.unwrap_err();
    assert!(error.to_string().contains("state_keys"), "{error}");
    let keys = ["the same secret of all instances"];
    serve(server.state_keys(keys)).await.unwrap();
}
