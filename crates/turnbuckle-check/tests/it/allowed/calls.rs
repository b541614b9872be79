//! Which calls are made: none that nobody has allowed, and none that nobody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_check::{Options, Target, check_server, report::Grade};
use turnbuckle_protocol::revision::Revision;
use turnbuckle_server::{Server, Tool, ToolError, lines::Lines};

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

fn on_lines(server: Server) -> Target {
    Target::streams("eraser", move || {
        let server = server.clone();
        async move {
            let (near, far) = tokio::io::duplex(64 * 1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(Lines::new(server).serve(reader, writer));
            Ok(tokio::io::split(near))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn what_writes_is_called_as_the_user_allows_and_not_otherwise() {
    let called = Arc::default();
    let target = on_lines(erasing(&called));
    let mut options = Options::default();
    options.revisions = vec![Revision::V2025_11_25];
    let report = check_server(&target, &options).await.unwrap();
    assert!(called.lock().unwrap().is_empty());
    assert_eq!(report.left_out.len(), 1);

    options.calls = vec![("erase".to_owned(), json!({ "path": "draft.txt" }))];
    let report = check_server(&target, &options).await.unwrap();
    let called = called.lock().unwrap();
    assert!(!called.is_empty() && called.iter().all(|path| path == "draft.txt"));
    let misused = report
        .rulings()
        .find(|(_, ruling)| ruling.rule.id == "tools.arguments-validated");
    assert_eq!(misused.unwrap().1.grade(), Grade::NotTested);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_given_up() {
    let heard = Arc::new(Mutex::new(Vec::<Value>::new()));
    let taken_down = Arc::clone(&heard);
    let mutant = Mutant::new("tools.output-fits", "never ends")
        .on_lines()
        .hears(move |hearing| {
            let message = &mut hearing.message;
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
            .on_lines()
            .hears(move |hearing| {
                let params = hearing.message.pointer("/params");
                let again = params.is_some_and(|params| {
                    params["name"] == tool && params["_meta"]["progressToken"].is_null()
                });
                if again {
                    hearing.message = Value::Null;
                }
            });
        let report = mutant.check().await;
        let ruling = report.rulings().find(|(_, ruling)| ruling.rule.id == rule);
        assert_eq!(ruling.unwrap().1.grade(), Grade::NotTested, "{rule}");
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
    let target = on_lines(Server::new("warm", "1.0").tool(tool));
    let mut options = Options::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = vec!["cancellation.no-answer".to_owned()];

    let report = check_server(&target, &options).await.unwrap();

    let (_, ruling) = report.rulings().next().unwrap();
    assert_eq!(ruling.grade(), Grade::NotTested, "{:?}", ruling.verdict);
}
