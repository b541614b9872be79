//! The methods of tasks, for tasks of upstream servers and those of the gateway.

use std::sync::Arc;

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::TargetName,
    gateway::GatewayState,
    raw_json::{edit, quote},
    tasks::ids::with_related_task,
};

impl GatewayState {
    /// Handles a `tasks/*` request.
    pub(crate) async fn handle_task(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        if !self.has_tasks() {
            return Err(RpcError::method_not_found(request.method()));
        }
        if request.method() == "tasks/list" {
            return self.list_tasks(request).await;
        }
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params("`taskId` is missing");
        let id = params.string("taskId")?.ok_or_else(missing)?;
        let Some((server, upstream)) = self.find_task(request, &id) else {
            return request.handle_own_task().await;
        };
        let target = TargetName {
            member: "taskId",
            value: quote(&upstream),
            original: upstream,
        };
        let result = self.relay_call(&server, request, Some(&target)).await?;
        if request.method() == "tasks/result" {
            return with_related_task(&result, Some(&id));
        }
        let has_id = RawObject::parse(&result)?.get("taskId").is_some();
        if !has_id {
            return Ok(result);
        }
        edit(&result, &[], &[("taskId", quote(&id))])
    }
}
