//! The roots of a modern client, kept with its connection to a legacy server.
//!
//! A legacy server requests the roots when it likes, but a modern client only gets requests in the result of a call. The
//! roots that one call has got are the response to later requests.

use std::{sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::lock;

/// Time after which the roots are requested again.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The roots of the last response.
#[derive(Default)]
pub(crate) struct KeptRoots(Mutex<RootsState>);

#[derive(Default)]
struct RootsState {
    /// The result, and the time it was received.
    result: Option<(Box<str>, Instant)>,
    /// Whether the server requested roots when no call could ask for them.
    was_refused: bool,
}

impl KeptRoots {
    /// Returns the roots unless they are too old.
    pub(crate) fn get(&self) -> Option<String> {
        let state = lock(&self.0);
        let (result, received) = state.result.as_ref()?;
        (received.elapsed() < LIFETIME).then(|| result.to_string())
    }

    /// Keeps the result of the client.
    pub(crate) fn keep(&self, result: &str) {
        let mut state = lock(&self.0);
        state.result = Some((result.into(), Instant::now()));
        state.was_refused = false;
    }

    /// The server requested something when no call could ask the client.
    pub(crate) fn note_refused(&self, method: &str) {
        if method == "roots/list" {
            lock(&self.0).was_refused = true;
        }
    }

    /// Returns whether the server should request the roots again, now that a call can ask for them. Only once.
    pub(crate) fn take_refused(&self) -> bool {
        std::mem::take(&mut lock(&self.0).was_refused)
    }
}
