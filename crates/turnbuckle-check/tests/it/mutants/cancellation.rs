//! Cancellation mutants.

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
        Mutant::new("cancellation.no-answer", "ignores cancellations")
            .on_ndjson()
            .map_received(|incoming| {
                let message = &incoming.message;
                // String ids belong to subscriptions.
                let number = message["params"]["requestId"].is_number();
                if message["method"] == "notifications/cancelled" && number {
                    incoming.message = json!(null);
                }
            }),
        Mutant::new("cancellation.strays-ignored", "responds to an unknown cancellation")
            .on_ndjson()
            .map_received(|incoming| {
                if incoming.message["params"]["requestId"] == "check-never-sent" {
                    let error = json!({ "code": -32602, "message": "no such request" });
                    incoming.response = Some(json!({ "jsonrpc": "2.0", "error": error, "id": 9999 }));
                }
            }),
        Mutant::new("cancellation.survived", "drops the request after a cancellation")
            .in_revision(Revision::V2025_11_25)
            .on_ndjson()
            .map_received(drops_the_next()),
        Mutant::new("cancellation.own-requests", "cancels a client's request").for_requirement("cancellation.reference.direction")
            .in_revision(Revision::V2025_11_25)
            .on_ndjson()
            .map_sent(|outgoing| {
                let request = outgoing.request.as_ref();
                if let Some(request) = request.filter(|request| request["params"]["name"] == "talk") {
                    let params = json!({ "requestId": request["id"] });
                    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                    outgoing.before.push(cancelled);
                }
            }),
    ]
}

/// Drops the request after a cancelled one.
fn drops_the_next() -> impl Fn(&mut IncomingMessage) + Send + Sync {
    let (last, drops_next) = (Mutex::new(Value::Null), AtomicBool::new(false));
    move |incoming| {
        let message = &mut incoming.message;
        if message["method"] == "notifications/cancelled" {
            let is_last = message["params"]["requestId"] == *last.lock().unwrap();
            drops_next.store(is_last, Ordering::Relaxed);
        }
        if message["method"] == "ping" {
            *last.lock().unwrap() = message["id"].clone();
            if drops_next.swap(false, Ordering::Relaxed) {
                *message = Value::Null;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}

#[tokio::test(start_paused = true)]
async fn response_that_crosses_its_cancellation_is_not_a_violation() {
    let variant = Mutant::new("cancellation.no-answer", "responds when it is cancelled")
        .on_ndjson()
        .map_received(|incoming| {
            let id = &incoming.message["params"]["requestId"];
            if incoming.message["method"] == "notifications/cancelled" && id.is_number() {
                let result = json!({ "resultType": "complete", "content": [] });
                incoming.response = Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            }
        });

    let report = variant.check_only(&[variant.violates]).await;

    let (_, result) = report.results().next().unwrap();
    assert_eq!(
        result.status(),
        RuleStatus::NotTested,
        "{:?}",
        result.outcome
    );
}

/// Returns the same result for every request, and exits at the first cancellation.
async fn exit_on_cancellation(wire: DuplexStream) {
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
        let response = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let line = format!("{response}\n");
        writer.write_all(line.as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn exit_on_cancellation_is_a_violation() {
    let target = ServerTarget::streams("fragile", || async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(exit_on_cancellation(far));
        Ok(tokio::io::split(near))
    });
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2026_07_28];
    options.only = vec!["cancellation.survived".to_owned()];

    let report = check_server(&target, &options).await.unwrap();

    let (_, result) = report.results().next().unwrap();
    assert_eq!(result.status(), RuleStatus::Fail, "{:?}", result.outcome);
}
