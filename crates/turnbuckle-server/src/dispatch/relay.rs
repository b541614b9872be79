//! Requests that a relay handles.

use std::sync::Arc;

use super::Dispatch;
use crate::{
    request::{
        BoxFuture, DispatchOutcome, ResponseResult, RunningRequest, response::ResponseWriter,
    },
    server::relay::{Relay, RelayedRequest},
};

impl Dispatch<'_, '_> {
    /// Passes the request on to the relay, as raw JSON.
    pub(super) fn relay(self, relay: &Arc<dyn Relay>) -> RunningRequest {
        let request = RelayedRequest::new(self.call.clone(), self.request);
        let (relay, call) = (Arc::clone(relay), self.call.clone());
        let run: BoxFuture<ResponseResult> = Box::pin(async move {
            let result = relay.handle(request).await?;
            Ok(ResponseWriter::new(&call).relayed_result(result))
        });
        RunningRequest::new(self.call, DispatchOutcome::Handler(run))
    }
}
