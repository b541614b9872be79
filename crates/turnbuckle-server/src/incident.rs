//! Failures that are nobody's business but the operator's: logged with an id, and the peer gets the id.

use std::{any::Any, error::Error};

use turnbuckle_protocol::RpcError;

/// Logs a failure with its causes and returns the id under which it stands in the log.
pub(crate) fn report(what: &str, error: &(dyn Error + 'static)) -> String {
    let id = fresh_id();
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push_str(": ");
        causes.push_str(&cause.to_string());
        source = cause.source();
    }
    tracing::error!(incident = %id, "{what} failed: {error}{causes}");
    id
}

/// The error that a peer gets for a panic in a handler.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> RpcError {
    let id = fresh_id();
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(incident = %id, "a handler panicked: {message}");
    internal(&id)
}

/// An internal error that names only the incident.
pub(crate) fn internal(id: &str) -> RpcError {
    RpcError::internal(format!("internal error, incident {id}"))
}

fn fresh_id() -> String {
    let mut bytes = [0; 6];
    // Without randomness the incident is still logged, only not told apart.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
