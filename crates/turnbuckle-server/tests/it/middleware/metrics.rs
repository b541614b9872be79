//! Metrics of operations and sessions.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use ::metrics::{
    Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, LocalRecorderGuard, Metadata,
    Recorder, SharedString, Unit,
};
use serde_json::json;
use turnbuckle_server::{Server, middleware::Metrics};

use crate::{
    http::test_client::HttpTestClient,
    middleware::layers::{server, tool},
    ndjson::test_client::{Peer, modern},
};

/// Records all metrics, by name and labels.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

impl Numbers {
    /// Installs the recorder on this thread, for the duration of the test.
    fn listen() -> (Self, LocalRecorderGuard<'static>) {
        let numbers = Self::default();
        let guard = ::metrics::set_default_local_recorder(Box::leak(Box::new(numbers.clone())));
        (numbers, guard)
    }

    fn values(&self, name: &str) -> Vec<(String, Vec<f64>)> {
        let all = self.0.lock().unwrap().clone();
        let named = |key: &str| key.strip_prefix(name).map(str::to_owned);
        let found = all
            .iter()
            .filter_map(|(key, it)| Some((named(key)?, it.clone())));
        found.collect()
    }

    /// Name and labels of a key.
    fn slot(&self, key: &Key) -> Slot {
        let mut labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        labels.sort();
        Slot(self.clone(), format!("{} {}", key.name(), labels.join(" ")))
    }
}

struct Slot(Numbers, String);

impl Slot {
    fn change(&self, change: impl FnOnce(&mut Vec<f64>)) {
        change(self.0.0.lock().unwrap().entry(self.1.clone()).or_default());
    }

    fn add(&self, value: f64) {
        self.change(|it| {
            let last = it.pop().unwrap_or_default();
            it.push(last + value);
        });
    }
}

impl HistogramFn for Slot {
    fn record(&self, value: f64) {
        self.change(|it| it.push(value));
    }
}

impl GaugeFn for Slot {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.change(|it| *it = vec![value]);
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, unit: Option<Unit>, _: SharedString) {
        assert_eq!(unit, Some(Unit::Seconds));
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(self.slot(key)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(self.slot(key)))
    }
}

fn measured() -> Server {
    server().layer(Metrics::new())
}

#[tokio::test(start_paused = true)]
async fn the_duration_of_operations_has_the_attributes_of_the_conventions() {
    let (numbers, _guard) = Numbers::listen();
    let mut peer = Peer::new(measured());
    for name in ["ok", "ok", "wrong", "invented"] {
        peer.call_modern("tools/call", tool(name)).await;
    }
    peer.call_modern("prompts/get", json!({ "name": "greet" }))
        .await;
    let id = peer.request("tools/call", modern(tool("sleep"))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    peer.cancel(id).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let common = "mcp.protocol.version=2026-07-28 network.transport=pipe";
    let called = |name: &str| {
        format!(
            "gen_ai.operation.name=execute_tool gen_ai.tool.name={name} mcp.method.name=tools/call {common}"
        )
    };
    let expected = [
        (
            format!(
                " error.type=-32602 mcp.method.name=tools/call {common} rpc.response.status_code=-32602"
            ),
            vec![0.0],
        ),
        (
            format!(" error.type=cancelled {}", called("sleep")),
            vec![2.0],
        ),
        (
            format!(" error.type=tool_error {}", called("wrong")),
            vec![0.0],
        ),
        (format!(" {}", called("ok")), vec![0.0, 0.0]),
        (
            format!(" gen_ai.prompt.name=greet mcp.method.name=prompts/get {common}"),
            vec![0.0],
        ),
    ];
    let seen = numbers.values("mcp.server.operation.duration");
    let rounded: Vec<_> = seen
        .into_iter()
        .map(|(labels, took)| (labels, took.iter().map(|it| it.round()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(rounded, expected);
}

#[tokio::test(start_paused = true)]
async fn running_calls_and_subscriptions_are_counted() {
    let (numbers, _guard) = Numbers::listen();
    let mut peer = Peer::new(measured());
    let call = peer.request("tools/call", modern(tool("sleep"))).await;
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let listen = peer.request("subscriptions/listen", modern(params)).await;
    peer.next().await;
    let active = |method: &str| {
        numbers.values(&format!(
            "mcp.server.active_operations mcp.method.name={method}"
        ))[0]
            .1[0]
    };

    assert_eq!(
        (active("tools/call"), active("subscriptions/listen")),
        (1.0, 1.0)
    );
    peer.cancel(call).await;
    peer.cancel(listen).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        (active("tools/call"), active("subscriptions/listen")),
        (0.0, 0.0)
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_are_measured_to_their_end() {
    let (numbers, _guard) = Numbers::listen();
    let lines = Peer::initialized(measured(), "2025-11-25", json!({})).await;
    let caller = HttpTestClient::new(measured())
        .in_session("2025-06-18")
        .await;
    let active = |transport: &str| {
        numbers.values(&format!(
            "mcp.server.active_sessions network.transport={transport}"
        ))[0]
            .1[0]
    };
    assert_eq!((active("pipe"), active("tcp")), (1.0, 1.0));

    tokio::time::sleep(Duration::from_secs(30)).await;
    lines.finish().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(caller.delete().await.status(), 204);

    assert_eq!((active("pipe"), active("tcp")), (0.0, 0.0));
    assert_eq!(
        numbers.values("mcp.server.session.duration"),
        [
            (
                " mcp.protocol.version=2025-06-18 network.transport=tcp".to_owned(),
                vec![60.0]
            ),
            (
                " mcp.protocol.version=2025-11-25 network.transport=pipe".to_owned(),
                vec![30.0]
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_is_removed_by_the_sweep() {
    let (numbers, _guard) = Numbers::listen();
    let caller = HttpTestClient::new(measured());
    let idle = caller.clone().in_session("2025-06-18").await;

    tokio::time::sleep(Duration::from_secs(7 * 24 * 3600)).await;
    // Expired sessions are swept when another session starts.
    caller.in_session("2025-06-18").await;
    drop(idle);
    tokio::time::sleep(Duration::from_secs(1)).await;

    assert_eq!(numbers.values("mcp.server.session.duration").len(), 1);
    let active = numbers.values("mcp.server.active_sessions");
    assert_eq!(active[0].1, [1.0]);
}
