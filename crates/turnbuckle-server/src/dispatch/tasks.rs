//! The `tasks/*` methods.

use turnbuckle_protocol::RpcError;

use super::Dispatch;
use crate::{request::RunningRequest, tasks};

impl Dispatch<'_, '_> {
    /// Handles the `tasks/*` methods.
    pub(super) fn tasks(self) -> RunningRequest {
        if !self.server.catalog().supports_tasks {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let call = self.call;
        let run = tasks::call_method(&self.request.method, &self.request.params, call.clone());
        RunningRequest::new(call, run)
    }
}
