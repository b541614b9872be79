//! Layers, telemetry and metrics.

mod audit;
mod layers;
mod limits;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod span_recorder;
mod trace_context;
mod tracing_spans;
