//! HTTP+SSE of 2024-11-05: an event stream for received messages, and a URL for sent ones.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use bytes::Bytes;
use tokio::task::AbortHandle;
use turnbuckle_protocol::{
    RequestId, codec::headers::MediaType, jsonrpc::write_notification, method,
    types::CancelledParams,
};

use crate::{
    client::timeout::AuthWait,
    error::TransportError,
    inbound::{
        InboundRouter,
        message::{self, RawResponse},
        observers::MessageDirection,
        pending_requests::{PendingRequests, PendingSends},
    },
    sync::lock,
    transport::{
        OutgoingRequest,
        encode::{self, HeaderList},
        http::{HttpError, to_response, to_transport_error, url::Url, with_send_timeout},
        http_client::{AuthPolicy, EventReader, HttpClient, HttpResponse},
    },
};

/// Maximum time to send cancellations before the stream is closed.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// A server with HTTP+SSE.
///
/// A session is a stream: both start with `initialize`, and end together.
#[derive(Debug)]
pub(crate) struct HttpSse {
    http_client: Arc<HttpClient>,
    url: Url,
    stream: Mutex<StreamState>,
    /// The cancellations in flight.
    cancellations: PendingSends,
}

#[derive(Debug)]
enum StreamState {
    NotOpened,
    Open(Arc<HttpSseStream>),
    Closed,
}

impl HttpSse {
    pub(super) fn new(http_client: HttpClient, url: Url) -> Self {
        Self {
            http_client: Arc::new(http_client),
            url,
            stream: Mutex::new(StreamState::NotOpened),
            cancellations: PendingSends::default(),
        }
    }

