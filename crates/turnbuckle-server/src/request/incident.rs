//! Incidents: internal failures are logged under an id, and the peer gets only the id.

use std::{any::Any, error::Error};

use turnbuckle_protocol::RpcError;

/// Logs a failure with its causes and returns its incident id.
pub(crate) fn report(operation: &str, error: &(dyn Error + 'static)) -> String {
    let id = new_incident_id();
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push_str(": ");
        causes.push_str(&cause.to_string());
        source = cause.source();
    }
    tracing::error!(incident = %id, "{operation} failed: {error}{causes}");
    id
}

/// Logs a panic of a handler and returns the error for the peer.
pub(crate) fn report_panic(panic: &(dyn Any + Send)) -> RpcError {
    let id = new_incident_id();
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(incident = %id, "a handler panicked: {message}");
    internal(&id)
}

/// Returns an internal error that contains only the incident id.
pub(crate) fn internal(id: &str) -> RpcError {
    RpcError::internal(format!("internal error, incident {id}"))
}

fn new_incident_id() -> String {
    let mut bytes = [0; 6];
    // Without randomness the incident is still logged, but its id is not unique.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
