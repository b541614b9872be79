//! Messages to the client of a session that belong to none of its requests.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use turnbuckle_protocol::{RpcError, jsonrpc, types::LogLevel};
use turnbuckle_store::SessionId;

use super::{RelayedRequest, split_meta};
use crate::{
    ClientRequestError,
    lifecycle::{
        GeneralChannel, SessionUsers,
        connection::ConnectionPeer,
        runtime::{ClientRequestTimeouts, RequestMetaTags},
        session,
    },
    middleware::SessionKey,
    request::{Outbox, OutboxEvent, RelayedKind, RelayedQueue},
    sync::lock,
};

/// Maximum time that a client request waits for the client to open its GET stream, and to complete the initialization.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval of looking for them. The session may be stored elsewhere, so that nothing reports its changes.
const STREAM_INTERVAL: Duration = Duration::from_millis(50);

/// The way to the client of a session outside of its requests: the GET stream over HTTP, otherwise the connection.
///
/// Clones share one queue of notifications.
#[derive(Clone)]
pub struct GeneralStream(Arc<StreamState>);

struct StreamState {
    session: SessionId,
    source: ChannelSource,
    timeouts: ClientRequestTimeouts,
    notifications: Mutex<NotificationQueue>,
}

/// Where the current channel of the session is found.
enum ChannelSource {
    /// The connection that carries all messages of the client.
    Connection(Weak<dyn ConnectionPeer>),
    /// The endpoint that has a GET stream of the session.
    Endpoints(Arc<SessionUsers>),
}

#[derive(Default)]
struct NotificationQueue {
    queue: RelayedQueue,
    /// Whether a task sends what is queued.
    is_sending: bool,
}

impl RelayedRequest {
    /// Returns the way to the client outside of its requests. `None` without a session, and if client requests are not
    /// sent as requests.
    pub fn general_stream(&self) -> Option<GeneralStream> {
        if !self.sends_client_requests() {
            return None;
        }
        let server = &self.call.server;
        let (session, source) = match self.connection() {
            Some(connection) => (
                connection.id(),
                ChannelSource::Connection(connection.peer()?),
            ),
            None => (
                self.call.origin.session?,
                ChannelSource::Endpoints(server.session_users().clone()),
            ),
        };
        Some(GeneralStream(Arc::new(StreamState {
            session,
            source,
            timeouts: server.client_request_timeouts(),
            notifications: Mutex::default(),
        })))
    }
}

impl GeneralStream {
    /// The session of the client, as in [`RelayedRequest::session`].
    pub fn session(&self) -> SessionKey {
        SessionKey::from_id(&self.0.session)
    }

    /// Returns whether the client can receive messages now.
    pub fn is_open(&self) -> bool {
        self.0.channel().is_some()
    }

    /// Sends a notification. `params` is a JSON object. It is dropped without an open stream.
    ///
    /// Does not wait for a slow client: of more than 64 notifications that wait, the oldest are dropped.
    pub fn notify(&self, method: &str, params: &str) {
        self.queue(RelayedKind::Other, method, params);
    }

    /// Sends a log message, if the session accepts messages of this level.
    pub fn log(&self, level: LogLevel, params: &str) {
        self.queue(RelayedKind::Log(level), "notifications/message", params);
    }

    /// Sends a request to the client, and returns the result as JSON text.
    ///
    /// `params` is a JSON object; a progress token in its `_meta` is replaced. `timeout` replaces the maximum time without
    /// progress. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Those of the client. -32603 if the client opens no stream for the request, or does not respond.
    pub async fn request_client(
        &self,
        method: &'static str,
        params: &str,
        timeout: Option<Duration>,
    ) -> Result<String, RpcError> {
        let (params, meta) = split_meta(params)?;
        let mut timeouts = self.0.timeouts;
        if let Some(timeout) = timeout {
            timeouts.idle = timeout;
            timeouts.total = timeouts.total.max(timeout);
        }
        let meta_tags = RequestMetaTags {
            trace: None,
            task: None,
            relayed: &meta,
        };
        let outgoing = OutgoingMessages {
            channel: Arc::from(self.wait_for_channel().await?),
            outbox: Outbox::default(),
        };
        let runtime = outgoing.channel.runtime();
        let sent = tokio::select! {
            biased;
            sent = runtime.send_request(&outgoing.outbox, method, params.as_bytes(), meta_tags, timeouts) => sent,
            never = outgoing.send_all() => match never {},
        };
        sent.map_err(|error| match error {
            ClientRequestError::Rejected { error, .. } => *error,
            error => RpcError::internal(error.to_string()),
        })
    }

