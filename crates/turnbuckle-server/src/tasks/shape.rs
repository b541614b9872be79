//! A task in the words of either design.

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
    context::Call, exchange::Outcome, lifecycle::TaskDesign, reply::Reply, timestamp::rfc3339,
    written::Written,
};

/// The answer to a call that became a task.
pub(crate) fn created(call: &Call, record: &TaskRecord) -> Outcome {
    let task = task(record);
    let reply = Reply::new(call);
    Ok(match call.caller.rules.tasks {
        TaskDesign::Offered => reply.task(&unclosed(&task)),
        TaskDesign::Asked | TaskDesign::None => {
            let created = legacy::CreateTaskResult::new(task);
            reply.written(&unclosed(&created), None)
        }
    })
}

/// The answer to who asks how a task is doing.
pub(super) fn answer(call: &Call, record: &TaskRecord) -> Written {
    let reply = Reply::new(call);
    match call.caller.rules.tasks {
        TaskDesign::Offered => reply.written(&in_full(record), None),
        TaskDesign::Asked | TaskDesign::None => reply.written(&unclosed(&listed(record)), None),
    }
}

/// The notification that tells a session how a task is doing.
pub(crate) fn status_notification(record: &TaskRecord) -> Vec<u8> {
    let mut message = Vec::with_capacity(256);
    let params = listed(record);
    jsonrpc::write_notification(&mut message, "notifications/tasks/status", &params)
        .expect("our own types have string keys and no failing Serialize");
    message
}

/// The parameters of the notification that tells a subscription how a task is doing.
pub(crate) fn notification(record: &TaskRecord, subscription: &RequestId) -> Box<RawValue> {
    let mut out = in_full(record);
    out.extend_from_slice(br#","_meta":{"io.modelcontextprotocol/subscriptionId":"#);
    subscription.write(&mut out);
    out.extend_from_slice(b"}}");
    let json = String::from_utf8(out).ok();
    let raw = json.and_then(|json| RawValue::from_string(json).ok());
    raw.expect("everything in a record is JSON")
}

/// A task with all that its status brings along, without the closing brace.
fn in_full(record: &TaskRecord) -> Vec<u8> {
    let mut out = unclosed(&task(record));
    match (&record.outcome, record.questions.as_slice()) {
        // Of one that was cancelled nothing is left to tell.
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
            for (at, (key, question)) in questions.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(&json(key));
                out.push(b':');
                out.extend_from_slice(question);
            }
            out.push(b'}');
        }
    }
    out
}

/// A task as the newest design describes it.
fn task(record: &TaskRecord) -> Task {
    let mut task = Task::new(record.id.to_string(), rfc3339(record.created))
        .status(record.status)
        .last_updated_at(rfc3339(record.updated))
        .ttl_ms(millis(record.ttl))
        .poll_interval_ms(millis(record.poll_interval));
    task.status_message = record.message.clone();
    task
}

/// A task as it stands in a list.
pub(super) fn listed(record: &TaskRecord) -> legacy::Task {
    task(record).into()
}

/// Names the task that a message belongs to, where the design wants that.
pub(super) fn related(record: &TaskRecord) -> RelatedTask {
    RelatedTask::new(record.id.to_string())
}

/// An error as it is kept.
pub(super) fn error(error: &RpcError) -> Bytes {
    json(error).into()
}

/// What came of a call whose task was cancelled.
pub(super) fn was_cancelled() -> RpcError {
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
    // The design wants a positive number, however often the server wants to be asked.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
