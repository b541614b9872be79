//! Recorders of what a server announces and what handlers do.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use turnbuckle_store::{BusSubscription, ServerChange};

use crate::{Server, sync::lock};

/// Records the changes that a server publishes.
///
/// ```
/// use turnbuckle_server::{Server, testing::ChangeRecorder};
/// use turnbuckle_store::ServerChange;
///
/// let server = Server::new("clock", "1.0.0");
/// let mut changes = ChangeRecorder::new(&server);
/// server.tools_changed();
/// assert_eq!(changes.take(), [ServerChange::ToolsChanged]);
/// ```
#[derive(Debug)]
pub struct ChangeRecorder {
    subscription: BusSubscription,
}

impl ChangeRecorder {
    /// Starts recording.
    pub fn new(server: &Server) -> Self {
        Self {
            subscription: server.store_ref().bus.subscribe(),
        }
    }

    /// Returns the changes since the last call, in order.
    ///
    /// # Panics
    ///
    /// If changes were lost because there were too many.
    pub fn take(&mut self) -> Vec<ServerChange> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut changes = Vec::new();
        while let Poll::Ready(change) = self.subscription.poll_next(&mut cx) {
            let (_, change) = change.unwrap_or_else(|lagged| panic!("the recorder {lagged}"));
            changes.push(change);
        }
        changes
    }
}

/// Records the side effects of a handler, to compare runs.
///
/// ```
/// use turnbuckle_server::testing::SideEffects;
///
/// let effects = SideEffects::default();
/// effects.record("sent the letter");
/// assert_eq!(effects.recorded(), ["sent the letter"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SideEffects {
    recorded: Arc<Mutex<Vec<String>>>,
}

impl SideEffects {
    /// Records a side effect.
    pub fn record(&self, what: impl Into<String>) {
        lock(&self.recorded).push(what.into());
    }

    /// Returns all side effects, in order.
    pub fn recorded(&self) -> Vec<String> {
        lock(&self.recorded).clone()
    }
}
