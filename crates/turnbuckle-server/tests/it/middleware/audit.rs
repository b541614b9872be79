//! The audit log: one line per operation, without delaying calls.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Server,
    middleware::{AuditLog, AuditRecord, AuditSink, JsonLines, RateLimit},
};

use crate::{
    http::test_client::{HttpTestClient, modern, modern_headers},
    middleware::layers::{Notes, server, tool},
    ndjson::test_client::Peer,
};

/// An in-memory file that can block.
#[derive(Clone, Default)]
struct Paper(Arc<Sheet>);

#[derive(Default)]
struct Sheet {
    written: Mutex<Vec<u8>>,
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Paper {
    fn set_shut(&self, shut: bool) {
        *self.0.is_shut.lock().unwrap() = shut;
        self.0.opened.notify_all();
    }

    fn lines(&self) -> Vec<Value> {
        let written = self.0.written.lock().unwrap().clone();
        let lines = String::from_utf8(written).unwrap();
        let parse = |line: &str| serde_json::from_str(line).expect("every line is JSON");
        lines.lines().map(parse).collect()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_shut = self.0.is_shut.lock().unwrap();
        drop(self.0.opened.wait_while(is_shut, |shut| *shut).unwrap());
        self.0.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server with an in-memory audit log. Dropping the server waits for the writer.
fn audited(paper: &Paper) -> Server {
    server().layer(AuditLog::new(JsonLines::new(paper.clone())))
}

#[tokio::test]
async fn an_audit_line_has_caller_operation_and_outcome() {
    let paper = Paper::default();
    let mut caller = HttpTestClient::new(audited(&paper));
    caller.principal = Some(Principal::new("https://issuer.example", "ada"));
    let mut message = modern(
        "tools/call",
        json!({ "name": "count", "arguments": { "count": 3 } }),
    );
    message["params"]["_meta"]["traceparent"] =
        json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({ "name": "tests", "version": "2" });

    let request = modern_headers(caller.request(http::Method::POST), &message);
    let response = caller.send(request, message.to_string()).await.json().await;
    assert_eq!(response["result"]["content"][0]["text"], "3");
    drop(caller);

    let lines = paper.lines();
    let [line] = &lines[..] else {
        panic!("one line: {lines:?}")
    };
    let digest: String = Sha256::digest(br#"{"count":3}"#)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(line["method"], "tools/call");
    assert_eq!(line["target"], "count");
    assert_eq!(line["ending"], "completed");
    assert_eq!(line["requestId"], "7");
    assert_eq!(
        line["principal"],
        json!({ "issuer": "https://issuer.example", "subject": "ada" })
    );
    assert_eq!(line["client"], "tests/2");
    assert_eq!(line["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(line["argumentsSha256"], *digest);
    assert!(line["arguments"].is_null(), "only if asked for");
    assert!(line["durationMs"].is_number());
    let at = line["at"].as_str().unwrap();
    assert!(
        at.starts_with("20") && at.ends_with('Z') && at.len() == 24,
        "{at}"
    );
}

#[tokio::test]
async fn arguments_are_logged_only_if_enabled() {
    let paper = Paper::default();
    let log = AuditLog::new(JsonLines::new(paper.clone())).with_arguments();
    let mut peer = Peer::new(server().layer(log));

    let params = json!({ "name": "count", "arguments": { "count": 3 } });
    peer.call_modern("tools/call", params).await;
    peer.finish().await;

    assert_eq!(paper.lines()[0]["arguments"], r#"{"count":3}"#);
}

#[tokio::test]
async fn every_outcome_has_an_audit_line_including_rejections_of_other_layers() {
    let paper = Paper::default();
    let limit = RateLimit::new(3, std::time::Duration::from_secs(3600));
    let mut peer = Peer::new(audited(&paper).layer(limit));
    for name in ["ok", "wrong", "panic", "ok"] {
        peer.call_modern("tools/call", tool(name)).await;
    }
    peer.finish().await;

    let endings: Vec<_> = paper
        .lines()
        .iter()
        .map(|line| (line["ending"].clone(), line["code"].clone()))
        .collect();
    assert_eq!(
        endings,
        [
            (json!("completed"), Value::Null),
            (json!("tool_error"), Value::Null),
            (json!("error"), json!(-32603)),
            (json!("error"), json!(429)),
        ]
    );
}

#[tokio::test]
async fn a_blocked_audit_file_delays_no_call_and_dropped_lines_are_counted() {
    let paper = Paper::default();
    paper.set_shut(true);
    let lines = JsonLines::with_queue(paper.clone(), 2);
    let mut peer = Peer::new(server().layer(AuditLog::new(lines.clone())));

    for _ in 0..20 {
        let response = peer.call_modern("tools/call", tool("ok")).await;
        assert_eq!(response["result"]["content"][0]["text"], "fine");
    }
    let dropped = lines.dropped();
    assert!((17..=18).contains(&dropped), "{dropped}");
    paper.set_shut(false);
    while paper.lines().len() < (20 - dropped) as usize {
        tokio::task::yield_now().await;
    }
    peer.call_modern("tools/call", tool("ok")).await;
    peer.finish().await;
    drop(lines);

    let written = paper.lines();
    assert_eq!(written.len() as u64, 20 - dropped + 1);
    let received = written.iter().filter_map(|line| line["dropped"].as_u64());
    assert_eq!(received.sum::<u64>(), dropped);
}

#[tokio::test]
async fn audit_lines_truncate_client_input() {
    let paper = Paper::default();
    let mut peer = Peer::new(audited(&paper));

    peer.call_modern("tools/call", tool(&"x".repeat(10_000)))
        .await;
    peer.finish().await;

    assert!(paper.lines()[0].to_string().len() < 1000);
}

#[tokio::test]
async fn an_audit_log_may_use_any_writer() {
    struct Noting(Notes);
    impl AuditSink for Noting {
        fn record(&self, record: &AuditRecord<'_>) {
            self.0.note(format!("{} {}", record.method, record.outcome));
        }
    }
    let notes = Notes::default();
    let mut peer = Peer::new(server().layer(AuditLog::new(Noting(notes.clone()))));

    peer.call_modern("prompts/get", json!({ "name": "greet" }))
        .await;

    assert_eq!(notes.take(), ["prompts/get completed"]);
}
