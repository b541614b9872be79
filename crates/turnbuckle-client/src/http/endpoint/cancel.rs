//! Cancelling a request of a session: there, closing the response means nothing, only a notification does.

use std::sync::Arc;

use ::http::HeaderValue;
use turnbuckle_protocol::{RequestId, jsonrpc::write_notification, method, types::CancelledParams};

use super::Shared;
use crate::{
    http::{taken, wire::Login},
    hub::Hub,
    lifecycle::Rules,
    message,
    traffic::Direction,
    transport::Outgoing,
};

/// Tells the server that nobody waits any more, unless it turns out not to be needed.
pub(super) struct CancelOnDrop<'r> {
    shared: &'r Arc<Shared>,
    hub: &'r Arc<Hub>,
    outgoing: &'r Outgoing,
    session: Option<&'r HeaderValue>,
    needed: bool,
}

impl<'r> CancelOnDrop<'r> {
    pub(super) fn new(
        shared: &'r Arc<Shared>,
        hub: &'r Arc<Hub>,
        outgoing: &'r Outgoing,
        session: Option<&'r HeaderValue>,
    ) -> Self {
        let rules = &outgoing.rules;
        Self {
            shared,
            hub,
            outgoing,
            session,
            needed: !rules.drop_cancels && rules.cancellable(outgoing.method),
        }
    }

    /// The request is over.
    pub(super) fn not_needed(mut self) {
        self.needed = false;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // A session that ends takes its requests along.
        if !self.needed || self.shared.closing.is_closed() {
            return;
        }
        let cancellation = Cancellation {
            shared: Arc::clone(self.shared),
            hub: Arc::clone(self.hub),
            id: self.outgoing.id.clone(),
            rules: Arc::clone(&self.outgoing.rules),
            session: self.session.cloned(),
        };
        self.shared.cancellations.spawn(cancellation.send());
    }
}

struct Cancellation {
    shared: Arc<Shared>,
    hub: Arc<Hub>,
    id: RequestId,
    rules: Arc<Rules>,
    /// The session that the request was sent in, which may be over for us by now.
    session: Option<HeaderValue>,
}

impl Cancellation {
    async fn send(self) {
        let mut notification = Vec::new();
        let params = CancelledParams::new(self.id.clone());
        if write_notification(&mut notification, method::CANCELLED.name, &params).is_err() {
            return;
        }
        let headers = message::version_header(&self.rules);
        self.hub.tap(Direction::Sent, &notification);
        let told = self
            .shared
            .tell(notification, headers, self.session, Login::Never);
        if let Err(error) = taken(None, told).await {
            tracing::debug!(id = %self.id, %error, "a cancellation did not reach the server");
        }
    }
}
