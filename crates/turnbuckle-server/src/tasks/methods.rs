//! The methods `tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result` and `tasks/list`.

use std::{collections::HashMap, sync::Arc};

use serde_json::value::RawValue;
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::Params,
    types::{
        PaginatedParams, TaskStatus,
        tasks::{GetTaskParams, legacy::ListTasksResult},
    },
};
use turnbuckle_store::{
    ServerChange, StoreError, TaskId, TaskInputResponse, TaskOutcome, TaskRecord, TaskUpdate,
};

use super::{
    RunningTask, TaskOwner, client_supports_tasks, missing_extension, require_extension, result,
    runner::check_runner, wire_format,
};
use crate::{
    Server,
    lifecycle::TaskModel,
    request::{
        BoxFuture, DispatchOutcome, RequestContext, ResponseResult,
        error::{incident_error, report_incident},
        response::ResponseWriter,
    },
};

/// Default page size.
const DEFAULT_PAGE_SIZE: usize = 100;

/// Handles a `tasks/*` request.
pub(crate) fn call_method(
    method: &str,
    params: &Params<'_>,
    call: Arc<RequestContext>,
) -> DispatchOutcome {
    if let Err(error) = require_extension(&call.origin) {
        return DispatchOutcome::Ready(Err(error));
    }
    if method == "tasks/list" {
        let params = params.parse::<PaginatedParams>();
        return run(async move { list(&call, params?.cursor.as_deref()).await });
    }
    let id = match params.parse::<GetTaskParams>() {
        Ok(params) => params.task_id,
        Err(error) => return DispatchOutcome::Ready(Err(error)),
    };
    match method {
        "tasks/get" => run(async move {
            let record = find(&call, &id).await?;
            let record = current(&call.server, record).await;
            Ok(wire_format::task_response(&call, &record))
        }),
        "tasks/cancel" => run(async move { cancel(&call, &id).await }),
        "tasks/result" => run(async move { result::await_result(&call, &id).await }),
        _ => match responses(params) {
            Ok(responses) => run(async move { update(&call, &id, responses).await }),
            Err(error) => DispatchOutcome::Ready(Err(error)),
        },
    }
}

fn run(answer: impl Future<Output = ResponseResult> + Send + 'static) -> DispatchOutcome {
    let answer: BoxFuture<ResponseResult> = Box::pin(answer);
    DispatchOutcome::Handler(answer)
}

/// Finds a task of the caller. A task of another caller is reported as unknown.
pub(super) async fn find(call: &RequestContext, id: &str) -> Result<Arc<TaskRecord>, RpcError> {
    let record = load(call, id).await;
    record.map_err(|error| failed(&error))?.ok_or_else(unknown)
}

/// Loads a task of the caller, if there is one with this id.
pub(super) async fn load(
    call: &RequestContext,
    id: &str,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let Ok(id) = id.parse::<TaskId>() else {
        return Ok(None);
    };
    let record = call.server.store_ref().tasks.load(&id).await?;
    let owner = TaskOwner::for_origin(&call.origin);
    Ok(record.filter(|record| *record.owner == *owner.key()))
}

/// Returns the current record of a task, which ends if its instance has stopped, or this record if that cannot be found out.
pub(super) async fn current(server: &Server, record: Arc<TaskRecord>) -> Arc<TaskRecord> {
    match check_runner(server, &record).await {
        Ok(ended) => ended.unwrap_or(record),
        Err(error) => {
            tracing::debug!(%error, "cannot check the instance that runs a task");
            record
        }
    }
}

/// Updates a task and publishes the change.
pub(crate) async fn apply_update(
    server: &Server,
    id: &TaskId,
    change: TaskUpdate,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let record = server.store_ref().tasks.update(id, change).await?;
    if let Some(record) = &record {
        if let Some(running) = server.running_tasks().find(id) {
            running.apply(record);
        }
        let task = record.clone();
        server.publish(ServerChange::Task { task });
    }
    Ok(record)
}

/// Sets the status message of a task. Notifications of it are rate limited.
pub(crate) async fn set_status_message(server: &Server, task: &RunningTask, message: &str) {
    let change = TaskUpdate::SetMessage(message.to_owned());
    match server.store_ref().tasks.update(&task.id, change).await {
        Ok(Some(record)) => {
            task.apply(&record);
            if task.should_notify() {
                server.publish(ServerChange::Task { task: record });
            }
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "setting the status message of a task failed"),
    }
}

