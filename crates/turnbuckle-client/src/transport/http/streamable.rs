//! Streamable HTTP: one URL, and a POST for every message.
//!
//! Supports both eras. Since 2026-07-28 there is only the POST: its response contains the result, and closing it
//! cancels the request. In a session, the server may have a GET stream ([`get_stream`]), and broken streams are resumed
//! ([`response_reader`]).

mod get_stream;
mod response_reader;
mod session;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::http::{
    HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use bytes::Bytes;
use tokio::sync::{Notify, futures::Notified, oneshot};
use turnbuckle_protocol::{RequestId, jsonrpc::write_notification, method, types::CancelledParams};

use crate::{
    client::timeout::AuthWait,
    error::TransportError,
    inbound::{
        InboundRouter, message::RawResponse, observers::MessageDirection,
        pending_requests::PendingSends,
    },
    lifecycle::RevisionRules,
    transport::{
        OutgoingRequest,
        encode::{self, HeaderList},
        http::{
            headers::{BaseHeaders, RequestHeaders},
            streamable::{response_reader::PostResponseReader, session::HttpSession},
            to_transport_error,
            url::Url,
            with_send_timeout,
        },
        http_client::{AuthPolicy, EventReader, HttpClient, HttpError, HttpResponse},
    },
};

const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Maximum time that the first call waits for the GET stream.
const GET_STREAM_GRACE: Duration = Duration::from_millis(500);

/// Maximum time to end the session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// A Streamable HTTP endpoint.
#[derive(Debug)]
pub(crate) struct StreamableHttp {
    shared: Arc<StreamableState>,
}

/// The state that requests, the GET stream and cancellations share.
#[derive(Debug)]
struct StreamableState {
    http_client: HttpClient,
    url: Url,
    /// The headers of every POST.
    post_headers: BaseHeaders,
    session: HttpSession,
    close_signal: CloseSignal,
    /// The cancellations in flight.
    cancellations: PendingSends,
}

impl StreamableHttp {
    pub(super) fn new(http_client: HttpClient, url: Url) -> Self {
        let post_headers = [(ACCEPT, JSON_OR_EVENTS), (CONTENT_TYPE, JSON)];
        let shared = StreamableState {
            post_headers: http_client.headers().prepared(post_headers, &[]),
            http_client,
            url,
            session: HttpSession::default(),
            close_signal: CloseSignal::default(),
            cancellations: PendingSends::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Posts a request, and waits for its response.
    pub(crate) async fn send_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
        body: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<RawResponse, TransportError> {
        let closed = self.shared.close_signal.closed();
        self.shared.close_signal.check()?;
        tokio::select! {
            biased;
            response = self.post(outgoing, body, router) => response,
            () = closed => Err(TransportError::ClientClosed),
        }
    }

    async fn post(
        &self,
        outgoing: &OutgoingRequest<'_>,
        body: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<RawResponse, TransportError> {
        let shared = &self.shared;
        let is_initialize = outgoing.method.name == method::INITIALIZE.name;
        if is_initialize {
            shared.session.reset();
        }
        let (session, prepared) =
            shared
                .session
                .post_headers(&outgoing.rules, &shared.post_headers, is_initialize)?;
        router.trace(MessageDirection::Sent, &body);
        let body = Bytes::from(body);
        let cancel_guard = PostCancelGuard::new(shared, router, outgoing, session.as_ref());
        let reader = PostResponseReader {
            shared,
            router,
            outgoing,
            session: session.as_ref(),
        };
        let response = async {
            let headers = RequestHeaders {
                prepared: Some(&*prepared),
                own: &outgoing.headers,
            };
            let auth_policy = AuthPolicy::Allowed(outgoing.auth_wait.as_deref());
            let response = shared
                .http_client
                .send(&Method::POST, &shared.url, headers, &body, auth_policy)
                .await?;
            if is_initialize && response.status().is_success() {
                shared.session.set_id(response.headers())?;
            }
            reader.read(response).await
        };
        let response = response.await;
        cancel_guard.disarm();
        response
    }

    /// Posts a message without a response.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        headers: HeaderList,
        router: &Arc<InboundRouter>,
    ) -> Result<(), TransportError> {
        self.shared.close_signal.check()?;
        router.trace(MessageDirection::Sent, &message);
        let auth_wait = AuthWait::default();
        let auth_policy = AuthPolicy::Allowed(Some(&auth_wait));
        let session = self.shared.session.id();
        let sending = self
            .shared
            .post_notification(message, headers, session, auth_policy);
        with_send_timeout(Some(&auth_wait), sending).await
    }

    /// Returns an error once the client was closed.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        self.shared.close_signal.check().err()
    }

    /// Returns the timer that records time spent on authorization, if authorization is configured.
    pub(crate) fn auth_wait(&self) -> Option<Arc<AuthWait>> {
        self.shared.http_client.auth_wait()
    }

    /// Opens the GET stream, if the revision has one.
    ///
    /// Many servers send requests on that stream, and lose them if it is not open, so the first call waits for it. The
    /// wait is short, because some servers do not send headers before they have a message.
    pub(crate) async fn on_negotiated(
        &self,
        rules: &Arc<RevisionRules>,
        router: &Arc<InboundRouter>,
    ) {
        let session = &self.shared.session;
        if !rules.session {
            session.reset();
            return session.cache_headers(rules, &self.shared.post_headers);
        }
        // A closed client would not end the stream.
        if self.shared.close_signal.is_closed() {
            return;
        }
        let (opened, is_open) = oneshot::channel();
        let (shared, rules) = (&self.shared, Arc::clone(rules));
        let read_task = get_stream::read_get_stream(
            Arc::clone(shared),
            rules.clone(),
            Arc::clone(router),
            opened,
        );
        let task = tokio::spawn(read_task).abort_handle();
        session.cache_headers(&rules, &shared.post_headers);
        session.set_get_stream(task);
        let _ = tokio::time::timeout(GET_STREAM_GRACE, is_open).await;
    }

    /// Fails all pending requests, and ends the session. Cancellations are sent first.
    pub(crate) async fn close(&self, router: &InboundRouter) {
        self.shared.close_signal.close();
        router.end(TransportError::ClientClosed);
        let delete_session = self.delete_session();
        self.shared.cancellations.wait(DELETE_TIMEOUT).await;
        if let Some(delete_session) = delete_session {
            delete_session.await;
        }
    }

    /// Returns a future that ends the session on the server, if there is one. The local session ends immediately.
    fn delete_session(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let headers = self.shared.session.end()?;
        let shared = Arc::clone(&self.shared);
        Some(async move {
            let (method, body) = (Method::DELETE, Bytes::new());
            let deleted = shared.http_client.send(
                &method,
                &shared.url,
                headers[..].into(),
                &body,
                AuthPolicy::Never,
            );
            // The response does not matter, even if the server does not allow clients to end sessions.
            let _ = tokio::time::timeout(DELETE_TIMEOUT, deleted).await;
        })
    }
}

impl Drop for StreamableHttp {
    fn drop(&mut self) {
        if let (Some(delete_session), Ok(runtime)) =
            (self.delete_session(), tokio::runtime::Handle::try_current())
        {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move {
                shared.cancellations.wait(DELETE_TIMEOUT).await;
                delete_session.await;
            });
        }
    }
}

impl StreamableState {
    /// Opens a stream, or resumes one after an event.
    async fn get(
        &self,
        rules: &RevisionRules,
        session: Option<&HeaderValue>,
        last_event_id: Option<&HeaderValue>,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<HttpResponse, HttpError> {
        let mut headers = vec![(ACCEPT, EVENTS)];
        let optional = [
            (MCP_PROTOCOL_VERSION, rules.version_header.as_ref()),
            (MCP_SESSION_ID, session),
            (LAST_EVENT_ID, last_event_id),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                headers.push((name, value.clone()));
            }
        }
        self.http_client
            .send(
                &Method::GET,
                &self.url,
                headers[..].into(),
                &Bytes::new(),
                auth_policy,
            )
            .await
    }

