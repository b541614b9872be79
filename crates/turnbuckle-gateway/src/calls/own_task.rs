//! Calls that the gateway runs as tasks of its own, because client and server have different designs of tasks.

use std::sync::Arc;

use turnbuckle_protocol::{RpcError, jsonrpc::Params};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::{
        RelayedCall, TargetName, readable_error, running::RunningCall, state_purpose::StatePurpose,
    },
    gateway::GatewayState,
    lifecycle::{ClientRequestPath, RevisionPair, TaskDesign, task_design},
    tasks::{TaskMode, ids::with_related_task},
    upstream::connection::Connection,
};

/// A call that outlives the request of the client.
pub(crate) struct OwnedCall {
    pub(crate) gateway: Arc<GatewayState>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) request: RelayedRequest,
    pub(crate) target: Option<TargetName>,
    pub(crate) pair: RevisionPair,
    pub(crate) mode: TaskMode,
}

impl OwnedCall {
    fn relayed<'a>(
        &'a self,
        params: &'a Params<'a>,
        purpose: &'a StatePurpose<'a>,
    ) -> RelayedCall<'a> {
        RelayedCall {
            gateway: &self.gateway,
            connection: &self.connection,
            request: &self.request,
            params,
            target: self.target.as_ref(),
            pair: self.pair,
            purpose,
            mode: self.mode,
            traits: None,
        }
    }

    /// Sends the call, and returns its final result for the client.
    pub(crate) async fn run(self, call: Arc<RunningCall>) -> Result<String, RpcError> {
        let params = self.request.parsed_params();
        let (server, target) = (&self.connection.server, self.target.as_ref());
        let purpose = StatePurpose::new(server, &self.request, &params, target);
        let relayed = self.relayed(&params, &purpose);
        let result = match self.pair.client_request_path() {
            ClientRequestPath::RoundTrips => relayed.round_trips(&call).await,
            _ => relayed.send_directly(&call).await,
        };
        let result = readable_error(&self.request, result)?;
        match self.request.task_id() {
            Some(id) if task_design(self.pair.downstream) == Some(TaskDesign::ClientRequested) => {
                with_related_task(&result, Some(id))
            }
            _ => Ok(result),
        }
    }
}
