//! The GET stream of a session, for messages that do not belong to a request.

use std::sync::Arc;

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use tokio::sync::oneshot;
use turnbuckle_protocol::codec::headers::MediaType;

use crate::{
    inbound::{
        InboundRouter,
        observers::{Anomaly, MessageDirection},
    },
    lifecycle::RevisionRules,
    transport::{
        http::{
            streamable::{Backoff, StreamableState, session},
            to_transport_error,
        },
        http_client::{AuthPolicy, EventReader, HttpError, HttpResponse},
    },
};

/// Reads the stream for as long as the session lasts, or until the server reports that it has none.
///
/// `opened` is dropped after the first response, whatever it is.
pub(super) async fn read_get_stream(
    shared: Arc<StreamableState>,
    rules: Arc<RevisionRules>,
    router: Arc<InboundRouter>,
    opened: oneshot::Sender<()>,
) {
    let mut opened = Some(opened);
    let mut stream = GetStream {
        session: shared.session.id(),
        ..GetStream::default()
    };
    loop {
        let session = stream.session.as_ref();
        let auth_policy = AuthPolicy::Allowed(None);
        let response = shared
            .get(&rules, session, stream.last_event_id.as_ref(), auth_policy)
            .await;
        drop(opened.take());
        match response {
            Ok(response) if response.is(MediaType::EventStream) => {
                stream.read(response, &router).await;
            }
            Ok(response) if response.status().is_server_error() => stream.failures += 1,
            Ok(response) => return stream.on_unavailable(response, &shared, &router).await,
            Err(error) if error.is_transient() => stream.failures += 1,
            // Subscribers would wait forever.
            Err(error @ HttpError::Authorization(_)) if stream.was_open => {
                return router.end(error.into());
            }
            Err(error) => return tracing::warn!(%error, "the GET stream failed"),
        }
        tokio::time::sleep(stream.backoff.delay(stream.failures)).await;
    }
}

/// The state of the stream between connections.
#[derive(Default)]
struct GetStream {
    session: Option<HeaderValue>,
    last_event_id: Option<HeaderValue>,
    backoff: Backoff,
    failures: u32,
    was_open: bool,
}

impl GetStream {
    async fn read(&mut self, response: HttpResponse, router: &Arc<InboundRouter>) {
        // A stream that cannot be resumed may have missed messages.
        if self.was_open && self.last_event_id.is_none() {
            router.notify_gap();
        }
        self.was_open = true;
        self.failures = 0;
        let mut events = response.events();
        read_until_end(&mut events, router).await;
        self.backoff.update(&events);
        if let Some(id) = events.last_event_id() {
            self.last_event_id = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
    }

    /// Handles a response that is not a stream: most servers have none. If there was a stream before, the session has
    /// ended.
    async fn on_unavailable(
        &self,
        response: HttpResponse,
        shared: &StreamableState,
        router: &Arc<InboundRouter>,
    ) {
        let status = response.status();
        tracing::debug!(%status, "the server has no GET stream");
        if !self.was_open {
            return;
        }
        let error_response = response.error_response().await;
        // Subscribers would wait forever.
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return router.end(to_transport_error(error_response));
        }
        let ended = session::is_unknown_session(&error_response);
        // A concurrent call may have renewed the session already.
        if ended && self.session.is_some() && shared.session.id() == self.session {
            router.on_session_ended();
        }
    }
}

/// Dispatches messages until the stream ends.
async fn read_until_end(events: &mut EventReader, router: &Arc<InboundRouter>) {
    loop {
        match events.next().await {
            Ok(Some(event)) if event.name == "message" && !event.data.is_empty() => {
                let bytes = Bytes::from(event.data);
                router.trace(MessageDirection::Received, &bytes);
                router.receive_bytes(&bytes);
            }
            Ok(Some(_)) => {}
            // The message is lost, but no request waits for it on this stream.
            Err(error @ HttpError::TooLarge { .. }) => {
                router.report_anomaly(Anomaly::NotJson(error.to_string()));
            }
            Ok(None) | Err(_) => return,
        }
    }
}
