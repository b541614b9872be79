//! Tasks: requests that are answered later.
//!
//! The types here are those of the extension `io.modelcontextprotocol/tasks`, which 2026-07-28 uses: flat, the
//! server decides, `tasks/get` carries the result. [`legacy`] has the experimental design of 2025-11-25. The two
//! are not compatible on the wire; the file of that revision converts between them.

pub mod legacy;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InputRequests, InputResponses, ResultType, number::integer, setters::setters};
use crate::{RpcError, meta::Meta};

/// The identifier of the tasks extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// It waits for input from the client.
    InputRequired,
    /// It is done, and its result is there.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Says whether the status is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The handle of the task; a secret between server and client.
    pub task_id: String,
    /// How it is doing.
    pub status: TaskStatus,
    /// How it is doing, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How many milliseconds after its creation it is forgotten; null means never.
    #[serde(default, deserialize_with = "integer::optional")]
    pub ttl_ms: Option<u64>,
    /// How many milliseconds to wait between two looks at it.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a task that was just begun.
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }
}

setters!(Task {
    optional {
        status_message: String,
        ttl_ms: u64,
        poll_interval_ms: u64,
    }
    plain {
        status: TaskStatus,
        last_updated_at: String,
    }
});

/// The result of a request that became a task.
///
/// Its `resultType` is [`CreateTaskResult::RESULT_TYPE`], written by whoever stamps results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task, its members beside `_meta`.
    #[serde(flatten)]
    pub task: Task,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateTaskResult {
    /// The `resultType` of such a result.
    pub const RESULT_TYPE: ResultType = ResultType::Task;

    /// Answers with a task.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            meta: Meta::default(),
        }
    }
}

setters!(CreateTaskResult { plain { meta: Meta } });

/// The result of `tasks/get`: the task and what its status brings along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task, its members beside the others.
    #[serde(flatten)]
    pub task: Task,
    /// What the request answered, once the task is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error it ended with, once the task has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    /// What the server wants to know, while input is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetTaskResult {
    /// Describes a task.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            result: None,
            error: None,
            input_requests: None,
            meta: Meta::default(),
        }
    }
}

setters!(GetTaskResult {
    optional {
        result: Value,
        error: RpcError,
        input_requests: InputRequests,
    }
    plain { meta: Meta }
});

/// Parameters of `notifications/tasks`: the same as `tasks/get` answers.
pub type TaskNotificationParams = GetTaskResult;

/// Parameters of `tasks/get`, in both designs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskParams {
    /// The task.
    pub task_id: String,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetTaskParams {
    /// Names a task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
            meta: Meta::default(),
        }
    }
}

setters!(GetTaskParams { plain { meta: Meta } });

/// Parameters of `tasks/cancel`, in both designs.
pub type CancelTaskParams = GetTaskParams;

/// Parameters of `tasks/update`: answers to open questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The task.
    pub task_id: String,
    /// The answers, by the keys of their questions.
    pub input_responses: InputResponses,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Answers questions of a task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self {
            task_id: task_id.into(),
            input_responses,
            meta: Meta::default(),
        }
    }
}

setters!(UpdateTaskParams { plain { meta: Meta } });
