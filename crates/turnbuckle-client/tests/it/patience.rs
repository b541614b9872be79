//! How long a call is waited for when it is not the server that takes its time.

use std::{future::IntoFuture, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnbuckle_client::{CallError, Client, ClientBuilder, FormRequest, Timeouts};

use crate::fake_lines::{FakeServer, LEGACY};

const MINUTE: Duration = Duration::from_secs(60);

/// A client whose user takes five minutes for everything.
fn thoughtful() -> ClientBuilder {
    Client::builder("test", "1").on_form_elicitation(|form: FormRequest| async move {
        sleep(5 * MINUTE).await;
        form.accept(json!({}))
    })
}

fn form() -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

#[tokio::test(start_paused = true)]
async fn the_server_is_not_silent_while_its_own_question_is_open() {
    for revision in &LEGACY[3..] {
        let server = FakeServer::legacy(revision);
        server.hold("tools/call");
        let client = server.connect_as(thoughtful()).await;
        let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
        let asked = server.next("tools/call").await;

        server.ask("elicitation/create", form()).await;
        sleep(MINUTE * 5 / 6).await;
        server.reply(&asked, json!({ "content": [] })).await;

        call.await.unwrap().unwrap();
        assert_eq!(server.count("notifications/cancelled"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn once_it_has_its_answer_silence_counts_again() {
    let server = FakeServer::legacy("2025-11-25");
    server.hold("tools/call");
    let client = server.connect_as(thoughtful()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    server.next("tools/call").await;

    server.ask("elicitation/create", form()).await;
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
async fn a_question_that_is_taken_back_is_no_silence_either() {
    let server = FakeServer::legacy("2025-11-25");
    server.hold("tools/call");
    let client = server.connect_as(thoughtful()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    let asked = server.next("tools/call").await;

    let question = server.request("elicitation/create", form()).await;
    sleep(Duration::from_secs(170)).await;
    let cancelled = json!({ "requestId": question });
    server.notify("notifications/cancelled", cancelled).await;
    sleep(Duration::from_secs(50)).await;
    server.reply(&asked, json!({ "content": [] })).await;

    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_without_end_ends_with_the_total() {
    let server = FakeServer::legacy("2025-11-25");
    server.hold("tools/call");
    let never = Client::builder("test", "1").on_form_elicitation(|form: FormRequest| async move {
        std::future::pending::<()>().await;
        form.accept(json!({}))
    });
    let client = server.connect_as(never).await;
    let begun = Instant::now();
    let call = tokio::spawn(client.call_tool("ask", json!({})).into_future());
    server.next("tools/call").await;

    server.request("elicitation/create", form()).await;

    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    assert_eq!(begun.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn all_rounds_of_a_call_together_have_one_total() {
    let server = FakeServer::modern();
    server.hold("tools/call");
    let client = server.connect().await;
    let patience = Timeouts {
        idle: 4 * MINUTE,
        total: 10 * MINUTE,
    };
    let begun = Instant::now();
    let call = client.call_tool("slow", json!({})).timeouts(patience);
    let call = tokio::spawn(call.into_future());

    for _ in 0..3 {
        let asked = server.next("tools/call").await;
        sleep(3 * MINUTE).await;
        let again = json!({ "resultType": "input_required", "requestState": "again" });
        server.reply(&asked, again).await;
    }

    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit, .. } if limit == 10 * MINUTE),
        "{error:?}"
    );
    assert_eq!(begun.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn what_the_user_takes_between_rounds_is_not_counted() {
    let server = FakeServer::modern();
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
    let client = server.connect_as(thoughtful()).await;

    client.call_tool("ask", json!({})).await.unwrap();
}
