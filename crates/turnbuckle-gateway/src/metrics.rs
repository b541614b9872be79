//! Numbers about a running gateway.
//!
//! The layer `middleware::Metrics` of the server reports to a recorder that the program installs. These numbers have the
//! upstream server as a label, which the layer does not know, and are read from the gateway. Names and labels are those
//! of the layer, from the OpenTelemetry semantic conventions for MCP.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use turnbuckle_protocol::{RpcError, jsonrpc::code, method::Method};

use crate::{lock, observation::Outcome};

/// Upper bounds of the buckets, in seconds.
const BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Error codes that are labels. A server may send any others.
const LABELLED_CODES: [i64; 10] = [
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    code::METHOD_NOT_FOUND,
    code::INVALID_PARAMS,
    code::INTERNAL_ERROR,
    code::RESOURCE_NOT_FOUND,
    code::URL_ELICITATION_REQUIRED,
    code::HEADER_MISMATCH,
    code::MISSING_CAPABILITY,
    code::UNSUPPORTED_VERSION,
];

/// Numbers about a running gateway, since its start. The `Display` implementation writes them in the text format of
/// Prometheus.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GatewayMetrics {
    /// Requests of clients, `mcp.server.operation.duration`.
    pub server_operations: Vec<OperationMetrics>,
    /// Requests to servers, `mcp.client.operation.duration`.
    pub client_operations: Vec<OperationMetrics>,
    /// Numbers of each server, by name.
    pub servers: Vec<(String, ServerMetrics)>,
    /// Calls that wait for input of a client.
    pub suspended_calls: usize,
}

/// The durations of operations with equal labels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OperationMetrics {
    /// The upstream server. `None` for a request that belongs to none.
    pub server: Option<String>,
    /// The method; `_OTHER` for one that the specification does not define.
    pub method: &'static str,
    /// `error.type`: the outcome or the error code. `None` for a result.
    pub error_type: Option<Cow<'static, str>>,
    /// The number of operations.
    pub count: u64,
    /// The sum of their durations.
    pub total: Duration,
    /// The number of operations up to each bound.
    buckets: [u64; BOUNDS.len()],
}

/// Numbers of an upstream server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Open connections.
    pub connections: usize,
    /// Running child processes.
    pub children: usize,
    /// Connections that were opened in place of one that had ended.
    pub restarts: u64,
    /// Client requests of the server that belong to no call, or that the client cannot handle.
    pub refused_client_requests: u64,
    /// Notifications of the server that belong to no call.
    pub dropped_notifications: u64,
}

/// Counters of an upstream server.
#[derive(Default)]
pub(crate) struct ServerCounters {
    connections: AtomicUsize,
    children: AtomicUsize,
    pub(crate) restarts: Counter,
    pub(crate) dropped_notifications: Counter,
}

impl ServerCounters {
    /// Counts a connection that was opened.
    pub(crate) fn opened(&self, is_child: bool) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.children
            .fetch_add(usize::from(is_child), Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub(crate) fn closed(&self, is_child: bool) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.children
            .fetch_sub(usize::from(is_child), Ordering::Relaxed);
    }

    pub(crate) fn numbers(&self, refused_client_requests: u64) -> ServerMetrics {
        ServerMetrics {
            connections: self.connections.load(Ordering::Relaxed),
            children: self.children.load(Ordering::Relaxed),
            restarts: self.restarts.get(),
            refused_client_requests,
            dropped_notifications: self.dropped_notifications.get(),
        }
    }
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The operations of both sides.
#[derive(Default)]
pub(crate) struct Operations {
    pub(crate) server: OperationTable,
    pub(crate) client: OperationTable,
}

/// Durations by labels. All labels have a bounded number of values.
#[derive(Default)]
pub(crate) struct OperationTable(Mutex<BTreeMap<OperationKey, OperationTotals>>);

type OperationKey = (Option<Arc<str>>, &'static str, Option<Cow<'static, str>>);

#[derive(Clone, Copy, Default)]
struct OperationTotals {
    count: u64,
    total: Duration,
    buckets: [u64; BOUNDS.len()],
}

impl OperationTable {
    /// Records an operation.
    pub(crate) fn record(
        &self,
        server: Option<&Arc<str>>,
        method: &str,
        outcome: Outcome,
        error: Option<&RpcError>,
        elapsed: Duration,
    ) {
        let method = Method::from_name(method).map_or("_OTHER", |method| method.name);
        let mut table = lock(&self.0);
        let totals = table
            .entry((server.cloned(), method, error_type(outcome, error)))
            .or_default();
        totals.count += 1;
        totals.total += elapsed;
        let seconds = elapsed.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            totals.buckets[bucket] += 1;
        }
    }

    /// Returns the operations of all labels.
    pub(crate) fn totals(&self) -> Vec<OperationMetrics> {
        let table = lock(&self.0);
        let of_key = |((server, method, error_type), totals): (&OperationKey, &OperationTotals)| {
            let mut buckets = totals.buckets;
            for bucket in 1..buckets.len() {
                buckets[bucket] += buckets[bucket - 1];
            }
            OperationMetrics {
                server: server.as_deref().map(str::to_owned),
                method,
                error_type: error_type.clone(),
                count: totals.count,
                total: totals.total,
                buckets,
            }
        };
        table.iter().map(of_key).collect()
    }
}

