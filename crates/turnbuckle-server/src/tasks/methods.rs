//! What clients ask of tasks: `tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result`, `tasks/list`.

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
    Change, StoreError, TaskAnswer, TaskChange, TaskId, TaskOutcome, TaskRecord,
};

use super::{Owner, RunningTask, require_extension, result, shape};
use crate::{
    Server,
    context::Call,
    exchange::{BoxFuture, Outcome, Run},
    incident,
    lifecycle::TaskDesign,
    reply::Reply,
};

/// Tasks on one page, unless the server says otherwise.
const PAGE: usize = 100;

/// Begins to answer a request about tasks.
pub(crate) fn begin(method: &str, params: &Params<'_>, call: Arc<Call>) -> Run {
    if let Err(error) = require_extension(&call.caller) {
        return Run::Ready(Err(error));
    }
    if method == "tasks/list" {
        let params = params.parse::<PaginatedParams>();
        return run(async move { list(&call, params?.cursor.as_deref()).await });
    }
    let id = match params.parse::<GetTaskParams>() {
        Ok(params) => params.task_id,
        Err(error) => return Run::Ready(Err(error)),
    };
    match method {
        "tasks/get" => run(async move { Ok(shape::answer(&call, &*find(&call, &id).await?)) }),
        "tasks/cancel" => run(async move { cancel(&call, &id).await }),
        "tasks/result" => run(async move { result::wait(&call, &id).await }),
        _ => match responses(params) {
            Ok(responses) => run(async move { update(&call, &id, responses).await }),
            Err(error) => Run::Ready(Err(error)),
        },
    }
}

fn run(answer: impl Future<Output = Outcome> + Send + 'static) -> Run {
    let answer: BoxFuture<Outcome> = Box::pin(answer);
    Run::Handler(answer)
}

/// Finds a task that belongs to the caller. One of somebody else is as unknown as one that never was.
pub(super) async fn find(call: &Call, id: &str) -> Result<Arc<TaskRecord>, RpcError> {
    let Ok(id) = id.parse::<TaskId>() else {
        return Err(unknown());
    };
    let record = call.server.store_ref().tasks.load(&id).await;
    let record = record.map_err(|error| failed(&error))?;
    let owner = Owner::of(&call.caller);
    record
        .filter(|record| *record.owner == *owner.key())
        .ok_or_else(unknown)
}

/// Changes a task, and tells everyone who wants to know.
pub(crate) async fn changed(
    server: &Server,
    id: &TaskId,
    change: TaskChange,
) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    let record = server.store_ref().tasks.update(id, change).await?;
    if let Some(record) = &record {
        if let Some(running) = server.running_tasks().find(id) {
            running.note(record);
        }
        let task = record.clone();
        server.publish(Change::Task { task });
    }
    Ok(record)
}

/// Lets a task say how it is doing. Whoever looks sees it; whoever listens is not told more often than he can read.
pub(crate) async fn say(server: &Server, task: &RunningTask, message: &str) {
    let change = TaskChange::Say(message.to_owned());
    match server.store_ref().tasks.update(&task.id, change).await {
        Ok(Some(record)) => {
            task.note(&record);
            if task.may_announce() {
                server.publish(Change::Task { task: record });
            }
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "a task cannot say how it is doing"),
    }
}

async fn cancel(call: &Call, id: &str) -> Outcome {
    let record = find(call, id).await?;
    let change = TaskChange::End {
        status: TaskStatus::Cancelled,
        message: Some("cancelled by the client".to_owned()),
        outcome: TaskOutcome::Error(shape::error(&shape::was_cancelled())),
    };
    let cancelled = changed(&call.server, &record.id, change).await;
    let cancelled = cancelled.map_err(|error| failed(&error))?;
    match (call.caller.rules.tasks, cancelled) {
        (TaskDesign::Offered, _) => Ok(Reply::new(call).empty()),
        (_, Some(record)) => Ok(shape::answer(call, &record)),
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

async fn update(call: &Call, id: &str, responses: Responses) -> Outcome {
    let record = find(call, id).await?;
    for (key, response) in responses {
        let answer = TaskAnswer::Given(response.get().to_owned().into());
        // A key under which nothing is asked, or no longer, is ignored.
        changed(&call.server, &record.id, TaskChange::Answer { key, answer })
            .await
            .map_err(|error| failed(&error))?;
    }
    Ok(Reply::new(call).empty())
}

async fn list(call: &Call, cursor: Option<&str>) -> Outcome {
    let owner = Owner::of(&call.caller);
    if owner.is_anyone() {
        // Callers that cannot be told apart must not see each other's tasks.
        return Err(RpcError::method_not_found("tasks/list"));
    }
    let keys = call.server.keys();
    let purpose = format!("tasks {}", owner.key());
    let after = cursor.map(|cursor| {
        let bytes = keys.open(cursor, purpose.as_bytes()).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    });
    let after = match after {
        Some(None) => {
            return Err(RpcError::invalid_params(
                "the cursor is not one of `tasks/list`",
            ));
        }
        after => after.flatten(),
    };
    let size = call.server.page_length().unwrap_or(PAGE);
    let tasks = &call.server.store_ref().tasks;
    // One more tells whether there is another page.
    let page = tasks.list(owner.key(), after, size + 1).await;
    let mut page = page.map_err(|error| failed(&error))?;
    let more = page.len() > size;
    page.truncate(size);
    let listed: Vec<_> = page.iter().map(|task| shape::listed(task)).collect();
    let mut result = ListTasksResult::new(listed);
    if let (true, Some(last)) = (more, page.last()) {
        let cursor = keys.seal(&last.number.to_le_bytes(), purpose.as_bytes());
        result = result.next_cursor(cursor);
    }
    Ok(Reply::new(call).written(&shape::unclosed(&result), None))
}

fn unknown() -> RpcError {
    RpcError::invalid_params("there is no such task; it may have been forgotten after its time")
}

pub(super) fn failed(error: &StoreError) -> RpcError {
    match error {
        StoreError::TooLarge { .. } | StoreError::Full { .. } => {
            RpcError::internal(error.to_string())
        }
        error => incident::internal(&incident::report("a task", error)),
    }
}
