//! The stream on which a server on HTTP says what nobody has asked for.

use std::time::Duration;

use tokio::{sync::Mutex, time::timeout};

use super::posting::Posting;
use crate::tape::Tape;
use crate::wire::{Said, http::Draft};

/// How long a server may take to say whether there is such a stream.
const OPENING: Duration = Duration::from_secs(1);

/// A stream of its own for what nobody has asked for, if the server has one.
#[derive(Default)]
pub(super) struct Unasked(Mutex<State>);

#[derive(Default)]
enum State {
    /// Nobody has asked yet, or the server has ended the last one.
    #[default]
    Closed,
    /// It is read.
    Open(Posting),
    /// There is none.
    Refused,
}

impl Unasked {
    /// Opens it, if it is not open already and the server has one.
    pub(super) async fn open(&self, draft: impl FnOnce() -> Draft, tape: &Tape) {
        let mut state = self.0.lock().await;
        if !matches!(*state, State::Closed) {
            return;
        }
        let mut stream = Posting::listen(draft(), tape.clone());
        *state = match stream.next(OPENING).await {
            Some(Said::Head(200, _)) => State::Open(stream),
            // Some servers send no head before there is an event.
            None => State::Open(stream),
            Some(_) => State::Refused,
        };
    }

    /// Returns the next message; `None` if there is none for so long.
    pub(super) async fn next(&self, patience: Duration) -> Option<usize> {
        timeout(patience, async {
            let mut state = self.0.lock().await;
            loop {
                let State::Open(stream) = &mut *state else {
                    return std::future::pending().await;
                };
                match stream.next(Duration::MAX).await {
                    Some(Said::Message(number)) => return number,
                    Some(Said::Head(200, _)) | None => {}
                    Some(Said::Head(..)) => *state = State::Refused,
                    Some(Said::End(_)) => *state = State::Closed,
                }
            }
        })
        .await
        .ok()
    }
}
