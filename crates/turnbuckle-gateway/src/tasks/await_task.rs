//! Awaits a task of an upstream server on behalf of a client that does not see it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use turnbuckle_client::relay::RelayRequest;
use turnbuckle_protocol::{RpcError, json, jsonrpc::RawObject, types::TaskStatus};

use crate::{
    calls::{RelayedCall, running::RunningCall},
    errors,
    raw_json::{ObjectWriter, quote},
    tasks::{
        DEFAULT_LIFETIME, MAX_LIFETIME, TaskMode,
        ids::{RelatedTask, with_related_task},
    },
    upstream::{
        connection::Connection,
        interest::{Interest, ListenerGuard},
    },
};

/// The interval at which a task is polled if the server recommends none, and the limits of what it recommends.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of times that a task requests input.
const MAX_INPUT_ROUNDS: usize = 32;

/// What a task waits for, or its end.
pub(crate) enum TaskEvent {
    /// The result of the call.
    Result(String),
    /// Input requests, as a JSON object.
    InputRequests(String),
}

/// A task of an upstream server. Cancelled when dropped before its end, unless it was [kept](Self::keep).
pub(crate) struct UpstreamTask<'a> {
    relayed: &'a RelayedCall<'a>,
    call: Arc<RunningCall>,
    id: String,
    poll_interval: Duration,
    answered: HashSet<String>,
    input_rounds: usize,
    has_ended: bool,
    /// Between two polls nothing else keeps the connection open.
    _kept: Option<ListenerGuard>,
}

impl<'a> UpstreamTask<'a> {
    pub(crate) fn new(relayed: &'a RelayedCall<'a>, call: &Arc<RunningCall>, id: String) -> Self {
        Self {
            relayed,
            call: Arc::clone(call),
            id,
            poll_interval: POLL_INTERVAL,
            answered: HashSet::new(),
            input_rounds: 0,
            has_ended: false,
            _kept: relayed.connection.interest().map(Interest::add_listener),
        }
    }

