//! Accepts connections, limits how many are open, and shuts them down.

use std::{
    collections::HashMap,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    task::{AbortHandle, Id, JoinSet},
    time::{Instant, sleep_until},
};

use crate::http::{
    caller_shares::{CallerShares, CallerUsage, LimitUsage},
    connection::{self, ConnectionActivity, Listener},
    endpoint::Endpoint,
    session::limits,
};

/// Delay before accepting again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Delay before accepting again after an idle connection was closed to free its descriptor.
const DESCRIPTOR_RETRY_DELAY: Duration = Duration::from_millis(10);

/// The response to a connection beyond the limit, when no open connection is idle.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
    content-type: text/plain\r\ncontent-length: 53\r\n\r\ntoo many connections are open; try again in a moment\n";

/// The response to a connection beyond the share of its caller, when none of the caller's connections is idle.
const TOO_MANY_OF_CALLER: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 5\r\n\
    content-type: text/plain\r\ncontent-length: 62\r\n\r\ntoo many connections of one caller are open; close some first\n";

/// Serves connections until `shutdown` resolves, then lets running requests finish.
pub(crate) async fn serve(
    endpoint: Arc<Endpoint>,
    mut listener: impl Listener,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let max_connections = connection_limit(&endpoint, listener.uses_descriptors());
    let mut connections = OpenConnections::default();
    let sweeper = tokio::spawn(endpoint.clone().sweep_regularly());
    let _sweeper_guard = AbortOnDrop(sweeper.abort_handle());
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
                    Ok((io, peer)) => {
                        let caller = endpoint.caller_shares.caller(limits::owner_for_address(peer));
                        match connections.make_room(&endpoint.caller_shares, &caller, max_connections) {
                            Ok(()) => {
                                let activity = Arc::new(ConnectionActivity::new(endpoint.started));
                                let serving = connection::serve_connection(io, peer, endpoint.clone(), activity.clone());
                                connections.spawn(caller, activity, serving);
                            }
                            Err(response) => reject(io, response).await,
                        }
                    }
                    Err(error) if is_per_connection_error(&error) => {}
                    Err(error) => {
                        let delay = handle_accept_error(&endpoint, &error, &mut connections);
                        paused_until = Some(Instant::now() + delay);
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
    endpoint.close_sessions();
    endpoint.leave_instances().await;
    Ok(())
}

/// Returns the connection limit: the configured one, or fewer to leave descriptors for files.
fn connection_limit(endpoint: &Endpoint, uses_descriptors: bool) -> usize {
    let configured = endpoint.options.max_connections;
    let limit = descriptors::limit().filter(|_| uses_descriptors);
    match limit {
        None => configured,
        Some(limit) => configured.min(descriptors_for_connections(limit)).max(1),
    }
}

/// Returns how many of `limit` descriptors connections may use.
fn descriptors_for_connections(limit: usize) -> usize {
    limit.saturating_sub((limit / 4).clamp(32, 256))
}

/// Logs the error, closes an idle connection if descriptors are exhausted, and returns the delay before the next attempt.
fn handle_accept_error(
    endpoint: &Endpoint,
    error: &io::Error,
    connections: &mut OpenConnections,
) -> Duration {
    let is_exhausted = descriptors::are_exhausted(error);
    if let Some(suppressed) = endpoint.log_limiters.accept_failed.try_pass() {
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
    if is_exhausted && connections.close_longest_idle(None) {
        DESCRIPTOR_RETRY_DELAY
    } else {
        ACCEPT_RETRY_DELAY
    }
}

/// Sends an error response if the socket accepts it immediately, and closes the connection.
async fn reject(mut io: impl AsyncWrite + Unpin, response: &[u8]) {
    poll_fn(|cx| {
        let _ = Pin::new(&mut io).poll_write(cx, response);
        Poll::Ready(())
    })
    .await;
}

fn is_per_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Aborts a task on drop.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Number of eviction candidates that one scan collects, so that not every eviction scans all connections.
const EVICTION_CANDIDATES: usize = 64;

/// Minimum time between two scans when no connection was idle, so that not every rejected connection causes a scan.
const RESCAN_INTERVAL: Duration = Duration::from_millis(50);

/// The open connections of a listener.
#[derive(Default)]
struct OpenConnections {
    tasks: JoinSet<()>,
    open: HashMap<Id, OpenConnection>,
    /// The connections that were idle for longest at the last scan, longest last.
    candidates: Vec<(u64, Id)>,
    /// The caller of the candidates, if the last scan was for one caller.
    candidates_of: Option<Arc<CallerUsage>>,
    /// The time of the next scan, set when the last one found no idle connection.
    next_scan_at: Option<Instant>,
}

struct OpenConnection {
    task: AbortHandle,
    caller: Arc<CallerUsage>,
    activity: Arc<ConnectionActivity>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.caller.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OpenConnections {
    /// Spawns the task of a connection.
    fn spawn(
        &mut self,
        caller: Arc<CallerUsage>,
        activity: Arc<ConnectionActivity>,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        caller.connections.fetch_add(1, Ordering::Relaxed);
        let task = self.tasks.spawn(serving);
        let connection = OpenConnection {
            caller,
            activity,
            task,
        };
        self.open.insert(connection.task.id(), connection);
    }

    /// Makes room for one more connection of a caller. Returns the error response if there is none.
    ///
    /// Beyond its share, a caller loses the connection of its own that has been idle for longest. If none is free, the one of
    /// all connections is closed, unless the caller has the largest share that is possible.
    fn make_room(
        &mut self,
        shares: &CallerShares,
        caller: &Arc<CallerUsage>,
        max_connections: usize,
    ) -> Result<(), &'static [u8]> {
        let open = self.len();
        let share_of_all = shares.part_of(max_connections);
        if open < share_of_all {
            return Ok(());
        }
        let by_caller = caller.connections.load(Ordering::Relaxed);
        let usage = LimitUsage {
            by_caller,
            by_others: open.saturating_sub(by_caller),
            free: max_connections.saturating_sub(open),
        };
        let is_within_share = shares.allow(caller.owner(), &usage);
        if is_within_share && open < max_connections {
            return Ok(());
        }
        let loses_own = !is_within_share && (open < max_connections || by_caller >= share_of_all);
        if self.close_longest_idle(loses_own.then_some(caller)) {
            Ok(())
        } else if loses_own {
            Err(TOO_MANY_OF_CALLER)
        } else {
            Err(TOO_MANY_CONNECTIONS)
        }
    }

    /// Returns the number of open connections.
    fn len(&self) -> usize {
        self.open.len()
    }

    /// Waits until a connection ends. Returns `None` if none is open.
    async fn next_ended(&mut self) -> Option<()> {
        let id = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&id);
        Some(())
    }

    /// Closes the connection that has been idle for longest, of all or of one caller. Returns whether there was one.
    fn close_longest_idle(&mut self, caller: Option<&Arc<CallerUsage>>) -> bool {
        if self.candidates_of.as_ref().map(Arc::as_ptr) != caller.map(Arc::as_ptr) {
            self.candidates.clear();
            self.candidates_of = caller.cloned();
            self.next_scan_at = None;
        }
        if self.close_candidate() {
            return true;
        }
        let now = Instant::now();
        if self.next_scan_at.is_some_and(|until| now < until) {
            return false;
        }
        self.collect_candidates();
        let has_closed = self.close_candidate();
        self.next_scan_at = (!has_closed).then(|| now + RESCAN_INTERVAL);
        has_closed
    }

    fn close_candidate(&mut self) -> bool {
        while let Some((since, id)) = self.candidates.pop() {
            let closes = |open: &OpenConnection| open.activity.try_close(since);
            if self.open.get(&id).is_some_and(closes)
                && let Some(open) = self.open.remove(&id)
            {
                open.task.abort();
                return true;
            }
        }
        false
    }

    fn collect_candidates(&mut self) {
        let caller = self.candidates_of.as_ref();
        let is_of_caller =
            |open: &OpenConnection| caller.is_none_or(|caller| Arc::ptr_eq(caller, &open.caller));
        let since = |(id, open): (&Id, &OpenConnection)| Some((open.activity.idle_since()?, *id));
        let of_caller = self.open.iter().filter(|(_, open)| is_of_caller(open));
        let mut idle: Vec<_> = of_caller.filter_map(since).collect();
        if idle.len() > EVICTION_CANDIDATES {
            idle.select_nth_unstable_by_key(EVICTION_CANDIDATES, |(since, _)| *since);
            idle.truncate(EVICTION_CANDIDATES);
        }
        idle.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        self.candidates = idle;
    }
}

/// The file descriptor limit of this process.
#[cfg(unix)]
mod descriptors {
    use std::io;

    use rustix::{
        io::Errno,
        process::{Resource, getrlimit},
    };

    /// Returns the soft limit on open file descriptors, or `None` if it is unlimited.
    pub(super) fn limit() -> Option<usize> {
        let limit = getrlimit(Resource::Nofile).current?;
        usize::try_from(limit).ok()
    }

    /// Returns whether an error means that this process or the system ran out of descriptors.
    pub(super) fn are_exhausted(error: &io::Error) -> bool {
        let exhausted = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error
            .raw_os_error()
            .is_some_and(|code| exhausted.contains(&code))
    }
}

/// Systems without a file descriptor limit.
#[cfg(not(unix))]
mod descriptors {
    use std::io;

    pub(super) fn limit() -> Option<usize> {
        None
    }

    pub(super) fn are_exhausted(_: &io::Error) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_reserved_for_files() {
        assert_eq!(descriptors_for_connections(256), 192);
        assert_eq!(descriptors_for_connections(1024), 768);
        assert_eq!(descriptors_for_connections(1_000_000), 999_744);
        assert_eq!(descriptors_for_connections(20), 0);
    }

    #[test]
    fn a_rejection_has_the_declared_length() {
        for response in [TOO_MANY_CONNECTIONS, TOO_MANY_OF_CALLER] {
            let text = std::str::from_utf8(response).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();

            assert!(
                head.contains(&format!("content-length: {}", body.len())),
                "{text}: {}",
                body.len()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_not_rescanned_for_each_rejected_one() {
        let mut connections = OpenConnections::default();
        let caller = CallerShares::new(75).caller(limits::owner_for_address(None));
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        activity.request_started();
        connections.spawn(caller, activity.clone(), std::future::pending());
        assert!(!connections.close_longest_idle(None));
        activity.mark_idle(Instant::now());

        assert!(!connections.close_longest_idle(None), "it was just scanned");

        tokio::time::advance(RESCAN_INTERVAL).await;
        assert!(connections.close_longest_idle(None));
        assert_eq!(connections.len(), 0);
    }
}
