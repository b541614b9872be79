//! Tasks with a runner and a client at different instances.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use turnbuckle_store::{
    BoxFuture, BusSubscription, ChangeBus, ListDigest, Position, PositionedChange, ServerChange,
    Store, StoreError,
};

use super::test_registry::TwoInstances;
use crate::{
    http::test_client::HttpTestClient,
    tasks::test_server::{id, server},
};

async fn request(caller: &HttpTestClient, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
    let response = caller.post(&message).await;
    if response.is_stream() {
        let messages = response.stream().remaining_messages().await;
        return messages.into_iter().next_back().unwrap();
    }
    response.json().await
}

async fn start(caller: &HttpTestClient, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    let response = request(caller, "tools/call", params).await;
    response["result"]["task"].clone()
}

async fn status(caller: &HttpTestClient, task: &Value) -> String {
    let response = request(caller, "tasks/get", id(task)).await;
    let status = response["result"]["status"].as_str();
    status.unwrap_or_else(|| panic!("{response}")).to_owned()
}

async fn session() -> [HttpTestClient; 2] {
    let caller = HttpTestClient::of_two(server());
    let caller = caller.in_session("2025-11-25").await;
    [caller.at(0), caller.at(1)]
}

#[tokio::test(start_paused = true)]
async fn a_task_is_read_at_every_instance() {
    let [here, there] = session().await;
    let task = start(&here, "work", json!({ "seconds": 30 })).await;

    assert_eq!(status(&there, &task).await, "working");
    let listed = request(&there, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"]);
    let result = request(&there, "tasks/result", id(&task));
    let result = timeout(Duration::from_secs(31), result).await.unwrap();

    let text = &result["result"]["content"][0]["text"];
    assert_eq!(text, "worked 30 s");
    assert_eq!(status(&there, &task).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_answered_and_its_result_read_at_the_other_instance() {
    let [here, there] = session().await;
    let task = start(&here, "ask", json!({})).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&there, &task).await, "input_required");

    let message = json!({
        "jsonrpc": "2.0", "id": 3, "method": "tasks/result", "params": id(&task),
    });
    let mut waiting = there.post(&message).await.stream();
    waiting.prime().await;
    let client_request = waiting.message().await.unwrap();
    assert_eq!(client_request["method"], "elicitation/create");
    // The client answers at the instance of the runner, which has not sent the request.
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    let response = json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result });
    assert_eq!(here.post(&response).await.status(), 202);

    let rest = waiting.messages().await;
    let text = &rest.last().unwrap()["result"]["content"][0]["text"];
    assert_eq!(text, "hello Ada");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_at_the_other_instance() {
    let [here, there] = session().await;
    let task = start(&here, "work", json!({ "seconds": 3000 })).await;

    let cancelled = request(&there, "tasks/cancel", id(&task)).await;

    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(status(&here, &task).await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_at_one_instance_ends_its_tasks_at_the_other() {
    let store = Store::memory().shared();
    let caller = HttpTestClient::of_two(server().store(store.clone()));
    let caller = caller.in_session("2025-11-25").await;
    let task = start(&caller.at(0), "work", json!({ "seconds": 3000 })).await;
    let task = task["taskId"].as_str().unwrap().parse().unwrap();

    assert_eq!(caller.at(1).delete().await.status(), 204);
    sleep(Duration::from_secs(1)).await;

    let record = store.tasks.load(&task).await.unwrap().unwrap();
    let status = turnbuckle_protocol::types::TaskStatus::Cancelled;
    assert_eq!(record.status, status);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_instance_that_stopped_fails_within_20_seconds() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (first, second) = (&instances.first, &instances.second);
    let task = start(first, "work", json!({ "seconds": 3000 })).await;
    assert_eq!(status(second, &task).await, "working");
    // Just after a renewal, so that the whole lease must pass.
    sleep(Duration::from_millis(5_100)).await;

    instances.registry.cut_off();
    let began = Instant::now();
    let result = request(second, "tasks/result", id(&task)).await;

    assert!(
        began.elapsed() <= Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("has stopped"), "{result}");
    let record = request(second, "tasks/get", id(&task)).await;
    assert_eq!(record["result"]["status"], "failed");
    let message = record["result"]["statusMessage"].as_str().unwrap();
    assert!(message.contains("has stopped"), "{record}");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_stopped_instance_fails_when_it_is_read_if_nothing_else_ended_it() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (first, second) = (&instances.first, &instances.second);
    let task = start(first, "work", json!({ "seconds": 3000 })).await;
    assert_eq!(status(second, &task).await, "working");
    sleep(Duration::from_millis(5_100)).await;

    instances.registry.cut_off();
    // Another instance takes the id, and stops before it has ended the tasks.
    let registry = &instances.store.instances;
    while registry.take_expired().await.unwrap().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }

    assert_eq!(status(second, &task).await, "failed");
}

#[tokio::test(start_paused = true)]
async fn a_running_task_of_a_live_instance_does_not_fail() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (first, second) = (&instances.first, &instances.second);
    let task = start(first, "work", json!({ "seconds": 100 })).await;

    // Shorter than the lease.
    sleep(Duration::from_millis(5_100)).await;
    instances.registry.cut_off();
    sleep(Duration::from_secs(12)).await;
    instances.registry.reconnect();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(status(second, &task).await, "working");

    let result = request(second, "tasks/result", id(&task)).await;
    let text = &result["result"]["content"][0]["text"];
    assert_eq!(text, "worked 100 s");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_a_task_does_not_notice_a_short_failure_of_the_store() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (first, second) = (&instances.first, &instances.second);
    let task = start(second, "work", json!({ "seconds": 30 })).await;

    let failure = async {
        sleep(Duration::from_secs(9)).await;
        instances.registry.cut_off();
        sleep(Duration::from_secs(2)).await;
        instances.registry.reconnect();
    };
    let (result, ()) = tokio::join!(request(first, "tasks/result", id(&task)), failure);

    let text = &result["result"]["content"][0]["text"];
    assert_eq!(text, "worked 30 s", "{result}");
}

