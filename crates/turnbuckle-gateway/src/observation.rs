//! What the gateway observes of the requests that it handles.

use std::sync::{Arc, OnceLock};

use turnbuckle_protocol::RpcError;
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{errors, gateway::GatewayState, upstream::UpstreamServer};

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The policy hides the item, or the caller lacks a scope.
    Denied,
    /// The caller made too many calls.
    RateLimited,
}

/// What is known of a request while it is handled. It is attached to the request.
#[derive(Default)]
pub(crate) struct CallRecord {
    server: OnceLock<Arc<UpstreamServer>>,
    original: OnceLock<String>,
    outcome: OnceLock<Outcome>,
}

impl CallRecord {
    /// Sets the server that handles the request.
    pub(crate) fn set_server(&self, server: &Arc<UpstreamServer>) {
        let _ = self.server.set(Arc::clone(server));
    }

    /// Sets the server, and the name or URI that it uses.
    pub(crate) fn set_target(&self, server: &Arc<UpstreamServer>, original: &str) {
        self.set_server(server);
        let _ = self.original.set(original.to_owned());
    }

    /// Sets the outcome of a request that is refused.
    pub(crate) fn set_outcome(&self, outcome: Outcome) {
        let _ = self.outcome.set(outcome);
    }
}

/// Adds to what is known of a request.
pub(crate) fn observe(request: &RelayedRequest, change: impl FnOnce(&CallRecord)) {
    if let Some(record) = request.attached::<CallRecord>() {
        change(record);
    }
}

impl GatewayState {
    /// Handles a request, and observes it.
    pub(crate) async fn handle_observed(
        self: &Arc<Self>,
        mut request: RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        let record = Arc::new(CallRecord::default());
        request.attach(Arc::clone(&record));
        let result = self.handle(&request).await;
        result.map_err(|error| errors::for_client(&request, error))
    }
}
