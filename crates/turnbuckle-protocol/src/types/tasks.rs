//! Tasks: requests that complete later.
//!
//! The types here belong to the extension `io.modelcontextprotocol/tasks` of 2026-07-28: the server decides which
//! requests become tasks, and `tasks/get` returns the result. [`legacy`] has the experimental design of 2025-11-25.
//! The two are incompatible on the wire; the file of that revision converts between them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InputRequests, InputResponses, ResultType, lenient_number::integer};
use crate::{RpcError, meta::Meta};

/// The identifier of the tasks extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The task is running.
    Working,
    /// The task waits for input from the client.
    InputRequired,
    /// The task is complete, and its result is available.
    Completed,
    /// The task ended with an error.
    Failed,
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the status is final.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The id of the task; treat it as a secret.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// The status message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// The time of creation, in ISO 8601.
    pub created_at: String,
    /// The time of the last update, in ISO 8601.
    pub last_updated_at: String,
    /// The time to live from creation, in milliseconds; null means unlimited.
    #[serde(default, deserialize_with = "integer::optional")]
    pub ttl_ms: Option<u64>,
    /// The recommended poll interval, in milliseconds.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a new task.
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
/// Its `resultType` is [`CreateTaskResult::RESULT_TYPE`]; the server adds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task, with its members flattened.
    #[serde(flatten)]
    pub task: Task,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CreateTaskResult {
    /// The `resultType` of such a result.
    pub const RESULT_TYPE: ResultType = ResultType::Task;

    /// Creates the result for a task.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            meta: Meta::default(),
        }
    }
}

setters!(CreateTaskResult { plain { meta: Meta } });

/// The result of `tasks/get`: the task, and its result, error or input requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskResult {
    /// The task, with its members flattened.
    #[serde(flatten)]
    pub task: Task,
    /// The result of the request, once the task is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error, once the task has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    /// The input requests, while input is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetTaskResult {
    /// Creates the result for a task.
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

/// Parameters of `notifications/tasks`: the same as the result of `tasks/get`.
pub type TaskNotificationParams = GetTaskResult;

/// Parameters of `tasks/get`, in both designs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetTaskParams {
    /// The task.
    pub task_id: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetTaskParams {
    /// References a task.
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

/// Parameters of `tasks/update`: input responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The task.
    pub task_id: String,
    /// The input responses, by key.
    pub input_responses: InputResponses,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Sends input responses to a task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self {
            task_id: task_id.into(),
            input_responses,
            meta: Meta::default(),
        }
    }
}

setters!(UpdateTaskParams { plain { meta: Meta } });

pub mod legacy {
    //! The experimental tasks of 2025-11-25: requested by the caller, nested, and listed.

    use serde::{Deserialize, Serialize};

    use super::TaskStatus;
    use crate::{
        meta::Meta,
        types::{Cursor, lenient_number::integer},
    };

    /// Requests a task (`task` in the parameters of a request).
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[non_exhaustive]
    pub struct TaskMetadata {
        /// The requested time to live, in milliseconds.
        #[serde(
            default,
            deserialize_with = "integer::optional",
            skip_serializing_if = "Option::is_none"
        )]
        pub ttl: Option<u64>,
    }

    setters!(TaskMetadata { optional { ttl: u64 } });

    /// The task that a message belongs to (`io.modelcontextprotocol/related-task` in `_meta`).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[non_exhaustive]
    pub struct RelatedTask {
        /// The task.
        pub task_id: String,
    }

    impl RelatedTask {
        /// References a task.
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
        /// The id of the task.
        pub task_id: String,
        /// The status.
        pub status: TaskStatus,
        /// The status message.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub status_message: Option<String>,
        /// The time of creation, in ISO 8601.
        pub created_at: String,
        /// The time of the last update, in ISO 8601.
        pub last_updated_at: String,
        /// The time to live from creation, in milliseconds; null means unlimited.
        #[serde(default, deserialize_with = "integer::optional")]
        pub ttl: Option<u64>,
        /// The recommended poll interval, in milliseconds.
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
        /// The `_meta` object.
        #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
        pub meta: Meta,
    }

    impl CreateTaskResult {
        /// Creates the result for a task.
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
        /// The task, with its members flattened.
        #[serde(flatten)]
        pub task: Task,
        /// The `_meta` object.
        #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
        pub meta: Meta,
    }

    impl GetTaskResult {
        /// Creates the result for a task.
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

    /// Parameters of `tasks/result`, which waits for the result and returns it.
    pub type TaskResultParams = super::GetTaskParams;

    /// The result of `tasks/list`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[non_exhaustive]
    pub struct ListTasksResult {
        /// One page of tasks.
        pub tasks: Vec<Task>,
        /// The cursor of the next page.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub next_cursor: Option<Cursor>,
        /// The `_meta` object.
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
}
