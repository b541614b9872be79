//! Reads the response to a posted request: a JSON body, or a stream, which is resumed if it breaks.

use std::sync::Arc;

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::codec::headers::MediaType;

use crate::{
    error::TransportError,
    inbound::{
        InboundRouter,
        message::{self, HttpMetadata, InboundMessage, RawResponse},
        observers::MessageDirection,
    },
    transport::{
        OutgoingRequest,
        http::{
            streamable::{Backoff, StreamableState, session},
            to_response, to_transport_error,
        },
        http_client::{AuthPolicy, ErrorResponse, EventReader, HttpResponse, ResponseContent},
    },
};

/// Maximum number of consecutive failures to resume a stream.
const MAX_RESUME_ATTEMPTS: u32 = 5;

/// Reads the response to a posted request, and dispatches the other messages of the HTTP response.
pub(super) struct PostResponseReader<'e> {
    pub(super) shared: &'e StreamableState,
    pub(super) router: &'e Arc<InboundRouter>,
    pub(super) outgoing: &'e OutgoingRequest<'e>,
    /// The session of the request.
    pub(super) session: Option<&'e HeaderValue>,
}

/// The position at which to resume a stream.
#[derive(Default)]
struct ResumePoint {
    last_event_id: Option<HeaderValue>,
    backoff: Backoff,
}

impl PostResponseReader<'_> {
    /// Extracts the response from the HTTP response, and dispatches other messages.
    pub(super) async fn read(&self, response: HttpResponse) -> Result<RawResponse, TransportError> {
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Err(TransportError::InvalidResponse {
                reason: format!("status {status} without a body"),
            }),
            status if !status.is_success() => {
                self.error_response(Box::pin(response.error_response()).await)
            }
            status => match response.body().await? {
                ResponseContent::Json(bytes) => self.read_json(&bytes, status),
                ResponseContent::Events(events) => {
                    Box::pin(self.read_stream(*events, status)).await
                }
            },
        }
    }

    /// Converts an error response, which may contain the response.
    fn error_response(&self, error_response: ErrorResponse) -> Result<RawResponse, TransportError> {
        if self.session.is_some() && session::is_unknown_session(&error_response) {
            Err(TransportError::SessionEnded)
        } else {
            to_response(error_response, &self.outgoing.id, self.router)
        }
    }

    /// Extracts the response from a JSON body.
    fn read_json(&self, bytes: &Bytes, status: StatusCode) -> Result<RawResponse, TransportError> {
        let mut broken = None;
        let found = self.extract_response(bytes, status, |received| match received {
            InboundMessage::Malformed { error, .. } => broken = Some(error.message),
            other => self.receive(other),
        })?;
        found.ok_or_else(|| TransportError::InvalidResponse {
            reason: broken
                .unwrap_or_else(|| format!("no response to request {}", self.outgoing.id)),
        })
    }

    /// Reads a stream, and the streams that resume it, until the response arrives.
    async fn read_stream(
        &self,
        mut events: EventReader,
        status: StatusCode,
    ) -> Result<RawResponse, TransportError> {
        let mut resume_point = ResumePoint::default();
        loop {
            let ended = match self.read_until_response(&mut events, status).await {
                Ok(Some(response)) => {
                    events.finish().await;
                    return Ok(response);
                }
                Ok(None) => TransportError::Closed,
                Err(error @ TransportError::Http(_)) => error,
                Err(error) => return Err(error),
            };
            resume_point.update(&events);
            drop(events);
            let last_event_id = resume_point
                .last_event_id
                .as_ref()
                .filter(|_| self.outgoing.rules.resumable);
            let last_event_id = last_event_id.ok_or(ended)?;
            events = self.resume(last_event_id, &resume_point.backoff).await?;
        }
    }

    async fn read_until_response(
        &self,
        events: &mut EventReader,
        status: StatusCode,
    ) -> Result<Option<RawResponse>, TransportError> {
        while let Some(event) = events.next().await? {
            // An event without data only sets the id.
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            let bytes = Bytes::from(event.data);
            let found = self.extract_response(&bytes, status, |received| self.receive(received))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Resumes a stream after the last received event.
    async fn resume(
        &self,
        last_event_id: &HeaderValue,
        backoff: &Backoff,
    ) -> Result<EventReader, TransportError> {
        let mut failures = 0;
        loop {
            tokio::time::sleep(backoff.delay(failures)).await;
            failures += 1;
            let resumed = self
                .shared
                .get(
                    &self.outgoing.rules,
                    self.session,
                    Some(last_event_id),
                    AuthPolicy::Allowed(self.outgoing.auth_wait.as_deref()),
                )
                .await;
            match resumed {
                Ok(response) if response.is(MediaType::EventStream) => return Ok(response.events()),
                Ok(response)
                    if failures < MAX_RESUME_ATTEMPTS && response.status().is_server_error() => {}
                Ok(response) => return Err(resume_error(response).await),
                Err(error) if failures < MAX_RESUME_ATTEMPTS && error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes a message that is not the response to the router.
    fn receive(&self, received: InboundMessage) {
        self.router.receive_from(received, self.outgoing.relay_call);
    }

    /// Extracts the response from received bytes; other messages are passed to `other`.
    fn extract_response(
        &self,
        bytes: &Bytes,
        status: StatusCode,
        mut other: impl FnMut(InboundMessage),
    ) -> Result<Option<RawResponse>, TransportError> {
        self.router.trace(MessageDirection::Received, bytes);
        let http = Some(HttpMetadata {
            status,
            retry_after: None,
        });
        let mut found = None;
        message::read(bytes, |received| match received {
            InboundMessage::Response { id, outcome }
                if found.is_none() && id == self.outgoing.id =>
            {
                found = Some(Ok(outcome));
            }
            // A message without an id belongs to the posted request.
            InboundMessage::ErrorWithoutId(error) if found.is_none() => {
                found = Some(Ok(Err(error)));
            }
            InboundMessage::InvalidResponse { id, error }
                if found.is_none() && id.as_ref().is_none_or(|id| *id == self.outgoing.id) =>
            {
                let reason = error.message;
                found = Some(Err(TransportError::InvalidResponse { reason }));
            }
            InboundMessage::Response { id, .. }
                if found.is_none() && id.of_other_type().as_ref() == Some(&self.outgoing.id) =>
            {
                found = Some(Err(TransportError::WrongIdType {
                    asked: self.outgoing.id.clone(),
                    answered: id,
                }));
            }
            received => other(received),
        });
        match found {
            None => Ok(None),
            Some(Ok(outcome)) => Ok(Some(RawResponse { http, outcome })),
            Some(Err(error)) => Err(error),
        }
    }
}

/// Returns the error of a stream that cannot be resumed.
///
/// The request may have taken effect, so it is not sent again, even if the session has ended.
async fn resume_error(response: HttpResponse) -> TransportError {
    match response.status() {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => TransportError::Closed,
        status if status.is_success() => match response.body().await {
            Err(error) => error.into(),
            Ok(_) => TransportError::Closed,
        },
        _ => to_transport_error(response.error_response().await),
    }
}

impl ResumePoint {
    /// Stores the position at the end of a stream; values that the stream did not set stay unchanged.
    fn update(&mut self, events: &EventReader) {
        self.backoff.update(events);
        if let Some(id) = events.last_event_id() {
            self.last_event_id = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
    }
}
