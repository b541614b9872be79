//! Polls tasks, resolves their input requests, and fetches their results, in both task designs.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, sleep_until},
};
use turnbuckle_protocol::{
    RpcError,
    json::{self, JsonError},
    method::{self, Method},
    types::{
        InputRequiredResult, InputResponses, ResultType, TaskStatus,
        tasks::{GetTaskParams, GetTaskResult, Task as TaskInfo, UpdateTaskParams, legacy},
    },
};

use crate::{
    client::{ReceivedResult, require_complete},
    error::CallError,
    inbound::{SubscriberSignal, message::RawJson},
    lifecycle::TaskDesign,
    round_trips::{InputRequest, resolve_input_requests},
    target::Change,
    tasks::Task,
    transport::{OutgoingRequest, encode::ToRevision},
};

pub(super) const CALL: &str = method::TOOLS_CALL.name;
const GET: &str = method::TASKS_GET.name;

/// A polled task, with the payload of its status.
#[derive(Debug)]
pub(super) struct TaskSnapshot {
    pub(super) task: TaskInfo,
    pub(super) payload: TaskPayload,
    received: ReceivedResult,
}

/// The payload of a task since 2026-07-28.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskPayload {
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
    pub(super) input_requests: Option<BTreeMap<String, InputRequest>>,
}

impl Task {
    /// Polls the task.
    pub(super) async fn fetch_snapshot(&self) -> Result<TaskSnapshot, CallError> {
        let params = GetTaskParams::new(&self.0.id);
        let mut request = self.new_request(&method::TASKS_GET).named(&self.0.id);
        let snapshot = TaskSnapshot::read(self.send(&mut request, &params).await?)?;
        if snapshot.task.task_id != self.0.id {
            return Err(invalid("the result is another task".to_owned()));
        }
        let mut state = self.state();
        state.info = Some(snapshot.task.clone());
        let open = snapshot.payload.input_requests.iter().flatten();
        state.open = open.map(|(key, _)| key.clone()).collect();
        Ok(snapshot)
    }

    /// Sends responses to open input requests.
    pub(super) async fn update(&self, mut responses: InputResponses) -> Result<(), CallError> {
        {
            let state = self.state();
            responses.retain(|key, _| state.open.contains(key));
        }
        if responses.is_empty() {
            return Ok(());
        }
        let claimed = ClaimedInputs::new(self, responses.keys().cloned());
        let params = UpdateTaskParams::new(&self.0.id, responses);
        let mut request = self.new_request(&method::TASKS_UPDATE).named(&self.0.id);
        let received = self.send(&mut request, &params).await?;
        require_complete(method::TASKS_UPDATE.name, &received)?;
        claimed.mark_sent();
        Ok(())
    }

    /// Waits for the result of the task (2025-11-25).
    pub(super) async fn fetch_result(&self) -> Result<ReceivedResult, CallError> {
        let params = GetTaskParams::new(&self.0.id);
        let mut request = self.new_request(&method::TASKS_RESULT);
        // The error belongs to the call that became the task.
        self.send(&mut request, &params)
            .await
            .map_err(|error| match error {
                CallError::Rejected {
                    source,
                    status,
                    retry_after,
                    ..
                } => CallError::Rejected {
                    method: CALL,
                    source,
                    status,
                    retry_after,
                },
                other => other,
            })
    }
}

impl Task {
    fn new_request(&self, method: &'static Method) -> OutgoingRequest<'_> {
        self.0.client.new_request(method, &self.0.options)
    }

    async fn send<P: ToRevision>(
        &self,
        request: &mut OutgoingRequest<'_>,
        params: &P,
    ) -> Result<ReceivedResult, CallError> {
        self.0.client.send(request, params, &self.0.options).await
    }
}

impl TaskSnapshot {
    fn read(received: ReceivedResult) -> Result<Self, CallError> {
        require_complete(GET, &received)?;
        let text = received.result.as_str();
        let wrong = |error: JsonError| invalid(error.to_string());
        let (task, payload) = match received.rules.tasks {
            TaskDesign::ServerDirected => (
                json::from_str(text).map_err(wrong)?,
                json::from_str(text).map_err(wrong)?,
            ),
            TaskDesign::ClientRequested | TaskDesign::None => {
                let task: legacy::Task = json::from_str(text).map_err(wrong)?;
                (task.into(), TaskPayload::default())
            }
        };
        Ok(Self {
            task,
            payload,
            received,
        })
    }