async fn cancel(call: &RequestContext, id: &str) -> ResponseResult {
    let record = find(call, id).await?;
    let change = TaskUpdate::End {
        status: TaskStatus::Cancelled,
        message: Some("cancelled by the client".to_owned()),
        outcome: TaskOutcome::Error(wire_format::error(&wire_format::cancelled_error())),
    };
    let cancelled = apply_update(&call.server, &record.id, change).await;
    let cancelled = cancelled.map_err(|error| failed(&error))?;
    match (call.origin.rules.tasks, cancelled) {
        (TaskModel::ServerDirected, _) => Ok(ResponseWriter::new(call).empty()),
        (_, Some(record)) => Ok(wire_format::task_response(call, &record)),
        (_, None) => Err(RpcError::invalid_params(
            "the task has ended and cannot be cancelled",
        )),
    }
}

type Responses = HashMap<String, Box<RawValue>>;

fn responses(params: &Params<'_>) -> Result<Responses, RpcError> {
    let wrong = || RpcError::invalid_params("`inputResponses` must be an object of objects");
    let raw = params
        .get("inputResponses")
        .ok_or_else(|| RpcError::invalid_params("`inputResponses` is missing"))?;
    let responses: Responses = json::from_str(raw).map_err(|_| wrong())?;
    let fits = responses.values().all(|it| it.get().starts_with('{'));
    fits.then_some(responses).ok_or_else(wrong)
}

async fn update(call: &RequestContext, id: &str, responses: Responses) -> ResponseResult {
    let record = find(call, id).await?;
    let updates = responses.into_iter().map(|(key, response)| {
        let response = TaskInputResponse::Result(response.get().to_owned().into());
        TaskUpdate::AddInputResponse { key, response }
    });
    // Responses without a matching request are ignored.
    let update = TaskUpdate::Several(updates.collect());
    let updated = apply_update(&call.server, &record.id, update).await;
    updated.map_err(|error| failed(&error))?;
    Ok(ResponseWriter::new(call).empty())
}

async fn list(call: &RequestContext, cursor: Option<&str>) -> ResponseResult {
    let owner = TaskOwner::for_origin(&call.origin);
    if owner.is_shared() {
        // Callers that cannot be distinguished must not see each other's tasks.
        return Err(RpcError::method_not_found("tasks/list"));
    }
    let keys = call.server.sealing_keys();
    let purpose = format!("tasks {}", owner.key());
    let after = cursor.map(|cursor| {
        let bytes = keys.open(cursor, purpose.as_bytes()).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    });
    let after = match after {
        Some(None) => {
            return Err(RpcError::invalid_params("invalid cursor for `tasks/list`"));
        }
        after => after.flatten(),
    };
    let size = call.server.page_length().unwrap_or(DEFAULT_PAGE_SIZE);
    let tasks = &call.server.store_ref().tasks;
    // One more, to detect another page.
    let page = tasks.list(owner.key(), after, size + 1).await;
    let mut page = page.map_err(|error| failed(&error))?;
    let more = page.len() > size;
    page.truncate(size);
    let listed: Vec<_> = page
        .iter()
        .map(|task| wire_format::legacy_task(task))
        .collect();
    let mut result = ListTasksResult::new(listed);
    if let (true, Some(last)) = (more, page.last()) {
        let cursor = keys.seal(&last.number.to_le_bytes(), purpose.as_bytes());
        result = result.next_cursor(cursor);
    }
    Ok(ResponseWriter::new(call).unclosed_object(&wire_format::unclosed(&result), None))
}

/// Returns the requested tasks that the subscriber may see.
pub(crate) async fn visible_tasks(
    call: &RequestContext,
    mut ids: Vec<String>,
) -> Result<Vec<Arc<TaskRecord>>, RpcError> {
    if !client_supports_tasks(&call.origin) {
        return Err(missing_extension(&call.origin, "`taskIds` is about tasks"));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut visible = Vec::with_capacity(ids.len());
    for id in ids {
        visible.extend(find(call, &id).await.ok());
    }
    Ok(visible)
}

/// Loads the tasks of a subscription. Those of instances that have stopped end.
pub(crate) async fn load_tasks(call: &RequestContext, ids: &[String]) -> Vec<Arc<TaskRecord>> {
    let mut records = Vec::new();
    for id in ids {
        if let Ok(record) = find(call, id).await {
            records.push(current(&call.server, record).await);
        }
    }
    records
}

pub(super) fn unknown() -> RpcError {
    RpcError::invalid_params("unknown task; it may have expired")
}

pub(super) fn failed(error: &StoreError) -> RpcError {
    match error {
        StoreError::TooLarge { .. } | StoreError::Full { .. } => {
            RpcError::internal(error.to_string())
        }
        error => incident_error(&report_incident("a task", error)),
    }
}
