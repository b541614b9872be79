//! A request that was posted, and the way to its answer.

use std::sync::Arc;

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::codec::headers::MediaType;

use super::Shared;
use crate::{
    answer::{Answer, HttpFacts},
    error::TransportError,
    http::{
        answering::{self, refused},
        headers::{Headers, RequestHeaders},
        pause::Pause,
        wire::{Body, Events, Login, Refusal, Response},
    },
    hub::Hub,
    incoming::{self, Received},
    traffic::Direction,
    transport::Outgoing,
};

/// How often taking up a stream may fail in a row.
const ATTEMPTS: u32 = 5;

/// A request on its way.
pub(super) struct Posted<'e> {
    shared: &'e Shared,
    hub: &'e Arc<Hub>,
    outgoing: &'e Outgoing,
    session: Option<&'e HeaderValue>,
    prepared: Option<Arc<Headers>>,
}

/// Where a stream broke off.
#[derive(Default)]
struct Place {
    after: Option<HeaderValue>,
    pause: Pause,
}

impl<'e> Posted<'e> {
    pub(super) fn new(
        shared: &'e Shared,
        hub: &'e Arc<Hub>,
        outgoing: &'e Outgoing,
        session: Option<&'e HeaderValue>,
        prepared: Option<Arc<Headers>>,
    ) -> Self {
        Self {
            shared,
            hub,
            outgoing,
            session,
            prepared,
        }
    }

    pub(super) fn login(&self) -> Login<'_> {
        Login::Allowed(self.outgoing.held.as_deref())
    }

    /// Returns the headers to post it with.
    pub(super) fn headers(&self) -> RequestHeaders<'_> {
        let prepared = self.prepared.as_deref().unwrap_or(&self.shared.posting);
        RequestHeaders {
            prepared: Some(prepared),
            own: &self.outgoing.headers,
        }
    }

    /// Finds the answer in the response, and hands everything else on.
    pub(super) async fn answer(&self, response: Response) -> Result<Answer, TransportError> {
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Err(TransportError::NotAnAnswer {
                reason: format!("status {status} and nothing else"),
            }),
            status if !status.is_success() => self.refusal(Box::pin(response.refusal()).await),
            status => match response.body().await? {
                Body::Json(bytes) => self.whole(&bytes, status),
                Body::Events(events) => Box::pin(self.walk(*events, status)).await,
            },
        }
    }

    /// A status that is no success may still come with an answer.
    fn refusal(&self, refusal: Refusal) -> Result<Answer, TransportError> {
        match refusal.status {
            StatusCode::NOT_FOUND if self.session.is_some() => Err(TransportError::SessionEnded),
            _ => answering::answer(refusal, &self.outgoing.id, self.hub),
        }
    }

    /// Takes a body that is all there is.
    fn whole(&self, bytes: &Bytes, status: StatusCode) -> Result<Answer, TransportError> {
        let mut broken = None;
        let answer = self.look(bytes, status, |received| match received {
            Received::Malformed { error, .. } => broken = Some(error.message),
            other => self.hub.receive(other),
        })?;
        answer.ok_or_else(|| TransportError::NotAnAnswer {
            reason: broken
                .unwrap_or_else(|| format!("nothing in it answers request {}", self.outgoing.id)),
        })
    }

    /// Goes through a stream, and through those that continue it, until the answer is there.
    async fn walk(&self, mut events: Events, status: StatusCode) -> Result<Answer, TransportError> {
        let mut place = Place::default();
        loop {
            let ended = match self.until_end(&mut events, status).await {
                Ok(Some(answer)) => {
                    events.finish().await;
                    return Ok(answer);
                }
                Ok(None) => TransportError::Closed,
                Err(problem @ TransportError::Http(_)) => problem,
                Err(problem) => return Err(problem),
            };
            place.note(&events);
            drop(events);
            let after = place
                .after
                .as_ref()
                .filter(|_| self.outgoing.rules.resumable);
            let after = after.ok_or(ended)?;
            events = self.resume(after, &place.pause).await?;
        }
    }

    async fn until_end(
        &self,
        events: &mut Events,
        status: StatusCode,
    ) -> Result<Option<Answer>, TransportError> {
        while let Some(event) = events.next().await? {
            // An event without content only brings its id.
            if event.name != "message" || event.data.is_empty() {
                continue;
            }
            let bytes = Bytes::from(event.data);
            let found = self.look(&bytes, status, |received| self.hub.receive(received))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Takes up a stream after the last event that was seen of it.
    async fn resume(&self, after: &HeaderValue, pause: &Pause) -> Result<Events, TransportError> {
        let mut failures = 0;
        loop {
            tokio::time::sleep(pause.after(failures)).await;
            failures += 1;
            let resumed = self
                .shared
                .get(
                    &self.outgoing.rules,
                    self.session,
                    Some(after),
                    self.login(),
                )
                .await;
            match resumed {
                Ok(response) if response.is(MediaType::EventStream) => return Ok(response.events()),
                Ok(response) if failures < ATTEMPTS && response.status().is_server_error() => {}
                Ok(response) => return Err(gone(response).await),
                Err(problem) if failures < ATTEMPTS && problem.may_pass() => {}
                Err(problem) => return Err(problem.into()),
            }
        }
    }

    /// Looks for the answer in received bytes; everything else is handed on.
    fn look(
        &self,
        bytes: &Bytes,
        status: StatusCode,
        mut other: impl FnMut(Received),
    ) -> Result<Option<Answer>, TransportError> {
        self.hub.tap(Direction::Received, bytes);
        let http = Some(HttpFacts {
            status,
            retry_after: None,
        });
        let mut found = None;
        incoming::read(bytes, |received| match received {
            Received::Answer { id, outcome } if found.is_none() && id == self.outgoing.id => {
                found = Some(Ok(outcome));
            }
            // What names no request can mean none but the one that was posted.
            Received::Complaint(error) if found.is_none() => found = Some(Ok(Err(error))),
            Received::BadAnswer { id, error }
                if found.is_none() && id.as_ref().is_none_or(|id| *id == self.outgoing.id) =>
            {
                found = Some(Err(error.message));
            }
            received => other(received),
        });
        match found {
            None => Ok(None),
            Some(Ok(outcome)) => Ok(Some(Answer { http, outcome })),
            Some(Err(reason)) => Err(TransportError::NotAnAnswer { reason }),
        }
    }
}

/// A stream that cannot be taken up again.
///
/// The request may have taken effect, so not even a session that is over makes it one to be sent again.
async fn gone(response: Response) -> TransportError {
    match response.status() {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => TransportError::Closed,
        status if status.is_success() => match response.body().await {
            Err(problem) => problem.into(),
            Ok(_) => TransportError::Closed,
        },
        _ => refused(response.refusal().await),
    }
}

impl Place {
    /// Remembers the end of a stream; what it did not say anew stays as it was.
    fn note(&mut self, events: &Events) {
        self.pause.note(events);
        if let Some(id) = events.last_event_id() {
            self.after = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
    }
}
