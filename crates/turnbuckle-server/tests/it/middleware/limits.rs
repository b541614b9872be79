//! Layers that reject: timeouts, rate limits and concurrency limits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Resource, Server, Tool,
    middleware::{ConcurrencyLimit, Operation, RateLimit, Timeout},
};

use crate::{
    http::test_client::HttpTestClient,
    middleware::layers::{Notes, server, tool},
    ndjson::test_client::{Peer, modern},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_tool_timeout_is_reported_to_the_model() {
    let notes = Notes::default();
    let layered = || {
        server()
            .layer(notes.endings())
            .layer(Timeout::new(30 * SECOND))
            .layer(notes.endings())
    };
    let mut peer = Peer::new(layered());
    let mut legacy = Peer::initialized(layered(), "2025-06-18", json!({})).await;
    let started = Instant::now();

    let modern = peer.call_modern("tools/call", tool("sleep")).await;
    assert_eq!(started.elapsed().as_secs(), 30);
    let legacy = legacy.call("tools/call", tool("sleep")).await;

    for response in [modern, legacy] {
        assert_eq!(response["result"]["isError"], true, "{response}");
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, "`sleep` timed out after 30s");
    }
    let once = ["tools/call cancelled", "tools/call tool_error"];
    assert_eq!(notes.take(), [once, once].concat());
}