    /// Posts a message, and waits until it is accepted.
    async fn post_notification(
        &self,
        message: Vec<u8>,
        mut headers: HeaderList,
        session: Option<HeaderValue>,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<(), TransportError> {
        let in_session = session.is_some();
        headers.extend(session.map(|id| (MCP_SESSION_ID, id)));
        let headers = RequestHeaders {
            prepared: Some(&self.post_headers),
            own: &headers,
        };
        let response = self
            .http_client
            .send(
                &Method::POST,
                &self.url,
                headers,
                &message.into(),
                auth_policy,
            )
            .await?;
        match response.status() {
            status if status.is_success() => {
                // The body is usually empty; reading it releases the connection.
                response.drain().await;
                Ok(())
            }
            _ => {
                let error_response = response.error_response().await;
                if in_session && session::is_unknown_session(&error_response) {
                    Err(TransportError::SessionEnded)
                } else {
                    Err(to_transport_error(error_response))
                }
            }
        }
    }
}

/// Notifies the server of a cancelled request when it is dropped, unless it is disarmed.
///
/// In a session, closing the response does not cancel the request; only a notification does.
struct PostCancelGuard<'r> {
    shared: &'r Arc<StreamableState>,
    router: &'r Arc<InboundRouter>,
    outgoing: &'r OutgoingRequest<'r>,
    session: Option<&'r HeaderValue>,
    needed: bool,
}

impl<'r> PostCancelGuard<'r> {
    fn new(
        shared: &'r Arc<StreamableState>,
        router: &'r Arc<InboundRouter>,
        outgoing: &'r OutgoingRequest<'r>,
        session: Option<&'r HeaderValue>,
    ) -> Self {
        let rules = &outgoing.rules;
        Self {
            shared,
            router,
            outgoing,
            session,
            needed: !rules.drop_cancels && rules.cancellable(outgoing.method.name),
        }
    }

