//! Tasks of a relay: calls that it continues in this process, and the sealed ids of tasks that run elsewhere.

use std::{pin::Pin, time::Duration};

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};

use super::{RelayedRequest, split_meta};
use crate::{
    ClientRequestError,
    request::{
        BoxFuture, DispatchOutcome, ResponseResult,
        response::{ResponseWriter, extract_result},
    },
    tasks,
};

/// Tasks that a client watches with `subscriptions/listen`, and the work that notifies it.
pub struct WatchedTasks {
    /// The ids that the client may watch, as it sent them.
    pub ids: Vec<String>,
    /// Sends `notifications/tasks` with [`RelayedRequest::notify`]. It runs from the acknowledgement to the end of the
    /// subscription.
    pub notifications: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for WatchedTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedTasks").finish_non_exhaustive()
    }
}

impl RelayedRequest {
    /// Returns whether the request runs as a task of this server.
    pub fn is_task(&self) -> bool {
        self.call.task().is_some()
    }

    /// Returns the id of the [task](Self::run_as_task) that the request runs as.
    pub fn task_id(&self) -> Option<&str> {
        Some(&self.call.task()?.related().task_id)
    }

    /// Continues the request as a task of this server, and returns the result that announces the task.
    ///
    /// `run` returns the final result in the revision of the client. While it runs,
    /// [`request_client`](Self::request_client) stores its requests in the task, and [`notify`](Self::notify) sends to the
    /// clients that wait for the result. `run` is dropped if the client cancels the task, and when its lifetime ends.
    ///
    /// # Errors
    ///
    /// If the store is full.
    pub async fn run_as_task(
        &self,
        lifetime: Option<Duration>,
        run: impl Future<Output = Result<String, RpcError>> + Send + 'static,
    ) -> Result<String, RpcError> {
        let call = self.call.clone();
        let handler: BoxFuture<ResponseResult> = Box::pin(async move {
            let result = run.await?;
            let is_error = RawObject::parse(&result)
                .is_ok_and(|result| result.get("isError").map(str::trim) == Some("true"));
            call.set_tool_error(is_error);
            Ok(ResponseWriter::new(&call).relayed_result(result.into()))
        });
        let created = tasks::create_and_run(self.call.clone(), lifetime, handler).await;
        self.result_text(created)
    }

    /// Handles `tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result` or `tasks/list` for the tasks of this server.
    ///
    /// # Errors
    ///
    /// -32602 if the task does not exist, or belongs to another caller.
    pub async fn handle_own_task(&self) -> Result<String, RpcError> {
        let params = self.parsed_params();
        let outcome = match tasks::call_method(self.method(), &params, self.call.clone()) {
            DispatchOutcome::Ready(outcome) => outcome,
            DispatchOutcome::Handler(run) => run.await,
        };
        self.result_text(outcome)
    }

    /// Encrypts a value for this caller, like [`seal`](Self::seal), but without an expiry and always to the same text. For
    /// ids that a client compares.
    pub fn seal_id(&self, value: &[u8], purpose: &str) -> String {
        let keys = self.call.server.sealing_keys();
        keys.seal_repeatably(value, &self.sealing_purpose(&format!("id\0{purpose}")))
    }

    /// Decrypts a value of [`seal_id`](Self::seal_id). Returns `None` if it was altered, or belongs to another caller or
    /// purpose.
    pub fn open_id(&self, sealed: &str, purpose: &str) -> Option<Vec<u8>> {
        let keys = self.call.server.sealing_keys();
        let purpose = self.sealing_purpose(&format!("id\0{purpose}"));
        keys.open(sealed, &purpose).ok()
    }

    /// Stores a client request in the task, and waits for its response.
    pub(super) async fn request_task_input(
        &self,
        method: &'static str,
        params: &str,
    ) -> Result<String, RpcError> {
        let (params, _) = split_meta(params)?;
        let key = (1..)
            .map(|number: u32| format!("q{number}"))
            .find(|key| self.call.register_key(key))
            .expect("a task has fewer client requests than there are numbers");
        let response = tasks::request_input(&self.call, &key, method, params.into_bytes());
        response.await.map_err(|error| match error {
            ClientRequestError::Rejected { error, .. } => *error,
            error => RpcError::internal(error.to_string()),
        })
    }

    fn result_text(&self, outcome: ResponseResult) -> Result<String, RpcError> {
        let result = extract_result(&self.call, &outcome?.into_bytes());
        String::from_utf8(result.into()).map_err(|error| RpcError::internal(error.to_string()))
    }
}
