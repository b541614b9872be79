//! Accepting connections, and letting go of them.

use std::{io, sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::sleep};

use super::{Listener, connection, endpoint::Endpoint};

/// Serves connections until `shutdown`, then lets what runs come to its end.
pub(super) async fn serve(
    endpoint: Arc<Endpoint>,
    mut listener: impl Listener,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let sweeping = tokio::spawn(endpoint.clone().sweep_regularly());
    let _sweeping = AbortOnDrop(sweeping.abort_handle());
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let has_room = connections.len() < endpoint.options.max_connections;
        tokio::select! {
            accepted = listener.accept(), if has_room => match accepted {
                Ok((io, peer)) => {
                    connections.spawn(connection::serve(io, peer, endpoint.clone()));
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    // Most likely no descriptor is free: another connection has to end first.
                    tracing::warn!(%error, "cannot accept connections");
                    sleep(Duration::from_millis(200)).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    endpoint.close();
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(endpoint.options.shutdown_timeout, all_ended)
        .await
        .is_err()
    {
        tracing::warn!("dropping requests that did not finish in time");
    }
    endpoint.presences.close_all();
    Ok(())
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Ends a task together with whoever started it.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
