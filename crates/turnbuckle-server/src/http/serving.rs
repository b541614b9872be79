//! Accepting connections, and letting go of them.

use std::{future::poll_fn, io, pin::Pin, sync::Arc, task::Poll, time::Duration};

use tokio::{
    io::AsyncWrite,
    time::{Instant, sleep_until},
};

use super::{
    Listener, activity::Activity, connection, connections::Connections, descriptors,
    endpoint::Endpoint,
};

/// How long to wait after no connection could be accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// How long to wait for the descriptor of a connection that is being closed.
const SHORT_PAUSE: Duration = Duration::from_millis(10);

/// What a connection is told for which there is no room, because all others have a request.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
    content-type: text/plain\r\ncontent-length: 53\r\n\r\ntoo many connections are open; try again in a moment\n";

/// Serves connections until `shutdown`, then lets what runs come to its end.
pub(super) async fn serve(
    endpoint: Arc<Endpoint>,
    mut listener: impl Listener,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let most = most_connections(&endpoint, listener.uses_descriptors());
    let mut connections = Connections::default();
    let sweeping = tokio::spawn(endpoint.clone().sweep_regularly());
    let _sweeping = AbortOnDrop(sweeping.abort_handle());
    let mut shutdown = std::pin::pin!(shutdown);
    let mut paused_until = None;
    loop {
        let accepting = async {
            if let Some(until) = paused_until {
                sleep_until(until).await;
            }
            listener.accept().await
        };
        tokio::select! {
            accepted = accepting => {
                paused_until = None;
                match accepted {
                    Ok((io, _)) if connections.len() >= most && !connections.close_idlest() => {
                        refuse(io).await;
                    }
                    Ok((io, peer)) => {
                        let activity = Arc::new(Activity::new(endpoint.started));
                        let serving = connection::serve(io, peer, endpoint.clone(), activity.clone());
                        connections.spawn(activity, serving);
                    }
                    Err(error) if is_about_one_connection(&error) => {}
                    Err(error) => {
                        let pause = cannot_accept(&endpoint, &error, &mut connections);
                        paused_until = Some(Instant::now() + pause);
                    }
                }
            }
            Some(()) = connections.next_ended() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    endpoint.close();
    let all_ended = async { while connections.next_ended().await.is_some() {} };
    if tokio::time::timeout(endpoint.options.shutdown_timeout, all_ended)
        .await
        .is_err()
    {
        tracing::warn!("dropping requests that did not finish in time");
    }
    endpoint.presences.close_all();
    Ok(())
}

/// Returns how many connections there may be: as many as are set, or as leave some descriptors for files.
fn most_connections(endpoint: &Endpoint, use_descriptors: bool) -> usize {
    let set = endpoint.options.max_connections;
    let limit = descriptors::limit().filter(|_| use_descriptors);
    match limit {
        None => set,
        Some(limit) => set.min(beside_files(limit)).max(1),
    }
}

/// Returns how many of all descriptors are for connections.
fn beside_files(limit: usize) -> usize {
    limit.saturating_sub((limit / 4).clamp(32, 256))
}

/// Makes the best of it, and returns how long to wait before the next try.
fn cannot_accept(
    endpoint: &Endpoint,
    error: &io::Error,
    connections: &mut Connections,
) -> Duration {
    let is_exhausted = descriptors::are_exhausted(error);
    if let Some(suppressed) = endpoint.logs.not_accepted.pass() {
        let open = connections.len();
        if is_exhausted {
            tracing::warn!(
                %error, open, suppressed,
                "cannot accept connections: no file descriptor is free; raise the limit (`ulimit -n`) or lower `max_connections`"
            );
        } else {
            tracing::warn!(%error, open, suppressed, "cannot accept connections");
        }
    }
    match is_exhausted && connections.close_idlest() {
        true => SHORT_PAUSE,
        false => PAUSE,
    }
}

/// Says that there is no room for a connection, if it takes it at once, and closes it.
async fn refuse(mut io: impl AsyncWrite + Unpin) {
    poll_fn(|cx| {
        let _ = Pin::new(&mut io).poll_write(cx, TOO_MANY);
        Poll::Ready(())
    })
    .await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_for_files() {
        assert_eq!(beside_files(256), 192);
        assert_eq!(beside_files(1024), 768);
        assert_eq!(beside_files(1_000_000), 999_744);
        assert_eq!(beside_files(20), 0);
    }

    #[test]
    fn the_refusal_has_the_length_that_it_says() {
        let text = std::str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();

        assert!(head.contains(&format!("content-length: {}", body.len())));
    }
}
