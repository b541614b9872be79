//! Tasks as 2025-11-25 had them, by way of experiment: asked for by the caller, nested, listed.

use serde::{Deserialize, Serialize};

use super::TaskStatus;
use crate::{
    meta::Meta,
    types::{Cursor, number::integer, setters::setters},
};

/// Asks for a task (`task` in the parameters of a request).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskMetadata {
    /// For how many milliseconds the task should be kept.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl: Option<u64>,
}

setters!(TaskMetadata { optional { ttl: u64 } });

/// Names the task that a message belongs to (`io.modelcontextprotocol/related-task` in `_meta`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTask {
    /// The task.
    pub task_id: String,
}

impl RelatedTask {
    /// Names a task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
        }
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The handle of the task.
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
    pub ttl: Option<u64>,
    /// How many milliseconds to wait between two looks at it.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub poll_interval: Option<u64>,
}

/// The result of a request that became a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateTaskResult {
    /// Answers with a task.
    pub fn new(task: impl Into<Task>) -> Self {
        Self {
            task: task.into(),
            meta: Meta::default(),
        }
    }
}

setters!(CreateTaskResult { plain { meta: Meta } });

/// The result of `tasks/get` and `tasks/cancel`: the task itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task, its members beside `_meta`.
    #[serde(flatten)]
    pub task: Task,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetTaskResult {
    /// Describes a task.
    pub fn new(task: impl Into<Task>) -> Self {
        Self {
            task: task.into(),
            meta: Meta::default(),
        }
    }
}

setters!(GetTaskResult { plain { meta: Meta } });

/// The result of `tasks/cancel`.
pub type CancelTaskResult = GetTaskResult;

/// Parameters of `notifications/tasks/status`.
pub type TaskStatusParams = GetTaskResult;

/// Parameters of `tasks/result`, which waits for the result and answers with it.
pub type TaskResultParams = super::GetTaskParams;

/// The result of `tasks/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// One page of tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListTasksResult {
    /// Creates a page.
    pub fn new(tasks: impl Into<Vec<Task>>) -> Self {
        Self {
            tasks: tasks.into(),
            ..Self::default()
        }
    }
}

setters!(ListTasksResult {
    optional { next_cursor: Cursor }
    plain { meta: Meta }
});
