//! Cancellations and ends of sessions that arrive at another instance.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use turnbuckle_server::{Context, Server, Tool};
use turnbuckle_store::{ControlMessage, SessionId, Store, StoreLimits};

use crate::http::{
    session_expiry::UntouchedSessions,
    test_client::{HttpTestClient, SESSIONS},
};

/// Counts running handlers.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server with a tool that runs for an hour, and the number of its calls.
fn server() -> (Server, Arc<AtomicUsize>) {
    let count = Arc::<AtomicUsize>::default();
    let running = count.clone();
    let long = Tool::new("long", move |cx: Context| {
        let running = Running::new(&running);
        async move {
            cx.progress(1, 2).await;
            sleep(Duration::from_secs(3600)).await;
            drop(running);
            Ok("done".to_owned())
        }
    });
    (Server::new("test", "1.0.0").tool(long), count)
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_the_instance_that_runs_the_call() {
    for revision in SESSIONS {
        for id in [json!(7), json!("seven")] {
            let (server, running) = server();
            let caller = HttpTestClient::of_two(server).in_session(revision).await;
            let call = json!({
                "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "long", "arguments": {}, "_meta": { "progressToken": 1 } },
            });
            let stream = caller.at(0).post(&call).await.stream();
            let cancel = |id| {
                json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": { "requestId": id },
                })
            };

            for other in [json!(8), json!("7"), json!("x".repeat(2_000))] {
                let accepted = caller.at(1).post(&cancel(other)).await;
                assert_eq!(accepted.status(), 202);
            }
            sleep(Duration::from_secs(1)).await;
            assert_eq!(running.load(Ordering::SeqCst), 1);
            let accepted = caller.at(1).post(&cancel(id)).await;

            assert_eq!(accepted.status(), 202);
            let messages = stream.remaining_messages().await;
            assert!(messages.iter().all(|it| it.get("result").is_none()));
            sleep(Duration::from_secs(1)).await;
            assert_eq!(running.load(Ordering::SeqCst), 0, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_calls_of_the_same_session_are_cancelled() {
    let (server, running) = server();
    let other = HttpTestClient::of_two(server);
    let caller = other.clone().in_session("2025-11-25").await;
    let other = other.in_session("2025-11-25").await;
    let _stream = caller.at(0).tool(7, "long", json!({})).await.stream();

    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
    });
    assert_eq!(other.at(1).post(&cancel).await.status(), 202);
    sleep(Duration::from_secs(1)).await;

    assert_eq!(running.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_deleted_at_one_instance_ends_at_the_other() {
    for revision in SESSIONS {
        let (server, running) = server();
        let caller = HttpTestClient::of_two(server).in_session(revision).await;
        let call = caller.at(0).tool(7, "long", json!({})).await.stream();
        let general = caller.at(0).get(None).await.stream();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(running.load(Ordering::SeqCst), 1);

        assert_eq!(caller.at(1).delete().await.status(), 204);

        call.remaining_messages().await;
        general.remaining_messages().await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(running.load(Ordering::SeqCst), 0, "{revision}");
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(caller.at(0).post(&ping).await.status(), 404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_expires_ends_at_the_instance_that_runs_its_call() {
    let mut limits = StoreLimits::default();
    limits.sessions.idle = Duration::from_secs(60);
    let mut store = Store::memory_with(limits).shared();
    let sessions = UntouchedSessions::new(&store);
    // Otherwise the running call keeps the session.
    sessions.fails.store(true, Ordering::Relaxed);
    store.sessions = sessions;
    let (server, running) = server();
    let new_client = HttpTestClient::of_two(server.store(store));
    let caller = new_client.clone().in_session("2025-11-25").await;
    let _call = caller.at(0).tool(7, "long", json!({})).await.stream();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);

    // A new session makes the other instance look for expired ones.
    new_client.at(1).in_session("2025-11-25").await;
    sleep(Duration::from_secs(1)).await;

    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_ends_if_the_client_that_caused_the_sweep_disconnects() {
    let mut limits = StoreLimits::default();
    limits.sessions.idle = Duration::from_secs(60);
    let mut store = Store::memory_with(limits).shared();
    let sessions = UntouchedSessions::new(&store);
    sessions.fails.store(true, Ordering::Relaxed);
    sessions.is_slow.store(true, Ordering::Relaxed);
    store.sessions = sessions;
    let (server, running) = server();
    let new_client = HttpTestClient::of_two(server.store(store));
    let caller = new_client.clone().in_session("2025-11-25").await;
    let _call = caller.at(0).tool(7, "long", json!({})).await.stream();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);

    let new_client = new_client.at(1).in_session("2025-11-25");
    let _ = timeout(Duration::from_millis(10), new_client).await;
    sleep(Duration::from_secs(2)).await;

    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_everywhere_if_the_client_does_not_wait_for_its_deletion() {
    let mut store = Store::memory().shared();
    let sessions = UntouchedSessions::new(&store);
    sessions.is_slow.store(true, Ordering::Relaxed);
    store.sessions = sessions;
    let (server, running) = server();
    let caller = HttpTestClient::of_two(server.store(store));
    let caller = caller.in_session("2025-11-25").await;
    let _call = caller.at(0).tool(7, "long", json!({})).await.stream();

    let deletion = timeout(Duration::from_millis(10), caller.at(1).delete()).await;
    assert!(deletion.is_err());
    sleep(Duration::from_secs(2)).await;

    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_ended_are_found_after_control_messages_were_lost() {
    let mut limits = StoreLimits::default();
    limits.bus.capacity = 8;
    let store = Store::memory_with(limits).shared();
    let (server, running) = server();
    let new_client = HttpTestClient::of_two(server.store(store.clone()));
    let ended = new_client.clone().in_session("2025-11-25").await;
    let goes_on = new_client.in_session("2025-11-25").await;
    let _ended_call = ended.at(0).tool(7, "long", json!({})).await.stream();
    let _other_call = goes_on.at(0).tool(7, "long", json!({})).await.stream();
    assert_eq!(running.load(Ordering::SeqCst), 2);

    // Another instance ends a session, and its message is lost among others.
    let id = ended.session.as_deref().unwrap().parse().unwrap();
    assert!(store.sessions.remove(&id).await.unwrap());
    for _ in 0..50 {
        let session = SessionId::generate().unwrap();
        let message = ControlMessage::SubscriptionsChanged { session };
        store.control.publish(message).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;

    assert_eq!(running.load(Ordering::SeqCst), 1);
}
