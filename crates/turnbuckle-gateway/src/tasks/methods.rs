//! The methods of tasks, for tasks of upstream servers and those of the gateway.

use std::sync::Arc;

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::TargetName,
    gateway::GatewayState,
    lifecycle::{TaskDesign, task_design},
    raw_json::{edit, quote},
    tasks::{declares_tasks, ids::with_related_task},
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
        let params = request.parsed_params();
        let missing = || RpcError::invalid_params("`taskId` is missing");
        let id = params.string("taskId")?.ok_or_else(missing)?;
        // Without the extension, the error is that of our own tasks: what is declared to the server is up to the gateway.
        let needs_extension = task_design(request.revision()) == Some(TaskDesign::ServerDirected);
        let found = self.find_task(request, &id);
        let found = found.filter(|_| !needs_extension || declares_tasks(request));
        let Some((server, upstream)) = found else {
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
