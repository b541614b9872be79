//! The stream on which a server of the older era says what belongs to no request.

use std::sync::Arc;

use ::http::HeaderValue;
use bytes::Bytes;
use tokio::sync::oneshot;
use turnbuckle_protocol::codec::headers::MediaType;

use super::Shared;
use crate::{
    http::{
        pause::Pause,
        wire::{Events, HttpError},
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
    let session = shared.session.id();
    let mut after: Option<HeaderValue> = None;
    let mut pause = Pause::default();
    let mut failures = 0;
    loop {
        let response = shared.get(&rules, session.as_ref(), after.as_ref()).await;
        drop(opened.take());
        match response {
            Ok(response) if response.is(MediaType::EventStream) => {
                failures = 0;
                let mut events = response.events();
                read(&mut events, &hub).await;
                pause.note(&events);
                if let Some(id) = events.last_event_id() {
                    after = HeaderValue::from_bytes(id.as_bytes()).ok();
                }
            }
            Ok(response) if response.status().is_server_error() => failures += 1,
            // Most servers have no such stream; and if the session is over, the next request will notice.
            Ok(response) => {
                return tracing::debug!(status = %response.status(), "the server has no stream");
            }
            Err(problem) if problem.may_pass() => failures += 1,
            Err(problem) => return tracing::warn!(%problem, "the server's stream is unusable"),
        }
        tokio::time::sleep(pause.after(failures)).await;
    }
}

/// Hands on every message until the stream ends.
async fn read(events: &mut Events, hub: &Arc<Hub>) {
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
