//! The audit log and the metrics: what is recorded of requests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::LifecycleMode;
use turnbuckle_gateway::{AuditRecord, Gateway, Outcome, RunningGateway, Upstream};
use turnbuckle_protocol::Principal;
use turnbuckle_server::testing::{self, Peer};

use crate::{
    policy::stateless_call,
    upstreams::{client, desk, upstream},
};

type Records = Arc<Mutex<Vec<AuditRecord>>>;

async fn recorded(change: impl FnOnce(Upstream) -> Upstream) -> (RunningGateway, Records) {
    let records = Records::default();
    let sink = Arc::clone(&records);
    let desk = change(upstream("desk", LifecycleMode::Legacy, desk()));
    let gateway = Gateway::new("gateway", "1")
        .upstream(desk)
        .upstream(upstream(
            "other",
            LifecycleMode::Modern,
            crate::upstreams::desk(),
        ))
        .rate_limit(3, Duration::from_secs(60))
        .audit(move |record: &AuditRecord| sink.lock().unwrap().push(record.clone()));
    (gateway.start().await.unwrap(), records)
}

fn outcomes(records: &Records) -> Vec<(Option<String>, Outcome)> {
    let records = records.lock().unwrap();
    let outcomes = records
        .iter()
        .map(|record| (record.target.clone(), record.outcome));
    outcomes.collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_has_a_record_also_a_refused_one() {
    let (gateway, records) = recorded(|desk| desk.deny(["roots"])).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    for (tool, name) in [
        ("desk_greet", "Ada"),
        ("desk_greet", ""),
        ("desk_roots", ""),
        ("no", ""),
    ] {
        peer.call_tool(tool, json!({ "name": name })).await;
    }
    for _ in 0..2 {
        peer.call_tool("desk_greet", json!({ "name": "Ada" })).await;
    }
    peer.request("tools/list", json!({})).await.expect_result();
    let id = peer.start_tool("other_sleep", json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    peer.cancel(id).await;
    tokio::time::sleep(Duration::from_millis(10)).await;

    let of = |target: &str, outcome| (Some(target.to_owned()), outcome);
    assert_eq!(
        outcomes(&records),
        [
            of("greet", Outcome::Ok),
            of("greet", Outcome::ToolError),
            of("roots", Outcome::Denied),
            of("no", Outcome::Error),
            of("greet", Outcome::Ok),
            of("greet", Outcome::RateLimited),
            (None, Outcome::Ok),
            of("sleep", Outcome::Cancelled),
        ]
    );
    let records = records.lock().unwrap();
    assert_eq!(records[0].server.as_deref(), Some("desk"));
    assert_eq!(records[3].server, None);
    assert_eq!(records[3].code, Some(-32602));
    assert_eq!(records[5].code, Some(-32603));
    assert_eq!(records[0].session, records[1].session);
    assert!(records[0].session.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_record_names_the_caller_and_has_no_values() {
    let (gateway, records) = recorded(|desk| desk).await;
    let mut http = testing::http(gateway.server());
    http.authorization = Some("Bearer sesame".to_owned());
    let mut principal = Principal::new("https://issuer.example", "ada");
    principal
        .claims
        .insert("email".to_owned(), json!("ada@example.com"));
    http.principal = Some(principal);
    let mut call = stateless_call("desk_greet");
    call["params"]["arguments"] = json!({ "name": "Secret Name" });
    http.post(&call).await;

    let record = records.lock().unwrap().pop().unwrap();
    let line = serde_json::to_value(&record).unwrap();
    assert_eq!(
        line,
        json!({
            "method": "tools/call",
            "server": "desk",
            "target": "greet",
            "outcome": "ok",
            "durationMs": 0.0,
            "principal": { "issuer": "https://issuer.example", "subject": "ada" },
            "client": "test/0",
            // printf '{"name":"Secret Name"}' | sha256sum
            "argumentsSha256": "4f5c3b421e174143e1919edd10bf8fa43c4e98b4d78ed3d1018f0101dc4c27fd",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn round_trips_inside_a_call_are_counted() {
    let (gateway, records) = recorded(|desk| desk).await;
    let mut peer = Peer::connect(gateway.server())
        .legacy("2025-11-25")
        .respond_with(client)
        .await;
    peer.call_tool("other_sign", json!({}))
        .await
        .expect_result();
    let record = records.lock().unwrap().pop().unwrap();
    assert_eq!((record.outcome, record.round_trips), (Outcome::Ok, 2));

    let all = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
    let mut peer = Peer::connect(gateway.server())
        .modern()
        .capabilities(all)
        .await;
    let params = json!({ "name": "desk_sign", "arguments": {} });
    let first = peer.request("tools/call", params).await;
    assert_eq!(first.expect_result()["resultType"], "input_required");
    let record = records.lock().unwrap().pop().unwrap();
    assert_eq!(
        (record.outcome, record.round_trips),
        (Outcome::InputRequired, 1)
    );
    assert_eq!(gateway.metrics().suspended_calls, 1);
}

#[tokio::test(start_paused = true)]
async fn metrics_have_both_sides_of_a_call_by_server() {
    let (gateway, _) = recorded(|desk| desk).await;
    let mut peer = Peer::connect(gateway.server()).legacy("2025-11-25").await;
    for name in ["Ada", ""] {
        peer.call_tool("desk_greet", json!({ "name": name })).await;
    }
    let metrics = gateway.metrics();
    let calls = |operations: &[turnbuckle_gateway::OperationMetrics]| {
        let calls = operations.iter().filter(|it| it.method == "tools/call");
        calls
            .map(|it| {
                let error = it.error_type.as_deref().map(str::to_owned);
                (it.server.clone().unwrap(), error, it.count)
            })
            .collect::<Vec<_>>()
    };
    let expected = [
        ("desk".to_owned(), None, 1),
        ("desk".to_owned(), Some("tool_error".to_owned()), 1),
    ];
    assert_eq!(calls(&metrics.server_operations), expected);
    assert_eq!(calls(&metrics.client_operations), expected);
    assert_eq!(metrics.servers[0].1.connections, 1);
    assert_eq!(metrics.servers[0].1.children, 0);
    let text: Value = metrics.to_string().into();
    let line = "turnbuckle_gateway_connections{server=\\\"desk\\\"} 1";
    assert!(text.to_string().contains(line), "{text}");
}