    /// Returns the task that a server-directed result announces.
    pub(crate) fn created(
        relayed: &'a RelayedCall<'a>,
        call: &Arc<RunningCall>,
        result: &str,
    ) -> Result<Self, RpcError> {
        let created = RawObject::parse(result)?;
        let mut task = Self::new(relayed, call, task_id(&created)?);
        task.read_interval(&created);
        Ok(task)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Leaves the task running, because a retry of the client continues it.
    pub(crate) fn keep(mut self) {
        self.has_ended = true;
    }

    /// Polls a server-directed task until it requests input or ends.
    pub(crate) async fn next(&mut self) -> Result<TaskEvent, RpcError> {
        let limit = self.relayed.connection.server.settings.timeouts.total;
        let limit = match self.relayed.mode {
            TaskMode::Own { .. } => MAX_LIFETIME,
            _ => limit,
        };
        let polled = tokio::time::timeout(limit, self.poll()).await;
        let server = self.relayed.connection.server.name();
        polled.unwrap_or_else(|_| Err(errors::timeout(server, limit)))
    }

    async fn poll(&mut self) -> Result<TaskEvent, RpcError> {
        loop {
            tokio::time::sleep(self.poll_interval).await;
            let request = self.relayed.task_request("tasks/get", &self.id, &[])?;
            let state = self.relayed.connection.relay(&self.call, &request).await;
            let server = self.relayed.connection.server.name();
            let state = state.map_err(|error| errors::call_failure(server, error))?;
            let state = RawObject::parse(state.json())?;
            self.read_interval(&state);
            let status: TaskStatus =
                json::from_str(state.get("status").unwrap_or("null")).map_err(RpcError::from)?;
            self.has_ended = status.is_final();
            match status {
                TaskStatus::Working => {}
                TaskStatus::InputRequired => {
                    if let Some(requests) = self.new_input_requests(&state)? {
                        return Ok(TaskEvent::InputRequests(requests));
                    }
                }
                TaskStatus::Completed => {
                    let missing = || RpcError::internal("a complete task lacks its result");
                    let result = state.get("result").ok_or_else(missing)?;
                    return Ok(TaskEvent::Result(result.to_owned()));
                }
                TaskStatus::Failed => {
                    let error = state.get("error").unwrap_or("null");
                    let unknown = |_| RpcError::internal("the task failed");
                    return Err(json::from_str(error).unwrap_or_else(unknown));
                }
                TaskStatus::Cancelled => {
                    return Err(RpcError::internal("the server cancelled the task"));
                }
            }
        }
    }

    /// Returns the input requests without a response.
    fn new_input_requests(&mut self, state: &RawObject<'_>) -> Result<Option<String>, RpcError> {
        let requests = RawObject::parse(state.get("inputRequests").unwrap_or("{}"))?;
        let mut unanswered = ObjectWriter::new();
        let mut count = 0;
        for (key, request) in requests.members() {
            if self.answered.insert(key.to_string()) {
                unanswered.member(&key, request);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(None);
        }
        self.input_rounds += 1;
        if self.input_rounds > MAX_INPUT_ROUNDS {
            return Err(RpcError::internal("the server requested input too often"));
        }
        Ok(Some(unanswered.finish()))
    }

    /// Sends the responses to input requests, a JSON object.
    pub(crate) async fn update(&mut self, responses: &str) -> Result<(), RpcError> {
        let added = [("inputResponses", responses.to_owned())];
        let request = self
            .relayed
            .task_request("tasks/update", &self.id, &added)?;
        for (key, _) in RawObject::parse(responses)?.members() {
            self.answered.insert(key.into_owned());
        }
        let updated = self.relayed.connection.relay(&self.call, &request).await;
        let server = self.relayed.connection.server.name();
        updated.map_err(|error| errors::call_failure(server, error))?;
        Ok(())
    }

    /// Awaits a client-requested task: `tasks/result` returns when it has ended, and carries its client requests.
    async fn result(&mut self) -> Result<String, RpcError> {
        let limit = match self.relayed.mode {
            TaskMode::Own { lifetime, .. } => {
                lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME)
            }
            _ => self.relayed.connection.server.settings.timeouts.total,
        };
        let mut request = self.relayed.task_request("tasks/result", &self.id, &[])?;
        request.timeouts.idle = limit;
        request.timeouts.total = limit;
        let result = self.relayed.connection.relay(&self.call, &request).await;
        let server = self.relayed.connection.server.name();
        let result = result.map_err(|error| errors::call_failure(server, error))?;
        self.has_ended = true;
        with_related_task(result.json(), None)
    }

    fn read_interval(&mut self, task: &RawObject<'_>) {
        let interval = task.get("pollIntervalMs").and_then(|it| it.parse().ok());
        if let Some(interval) = interval.map(Duration::from_millis) {
            self.poll_interval = interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        }
    }
}

impl Drop for UpstreamTask<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let Ok(request) = self.relayed.task_request("tasks/cancel", &self.id, &[]) else {
            return;
        };
        let (connection, call) = (Arc::clone(self.relayed.connection), Arc::clone(&self.call));
        // Without a runtime the process is shutting down.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { cancel(&connection, &call, request).await });
        }
    }
}

async fn cancel(connection: &Connection, call: &Arc<RunningCall>, request: RelayRequest) {
    if let Err(error) = connection.relay(call, &request).await {
        tracing::debug!(server = connection.server.name(), %error, "a task was not cancelled");
    }
}

impl RelayedCall<'_> {
    /// Awaits a client-requested task that the gateway itself requested. Returns `None` if the server created none.
    pub(crate) async fn await_requested(
        &self,
        call: &Arc<RunningCall>,
        result: &str,
    ) -> Result<Option<String>, RpcError> {
        let object = RawObject::parse(result)?;
        let Some(created) = object.get("task") else {
            return Ok(None);
        };
        let mut task = UpstreamTask::new(self, call, task_id(&RawObject::parse(created)?)?);
        call.set_task(RelatedTask {
            upstream: task.id.clone(),
            // The client knows no such task.
            client: String::new(),
        });
        task.result().await.map(Some)
    }

    /// Returns a request about a task of the server.
    fn task_request(
        &self,
        method: &'static str,
        id: &str,
        added: &[(&str, String)],
    ) -> Result<RelayRequest, RpcError> {
        let mut params = ObjectWriter::new();
        params.member("taskId", &quote(id));
        for (name, value) in added {
            params.member(name, value);
        }
        let mut request = RelayRequest::new(method, params.finish());
        self.complete_request(&mut request)?;
        request.name = Some(id.to_owned());
        request.progress = false;
        Ok(request)
    }
}

fn task_id(task: &RawObject<'_>) -> Result<String, RpcError> {
    let missing = || RpcError::internal("the task lacks an id");
    Ok(task.string("taskId")?.ok_or_else(missing)?.into_owned())
}
