//! Calls that complete later: status, input requests and outcome.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use turnbuckle_protocol::types::TaskStatus;

use crate::{BoxFuture, InstanceId, StoreError, id::random_id};

/// Stores tasks, independent of the process that runs them.
///
/// The process that runs a task and the process that serves its client may differ; they communicate by updates of the
/// record. An expired task does not exist for any method here, whether or not it was swept.
pub trait TaskStore: Send + Sync {
    /// Creates a task.
    ///
    /// If a limit is reached, the oldest finished task is removed: one of the same owner, or else one of a shared
    /// owner. If no task has finished, the result is [`StoreError::TooMany`] for the limit of the owner and
    /// [`StoreError::Full`] for that of the store.
    fn create(&self, task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>>;

    /// Returns the record of a task.
    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>>;

    /// Applies an update and returns the current record, or `None` if the task does not exist or the update has no
    /// effect.
    ///
    /// Updates of one task are applied one after the other; none is lost. After [`StoreError::TooLarge`],
    /// [`StoreError::TooMany`] and [`StoreError::Full`] the task is unchanged. Ending with an error always succeeds.
    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        update: TaskUpdate,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>>;

    /// Returns the tasks of one owner with a number above `after`, oldest first and at most `limit`.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>>;

    /// Returns the ids of the tasks with this runner that have not ended.
    fn of_runner<'a>(
        &'a self,
        runner: &'a InstanceId,
    ) -> BoxFuture<'a, Result<Vec<TaskId>, StoreError>>;

    /// Removes expired tasks.
    ///
    /// Expired tasks are unreachable even without this call; regular calls free their memory earlier.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

random_id! {
    /// The id of a task: 144 random bits, written as 24 visible ASCII characters.
    ///
    /// `Debug` shows only the first characters, because the id may authorize access to the task.
    TaskId
}

/// The parameters of a new task.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The owner of the task, a key that only the server interprets.
    pub owner: Arc<str>,
    /// Set if callers that cannot be distinguished share this owner; then no owner limit applies.
    pub shared: bool,
    /// The time to live.
    pub ttl: Duration,
    /// The interval at which a client should poll.
    pub poll_interval: Duration,
    /// The instance that runs the task; `None` if the store is not shared.
    pub runner: Option<InstanceId>,
}

/// The stored state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// The id.
    pub id: TaskId,
    /// The number of the task, in the order of creation. Tasks of different owners may have the same.
    pub number: u64,
    /// The number of updates. Of two records of one task, the one with more updates is newer.
    pub changes: u64,
    /// The owner of the task.
    pub owner: Arc<str>,
    /// The status.
    pub status: TaskStatus,
    /// A status message.
    pub message: Option<String>,
    /// The time of creation.
    pub created: SystemTime,
    /// The time of the last update.
    pub updated: SystemTime,
    /// The time to live, from creation.
    pub ttl: Duration,
    /// The interval at which a client should poll.
    pub poll_interval: Duration,
    /// The instance that runs the task; `None` if the store is not shared.
    pub runner: Option<InstanceId>,
    /// The open input requests, in order: key, and request as JSON.
    pub input_requests: Vec<(String, Bytes)>,
    /// The input responses received: key and response.
    pub input_responses: Vec<(String, TaskInputResponse)>,
    /// The outcome, once the task has ended.
    pub outcome: Option<TaskOutcome>,
}

/// The response to an input request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskInputResponse {
    /// The result that the client sent, as JSON.
    Result(Bytes),
    /// The error that the client sent, as JSON.
    Error(Bytes),
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The result of the call, as JSON.
    Result(Bytes),
    /// The error of the call, as JSON.
    Error(Bytes),
}

/// An update of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskUpdate {
    /// Sets the status message.
    SetMessage(String),
    /// Adds an input request. The key must be new.
    AddInputRequest {
        /// The key.
        key: String,
        /// The request, as JSON.
        request: Bytes,
    },
    /// Withdraws an input request.
    WithdrawInputRequest {
        /// The key of the input request.
        key: String,
    },
    /// Adds the response to an input request.
    AddInputResponse {
        /// The key of the input request.
        key: String,
        /// The response.
        response: TaskInputResponse,
    },
    /// Discards the content of a response that the task has read.
    DiscardInputResponse {
        /// The key of the input request.
        key: String,
    },
    /// Ends the task.
    End {
        /// The final status.
        status: TaskStatus,
        /// The status message.
        message: Option<String>,
        /// The outcome.
        outcome: TaskOutcome,
    },
    /// Applies updates in this order, as one update. Those without an effect are skipped.
    Several(Vec<TaskUpdate>),
}

