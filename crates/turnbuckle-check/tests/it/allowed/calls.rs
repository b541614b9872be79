//! Which calls are made: none that nobody has allowed, and none that nobody waits for.

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
use turnbuckle_server::{Server, Tool, ToolError, ndjson::NdjsonServer};

use crate::mutant::Mutant;

#[derive(Deserialize, JsonSchema)]
struct Where {
    /// What to erase.
    path: String,
}

/// A server with a tool that writes, and takes down what it was called with.
fn erasing(called: &Arc<Mutex<Vec<String>>>) -> Server {
    let called = Arc::clone(called);
    let erase = move |Where { path }: Where| {
        called.lock().unwrap().push(path);
        async { Ok::<_, ToolError>("It is gone.") }
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
async fn what_writes_is_called_as_the_user_allows_and_not_otherwise() {
    let called = Arc::default();
    let target = on_ndjson(erasing(&called));
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
async fn a_call_that_takes_too_long_is_given_up() {
    let heard = Arc::new(Mutex::new(Vec::<Value>::new()));
    let taken_down = Arc::clone(&heard);
    let mutant = Mutant::new("tools.output-fits", "never ends")
        .on_ndjson()
        .map_received(move |incoming| {
            let message = &mut incoming.message;
            taken_down.lock().unwrap().push(message.clone());
            if message["params"]["name"] == "wait" {
                *message = Value::Null;
            }
        });
    mutant.check().await;

    let heard = heard.lock().unwrap();
    let mut cancelled = heard
        .iter()
        .filter(|message| message["params"]["reason"] == "It takes too long.");
    let id = cancelled
        .next()
        .map(|message| &message["params"]["requestId"]);
    let call = heard
        .iter()
        .find(|message| message["params"]["name"] == "wait");
    assert_eq!(id, call.map(|message| &message["id"]));
    assert!(id.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_silence_of_a_call_without_an_answer_proves_nothing() {
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
async fn what_is_done_before_it_is_cancelled_was_not_to_be_stopped() {
    let warm = Arc::new(AtomicBool::new(false));
    let greet = move || {
        let first = !warm.swap(true, Ordering::Relaxed);
        async move {
            if first {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok::<_, ToolError>("Hello.")
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
