//! The GET stream of an HTTP session.

use std::time::Duration;

use tokio::{sync::Mutex, time::timeout};

use super::response_task::ResponseTask;
use crate::{
    engine::transcript::Transcript,
    wire::{WireEvent, http::RawHttpRequest},
};

/// The time limit for the response to the GET.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// The GET stream, if the server offers one.
#[derive(Default)]
pub(super) struct GetStream(Mutex<GetStreamState>);

#[derive(Default)]
enum GetStreamState {
    /// Not requested yet, or ended by the server.
    #[default]
    Closed,
    /// Being read.
    Open(ResponseTask),
    /// Not offered.
    Unavailable,
}

impl GetStream {
    /// Opens the stream unless it is open or not offered.
    pub(super) async fn open(
        &self,
        raw_request: impl FnOnce() -> RawHttpRequest,
        transcript: &Transcript,
    ) {
        let mut state = self.0.lock().await;
        if !matches!(*state, GetStreamState::Closed) {
            return;
        }
        let mut stream = ResponseTask::listen(raw_request(), transcript.clone());
        *state = match stream.next(OPEN_TIMEOUT).await {
            Some(WireEvent::Head(200, _)) => GetStreamState::Open(stream),
            // Some servers send the head only with the first event.
            None => GetStreamState::Open(stream),
            Some(_) => GetStreamState::Unavailable,
        };
    }

    /// Returns the entry of the next message; `None` after the timeout.
    pub(super) async fn next(&self, response_timeout: Duration) -> Option<usize> {
        timeout(response_timeout, async {
            let mut state = self.0.lock().await;
            loop {
                let GetStreamState::Open(stream) = &mut *state else {
                    return std::future::pending().await;
                };
                match stream.next(Duration::MAX).await {
                    Some(WireEvent::Message(number)) => return number,
                    Some(WireEvent::Head(200, _)) | None => {}
                    Some(WireEvent::Head(..)) => *state = GetStreamState::Unavailable,
                    Some(WireEvent::End(_)) => *state = GetStreamState::Closed,
                }
            }
        })
        .await
        .ok()
    }
}