#[tokio::test(start_paused = true)]
async fn timeouts_of_other_methods_are_errors_and_exceptions_have_their_own_limit() {
    let slow = Resource::new("test://slow", "slow", async || {
        tokio::time::sleep(3600 * SECOND).await;
        Ok("late".to_owned())
    });
    let patient = |operation: &Operation| operation.tool() == Some("sleep");
    let timeout = Timeout::new(SECOND).when(patient, 7200 * SECOND);
    let mut peer = Peer::new(server().resource(slow).layer(timeout));

    let late = peer
        .call_modern("resources/read", json!({ "uri": "test://slow" }))
        .await;
    let awake = {
        peer.request("tools/call", modern(tool("sleep"))).await;
        tokio::time::sleep(3601 * SECOND).await;
        peer.next().await
    };

    assert_eq!(late["error"]["code"], -32603, "{late}");
    assert_eq!(awake["result"]["content"][0]["text"], "awake");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_not_timed_out() {
    let mut peer = Peer::new(server().layer(Timeout::new(SECOND)));
    let params = json!({ "notifications": { "toolsListChanged": true } });
    peer.request("subscriptions/listen", modern(params)).await;
    assert!(peer.next().await["method"].is_string());

    peer.expect_no_message().await;
    peer.expect_no_message().await;
}

/// A tool that reports progress every second, `steps` times, and then sleeps.
fn working(steps: u32) -> Tool {
    Tool::new("work", move |cx: Context| async move {
        for step in 1..=steps {
            tokio::time::sleep(SECOND).await;
            cx.progress(step, steps).await;
        }
        tokio::time::sleep(3600 * SECOND).await;
        Ok(String::new())
    })
}

async fn seconds_until_stopped(server: Server) -> u64 {
    let mut peer = Peer::new(server);
    let started = Instant::now();
    let response = peer.call_modern("tools/call", tool("work")).await;
    assert_eq!(response["result"]["isError"], true);
    started.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_timeout_only_if_enabled() {
    let server = || Server::new("work", "1").tool(working(10));
    let limit = Timeout::new(3 * SECOND);

    let plain = server().layer(limit.clone());
    assert_eq!(seconds_until_stopped(plain).await, 3);
    let extended = server().layer(limit.clone().extended_by_progress(60 * SECOND));
    assert_eq!(seconds_until_stopped(extended).await, 10 + 3);
    let capped = server().layer(limit.extended_by_progress(6 * SECOND));
    assert_eq!(seconds_until_stopped(capped).await, 6);
}

fn code(response: &Value) -> i64 {
    response["error"]["code"].as_i64().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn each_principal_has_its_own_rate() {
    let limit = RateLimit::new(2, 60 * SECOND);
    let mut ada = HttpTestClient::new(server().layer(limit));
    let mut bob = ada.clone();
    ada.principal = Some(Principal::new("issuer", "ada"));
    bob.principal = Some(Principal::new("issuer", "bob"));
    let call = async |who: &HttpTestClient| who.modern_tool("ok", json!({})).await.json().await;

    assert_eq!(code(&call(&ada).await), 0);
    assert_eq!(code(&call(&ada).await), 0);
    let refused = call(&ada).await;
    assert_eq!(code(&refused), RateLimit::CODE, "{refused}");
    assert_eq!(refused["error"]["data"], json!({ "retryAfterMs": 30_000 }));
    assert_eq!(code(&call(&bob).await), 0, "another caller");

    tokio::time::sleep(Duration::from_millis(29_990)).await;
    assert_eq!(code(&call(&ada).await), RateLimit::CODE);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(code(&call(&ada).await), 0, "when it was told to come back");
    assert_eq!(code(&call(&ada).await), RateLimit::CODE);
}

#[tokio::test(start_paused = true)]
async fn without_a_principal_each_connection_has_its_own_rate() {
    let server = server().layer(RateLimit::new(1, 60 * SECOND));
    let mut one = Peer::new(server.clone());
    let mut other = Peer::initialized(server, "2025-06-18", json!({})).await;

    assert_eq!(code(&one.call_modern("tools/list", json!({})).await), 0);
    assert_eq!(code(&other.call("tools/list", json!({})).await), 0);
    let refused = one.call_modern("tools/list", json!({})).await;
    assert_eq!(code(&refused), RateLimit::CODE);
    let refused = other.call("tools/list", json!({})).await;
    assert_eq!(code(&refused), RateLimit::CODE);
    assert!(other.call("ping", json!({})).await["error"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_may_use_any_key_and_exempt_operations() {
    let limit = RateLimit::new(1, 60 * SECOND)
        .by(|operation| operation.tool().map(str::to_owned))
        .only(|operation| operation.method() == "tools/call");
    let mut peer = Peer::new(server().layer(limit));

    for _ in 0..5 {
        assert_eq!(code(&peer.call_modern("tools/list", json!({})).await), 0);
    }
    assert_eq!(code(&peer.call_modern("tools/call", tool("ok")).await), 0);
    assert_eq!(
        code(&peer.call_modern("tools/call", tool("wrong")).await),
        0
    );
    let refused = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(code(&refused), RateLimit::CODE);
}

/// A tool that counts its concurrent calls.
fn counting(most: &Arc<AtomicUsize>) -> Tool {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), most.clone());
    Tool::new("slow", move || {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(SECOND).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok("done".to_owned())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn calls_over_the_limit_are_queued_and_then_rejected() {
    let most = Arc::new(AtomicUsize::new(0));
    let limit = ConcurrencyLimit::new(2).queue_length(3);
    let mut peer = Peer::new(Server::new("busy", "1").layer(limit).tool(counting(&most)));
    let started = Instant::now();

    for _ in 0..7 {
        peer.request("tools/call", modern(tool("slow"))).await;
    }
    let mut responses = Vec::new();
    for _ in 0..7 {
        responses.push(peer.next().await);
    }

    let refused = responses
        .iter()
        .filter(|it| code(it) == ConcurrencyLimit::CODE);
    assert_eq!(refused.count(), 2, "{responses:?}");
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!(started.elapsed().as_secs(), 3);
    let after = peer.call_modern("tools/call", tool("slow")).await;
    assert_eq!(after["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn leaving_the_queue_or_the_handler_frees_capacity() {
    let most = Arc::new(AtomicUsize::new(0));
    let limit = ConcurrencyLimit::new(1).queue_length(1);
    let mut peer = Peer::new(server().layer(limit).tool(counting(&most)));
    let running = peer.request("tools/call", modern(tool("sleep"))).await;
    let waiting = peer.request("tools/call", modern(tool("sleep"))).await;
    let refused = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(code(&refused), ConcurrencyLimit::CODE);

    peer.cancel(waiting).await;
    peer.cancel(running).await;
    tokio::time::sleep(SECOND).await;

    let response = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(response["result"]["content"][0]["text"], "fine");
}

#[tokio::test(start_paused = true)]
async fn a_limit_per_tool_does_not_affect_other_tools() {
    let most = Arc::new(AtomicUsize::new(0));
    let limit = ConcurrencyLimit::per_tool(1)
        .queue_length(5)
        .queue_timeout(SECOND * 5 / 2);
    let mut peer = Peer::new(server().layer(limit).tool(counting(&most)));
    let started = Instant::now();
    for _ in 0..4 {
        peer.request("tools/call", modern(tool("slow"))).await;
    }

    let other = peer.call_modern("tools/call", tool("ok")).await;
    assert_eq!(other["result"]["content"][0]["text"], "fine");
    assert!(started.elapsed() < SECOND);

    let mut responses = Vec::new();
    for _ in 0..4 {
        responses.push(code(&peer.next().await));
    }
    // The fourth would have to wait three seconds.
    assert_eq!(responses.iter().filter(|code| **code != 0).count(), 1);
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_per_tool_does_not_reveal_hidden_tools() {
    let hidden = Tool::new("restart", async || {
        tokio::time::sleep(60 * SECOND).await;
        Ok("restarted".to_owned())
    })
    .visible_to(|principal| principal.is_some());
    let open = Tool::new("open", async || Ok("open".to_owned()));
    let limit = ConcurrencyLimit::per_tool(1).queue_length(0);
    let server = Server::new("desk", "1")
        .tool(hidden)
        .tool(open)
        .layer(limit);
    let principal = Principal::new("issuer", "ada");
    let lines = turnbuckle_server::ndjson::NdjsonServer::new(server.clone()).principal(principal);
    let mut ada = Peer::with(lines);
    ada.request("tools/call", modern(tool("restart"))).await;
    ada.expect_no_message().await;

    let mut guest = Peer::new(server);
    let restart = guest.call_modern("tools/call", tool("restart")).await;
    let unknown = guest.call_modern("tools/call", tool("unknown")).await;

    assert_eq!(code(&restart), code(&unknown));
    let (restart, unknown) = (&restart["error"]["message"], &unknown["error"]["message"]);
    assert_eq!(
        restart.as_str().unwrap().replace("restart", "unknown"),
        *unknown
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_has_its_layers_around_the_work() {
    let notes = Notes::default();
    let slow = Tool::new("slow", async || {
        tokio::time::sleep(60 * SECOND).await;
        Ok("late".to_owned())
    });
    let server = Server::new("desk", "1")
        .tool(slow.task(turnbuckle_server::TaskSupport::Optional))
        .layer(notes.endings())
        .layer(Timeout::new(30 * SECOND));
    let mut peer = Peer::initialized(server, "2025-11-25", json!({})).await;
    let mut params = tool("slow");
    params["task"] = json!({});
    let started = Instant::now();

    let task = peer.call("tools/call", params).await["result"]["task"].clone();
    assert_eq!(started.elapsed().as_secs(), 0);
    assert!(notes.take().is_empty());
    let wait = json!({ "taskId": task["taskId"] });
    let (response, _) =
        crate::tasks::test_server::request_with_notifications(&mut peer, "tasks/result", wait)
            .await;

    assert_eq!(started.elapsed().as_secs(), 30);
    let text = response["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("timed out"), "{response}");
    assert_eq!(notes.take()[0], "tools/call tool_error");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_task_is_not_timed_out() {
    let slow = Tool::new("slow", async || {
        tokio::time::sleep(60 * SECOND).await;
        Ok("late".to_owned())
    });
    let limit = Timeout::new(30 * SECOND).when(|it| it.tool() == Some("slow"), 90 * SECOND);
    let server = Server::new("desk", "1")
        .tool(slow.task(turnbuckle_server::TaskSupport::Optional))
        .layer(limit);
    let mut peer = Peer::initialized(server, "2025-11-25", json!({})).await;
    let mut params = tool("slow");
    params["task"] = json!({});
    let task = peer.call("tools/call", params).await["result"]["task"].clone();

    let wait = json!({ "taskId": task["taskId"] });
    let (response, _) =
        crate::tasks::test_server::request_with_notifications(&mut peer, "tasks/result", wait)
            .await;

    assert_eq!(response["result"]["content"][0]["text"], "late");
}
