//! Two calls lose their streams: each resumes with its own missed events only.

use std::{collections::HashMap, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool};
use turnbuckle_spec_coverage::req;

use crate::http::test_client::{HttpTestClient, HttpTestResponse, Stream};

const STEPS: u32 = 30;

#[derive(Deserialize, JsonSchema)]
struct Work {
    name: String,
}

/// A server with calls that report progress and a log message per permit.
fn server() -> (Server, HashMap<String, Arc<Semaphore>>) {
    let permits: HashMap<_, _> = ["a", "b"]
        .map(|name| (name.to_owned(), Arc::new(Semaphore::new(0))))
        .into();
    let gates = permits.clone();
    let work = Tool::new("work", move |work: Work, cx: Context| {
        let gate = gates[&work.name].clone();
        async move {
            for step in 1..=STEPS {
                gate.acquire().await.unwrap().forget();
                cx.progress(step, STEPS).await;
                cx.log(LogLevel::Info, format!("{} {step}", work.name))
                    .await;
            }
            Ok(format!("{} is done", work.name))
        }
    });
    (Server::new("two", "1").tool(work), permits)
}

/// All messages of one call in order, as [`describe`] describes them.
fn all_of(id: i64, name: &str) -> Vec<String> {
    let steps = (1..=STEPS).flat_map(|step| {
        [
            format!("progress {step} of {id}"),
            format!("log {name} {step}"),
        ]
    });
    steps
        .chain([format!("answer {id}: {name} is done")])
        .collect()
}

fn describe(message: &Value) -> String {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("notifications/progress") => format!(
            "progress {} of {}",
            params["progress"], params["progressToken"]
        )
        .replace(".0 ", " "),
        Some("notifications/message") => format!("log {}", params["data"].as_str().unwrap()),
        Some(other) => other.to_owned(),
        None => {
            let text = message["result"]["content"][0]["text"].as_str().unwrap();
            format!("answer {}: {text}", message["id"])
        }
    }
}

/// Reads some messages; returns them, and the id of the last event.
async fn read(http_response: HttpTestResponse, most: usize) -> (Stream, String, Vec<String>) {
    let mut stream = http_response.stream();
    let (mut last, mut messages) = (String::new(), Vec::new());
    while messages.len() < most
        && let Some(event) = stream.event().await
    {
        last = event.last_event_id;
        // An event without data only carries an id to resume from.
        if !event.data.is_empty() {
            messages.push(describe(&serde_json::from_str(&event.data).unwrap()));
        }
    }
    (stream, last, messages)
}

async fn settle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn two_streams_cut_mid_call_each_get_what_they_missed_once_and_in_order() {
    req!(
        "http.resume.last-event-id",
        "http.resume.same-stream",
        "http.sse.disconnect-not-cancel",
        "http.sse.response-eventually"
    );
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (server, permits) = server();
        let caller = HttpTestClient::new(server.clone())
            .in_session(revision)
            .await;
        let call = |id, name| caller.tool(id, "work", json!({ "name": name }));
        permits["a"].add_permits(5);
        permits["b"].add_permits(5);
        let (a, last_a, mut got_a) = read(call(1, "a").await, 3).await;
        let (b, last_b, mut got_b) = read(call(2, "b").await, 7).await;
        let mut general = caller.get(None).await.stream();

        drop((a, b));
        // Both calls continue without a reader, one further than the other, and other events occur.
        permits["b"].add_permits(10);
        settle().await;
        server.tools_changed();
        permits["a"].add_permits(20);
        settle().await;

        let (resumed_b, resumed_a) =
            tokio::join!(caller.get(Some(&last_b)), caller.get(Some(&last_a)));
        // Events emitted from here on arrive while the reader catches up.
        permits["a"].add_permits(5);
        permits["b"].add_permits(15);
        let ((_, _, rest_a), (_, _, rest_b)) =
            tokio::join!(read(resumed_a, usize::MAX), read(resumed_b, usize::MAX));
        got_a.extend(rest_a);
        got_b.extend(rest_b);

        assert_eq!(got_a, all_of(1, "a"), "{revision}");
        assert_eq!(got_b, all_of(2, "b"), "{revision}");
        let received = loop {
            let event = general.event().await.unwrap();
            if !event.data.is_empty() {
                break describe(&serde_json::from_str(&event.data).unwrap());
            }
        };
        assert_eq!(received, "notifications/tools/list_changed", "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_streams_that_break_again_and_again_lose_and_repeat_nothing() {
    let (server, permits) = server();
    let caller = HttpTestClient::new(server).in_session("2025-11-25").await;
    let steps = permits.clone();
    let feeding = tokio::spawn(async move {
        for _ in 0..STEPS {
            steps["a"].add_permits(1);
            steps["b"].add_permits(1);
            tokio::task::yield_now().await;
        }
    });
    let follow = async |id: i64, name: &str, at_once: usize| {
        let mut http_response = caller.tool(id, "work", json!({ "name": name })).await;
        let mut got = Vec::new();
        loop {
            let (stream, last, messages) = read(http_response, at_once).await;
            drop(stream);
            got.extend(messages);
            if got.last().is_some_and(|last| last.starts_with("answer")) {
                return got;
            }
            http_response = caller.get(Some(&last)).await;
        }
    };

    let (got_a, got_b) = tokio::join!(follow(1, "a", 2), follow(2, "b", 3));

    feeding.await.unwrap();
    assert_eq!(got_a, all_of(1, "a"));
    assert_eq!(got_b, all_of(2, "b"));
}
