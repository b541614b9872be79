//! The roots of a modern client, kept with its connection to a legacy server.
//!
//! A legacy server requests the roots when it likes, but a modern client only gets requests in the result of a call, and
//! does not report changes. The roots that one call has got are the response to later requests. After an hour the next
//! call requests them again, and the server is notified if they differ.

use std::{sync::Mutex, time::Duration};

use tokio::{sync::Notify, time::Instant};

use crate::lock;

/// Time after which the roots are requested again.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The roots of the last response.
#[derive(Default)]
pub(crate) struct KeptRoots {
    state: Mutex<RootsState>,
    /// Notified when the server has got a response to a request for the roots.
    pub(super) responded: Notify,
}

#[derive(Default)]
struct RootsState {
    /// The result, and the time it was received.
    result: Option<(Box<str>, Instant)>,
    /// Whether the server requested roots when no call could ask for them.
    was_refused: bool,
    /// Whether a call has waited for the requests that follow the handshake.
    is_first_call_over: bool,
    /// Whether a call requests the roots again.
    is_renewing: bool,
}

/// What a call does about the roots before it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RootsStep {
    /// Nothing: the server knows them, or does not request any.
    Send,
    /// Waits until the server has requested the roots, if it does so after the handshake.
    Await,
    /// Has the server request the roots again, and waits for that.
    Notify,
    /// Requests the roots from the client again.
    Renew,
}

impl KeptRoots {
    /// Returns the roots unless they are too old.
    pub(super) fn get(&self) -> Option<String> {
        let state = lock(&self.state);
        let (result, received) = state.result.as_ref()?;
        (received.elapsed() < LIFETIME).then(|| result.to_string())
    }

    /// Keeps the result of the client. Returns whether it differs from the one before.
    pub(super) fn keep(&self, result: &str) -> bool {
        let mut state = lock(&self.state);
        state.was_refused = false;
        let before = state.result.replace((result.into(), Instant::now()));
        before.is_some_and(|(before, _)| *before != *result)
    }

    /// The server requested something when no call could ask the client, or got no response.
    pub(super) fn note_refused(&self, method: &str) {
        if method == "roots/list" {
            lock(&self.state).was_refused = true;
        }
    }

    /// Returns what the next call does before it is sent. Each step is for one call.
    pub(super) fn next_step(&self) -> RootsStep {
        let mut state = lock(&self.state);
        let is_first = !std::mem::replace(&mut state.is_first_call_over, true);
        if std::mem::take(&mut state.was_refused) {
            return RootsStep::Notify;
        }
        let is_old =
            (state.result.as_ref()).is_some_and(|(_, received)| received.elapsed() >= LIFETIME);
        if is_old && !state.is_renewing {
            state.is_renewing = true;
            return RootsStep::Renew;
        }
        if is_first {
            RootsStep::Await
        } else {
            RootsStep::Send
        }
    }

    /// The call that requested the roots again has ended, or has got them.
    pub(super) fn end_renewal(&self) {
        lock(&self.state).is_renewing = false;
    }
}