    /// Notifies this client of the completion of a URL elicitation, as
    /// [`RelayedRequest::expect_elicitation_complete`] does.
    pub fn expect_elicitation_complete(&self, id: &str) {
        if let Some(channel) = self.0.channel() {
            channel.runtime().url_elicitations.begin(id);
        }
    }

    fn queue(&self, kind: RelayedKind, method: &str, params: &str) {
        let (Ok(params), Ok(runtime)) = (
            serde_json::from_str::<&RawValue>(params),
            Handle::try_current(),
        ) else {
            return;
        };
        let mut message = Vec::with_capacity(params.get().len() + 64);
        if jsonrpc::write_notification(&mut message, method, &params).is_err() {
            return;
        }
        let mut notifications = lock(&self.0.notifications);
        notifications.queue.push(kind, message.into());
        if !std::mem::replace(&mut notifications.is_sending, true) {
            runtime.spawn(send_notifications(Arc::clone(&self.0)));
        }
    }

    /// Waits until the client can receive requests.
    async fn wait_for_channel(&self) -> Result<Box<dyn GeneralChannel>, RpcError> {
        let deadline = Instant::now() + STREAM_TIMEOUT;
        loop {
            if let Some(channel) = self.0.channel()
                && let Some(record) = channel.record().await
                && record.initialized
            {
                return Ok(channel);
            }
            if Instant::now() >= deadline {
                return Err(RpcError::internal(
                    "no stream of the client is open for requests outside of calls",
                ));
            }
            sleep(STREAM_INTERVAL).await;
        }
    }
}

impl std::fmt::Debug for GeneralStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneralStream").finish_non_exhaustive()
    }
}

impl StreamState {
    /// Returns the current channel of the session.
    fn channel(&self) -> Option<Box<dyn GeneralChannel>> {
        match &self.source {
            ChannelSource::Connection(connection) => connection.upgrade()?.general_channel(),
            ChannelSource::Endpoints(users) => {
                let mut users = users.all().into_iter();
                users.find_map(|user| user.general_channel(&self.session))
            }
        }
    }

    /// Takes the next notification. Without one, the sending task ends.
    fn next(&self) -> Option<(RelayedKind, Bytes)> {
        let mut notifications = lock(&self.notifications);
        let next = notifications.queue.pop();
        notifications.is_sending = next.is_some();
        next
    }
}

/// Sends the queued notifications, in order.
async fn send_notifications(stream: Arc<StreamState>) {
    while let Some((kind, message)) = stream.next() {
        let Some(channel) = stream.channel() else {
            continue;
        };
        let Some(record) = channel.record().await else {
            continue;
        };
        let is_accepted = match kind {
            RelayedKind::Log(level) => level >= session::log_level(&record),
            _ => true,
        };
        if is_accepted && !session::defers_notifications(&record, channel.runtime()) {
            channel.send(message).await;
        }
    }
}

/// The messages of a client request: the request itself, and its cancellation if it is dropped.
struct OutgoingMessages {
    channel: Arc<dyn GeneralChannel>,
    outbox: Outbox,
}

impl OutgoingMessages {
    /// Sends what is queued now and later. Never returns.
    async fn send_all(&self) -> std::convert::Infallible {
        loop {
            let message = std::future::poll_fn(|cx| match self.outbox.register_driver(cx) {
                OutboxEvent::Message(message) => std::task::Poll::Ready(message),
                _ => std::task::Poll::Pending,
            });
            self.channel.send(message.await).await;
        }
    }
}

impl Drop for OutgoingMessages {
    fn drop(&mut self) {
        let left: Vec<_> = std::iter::from_fn(|| self.outbox.pop_or_close()).collect();
        // The client need not hear of a request that it did not get.
        let ([cancellation], Ok(runtime)) = (&*left, Handle::try_current()) else {
            return;
        };
        let (channel, cancellation) = (Arc::clone(&self.channel), cancellation.clone());
        runtime.spawn(async move { channel.send(cancellation).await });
    }
}