    /// Returns the typed result, for callers that poll themselves.
    pub(super) fn into_typed(self) -> Result<GetTaskResult, CallError> {
        match self.received.rules.tasks {
            TaskDesign::ServerDirected => self.received.read(GET),
            TaskDesign::ClientRequested | TaskDesign::None => Ok(GetTaskResult::new(self.task)),
        }
    }

    /// Returns the result of a task that has ended (since 2026-07-28).
    pub(super) fn into_outcome(self) -> Result<ReceivedResult, CallError> {
        match (self.task.status, self.payload.result, self.payload.error) {
            (TaskStatus::Completed, Some(result), _) => Ok(ReceivedResult {
                result: RawJson::from(String::from(Box::<str>::from(result))),
                kind: ResultType::Complete,
                rules: self.received.rules,
                round_trips: self.received.round_trips,
                progress_guard: None,
            }),
            (TaskStatus::Failed, _, Some(source)) => Err(CallError::rejected(CALL, source, None)),
            (status, ..) => Err(invalid(format!(
                "a task with status {status:?} has neither a result nor an error"
            ))),
        }
    }
}

fn invalid(reason: String) -> CallError {
    CallError::InvalidResponse {
        method: GET,
        reason,
    }
}

/// Poll interval if the server does not suggest one.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum poll interval.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum poll interval.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10 * 60);

impl Task {
    /// Waits until the task has ended; returns the result of the call.
    pub(super) async fn outcome(&self) -> Result<ReceivedResult, CallError> {
        let ended = self.poll_until_final().await?;
        if ended.task.status == TaskStatus::Cancelled {
            return Err(CallError::TaskCancelled {
                reason: ended.task.status_message,
            });
        }
        match self.0.client.inner.rules().tasks {
            TaskDesign::ServerDirected => ended.into_outcome(),
            TaskDesign::ClientRequested | TaskDesign::None => self.fetch_result().await,
        }
    }

    /// Waits until the task has ended; returns its final state.
    pub(super) async fn poll_until_final(&self) -> Result<TaskSnapshot, CallError> {
        // Subscribes before polling, so that no change is missed between two polls.
        let mut signals = self.0.client.inner.router.signals.subscribe();
        loop {
            let polled_at = Instant::now();
            let mut snapshot = self.fetch_snapshot().await?;
            match snapshot.task.status {
                status if status.is_final() => return Ok(snapshot),
                TaskStatus::InputRequired => {
                    let input_requests = snapshot.payload.input_requests.take();
                    self.provide_input(input_requests.unwrap_or_default())
                        .await?;
                }
                _ => {}
            }
            self.check_lifetime(&snapshot.task)?;
            self.pause(polled_at, &snapshot.task, &mut signals).await;
        }
    }

    /// Provides the input that a task waits for.
    async fn provide_input(
        &self,
        input_requests: BTreeMap<String, InputRequest>,
    ) -> Result<(), CallError> {
        match self.0.client.inner.rules().tasks {
            TaskDesign::ServerDirected => self.send_new_input(input_requests).await,
            // The server sends requests while the client waits for the result.
            TaskDesign::ClientRequested | TaskDesign::None => match self.fetch_result().await {
                Ok(_) | Err(CallError::Rejected { .. } | CallError::TimedOut { .. }) => Ok(()),
                Err(error) => Err(error),
            },
        }
    }

