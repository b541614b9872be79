//! One stream, from its `endpoint` event to its end.

use std::sync::Arc;

use ::http::{HeaderValue, Method, header::ACCEPT};
use bytes::Bytes;
use tokio::task::AbortHandle;
use turnbuckle_protocol::codec::headers::MediaType;

use crate::{
    error::TransportError,
    http::{
        HttpError,
        answering::refused,
        url::Url,
        wire::{Events, Login, Response, Wire},
    },
    hub::Hub,
    incoming,
    traffic::Direction,
    waiting::Waiting,
};

/// A stream that is being read.
#[derive(Debug)]
pub(super) struct Line {
    /// Where messages are posted to.
    pub(super) post: Url,
    pub(super) waiting: Arc<Waiting>,
    reading: AbortHandle,
}

impl Line {
    /// Opens the stream and waits until it says where to post to.
    pub(super) async fn open(
        wire: &Wire,
        url: &Url,
        hub: &Arc<Hub>,
        login: Login<'_>,
    ) -> Result<Self, TransportError> {
        let headers = [(ACCEPT, HeaderValue::from_static("text/event-stream"))];
        let (method, body) = (Method::GET, Bytes::new());
        let response = wire
            .send(&method, url, headers[..].into(), &body, login)
            .await?;
        let at = response.url().clone();
        let mut events = stream(response).await?;
        let limit = hub.limits.probe;
        let post = match tokio::time::timeout(limit, endpoint(&mut events, &at)).await {
            Ok(post) => post?,
            Err(_) => {
                let reason = format!("the stream named no endpoint within {limit:?}");
                return Err(TransportError::NotAnAnswer { reason });
            }
        };
        let waiting = Arc::new(Waiting::default());
        let reading = tokio::spawn(read(events, Arc::clone(hub), Arc::clone(&waiting)));
        Ok(Self {
            post,
            waiting,
            reading: reading.abort_handle(),
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn stream(response: Response) -> Result<Events, TransportError> {
    if response.is(MediaType::EventStream) {
        return Ok(response.events());
    }
    if !response.status().is_success() {
        return Err(refused(response.refusal().await));
    }
    Err(response.unexpected().await.into())
}

/// Waits for the event that names the URL to post to, which must be of the same origin.
async fn endpoint(events: &mut Events, at: &Url) -> Result<Url, TransportError> {
    while let Some(event) = events.next().await? {
        if event.name != "endpoint" {
            continue;
        }
        let endpoint = at.resolve(&event.data);
        let endpoint = endpoint.map_err(|_| HttpError::endpoint(&event.data))?;
        return match endpoint.origin() == at.origin() {
            true => Ok(endpoint),
            false => Err(HttpError::OtherOrigin {
                origin: endpoint.origin().to_string(),
            }
            .into()),
        };
    }
    Err(TransportError::Closed)
}

/// Hands on every message until the stream ends, and then tells everyone who waits.
async fn read(mut events: Events, hub: Arc<Hub>, waiting: Arc<Waiting>) {
    let reason = loop {
        match events.next().await {
            Ok(Some(event)) if event.name == "message" && !event.data.is_empty() => {
                let bytes = Bytes::from(event.data);
                hub.tap(Direction::Received, &bytes);
                incoming::read(&bytes, |received| waiting.take(received, &hub));
            }
            Ok(Some(_)) => {}
            Ok(None) => break TransportError::Closed,
            // One that is too large may have been anyone's answer: better an end than a call that waits for nothing.
            Err(problem) => break problem.into(),
        }
    };
    waiting.end(reason.clone());
    hub.end(reason);
}
