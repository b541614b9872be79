//! Lost responses on HTTP in 2026-07-28: which requests are sent again.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle_client::{CallError, Client};
use turnbuckle_protocol::{
    timeouts::Timeouts,
    types::{CompleteParams, CompletionReference},
};
use turnbuckle_spec_coverage::req;

use crate::servers::{
    mock_http::{MockHttpServer, MockResponse, RecordedRequest},
    mock_mcp_http::{MODERN, connect, posted_messages, server},
};

/// The way in which a response is lost.
#[derive(Clone, Copy, Debug)]
enum LossKind {
    /// The stream ends without a response.
    Ended,
    /// The connection breaks in the middle of the stream.
    Cut,
    /// The connection breaks before the response.
    Unanswered,
}

const LOSS_KINDS: [LossKind; 3] = [LossKind::Ended, LossKind::Cut, LossKind::Unanswered];

impl LossKind {
    fn reply(self) -> MockResponse {
        match self {
            Self::Ended => {
                MockResponse::events(|events| async move { events.text(": started\n\n") })
            }
            Self::Cut => MockResponse::events(|events| async move {
                events.text(": started\n\n");
                events.cut();
            }),
            Self::Unanswered => MockResponse::raw(""),
        }
    }
}

/// A server that loses the first `lost` responses to each request, except the probe.
fn losing_server(loss: LossKind, lost: usize) -> MockHttpServer {
    let counts: Mutex<HashMap<String, usize>> = Mutex::default();
    let start_connect = AtomicBool::new(true);
    server(MODERN, move |recorded| {
        let response = || Some(MockResponse::result(recorded, &everything()));
        if start_connect.swap(false, Ordering::SeqCst) {
            return response();
        }
        let mut counts = counts.lock().unwrap();
        let request = format!("{} {}", recorded.rpc(), recorded.json()["params"]["name"]);
        let times = counts.entry(request).or_default();
        *times += 1;
        if *times <= lost {
            Some(loss.reply())
        } else {
            response()
        }
    })
}

/// A result that is valid for every method.
fn everything() -> Value {
    let tool = |name: &str, annotations: Value| {
        let schema = json!({ "type": "object" });
        json!({ "name": name, "inputSchema": schema, "annotations": annotations })
    };
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {}, "resources": {}, "prompts": {}, "completions": {} },
        "tools": [
            tool("reads", json!({ "readOnlyHint": true })),
            tool("sets", json!({ "idempotentHint": true })),
            tool("adds", json!({ "readOnlyHint": false })),
        ],
        "resources": [], "resourceTemplates": [], "prompts": [],
        "contents": [], "messages": [], "content": [],
        "completion": { "values": [] },
        "ttlMs": 0, "cacheScope": "private",
    })
}

/// Sends every request that is safe to repeat; `tools/list` first, because it has the annotations.
async fn make_safe_requests(client: &Client) -> Vec<Result<(), CallError>> {
    let completion = CompleteParams::new(CompletionReference::prompt("a"), "b", "c");
    vec![
        client.list_tools(None).await.map(drop),
        client.list_resources(None).await.map(drop),
        client.list_resource_templates(None).await.map(drop),
        client.list_prompts(None).await.map(drop),
        client.read_resource("a://b").await.map(drop),
        client.get_prompt("a", [("b", "c")]).await.map(drop),
        client.complete(completion).await.map(drop),
        client.ping().await,
        client.call_tool("reads", json!({})).await.map(drop),
        client.call_tool("sets", json!({})).await.map(drop),
    ]
}

fn without_id(recorded: &RecordedRequest) -> Value {
    let mut message = recorded.json();
    message["id"] = Value::Null;
    message["params"]["_meta"]["progressToken"] = Value::Null;
    message
}

#[tokio::test(start_paused = true)]
async fn a_read_only_request_with_a_lost_response_is_sent_again_under_a_new_id() {
    req!("http.sse.reissue");
    for loss in LOSS_KINDS {
        let mock = losing_server(loss, 1);
        let client = connect(&mock, MODERN).await;

        for (number, outcome) in make_safe_requests(&client).await.into_iter().enumerate() {
            assert!(outcome.is_ok(), "{loss:?} {number}: {outcome:?}");
        }

        let requests = mock.requests();
        let (_, requests) = requests.split_first().unwrap();
        assert_eq!(requests.len(), 20, "each of ten requests twice");
        for pair in requests.chunks(2) {
            assert_ne!(pair[0].json()["id"], pair[1].json()["id"]);
            assert_eq!(without_id(&pair[0]), without_id(&pair[1]));
            assert_eq!(pair[1].header("last-event-id"), "");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_only_once() {
    for loss in LOSS_KINDS {
        let mock = losing_server(loss, 2);
        let client = connect(&mock, MODERN).await;

        let error = client.list_prompts(None).await.unwrap_err();

        assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
        assert_eq!(posted_messages(&mock, "prompts/list").len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_possible_side_effects_is_not_sent_again() {
    for loss in LOSS_KINDS {
        // One tool is annotated as destructive, the other was never listed.
        for tool in ["adds", "unlisted"] {
            let mock = losing_server(loss, 1);
            let client = connect(&mock, MODERN).await;
            client.list_tools(None).await.unwrap();

            let error = client.call_tool(tool, json!({})).await.unwrap_err();

            assert!(
                matches!(
                    error,
                    CallError::EffectUnknown {
                        method: "tools/call",
                        ..
                    }
                ),
                "{error:?}"
            );
            assert_eq!(posted_messages(&mock, "tools/call").len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_with_a_lost_response_is_sent_again_once() {
    for loss in LOSS_KINDS {
        let first = Mutex::new(true);
        let mock = server(MODERN, move |_| {
            let first = std::mem::take(&mut *first.lock().unwrap());
            first.then(|| loss.reply())
        });

        let client = connect(&mock, MODERN).await;

        client.call_tool("a", json!({})).await.unwrap();
        let probes = posted_messages(&mock, "server/discover");
        assert_eq!(probes.len(), 2, "{loss:?}");
        assert_ne!(probes[0].json()["id"], probes[1].json()["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_shares_the_total_timeout() {
    let first = AtomicBool::new(true);
    let mock = server(MODERN, move |recorded| {
        if recorded.rpc() != "prompts/list" {
            return Some(MockResponse::result(recorded, &everything()));
        }
        let is_first = first.swap(false, Ordering::SeqCst);
        Some(MockResponse::events(move |events| async move {
            events.text(": started\n\n");
            if is_first {
                tokio::time::sleep(Duration::from_secs(40)).await;
            } else {
                std::future::pending::<()>().await;
            }
        }))
    });
    let client = connect(&mock, MODERN).await;
    let patience = Timeouts {
        idle: Duration::from_secs(60),
        total: Duration::from_secs(60),
    };

    let started_at = Instant::now();
    let error = client.list_prompts(None).timeouts(patience).await;

    let error = error.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    assert_eq!(posted_messages(&mock, "prompts/list").len(), 2);
    assert_eq!(started_at.elapsed().as_secs(), 60);
}
