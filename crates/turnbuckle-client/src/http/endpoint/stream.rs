//! The stream on which a server of the older era says what belongs to no request.

use std::sync::Arc;

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use tokio::sync::oneshot;
use turnbuckle_protocol::codec::headers::MediaType;

use super::Shared;
use crate::{
    http::{
        answering::refused,
        pause::Pause,
        wire::{Events, HttpError, Login, Response},
    },
    hub::Hub,
    lifecycle::Rules,
    oddity::Oddity,
    traffic::Direction,
};

/// Reads the stream for as long as the session lasts, or until the server says that it has none.
///
/// The sender is dropped once the server has first answered, whatever it answered.
pub(super) async fn listen(
    shared: Arc<Shared>,
    rules: Arc<Rules>,
    hub: Arc<Hub>,
    opened: oneshot::Sender<()>,
) {
    let mut opened = Some(opened);
    let mut stream = Stream {
        session: shared.session.id(),
        ..Stream::default()
    };
    loop {
        let session = stream.session.as_ref();
        let login = Login::Allowed(None);
        let response = shared
            .get(&rules, session, stream.after.as_ref(), login)
            .await;
        drop(opened.take());
        match response {
            Ok(response) if response.is(MediaType::EventStream) => {
                stream.read(response, &hub).await;
            }
            Ok(response) if response.status().is_server_error() => stream.failures += 1,
            Ok(response) => return stream.none(response, &shared, &hub).await,
            Err(problem) if problem.may_pass() => stream.failures += 1,
            // Whoever listens would wait for nothing.
            Err(problem @ HttpError::Authorization(_)) if stream.was_open => {
                return hub.end(problem.into());
            }
            Err(problem) => return tracing::warn!(%problem, "the server's stream is unusable"),
        }
        tokio::time::sleep(stream.pause.after(stream.failures)).await;
    }
}

/// What is known of the stream from one connection to the next.
#[derive(Default)]
struct Stream {
    session: Option<HeaderValue>,
    after: Option<HeaderValue>,
    pause: Pause,
    failures: u32,
    was_open: bool,
}

impl Stream {
    async fn read(&mut self, response: Response, hub: &Arc<Hub>) {
        // A server that cannot go on where it ended may have had something to say in between.
        if self.was_open && self.after.is_none() {
            hub.gap();
        }
        self.was_open = true;
        self.failures = 0;
        let mut events = response.events();
        until_end(&mut events, hub).await;
        self.pause.note(&events);
        if let Some(id) = events.last_event_id() {
            self.after = HeaderValue::from_bytes(id.as_bytes()).ok();
        }
    }

    /// There is no stream: most servers have none, and never had. But if there was one, the session is over.
    async fn none(&self, response: Response, shared: &Shared, hub: &Arc<Hub>) {
        let status = response.status();
        tracing::debug!(%status, "the server has no stream");
        let forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // Whoever listens would wait for nothing.
        if self.was_open && forbidden {
            return hub.end(refused(response.refusal().await));
        }
        let ended = self.was_open && status == StatusCode::NOT_FOUND;
        // Whoever called in the meantime may have begun a new one already.
        if ended && self.session.is_some() && shared.session.id() == self.session {
            hub.session_over();
        }
    }
}

/// Hands on every message until the stream ends.
async fn until_end(events: &mut Events, hub: &Arc<Hub>) {
    loop {
        match events.next().await {
            Ok(Some(event)) if event.name == "message" && !event.data.is_empty() => {
                let bytes = Bytes::from(event.data);
                hub.tap(Direction::Received, &bytes);
                hub.receive_bytes(&bytes);
            }
            Ok(Some(_)) => {}
            // It may have been anything, but nobody waits for it here.
            Err(problem @ HttpError::TooLarge { .. }) => {
                hub.odd(Oddity::Noise(problem.to_string()));
            }
            Ok(None) | Err(_) => return,
        }
    }
}
