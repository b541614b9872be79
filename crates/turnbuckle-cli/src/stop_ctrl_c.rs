//! Waits for Ctrl-C, where there are no other signals.

/// Waits for Ctrl-C.
pub(crate) async fn stop() {
    let _ = tokio::signal::ctrl_c().await;
}
