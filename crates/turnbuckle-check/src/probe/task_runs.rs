//! Tasks that are started once and followed to their end, for all task rules.

use std::{ops::Range, time::Duration};

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::safe_calls::SafeCall;
use crate::{
    engine::{check_context::CheckContext, outcome::NotPassed},
    probe::tool_runs::{LOG_LEVEL, call_tool, input_responses, next_progress_token},
    session::{ProbeResponse, Session},
};

/// The tasks extension of 2026-07-28.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The `_meta` key of the related task.
pub(crate) const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// The maximum number of tasks to start.
const MAX_TASKS: usize = 8;
/// The maximum interval between two `tasks/get` requests.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The tasks that were started.
pub(crate) struct TaskRuns {
    /// The session in which they ran.
    pub(crate) session: Session,
    /// The calls and their responses.
    pub(crate) started: Vec<(SafeCall, Result<ProbeResponse, NotPassed>)>,
    /// The calls that became tasks.
    pub(crate) all: Vec<TaskRun>,
}

/// A task from its creation to its end.
#[derive(Debug)]
pub(crate) struct TaskRun {
    /// The tool call.
    pub(crate) call: SafeCall,
    /// The progress token.
    pub(crate) token: Value,
    /// The response to the call.
    pub(crate) created: ProbeResponse,
    /// The task id.
    pub(crate) id: String,
    /// The responses to `tasks/get`.
    pub(crate) gets: Vec<ProbeResponse>,
    /// The responses to `tasks/update`.
    pub(crate) updates: Vec<ProbeResponse>,
    /// The response to `tasks/result`, in the revision that has it.
    pub(crate) result: Option<ProbeResponse>,
    /// The transcript entries between the call and the end.
    pub(crate) span: Range<usize>,
}

impl TaskRuns {
    /// Starts tasks for all callable tools and waits for their ends.
    pub(crate) async fn run(ctx: &CheckContext) -> Result<Self, NotPassed> {
        let mut session = ctx.uninitialized_session().await?;
        if !session.request_builder.has_handshake() {
            session.request_builder.capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
        }
        session
            .initialize_session()
            .await
            .map_err(NotPassed::into_not_tested)?;
        let is_legacy = session.request_builder.has_handshake();
        require_tasks(&session)?;
        session.open_get_stream().await;
        let calls = &ctx.inventory().await?.calls;
        let calls = calls
            .iter()
            .filter(|call| !is_legacy || supports_tasks(call));
        let mut task_runs = Self {
            session,
            started: Vec::new(),
            all: Vec::new(),
        };
        for call in calls {
            if task_runs.all.len() == MAX_TASKS {
                break;
            }
            task_runs.run_task(ctx, call).await;
        }
        Ok(task_runs)
    }

    /// Returns the tasks, or the reason why there are none.
    pub(crate) fn require_any(&self) -> Result<&[TaskRun], NotPassed> {
        if self.all.is_empty() {
            Err(NotPassed::not_tested("no allowed call became a task"))
        } else {
            Ok(&self.all)
        }
    }

    async fn run_task(&mut self, ctx: &CheckContext, call: &SafeCall) {
        let from = ctx.transcript.len();
        let token = next_progress_token();
        let created = start_task(&self.session, call, &token).await;
        let run = match &created {
            Ok(response) => task_id(response).map(|id| (id, response.clone())),
            Err(_) => None,
        };
        self.started.push((call.clone(), created));
        let Some((id, created)) = run else { return };
        let mut run = TaskRun {
            call: call.clone(),
            token,
            created,
            id,
            gets: Vec::new(),
            updates: Vec::new(),
            result: None,
            span: from..from,
        };
        // A failure ends the run here; rules see how far it got.
        let _ = if self.session.request_builder.has_handshake() {
            run.wait(&self.session).await
        } else {
            run.poll(ctx, &self.session).await
        };
        self.session.listen(ctx.pace.quiet_period()).await;
        run.span = from..ctx.transcript.len();
        self.all.push(run);
    }
}

