//! Raw ndjson clients, for behavior that our client does not have.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split,
};
use turnbuckle_check::{
    CheckOptions, ClientTarget, MockServerAddress, Report, check_client,
    report::{RuleOutcome, RuleStatus},
};
use turnbuckle_protocol::revision::Revision;

/// A raw connection.
struct RawConnection {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl RawConnection {
    async fn open(address: &MockServerAddress) -> Self {
        let (reader, writer) = split(address.connect().await.unwrap());
        let lines = BufReader::new(reader).lines();
        Self { lines, writer }
    }

    /// Sends a line; returns whether the peer reads it.
    async fn send(&mut self, message: &Value) -> bool {
        self.raw(format!("{message}\n").as_bytes()).await
    }

    async fn raw(&mut self, bytes: &[u8]) -> bool {
        self.writer.write_all(bytes).await.is_ok()
    }

    async fn request(&mut self, id: i64, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request).await;
        while let Ok(Some(line)) = self.lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
        Value::Null
    }

    async fn initialize(&mut self) {
        let us = json!({ "name": "unusual", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us });
        self.request(1, "initialize", &hello).await;
    }
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

async fn check<F>(
    only: &[&str],
    run: impl Fn(MockServerAddress) -> F + Send + Sync + 'static,
) -> Report
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut options = CheckOptions::default();
    options.revisions = vec![Revision::V2025_11_25];
    options.only = only.iter().map(|&rule| rule.to_owned()).collect();
    let target = ClientTarget::on_ndjson("unusual", run);
    check_client(&target, &options).await.unwrap()
}

fn results_with(report: &Report, status: RuleStatus) -> Vec<(&'static str, RuleOutcome)> {
    let results = report.results().map(|(_, result)| result);
    results
        .filter(|result| result.status() == status)
        .map(|result| (result.rule.id, result.outcome.clone()))
        .collect()
}

// The clock is not paused: a client that never stops would block it.
#[tokio::test]
async fn endless_client_is_stopped() {
    let report = check(&["client.base.json-rpc"], |address| async move {
        let mut talk = RawConnection::open(&address).await;
        talk.initialize().await;
        talk.send(&initialized()).await;
        for id in 2.. {
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            if !talk.send(&ping).await {
                return;
            }
        }
    })
    .await;

    assert_eq!(report.skipped.len(), 1, "{:?}", report.skipped);
    assert_eq!(report.count(RuleStatus::Pass), 1);
}

#[tokio::test(start_paused = true)]
async fn line_with_invalid_utf8_is_a_violation() {
    let report = check(&["client.stdio"], |address| async move {
        let mut talk = RawConnection::open(&address).await;
        talk.initialize().await;
        talk.send(&initialized()).await;
        let latin =
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\"\xfc\"}}\n";
        talk.raw(latin).await;
    })
    .await;

    let failed = results_with(&report, RuleStatus::Fail);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, "client.stdio.only-messages");
}

/// The rules that could confuse two processes.
const SEPARATE_PROCESS_RULES: &[&str] = &[
    "client.base.id-unique",
    "client.lifecycle.initialized",
    "client.lifecycle.initialize-not-cancelled",
    "client.cancellation.own-request",
];

#[tokio::test(start_paused = true)]
async fn messages_of_two_processes_are_separate() {
    let report = check(SEPARATE_PROCESS_RULES, |address| async move {
        let (mut newer, mut older) = (RawConnection::open(&address).await, RawConnection::open(&address).await);
        newer.request(1, "server/discover", &json!({})).await;
        older.initialize().await;
        let given_up = json!({ "requestId": 1, "reason": "there is another connection" });
        newer
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up }))
            .await;
        older.send(&initialized()).await;
        older.request(2, "tools/list", &json!({})).await;
    })
    .await;

    assert_eq!(report.count(RuleStatus::Pass), SEPARATE_PROCESS_RULES.len());
}