/// A bus that loses changes.
struct LosingBus {
    inner: Arc<dyn ChangeBus>,
    loses: AtomicBool,
}

impl ChangeBus for LosingBus {
    fn publish(&self, change: ServerChange) {
        if !self.loses.load(Ordering::Relaxed) {
            self.inner.publish(change);
        }
    }

    fn publish_list(&self, change: ServerChange, digest: ListDigest) {
        self.inner.publish_list(change, digest);
    }

    fn subscribe(&self) -> BusSubscription {
        self.inner.subscribe()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn after(
        &self,
        position: Position,
        limit: usize,
    ) -> BoxFuture<'_, Result<Option<Vec<PositionedChange>>, StoreError>> {
        self.inner.after(position, limit)
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_for_a_task_read_it_again_in_case_a_change_was_lost() {
    let mut store = Store::memory().shared();
    let bus = Arc::new(LosingBus {
        inner: store.bus,
        loses: AtomicBool::new(true),
    });
    store.bus = bus.clone();
    let caller = HttpTestClient::of_two(server().store(store));
    let caller = caller.in_session("2025-11-25").await;
    let (here, there) = (caller.at(0), caller.at(1));

    // The client waits for the end of a task.
    let task = start(&here, "work", json!({ "seconds": 5 })).await;
    let result = request(&there, "tasks/result", id(&task));
    let result = timeout(Duration::from_secs(15), result).await.unwrap();
    assert!(result["result"].is_object(), "{result}");

    // The runner waits for its cancellation.
    let task = start(&here, "work", json!({ "seconds": 3000 })).await;
    request(&there, "tasks/cancel", id(&task)).await;
    let result = request(&here, "tasks/result", id(&task)).await;
    assert!(result["error"].is_object(), "{result}");
}