    /// Disarms the guard: the request has ended.
    fn disarm(mut self) {
        self.needed = false;
    }
}

impl Drop for PostCancelGuard<'_> {
    fn drop(&mut self) {
        // The end of the session cancels its requests.
        if !self.needed || self.shared.close_signal.is_closed() {
            return;
        }
        let cancellation = PostCancellation {
            shared: Arc::clone(self.shared),
            router: Arc::clone(self.router),
            id: self.outgoing.id.clone(),
            rules: Arc::clone(&self.outgoing.rules),
            session: self.session.cloned(),
        };
        self.shared.cancellations.spawn(cancellation.send());
    }
}

struct PostCancellation {
    shared: Arc<StreamableState>,
    router: Arc<InboundRouter>,
    id: RequestId,
    rules: Arc<RevisionRules>,
    /// The session of the request, which may have ended locally.
    session: Option<HeaderValue>,
}

impl PostCancellation {
    async fn send(self) {
        let mut notification = Vec::new();
        let params = CancelledParams::new(self.id.clone());
        if write_notification(&mut notification, method::CANCELLED.name, &params).is_err() {
            return;
        }
        let headers = encode::version_header(&self.rules);
        self.router.trace(MessageDirection::Sent, &notification);
        let sent =
            self.shared
                .post_notification(notification, headers, self.session, AuthPolicy::Never);
        if let Err(error) = with_send_timeout(None, sent).await {
            tracing::debug!(id = %self.id, %error, "a cancellation was not delivered to the server");
        }
    }
}

#[derive(Debug, Default)]
struct CloseSignal {
    closed: AtomicBool,
    notify: Notify,
}

impl CloseSignal {
    /// Returns a future that waits for the end. Create it before [`check`](Self::check), so that it does not miss the
    /// signal.
    fn closed(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Returns an error once the endpoint is closed.
    fn check(&self) -> Result<(), TransportError> {
        if self.is_closed() {
            Err(TransportError::ClientClosed)
        } else {
            Ok(())
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }
}

/// Delay before reconnecting if the server does not suggest one.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// Minimum delay before reconnecting, so that a server that suggests none does not cause a busy loop.
const MIN_DELAY: Duration = Duration::from_millis(100);

/// Maximum delay before reconnecting, whatever the server suggests.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The delay that a stream suggested.
#[derive(Debug, Default)]
struct Backoff(Option<Duration>);

impl Backoff {
    /// Stores the suggested delay of a stream, if it has one.
    fn update(&mut self, events: &EventReader) {
        self.0 = events.retry().or(self.0);
    }

    /// Returns the delay after a number of consecutive failures; it doubles with each.
    fn delay(&self, failures: u32) -> Duration {
        let delay = self.0.unwrap_or(DEFAULT_DELAY).clamp(MIN_DELAY, MAX_DELAY);
        delay.saturating_mul(1 << failures.min(10)).min(MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_of_the_server_is_bounded() {
        for (said, waited) in [
            (None, 1000),
            (Some(0), 100),
            (Some(99), 100),
            (Some(500), 500),
            (Some(60_001), 60_000),
            (Some(u64::MAX), 60_000),
        ] {
            let backoff = Backoff(said.map(Duration::from_millis));
            assert_eq!(backoff.delay(0), Duration::from_millis(waited), "{said:?}");
        }
    }

    #[test]
    fn failures_increase_the_delay() {
        let backoff = Backoff(Some(Duration::from_millis(500)));

        let waited =
            [0, 1, 2, 6, 7, 100, u32::MAX].map(|failures| backoff.delay(failures).as_millis());

        assert_eq!(waited, [500, 1000, 2000, 32_000, 60_000, 60_000, 60_000]);
    }
}