impl TaskRecord {
    /// Creates the record of a new task.
    pub fn new(id: TaskId, number: u64, task: NewTask) -> Self {
        let now = SystemTime::now();
        Self {
            id,
            number,
            changes: 0,
            owner: task.owner,
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl: task.ttl,
            poll_interval: task.poll_interval,
            runner: task.runner,
            input_requests: Vec::new(),
            input_responses: Vec::new(),
            outcome: None,
        }
    }

    /// Applies an update. Returns whether it changed the record; an ended task never changes.
    pub fn apply(&mut self, update: TaskUpdate) -> bool {
        let changed = self.change(update);
        if changed {
            self.changes += 1;
            self.updated = SystemTime::now();
        }
        changed
    }

    fn change(&mut self, update: TaskUpdate) -> bool {
        if self.status.is_final() {
            return false;
        }
        match update {
            TaskUpdate::SetMessage(message) => {
                self.message.replace(message.clone()) != Some(message)
            }
            TaskUpdate::AddInputRequest { key, request } => self.add_input_request(key, request),
            TaskUpdate::WithdrawInputRequest { key } => self.remove_input_request(&key),
            TaskUpdate::AddInputResponse { key, response } => {
                let open = self.remove_input_request(&key);
                if open {
                    self.input_responses.push((key, response));
                }
                open
            }
            TaskUpdate::DiscardInputResponse { key } => {
                let used = self
                    .input_responses
                    .iter_mut()
                    .find(|(used, _)| *used == key);
                // The key remains, so that it is not used again.
                used.map(|(_, response)| *response = TaskInputResponse::Result(Bytes::new()))
                    .is_some()
            }
            TaskUpdate::End {
                status,
                message,
                outcome,
            } => {
                self.status = status;
                self.message = message;
                self.outcome = Some(outcome);
                self.input_requests.clear();
                self.input_responses.clear();
                true
            }
            TaskUpdate::Several(updates) => {
                let mut changed = false;
                for update in updates {
                    changed |= self.change(update);
                }
                changed
            }
        }
    }

    fn add_input_request(&mut self, key: String, request: Bytes) -> bool {
        let used = self.input_requests.iter().any(|(open, _)| *open == key)
            || self.input_responses.iter().any(|(used, _)| *used == key);
        if used {
            return false;
        }
        self.input_requests.push((key, request));
        self.status = TaskStatus::InputRequired;
        true
    }

    /// Removes an open input request. Returns whether it existed.
    fn remove_input_request(&mut self, key: &str) -> bool {
        let before = self.input_requests.len();
        self.input_requests.retain(|(open, _)| open != key);
        if self.input_requests.is_empty() {
            self.status = TaskStatus::Working;
        }
        self.input_requests.len() < before
    }

    /// Returns the bytes that clients and handlers stored in this task.
    pub fn content_bytes(&self) -> usize {
        let input_requests = self
            .input_requests
            .iter()
            .map(|(key, it)| key.len() + it.len());
        let input_responses = self.input_responses.iter().map(|(key, response)| {
            let (TaskInputResponse::Result(it) | TaskInputResponse::Error(it)) = response;
            key.len() + it.len()
        });
        let outcome = self.outcome.as_ref().map_or(0, |outcome| {
            let (TaskOutcome::Result(it) | TaskOutcome::Error(it)) = outcome;
            it.len()
        });
        self.message.as_ref().map_or(0, String::len)
            + input_requests.sum::<usize>()
            + input_responses.sum::<usize>()
            + outcome
    }

    /// Returns the response to an input request, if there is one.
    pub fn input_response(&self, key: &str) -> Option<&TaskInputResponse> {
        let mut input_responses = self.input_responses.iter();
        input_responses.find_map(|(used, response)| (used == key).then_some(response))
    }
}
