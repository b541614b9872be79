//! `tasks/result`: waits for the result of a task, and forwards its input requests to the client.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;
use turnbuckle_protocol::{RpcError, types::tasks::legacy::RelatedTask};
use turnbuckle_store::{ServerChange, TaskInputResponse, TaskOutcome, TaskRecord, TaskUpdate};

use super::{
    methods::{apply_update, current, failed, find, load, unknown},
    runner::RereadTimer,
    wire_format,
};
use crate::{
    input::ClientRequestError,
    lifecycle::runtime::RequestMetaTags,
    request::{BoxFuture, RequestContext, ResponseResult, response::ResponseWriter},
};

/// Waits until a task has ended, and responds with its result.
pub(super) async fn await_result(call: &Arc<RequestContext>, id: &str) -> ResponseResult {
    // Subscribed before the first read, so that later changes are not missed.
    let mut changes = call.server.store_ref().bus.subscribe();
    let mut record = find(call, id).await?;
    let running = call.server.running_tasks().find(&record.id);
    let _waiter = running.map(|task| task.add_waiter(call));
    let mut requested = ForwardedRequests::default();
    // Expiry of a task is not announced.
    let mut expiry = pin!(sleep(record.ttl));
    let mut reread = RereadTimer::new(call.server.store_ref());
    while record.outcome.is_none() {
        requested.sync(call, &record);
        record = tokio::select! {
            change = changes.next() => match change {
                Ok((_, ServerChange::Task { task })) if task.id == record.id && task.changes > record.changes => task,
                Ok(_) => continue,
                Err(_) => find(call, id).await?,
            },
            (key, response) = requested.next_response() => {
                let change = TaskUpdate::AddInputResponse { key, response };
                match apply_update(&call.server, &record.id, change).await {
                    Ok(Some(record)) => record,
                    // Another client responded first.
                    Ok(None) => find(call, id).await?,
                    Err(error) => return Err(failed(&error)),
                }
            },
            () = reread.due() => match load(call, id).await {
                Ok(found) => current(&call.server, found.ok_or_else(unknown)?).await,
                // The task goes on, and is read again later.
                Err(error) => {
                    tracing::debug!(%error, "cannot read a task again");
                    continue;
                }
            },
            () = expiry.as_mut() => {
                expiry.set(sleep(record.ttl));
                find(call, id).await?
            }
        };
    }
    match &record.outcome {
        Some(TaskOutcome::Result(result)) => {
            let unclosed = result.strip_suffix(b"}").unwrap_or(result);
            Ok(ResponseWriter::new(call).unclosed_object(unclosed, None))
        }
        Some(TaskOutcome::Error(error)) => {
            Err(serde_json::from_slice(error)
                .unwrap_or_else(|_| RpcError::internal("the task failed")))
        }
        None => Err(RpcError::internal("the outcome of the task is missing")),
    }
}

/// Input requests that were forwarded to the client.
#[derive(Default)]
struct ForwardedRequests(Vec<(String, BoxFuture<Option<TaskInputResponse>>)>);

impl ForwardedRequests {
    /// Forwards new input requests, and cancels withdrawn ones.
    fn sync(&mut self, call: &Arc<RequestContext>, record: &TaskRecord) {
        let open = |key: &str| record.input_requests.iter().any(|(open, _)| open == key);
        self.0.retain(|(key, _)| open(key));
        for (key, request) in &record.input_requests {
            if self.0.iter().all(|(requested, _)| requested != key) {
                let forwarded =
                    forward(call.clone(), request.clone(), wire_format::related(record));
                self.0.push((key.clone(), Box::pin(forwarded)));
            }
        }
    }

    /// Waits for the next response.
    async fn next_response(&mut self) -> (String, TaskInputResponse) {
        poll_fn(|cx| self.poll_response(cx)).await
    }

    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<(String, TaskInputResponse)> {
        for (key, request) in &mut self.0 {
            let Poll::Ready(answer) = request.as_mut().poll(cx) else {
                continue;
            };
            // Kept in the list so that it is not forwarded again.
            *request = Box::pin(std::future::pending());
            if let Some(answer) = answer {
                return Poll::Ready((key.clone(), answer));
            }
        }
        Poll::Pending
    }
}

/// Forwards one input request to the client. Returns `None` if the client disconnects.
async fn forward(
    call: Arc<RequestContext>,
    request: bytes::Bytes,
    task: RelatedTask,
) -> Option<TaskInputResponse> {
    #[derive(Deserialize)]
    struct TaskInputRequest<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let request: TaskInputRequest<'_> = serde_json::from_slice(&request).ok()?;
    let method = known_method(&request.method)?;
    let runtime = call.origin.runtime.as_ref()?;
    let meta_tags = RequestMetaTags {
        task: Some(&task),
        ..call.request_meta()
    };
    let params = request.params.get().as_bytes();
    let timeouts = call.server.client_request_timeouts();
    let requested = runtime.send_request(&call.outbox, method, params, meta_tags, timeouts);
    match requested.await {
        Ok(answer) => Some(TaskInputResponse::Result(answer.into())),
        Err(ClientRequestError::CallEnded { .. }) => None,
        Err(ClientRequestError::Rejected { error, .. }) => {
            Some(TaskInputResponse::Error(wire_format::error(&error)))
        }
        Err(error) => {
            let error = RpcError::internal(error.to_string());
            Some(TaskInputResponse::Error(wire_format::error(&error)))
        }
    }
}

/// Returns the static name of a known method.
fn known_method(method: &str) -> Option<&'static str> {
    ["elicitation/create", "sampling/createMessage", "roots/list"]
        .into_iter()
        .find(|current| *current == method)
}