impl TaskRun {
    /// Returns the statuses with the entries that reported them.
    pub(crate) fn statuses(&self) -> Vec<(usize, String)> {
        let gets = self.gets.iter();
        gets.filter_map(|get| {
            let status = get.value["result"]["status"].as_str()?;
            Some((get.received?, status.to_owned()))
        })
        .collect()
    }

    /// Returns the last `tasks/get` response, if its status is terminal.
    pub(crate) fn end(&self) -> Option<&ProbeResponse> {
        self.gets
            .last()
            .filter(|get| is_terminal(&get.value["result"]))
    }

    async fn wait(&mut self, session: &Session) -> Result<(), NotPassed> {
        self.get(session).await?;
        let params = json!({ "taskId": self.id });
        self.result = Some(session.request("tasks/result", params).await?);
        self.get(session).await
    }

    async fn poll(&mut self, ctx: &CheckContext, session: &Session) -> Result<(), NotPassed> {
        let until = Instant::now() + ctx.pace.response_timeout() * 2;
        loop {
            self.get(session).await?;
            let result = self
                .gets
                .last()
                .map(|get| get.value["result"].clone())
                .unwrap_or_default();
            if is_terminal(&result) || !result.is_object() || Instant::now() > until {
                return Ok(());
            }
            if let Some(requests) = result["inputRequests"].as_object() {
                self.send_inputs(session, requests).await?;
            }
            let pause = result["pollIntervalMs"]
                .as_u64()
                .map_or(MAX_POLL_INTERVAL, Duration::from_millis);
            sleep(pause.min(MAX_POLL_INTERVAL)).await;
        }
    }

    async fn get(&mut self, session: &Session) -> Result<(), NotPassed> {
        let params = json!({ "taskId": self.id });
        self.gets.push(session.request("tasks/get", params).await?);
        Ok(())
    }

    async fn send_inputs(
        &mut self,
        session: &Session,
        requests: &Map<String, Value>,
    ) -> Result<(), NotPassed> {
        let params = json!({ "taskId": self.id, "inputResponses": input_responses(requests) });
        self.updates
            .push(session.request("tasks/update", params).await?);
        Ok(())
    }
}

/// Makes a call that is to become a task.
pub(crate) async fn start_task(
    session: &Session,
    call: &SafeCall,
    token: &Value,
) -> Result<ProbeResponse, NotPassed> {
    let mut params = call.params();
    params["_meta"] = json!({ "progressToken": token });
    if session.request_builder.has_handshake() {
        params["task"] = json!({ "ttl": 60_000 });
    } else {
        params["_meta"][LOG_LEVEL] = "debug".into();
    }
    call_tool(session, call, params).await
}

/// Returns the id of the task that a call became.
pub(crate) fn task_id(response: &ProbeResponse) -> Option<String> {
    let result = &response.value["result"];
    let task = match result.get("task") {
        Some(task) => task,
        None if result["resultType"] == "task" => result,
        None => return None,
    };
    task["taskId"].as_str().map(str::to_owned)
}

/// Returns whether the status of a task is terminal.
pub(crate) fn is_terminal(task: &Value) -> bool {
    ["completed", "failed", "cancelled"]
        .iter()
        .any(|status| task["status"] == *status)
}

/// Returns whether a tool supports task-augmented calls.
pub(crate) fn supports_tasks(call: &SafeCall) -> bool {
    let support = &call.tool["execution"]["taskSupport"];
    support == "optional" || support == "required"
}

/// Checks that the server advertises tasks.
pub(crate) fn require_tasks(session: &Session) -> Result<(), NotPassed> {
    let capabilities = session.capabilities();
    let declares_tasks = if session.request_builder.has_handshake() {
        capabilities.pointer("/tasks/requests/tools/call").is_some()
    } else {
        capabilities["extensions"].get(TASKS_EXTENSION).is_some()
    };
    if declares_tasks {
        Ok(())
    } else {
        Err(NotPassed::not_applicable(
            "the server does not advertise tasks",
        ))
    }
}
