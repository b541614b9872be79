//! Selection of tool calls.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_check::{CheckOptions, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Server, Tool, ndjson::NdjsonServer};

use crate::mutant::Mutant;

#[derive(Deserialize, JsonSchema)]
struct Where {
    /// The file to erase.
    path: String,
}

/// Returns a server with a tool that writes, and the recorded arguments of its calls.
fn server_with_eraser(called: &Arc<Mutex<Vec<String>>>) -> Server {
    let called = Arc::clone(called);
    let erase = move |Where { path }: Where| {
        called.lock().unwrap().push(path);
        async { Ok("Erased.") }
    };
    Server::new("eraser", "1.0").tool(Tool::new("erase", erase).description("Erases a file"))
}

fn on_ndjson(server: Server) -> ServerTarget {
    ServerTarget::streams("eraser", move || {
        let server = server.clone();
        async move {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(NdjsonServer::new(server).serve(reader, writer));
            Ok(tokio::io::split(near))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn tools_that_write_are_called_only_with_allowed_arguments() {
    let called = Arc::default();
    let target = on_ndjson(server_with_eraser(&called));
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    let report = check_server(&target, &options).await.unwrap();
    assert!(called.lock().unwrap().is_empty());
    assert_eq!(report.skipped.len(), 1);

    options.calls = vec![("erase".to_owned(), json!({ "path": "draft.txt" }))];
    let report = check_server(&target, &options).await.unwrap();
    let called = called.lock().unwrap();
    assert!(!called.is_empty() && called.iter().all(|path| path == "draft.txt"));
    let misused = report
        .results()
        .find(|(_, result)| result.rule.id == "tools.arguments-validated");
    assert_eq!(misused.unwrap().1.status(), RuleStatus::NotTested);
}

#[tokio::test(start_paused = true)]
async fn call_that_takes_too_long_is_cancelled() {
    let received = Arc::new(Mutex::new(Vec::<Value>::new()));
    let recorded = Arc::clone(&received);
    let mutant = Mutant::new("tools.output-fits", "never ends")
        .on_ndjson()
        .map_received(move |incoming| {
            let message = &mut incoming.message;
            recorded.lock().unwrap().push(message.clone());
            if message["params"]["name"] == "wait" {
                *message = Value::Null;
            }
        });
    mutant.check().await;

    let received = received.lock().unwrap();
    let mut cancelled = received
        .iter()
        .filter(|message| message["params"]["reason"] == "Timeout.");
    let id = cancelled
        .next()
        .map(|message| &message["params"]["requestId"]);
    let call = received
        .iter()
        .find(|message| message["params"]["name"] == "wait");
    assert_eq!(id, call.map(|message| &message["id"]));
    assert!(id.is_some());
}

#[tokio::test(start_paused = true)]
async fn missing_notifications_of_a_failed_call_are_not_tested() {
    for (rule, tool) in [
        ("logging.respects-level", "talk"),
        ("subscriptions.only-subscribed", "stir"),
        ("subscriptions.stops", "stir"),
    ] {
        let mutant = Mutant::new(rule, "works once")
            .on_ndjson()
            .map_received(move |incoming| {
                let params = incoming.message.pointer("/params");
                let again = params.is_some_and(|params| {
                    params["name"] == tool && params["_meta"]["progressToken"].is_null()
                });
                if again {
                    incoming.message = Value::Null;
                }
            });
        let report = mutant.check().await;
        let result = report.results().find(|(_, result)| result.rule.id == rule);
        assert_eq!(result.unwrap().1.status(), RuleStatus::NotTested, "{rule}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_finishes_before_its_cancellation_is_not_tested() {
    let warm = Arc::new(AtomicBool::new(false));
    let greet = move || {
        let first = !warm.swap(true, Ordering::Relaxed);
        async move {
            if first {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok("Hello.")
        }
    };
    let tool = Tool::new("greet", greet).description("Greets").read_only();
    let target = on_ndjson(Server::new("warm", "1.0").tool(tool));
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = vec!["cancellation.no-answer".to_owned()];

    let report = check_server(&target, &options).await.unwrap();

    let (_, result) = report.results().next().unwrap();
    assert_eq!(
        result.status(),
        RuleStatus::NotTested,
        "{:?}",
        result.outcome
    );
}
