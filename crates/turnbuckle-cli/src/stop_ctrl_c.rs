//! Waits for Ctrl-C, where there are no other signals.

/// Waits until we are told to stop.
pub(crate) async fn stop() {
    let _ = tokio::signal::ctrl_c().await;
}
