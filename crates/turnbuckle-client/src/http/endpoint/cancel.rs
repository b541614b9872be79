//! Cancelling a request of a session: there, closing the response means nothing, only a notification does.

use std::sync::Arc;

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
pub(super) struct CancelOnDrop(Option<Pending>);

struct Pending {
    shared: Arc<Shared>,
    hub: Arc<Hub>,
    id: RequestId,
    rules: Arc<Rules>,
}

impl CancelOnDrop {
    pub(super) fn new(shared: &Arc<Shared>, hub: &Arc<Hub>, outgoing: &Outgoing) -> Self {
        let rules = &outgoing.rules;
        let needed = !rules.drop_cancels && rules.cancellable(outgoing.method);
        Self(needed.then(|| Pending {
            shared: Arc::clone(shared),
            hub: Arc::clone(hub),
            id: outgoing.id.clone(),
            rules: Arc::clone(rules),
        }))
    }

    /// The request is over.
    pub(super) fn not_needed(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(pending) = self.0.take() else {
            return;
        };
        // A session that ends takes its requests along.
        if pending.shared.closing.is_closed() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(pending.cancel());
        }
    }
}

impl Pending {
    async fn cancel(self) {
        let mut notification = Vec::new();
        let params = CancelledParams::new(self.id.clone());
        if write_notification(&mut notification, method::CANCELLED.name, &params).is_err() {
            return;
        }
        let headers = message::version_header(&self.rules);
        self.hub.tap(Direction::Sent, &notification);
        let told = self.shared.tell(notification, headers, Login::Never);
        if let Err(error) = taken(None, told).await {
            tracing::debug!(id = %self.id, %error, "a cancellation did not reach the server");
        }
    }
}