    /// Posts a request, and waits for its response on the stream.
    pub(crate) async fn send_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
        body: Vec<u8>,
        router: &Arc<InboundRouter>,
    ) -> Result<RawResponse, TransportError> {
        let is_initialize = outgoing.method.name == method::INITIALIZE.name;
        let stream = if is_initialize {
            self.open(router, outgoing.auth_wait.as_deref()).await?
        } else {
            self.current_stream()?
        };
        let mut response = stream.pending.open(outgoing.id.clone())?;
        let mut cancel_guard = HttpSseCancelGuard {
            server: self,
            stream: &stream,
            router,
            id: Some(outgoing.id.clone()),
            is_initialize,
            cancellable: outgoing.rules.cancellable(outgoing.method.name),
        };
        router.trace(MessageDirection::Sent, &body);
        let auth_policy = AuthPolicy::Allowed(outgoing.auth_wait.as_deref());
        let mut headers = outgoing.headers.clone();
        headers.extend(encode::version(&outgoing.rules));
        let post = post(
            &self.http_client,
            &stream,
            headers,
            body.into(),
            auth_policy,
        );
        let response = tokio::select! {
            biased;
            // Some servers send the response on the stream before they respond to the POST.
            response = &mut response => response.unwrap_or(Err(TransportError::Closed)),
            posted = post => match posted {
                Ok(accepted) if accepted.status().is_success() => {
                    accepted.drain().await;
                    response.await.unwrap_or(Err(TransportError::Closed))
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    Err(TransportError::SessionEnded)
                }
                Ok(response) => to_response(response.error_response().await, &outgoing.id, router),
                Err(error) => Err(error.into()),
            },
        };
        cancel_guard.disarm();
        if is_initialize && !matches!(&response, Ok(response) if response.outcome.is_ok()) {
            self.discard(&stream);
        }
        response
    }

    /// Posts a message without a response.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        headers: HeaderList,
        router: &Arc<InboundRouter>,
    ) -> Result<(), TransportError> {
        let stream = self.current_stream()?;
        router.trace(MessageDirection::Sent, &message);
        let auth_wait = AuthWait::default();
        let auth_policy = AuthPolicy::Allowed(Some(&auth_wait));
        with_send_timeout(Some(&auth_wait), async {
            let response = post(
                &self.http_client,
                &stream,
                headers,
                message.into(),
                auth_policy,
            )
            .await?;
            match response.status() {
                status if status.is_success() => {
                    response.drain().await;
                    Ok(())
                }
                StatusCode::NOT_FOUND => Err(TransportError::SessionEnded),
                _ => Err(to_transport_error(response.error_response().await)),
            }
        })
        .await
    }

    /// Returns an error once the client was closed; a stream that has ended is opened again with a new session.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        let is_closed = matches!(*lock(&self.stream), StreamState::Closed);
        is_closed.then_some(TransportError::ClientClosed)
    }

    /// Returns the timer that records time spent on authorization, if authorization is configured.
    pub(crate) fn auth_wait(&self) -> Option<Arc<AuthWait>> {
        self.http_client.auth_wait()
    }

    /// Fails all pending requests, and closes the stream. Cancellations are sent first.
    pub(crate) async fn close(&self, router: &InboundRouter) {
        router.end(TransportError::ClientClosed);
        let before = std::mem::replace(&mut *lock(&self.stream), StreamState::Closed);
        if let StreamState::Open(stream) = before {
            stream.pending.end(TransportError::ClientClosed);
            self.cancellations.wait(CANCEL_TIMEOUT).await;
        }
    }

    /// Opens a new stream in place of the current one.
    async fn open(
        &self,
        router: &Arc<InboundRouter>,
        auth_wait: Option<&AuthWait>,
    ) -> Result<Arc<HttpSseStream>, TransportError> {
        let auth_policy = AuthPolicy::Allowed(auth_wait);
        let stream =
            Arc::new(HttpSseStream::open(&self.http_client, &self.url, router, auth_policy).await?);
        let mut state = lock(&self.stream);
        if matches!(*state, StreamState::Closed) {
            return Err(TransportError::ClientClosed);
        }
        *state = StreamState::Open(Arc::clone(&stream));
        Ok(stream)
    }

    /// Drops a stream without an initialized session: requests on it would get no response.
    fn discard(&self, stream: &Arc<HttpSseStream>) {
        let mut state = lock(&self.stream);
        if matches!(&*state, StreamState::Open(open) if Arc::ptr_eq(open, stream)) {
            *state = StreamState::NotOpened;
        }
    }

    /// Returns the stream; its session ends with it.
    fn current_stream(&self) -> Result<Arc<HttpSseStream>, TransportError> {
        match &*lock(&self.stream) {
            StreamState::Closed => Err(TransportError::ClientClosed),
            StreamState::Open(stream) if stream.pending.ended().is_none() => Ok(Arc::clone(stream)),
            StreamState::Open(_) | StreamState::NotOpened => Err(TransportError::SessionEnded),
        }
    }
}

async fn post(
    http_client: &HttpClient,
    stream: &HttpSseStream,
    mut headers: HeaderList,
    body: Bytes,
    auth_policy: AuthPolicy<'_>,
) -> Result<HttpResponse, HttpError> {
    headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
    http_client
        .send(
            &Method::POST,
            &stream.post,
            headers[..].into(),
            &body,
            auth_policy,
        )
        .await
}

/// Notifies the server of a cancelled request when it is dropped.
struct HttpSseCancelGuard<'s> {
    server: &'s HttpSse,
    stream: &'s Arc<HttpSseStream>,
    router: &'s Arc<InboundRouter>,
    id: Option<RequestId>,
    is_initialize: bool,
    cancellable: bool,
}

impl HttpSseCancelGuard<'_> {
    /// Disarms the guard.
    fn disarm(&mut self) {
        if let Some(id) = self.id.take() {
            self.stream.pending.cancel(&id);
        }
    }
}

