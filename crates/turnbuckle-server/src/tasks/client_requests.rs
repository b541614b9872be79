//! Input requests of tasks.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::sleep;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{StoreError, TaskId, TaskInputResponse, TaskUpdate};

use super::methods::apply_update;
use crate::{Server, input::ClientRequestError, request::RequestContext};

/// Stores an input request in the task record and waits for the response.
pub(crate) async fn request_input(
    call: &RequestContext,
    key: &str,
    method: &'static str,
    params: Vec<u8>,
) -> Result<String, ClientRequestError> {
    let Some(task) = call.task() else {
        return Err(ClientRequestError::Unavailable { method });
    };
    let server = &call.server;
    let change = TaskUpdate::AddInputRequest {
        key: key.to_owned(),
        request: encode_input_request(method, params),
    };
    match apply_update(server, &task.id, change).await {
        Ok(Some(_)) => {}
        Ok(None) => return Err(ClientRequestError::CallEnded { method }),
        Err(error) => return Err(store_error(&error)),
    }
    let mut open = TaskInputGuard {
        server,
        task: task.id,
        key,
        resolved: false,
    };
    let answered =
        task.wait_until(|record| record.status.is_final() || record.input_response(key).is_some());
    let record = tokio::select! {
        record = answered => Some(record),
        // Expiry of a task is not announced.
        () = sleep(task.ttl()) => None,
    };
    open.resolved = true;
    let Some(answer) = record
        .as_ref()
        .and_then(|record| record.input_response(key))
    else {
        return Err(ClientRequestError::CallEnded { method });
    };
    let key = key.to_owned();
    // The response is no longer needed in the store. A failure has no effect here.
    let acknowledge = TaskUpdate::DiscardInputResponse { key };
    let _ = server.store_ref().tasks.update(&task.id, acknowledge).await;
    read(answer, method)
}

fn read(answer: &TaskInputResponse, method: &'static str) -> Result<String, ClientRequestError> {
    match answer {
        TaskInputResponse::Result(json) => Ok(String::from_utf8_lossy(json).into_owned()),
        TaskInputResponse::Error(json) => {
            let error = serde_json::from_slice(json)
                .unwrap_or_else(|_| RpcError::internal("the client responded with an error"));
            Err(ClientRequestError::Rejected {
                method,
                error: Box::new(error),
            })
        }
    }
}

fn encode_input_request(method: &str, params: Vec<u8>) -> Bytes {
    #[derive(Serialize)]
    struct TaskInputRequest<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    let params = String::from_utf8(params)
        .ok()
        .and_then(|json| RawValue::from_string(json).ok())
        .expect("parameters were just written as JSON");
    let request = TaskInputRequest {
        method,
        params: &params,
    };
    serde_json::to_vec(&request)
        .expect("our own types have string keys and no failing Serialize")
        .into()
}

fn store_error(error: &StoreError) -> ClientRequestError {
    ClientRequestError::InvalidRequest {
        reason: error.to_string(),
    }
}

/// Withdraws an input request when the handler stops waiting.
struct TaskInputGuard<'a> {
    server: &'a Server,
    task: TaskId,
    key: &'a str,
    resolved: bool,
}

impl Drop for TaskInputGuard<'_> {
    fn drop(&mut self) {
        if self.resolved {
            return;
        }
        let (server, task, key) = (self.server.clone(), self.task, self.key.to_owned());
        // Without a runtime the process is shutting down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                apply_update(&server, &task, TaskUpdate::WithdrawInputRequest { key }).await
            });
        }
    }
}
