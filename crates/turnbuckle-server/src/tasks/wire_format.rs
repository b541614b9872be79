//! Encodes tasks for both task models.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use turnbuckle_protocol::{
    RequestId, RpcError, jsonrpc,
    types::{
        Task,
        tasks::legacy::{self, RelatedTask},
    },
};
use turnbuckle_store::{TaskOutcome, TaskRecord};

use crate::{
    lifecycle::TaskModel,
    request::{
        RequestContext, ResponseResult,
        response::{EncodedResponse, ResponseWriter},
        timestamp::rfc3339,
    },
};

/// The response to a call that became a task.
pub(crate) fn created(call: &RequestContext, record: &TaskRecord) -> ResponseResult {
    let task = task(record);
    let writer = ResponseWriter::new(call);
    Ok(match call.origin.rules.tasks {
        TaskModel::ServerDirected => writer.task(&unclosed(&task)),
        TaskModel::ClientRequested | TaskModel::None => {
            let created = legacy::CreateTaskResult::new(task);
            writer.unclosed_object(&unclosed(&created), None)
        }
    })
}

/// The response to `tasks/get`.
pub(super) fn task_response(call: &RequestContext, record: &TaskRecord) -> EncodedResponse {
    let writer = ResponseWriter::new(call);
    match call.origin.rules.tasks {
        TaskModel::ServerDirected => writer.unclosed_object(&full_object(record), None),
        TaskModel::ClientRequested | TaskModel::None => {
            writer.unclosed_object(&unclosed(&legacy_task(record)), None)
        }
    }
}

/// Encodes the status notification for a session.
pub(crate) fn status_notification(record: &TaskRecord) -> Vec<u8> {
    let mut message = Vec::with_capacity(256);
    let params = legacy_task(record);
    jsonrpc::write_notification(&mut message, "notifications/tasks/status", &params)
        .expect("our own types have string keys and no failing Serialize");
    message
}

/// Encodes the parameters of the task notification for a subscription.
pub(crate) fn notification(record: &TaskRecord, subscription: &RequestId) -> Box<RawValue> {
    let mut out = full_object(record);
    out.extend_from_slice(br#","_meta":{"io.modelcontextprotocol/subscriptionId":"#);
    subscription.write(&mut out);
    out.extend_from_slice(b"}}");
    let json = String::from_utf8(out).ok();
    let raw = json.and_then(|json| RawValue::from_string(json).ok());
    raw.expect("everything in a record is JSON")
}

/// Encodes a task with its result, error or input requests, without the closing brace.
fn full_object(record: &TaskRecord) -> Vec<u8> {
    let mut out = unclosed(&task(record));
    match (&record.outcome, record.input_requests.as_slice()) {
        // A cancelled task lacks further members.
        _ if record.status == turnbuckle_protocol::types::TaskStatus::Cancelled => {}
        (Some(TaskOutcome::Result(result)), _) => {
            out.extend_from_slice(br#","result":"#);
            out.extend_from_slice(result);
        }
        (Some(TaskOutcome::Error(error)), _) => {
            out.extend_from_slice(br#","error":"#);
            out.extend_from_slice(error);
        }
        (None, []) => {}
        (None, questions) => {
            out.extend_from_slice(br#","inputRequests":{"#);
            for (at, (key, request)) in questions.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&json(key));
                out.push(b':');
                out.extend_from_slice(request);
            }
            out.push(b'}');
        }
    }
    out
}

/// Converts a record to the current type.
fn task(record: &TaskRecord) -> Task {
    let mut task = Task::new(record.id.to_string(), rfc3339(record.created))
        .status(record.status)
        .last_updated_at(rfc3339(record.updated))
        .ttl_ms(millis(record.ttl))
        .poll_interval_ms(millis(record.poll_interval));
    task.status_message = record.message.clone();
    task
}

/// Converts a record to the type of 2025-11-25.
pub(super) fn legacy_task(record: &TaskRecord) -> legacy::Task {
    task(record).into()
}

/// The `related-task` metadata of a message.
pub(super) fn related(record: &TaskRecord) -> RelatedTask {
    RelatedTask::new(record.id.to_string())
}

/// Encodes an error for the store.
pub(super) fn error(error: &RpcError) -> Bytes {
    json(error).into()
}

/// The error of a cancelled task.
pub(super) fn cancelled_error() -> RpcError {
    RpcError::internal("the task was cancelled")
}

pub(super) fn unclosed(value: &impl Serialize) -> Vec<u8> {
    let mut out = json(value);
    out.pop();
    out
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our own types have string keys and no failing Serialize")
}

fn millis(time: Duration) -> u64 {
    // The specification requires a positive number.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
