//! Timeouts while the server waits for the client.

use std::{future::IntoFuture, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnbuckle_client::{CallError, Client, ClientBuilder, FormRequest, Timeouts};

use crate::servers::mock_ndjson::{LEGACY, MockServer};

const MINUTE: Duration = Duration::from_secs(60);

/// A client with callbacks that take five minutes.
fn slow_client() -> ClientBuilder {
    Client::builder("test", "1").on_form_elicitation(|form: FormRequest| async move {
        sleep(5 * MINUTE).await;
        form.accept(json!({}))
    })
}

fn form() -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

#[tokio::test(start_paused = true)]
async fn a_server_with_an_open_request_is_not_idle() {
    for revision in &LEGACY[3..] {
        let server = MockServer::legacy(revision);
        server.withhold("tools/call");
        let client = server.connect_with(slow_client()).await;
        let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
        let requested = server.next("tools/call").await;

        server.call_client("elicitation/create", form()).await;
        sleep(MINUTE * 5 / 6).await;
        server.reply(&requested, json!({ "content": [] })).await;

        call.await.unwrap().unwrap();
        assert_eq!(server.count("notifications/cancelled"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_idle_timeout_restarts_after_the_response_to_a_server_request() {
    let server = MockServer::legacy("2025-11-25");
    server.withhold("tools/call");
    let client = server.connect_with(slow_client()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    server.next("tools/call").await;

    server.call_client("elicitation/create", form()).await;
    let answered = Instant::now();

    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit, .. } if limit == MINUTE),
        "{error:?}"
    );
    let waited = answered.elapsed();
    assert!(
        waited >= MINUTE * 9 / 10 && waited <= MINUTE * 11 / 10,
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_server_request_restarts_the_idle_timeout() {
    let server = MockServer::legacy("2025-11-25");
    server.withhold("tools/call");
    let client = server.connect_with(slow_client()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    let requested = server.next("tools/call").await;

    let input_request = server.request("elicitation/create", form()).await;
    sleep(Duration::from_secs(170)).await;
    let cancelled = json!({ "requestId": input_request });
    server.notify("notifications/cancelled", cancelled).await;
    sleep(Duration::from_secs(50)).await;
    server.reply(&requested, json!({ "content": [] })).await;

    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_endless_server_request_ends_with_the_total_timeout() {
    let server = MockServer::legacy("2025-11-25");
    server.withhold("tools/call");
    let never = Client::builder("test", "1").on_form_elicitation(|form: FormRequest| async move {
        std::future::pending::<()>().await;
        form.accept(json!({}))
    });
    let client = server.connect_with(never).await;
    let started_at = Instant::now();
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    server.next("tools/call").await;

    server.request("elicitation/create", form()).await;

    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    assert_eq!(started_at.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn all_round_trips_of_a_call_share_the_total_timeout() {
    let server = MockServer::modern();
    server.withhold("tools/call");
    let client = server.connect().await;
    let patience = Timeouts {
        idle: 4 * MINUTE,
        total: 10 * MINUTE,
    };
    let started_at = Instant::now();
    let call = client.call_tool("slow", json!({})).timeouts(patience);
    let call = tokio::spawn(call.into_future());

    for _ in 0..3 {
        let requested = server.next("tools/call").await;
        sleep(3 * MINUTE).await;
        let again = json!({ "resultType": "input_required", "requestState": "again" });
        server.reply(&requested, again).await;
    }

    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit, .. } if limit == 10 * MINUTE),
        "{error:?}"
    );
    assert_eq!(started_at.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn resolving_input_requests_does_not_count_toward_the_total_timeout() {
    let server = MockServer::modern();
    let mut rounds = 0;
    server.on("tools/call", move |_| {
        rounds += 1;
        match rounds {
            4 => json!({ "content": [] }),
            _ => json!({
                "resultType": "input_required",
                "inputRequests": { "a": { "method": "elicitation/create", "params": form() } },
            }),
        }
    });
    let client = server.connect_with(slow_client()).await;

    client.call_tool("ask", json!({})).await.unwrap();
}