    /// Resolves the input requests that were not claimed before.
    async fn send_new_input(
        &self,
        mut input_requests: BTreeMap<String, InputRequest>,
    ) -> Result<(), CallError> {
        let round_trips = self.0.options.max_round_trips;
        if round_trips == 0 {
            return Err(manual_input_required(&input_requests));
        }
        {
            let state = self.state();
            input_requests.retain(|key, _| !state.claimed_inputs.contains(key));
            if input_requests.is_empty() {
                // Already sent, and not yet processed by the server; or claimed by another caller.
                return Ok(());
            }
            if state.round_trips == round_trips {
                let method = CALL;
                return Err(CallError::TooManyRoundTrips {
                    method,
                    limit: round_trips,
                });
            }
        }
        let claimed = ClaimedInputs::new(self, input_requests.keys().cloned());
        let responses = resolve_input_requests(&self.0.client, CALL, input_requests).await?;
        self.update(responses).await?;
        claimed.mark_sent();
        self.state().round_trips += 1;
        Ok(())
    }

    /// Returns an error if the task has exceeded its lifetime.
    fn check_lifetime(&self, task: &TaskInfo) -> Result<(), CallError> {
        let lifetime = task.ttl_ms.map(Duration::from_millis);
        match lifetime.filter(|lifetime| self.0.created_at.elapsed() > *lifetime) {
            Some(lifetime) => Err(CallError::TaskExpired { lifetime }),
            None => Ok(()),
        }
    }

    /// Waits until the next poll is due, or the server reports a change.
    async fn pause(
        &self,
        snapshot: Instant,
        task: &TaskInfo,
        signals: &mut Receiver<SubscriberSignal>,
    ) {
        let wished = task
            .poll_interval_ms
            .map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        let next = snapshot + wished.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        tokio::select! {
            () = sleep_until(next) => {}
            () = self.wait_for_change(signals) => sleep_until(snapshot + MIN_POLL_INTERVAL).await,
        }
    }

    /// Waits until the server reports that the task has ended or requires input.
    async fn wait_for_change(&self, signals: &mut Receiver<SubscriberSignal>) {
        loop {
            match signals.recv().await {
                Ok(SubscriberSignal::Change(Change::Task(changed))) => {
                    let status = changed.task.status;
                    let matters = status.is_final() || status == TaskStatus::InputRequired;
                    if matters && changed.task.task_id == self.0.id {
                        return;
                    }
                }
                Ok(SubscriberSignal::End(_)) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// Returns the error for a client without round trips; it contains the input requests.
fn manual_input_required(input_requests: &BTreeMap<String, InputRequest>) -> CallError {
    let typed = serde_json::to_value(input_requests).map_err(|error| error.to_string());
    let typed = typed.and_then(|typed| json::from_value(&typed).map_err(|it| it.to_string()));
    match typed {
        Ok(input_requests) => CallError::InputRequired {
            method: CALL,
            result: Box::new(InputRequiredResult::new(input_requests)),
        },
        Err(reason) => CallError::InvalidResponse {
            method: CALL,
            reason,
        },
    }
}

/// Claims input requests, so that other callers do not resolve them too. If this is dropped before the responses are
/// sent, the requests can be claimed again: the task would never end without responses.
pub(super) struct ClaimedInputs<'t> {
    task: &'t Task,
    keys: Vec<String>,
}

impl<'t> ClaimedInputs<'t> {
    pub(super) fn new(task: &'t Task, keys: impl Iterator<Item = String>) -> Self {
        let keys: Vec<_> = keys.collect();
        task.state().claimed_inputs.extend(keys.iter().cloned());
        Self { task, keys }
    }

    /// Marks the responses as sent.
    pub(super) fn mark_sent(mut self) {
        self.keys.clear();
    }
}

impl Drop for ClaimedInputs<'_> {
    fn drop(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return;
        }
        let mut state = self.task.state();
        for key in keys {
            state.claimed_inputs.remove(&key);
        }
    }
}