fn error_type(outcome: Outcome, error: Option<&RpcError>) -> Option<Cow<'static, str>> {
    match (outcome, error) {
        (Outcome::Ok | Outcome::InputRequired, _) => None,
        (Outcome::Error, Some(error)) if LABELLED_CODES.contains(&error.code) => {
            Some(error.code.to_string().into())
        }
        (Outcome::Error, _) => Some("_OTHER".into()),
        (Outcome::ToolError, _) => Some("tool_error".into()),
        (Outcome::RateLimited, _) => Some("rate_limited".into()),
        (outcome, _) => Some(outcome.as_str().into()),
    }
}

impl fmt::Display for GatewayMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = [
            (
                "mcp_server_operation_duration_seconds",
                "Requests of clients.",
                &self.server_operations,
            ),
            (
                "mcp_client_operation_duration_seconds",
                "Requests to servers.",
                &self.client_operations,
            ),
        ];
        for (name, help, operations) in operations {
            writeln!(f, "# HELP {name} {help}\n# TYPE {name} histogram")?;
            operations
                .iter()
                .try_for_each(|operation| write_histogram(f, name, operation))?;
        }
        type Value = fn(&ServerMetrics) -> u64;
        let of_servers: [(&str, &str, &str, Value); 5] = [
            (
                "connections",
                "gauge",
                "Open connections to servers.",
                |server| server.connections as u64,
            ),
            ("children", "gauge", "Running child processes.", |server| {
                server.children as u64
            }),
            (
                "restarts_total",
                "counter",
                "Connections opened in place of one that had ended.",
                |server| server.restarts,
            ),
            (
                "refused_client_requests_total",
                "counter",
                "Client requests that no client got.",
                |server| server.refused_client_requests,
            ),
            (
                "dropped_notifications_total",
                "counter",
                "Notifications that belong to no call.",
                |server| server.dropped_notifications,
            ),
        ];
        for (name, kind, help, value) in of_servers {
            writeln!(f, "# HELP turnbuckle_gateway_{name} {help}")?;
            writeln!(f, "# TYPE turnbuckle_gateway_{name} {kind}")?;
            for (server, numbers) in &self.servers {
                let label = label_value(server);
                writeln!(
                    f,
                    "turnbuckle_gateway_{name}{{server=\"{label}\"}} {}",
                    value(numbers)
                )?;
            }
        }
        let name = "turnbuckle_gateway_suspended_calls";
        writeln!(
            f,
            "# HELP {name} Calls that wait for input of a client.\n# TYPE {name} gauge"
        )?;
        writeln!(f, "{name} {}", self.suspended_calls)
    }
}

fn write_histogram(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    operation: &OperationMetrics,
) -> fmt::Result {
    let mut labels = String::new();
    if let Some(server) = &operation.server {
        write!(labels, "server=\"{}\",", label_value(server))?;
    }
    write!(labels, "mcp_method_name=\"{}\"", operation.method)?;
    if let Some(error_type) = &operation.error_type {
        write!(labels, ",error_type=\"{error_type}\"")?;
    }
    for (bound, count) in BOUNDS.iter().zip(&operation.buckets) {
        writeln!(f, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
    }
    writeln!(
        f,
        "{name}_bucket{{{labels},le=\"+Inf\"}} {}",
        operation.count
    )?;
    writeln!(
        f,
        "{name}_sum{{{labels}}} {}",
        operation.total.as_secs_f64()
    )?;
    writeln!(f, "{name}_count{{{labels}}} {}", operation.count)
}

/// Escapes the value of a label.
fn label_value(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_grow_with_what_peers_send() {
        let (table, server) = (OperationTable::default(), Arc::from("a"));
        for number in 0..1_000 {
            let method = format!("x/{number}");
            let error = RpcError::new(number, "no");
            table.record(
                Some(&server),
                &method,
                Outcome::Error,
                Some(&error),
                Duration::ZERO,
            );
        }
        let totals = table.totals();
        assert_eq!(totals.len(), 1);
        assert_eq!((totals[0].count, totals[0].method), (1_000, "_OTHER"));
    }

    #[test]
    fn buckets_are_cumulative_and_names_are_escaped() {
        let (table, server) = (OperationTable::default(), Arc::from("a\"b"));
        for millis in [5, 30, 40, 1_000_000] {
            let elapsed = Duration::from_millis(millis);
            table.record(Some(&server), "tools/call", Outcome::Ok, None, elapsed);
        }
        let metrics = GatewayMetrics {
            server_operations: table.totals(),
            ..GatewayMetrics::default()
        };
        let text = metrics.to_string();
        let labels = r#"{server="a\"b",mcp_method_name="tools/call""#;
        for line in [
            format!("mcp_server_operation_duration_seconds_bucket{labels},le=\"0.01\"}} 1"),
            format!("mcp_server_operation_duration_seconds_bucket{labels},le=\"0.05\"}} 3"),
            format!("mcp_server_operation_duration_seconds_bucket{labels},le=\"300\"}} 3"),
            format!("mcp_server_operation_duration_seconds_bucket{labels},le=\"+Inf\"}} 4"),
            format!("mcp_server_operation_duration_seconds_count{labels}}} 4"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
