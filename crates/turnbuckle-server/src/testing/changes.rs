//! What a server tells everyone who wants to know.

use std::task::{Context, Poll, Waker};

use turnbuckle_store::{Change, Subscription};

use crate::Server;

/// Writes down what a server announces, whether or not a client listens.
///
/// ```
/// use turnbuckle_server::{Server, testing::Changes};
/// use turnbuckle_store::Change;
///
/// let server = Server::new("clock", "1.0.0");
/// let mut changes = Changes::of(&server);
/// server.tools_changed();
/// assert_eq!(changes.take(), [Change::ToolsChanged]);
/// ```
#[derive(Debug)]
pub struct Changes {
    subscription: Subscription,
}

impl Changes {
    /// Listens from now on.
    pub fn of(server: &Server) -> Self {
        Self {
            subscription: server.store_ref().bus.subscribe(),
        }
    }

    /// Everything that was announced since the last time, in order.
    ///
    /// # Panics
    ///
    /// If so much was announced meanwhile that some of it is lost.
    pub fn take(&mut self) -> Vec<Change> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut changes = Vec::new();
        while let Poll::Ready(change) = self.subscription.poll_next(&mut cx) {
            changes.push(change.unwrap_or_else(|lagged| panic!("the recorder {lagged}")));
        }
        changes
    }
}
