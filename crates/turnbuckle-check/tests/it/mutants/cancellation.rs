//! Requests that nobody wants answered any more: not quite right.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use turnbuckle_check::{CheckOptions, ServerTarget, check_server, report::RuleStatus};
use turnbuckle_protocol::revision::Revision;

use crate::mutant::{IncomingMessage, Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("cancellation.no-answer", "never stops what was begun")
            .on_ndjson()
            .map_received(|incoming| {
                let message = &incoming.message;
                // A text is the id of who listens, which is another matter.
                let number = message["params"]["requestId"].is_number();
                if message["method"] == "notifications/cancelled" && number {
                    incoming.message = json!(null);
                }
            }),
        Mutant::new("cancellation.strays-ignored", "answers a stray cancellation")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.message["params"]["requestId"] == "check-never-asked" {
                    let error = json!({ "code": -32602, "message": "no such request" });
                    incoming.response = Some(json!({ "jsonrpc": "2.0", "error": error, "id": 9999 }));
                }
            }),
        Mutant::new("cancellation.survived", "is never the same after a cancellation")
            .in_revision(Revision::V2025_11_25)
            .on_ndjson()
            .map_received(forgets_the_next()),
        Mutant::new("cancellation.own-requests", "cancels what the client has asked")
            .in_revision(Revision::V2025_11_25)
            .on_ndjson()
            .map_sent(|outgoing| {
                let asked = outgoing.request.as_ref();
                if let Some(asked) = asked.filter(|asked| asked["params"]["name"] == "talk") {
                    let params = json!({ "requestId": asked["id"] });
                    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                    outgoing.before.push(cancelled);
                }
            }),
    ]
}

/// Loses the request that follows a cancelled one.
fn forgets_the_next() -> impl Fn(&mut IncomingMessage) + Send + Sync {
    let (last, loses) = (Mutex::new(Value::Null), AtomicBool::new(false));
    move |incoming| {
        let message = &mut incoming.message;
        if message["method"] == "notifications/cancelled" {
            let crosses = message["params"]["requestId"] == *last.lock().unwrap();
            loses.store(crosses, Ordering::Relaxed);
        }
        if message["method"] == "ping" {
            *last.lock().unwrap() = message["id"].clone();
            if loses.swap(false, Ordering::Relaxed) {
                *message = Value::Null;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}

/// Answers everything in the same way, and is gone with the first cancellation.
async fn die_of_a_cancellation(wire: DuplexStream) {
    let (reader, mut writer) = tokio::io::split(wire);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "notifications/cancelled" {
            return;
        }
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "ttlMs": 0, "cacheScope": "private",
        });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let line = format!("{answer}\n");
        writer.write_all(line.as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_gone_before_it_can_be_asked_again_has_not_survived() {
    let target = ServerTarget::streams("fragile", || async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(die_of_a_cancellation(far));
        Ok(tokio::io::split(near))
    });
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2026_07_28];
    options.only = vec!["cancellation.survived".to_owned()];

    let report = check_server(&target, &options).await.unwrap();

    let (_, result) = report.results().next().unwrap();
    assert_eq!(result.status(), RuleStatus::Fail, "{:?}", result.outcome);
}