impl Drop for HttpSseCancelGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        if self.is_initialize {
            self.server.discard(self.stream);
        }
        if !self.stream.pending.cancel(&id) || !self.cancellable {
            return;
        }
        let mut message = Vec::new();
        let params = CancelledParams::new(id);
        let written = write_notification(&mut message, method::CANCELLED.name, &params);
        if written.is_err() {
            return;
        }
        self.router.trace(MessageDirection::Sent, &message);
        let (http_client, stream) = (
            Arc::clone(&self.server.http_client),
            Arc::clone(self.stream),
        );
        self.server.cancellations.spawn(async move {
            let sent = with_send_timeout(None, async {
                let (headers, auth_policy) = (HeaderList::new(), AuthPolicy::Never);
                post(&http_client, &stream, headers, message.into(), auth_policy).await?;
                Ok(())
            });
            if let Err(error) = sent.await {
                tracing::debug!(%error, "a cancellation was not delivered to the server");
            }
        });
    }
}

/// An open stream, from its `endpoint` event to its end.
#[derive(Debug)]
pub(super) struct HttpSseStream {
    /// The URL to post messages to.
    pub(super) post: Url,
    pub(super) pending: Arc<PendingRequests>,
    reader_task: AbortHandle,
}

impl HttpSseStream {
    /// Opens the stream, and waits for its `endpoint` event.
    pub(super) async fn open(
        http_client: &HttpClient,
        url: &Url,
        router: &Arc<InboundRouter>,
        auth_policy: AuthPolicy<'_>,
    ) -> Result<Self, TransportError> {
        let headers = [(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let (method, body) = (Method::GET, Bytes::new());
        let response = http_client
            .send(&method, url, headers[..].into(), &body, auth_policy)
            .await?;
        let at = response.url().clone();
        let mut events = open_events(response).await?;
        let limit = router.limits.probe_timeout;
        let post = match tokio::time::timeout(limit, read_endpoint(&mut events, &at)).await {
            Ok(post) => post?,
            Err(_) => {
                let reason = format!("the stream sent no `endpoint` event within {limit:?}");
                return Err(TransportError::InvalidResponse { reason });
            }
        };
        let pending = Arc::new(PendingRequests::default());
        let reader_task = tokio::spawn(read_messages(
            events,
            Arc::clone(router),
            Arc::clone(&pending),
        ));
        Ok(Self {
            post,
            pending,
            reader_task: reader_task.abort_handle(),
        })
    }
}

impl Drop for HttpSseStream {
    fn drop(&mut self) {
        self.reader_task.abort();
    }
}

async fn open_events(response: HttpResponse) -> Result<EventReader, TransportError> {
    if response.is(MediaType::EventStream) {
        return Ok(response.events());
    }
    if !response.status().is_success() {
        return Err(to_transport_error(response.error_response().await));
    }
    Err(response.unexpected_content_type().await.into())
}

/// Waits for the event with the URL to post to, which must have the same origin.
async fn read_endpoint(events: &mut EventReader, at: &Url) -> Result<Url, TransportError> {
    while let Some(event) = events.next().await? {
        if event.name != "endpoint" {
            continue;
        }
        let endpoint = at.resolve(&event.data);
        let endpoint = endpoint.map_err(|_| HttpError::invalid_endpoint(&event.data))?;
        return if endpoint.origin() == at.origin() {
            Ok(endpoint)
        } else {
            Err(HttpError::OtherOrigin {
                origin: endpoint.origin().to_string(),
            }
            .into())
        };
    }
    Err(TransportError::Closed)
}

/// Dispatches messages until the stream ends, and then fails all pending requests.
async fn read_messages(
    mut events: EventReader,
    router: Arc<InboundRouter>,
    pending: Arc<PendingRequests>,
) {
    let reason = loop {
        match events.next().await {
            Ok(Some(event)) if event.name == "message" && !event.data.is_empty() => {
                let bytes = Bytes::from(event.data);
                router.trace(MessageDirection::Received, &bytes);
                message::read(&bytes, |received| pending.dispatch(received, &router));
            }
            Ok(Some(_)) => {}
            Ok(None) => break TransportError::Closed,
            // The message may have been a response: end the stream, so that no call waits for it.
            Err(error) => break error.into(),
        }
    };
    pending.end(reason.clone());
    router.end(reason);
}
