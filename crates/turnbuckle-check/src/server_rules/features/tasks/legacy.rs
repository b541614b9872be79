//! Tasks that the client requests in 2025-11-25: creation and result.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{
        SafeCall,
        task_runs::{self, TASKS_EXTENSION, TaskRuns, is_terminal, supports_tasks, task_id},
        tool_runs::{call_tool, next_progress_token},
    },
    session::Session,
    wire::http::RawHttpClient,
};

/// The minimum length of an id that may be random enough.
const MIN_ID_LENGTH: usize = 12;

pub(super) async fn created(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let mut evidence = Vec::new();
    for (_, response) in &task_runs.started {
        let Ok(response) = response else { continue };
        if response.value.get("result").is_none() {
            continue;
        }
        if response.value["result"].get("task").is_none() {
            return Err(response.violation("a result without `task`"));
        }
        evidence.extend(response.entries());
    }
    if evidence.is_empty() {
        Err(no_call(task_runs))
    } else {
        Evidence::from_entries(evidence.into_iter().take(2))
    }
}

pub(super) async fn begins_working(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    for run in task_runs {
        let status = &run.created.value["result"]["task"]["status"];
        if status.is_string() && status != "working" {
            return Err(run
                .created
                .violation(format!("a new task has status {status}")));
        }
    }
    task_runs[0].created.evidence()
}

pub(super) async fn valid_steps(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let mut evidence = Vec::new();
    for run in task_runs.require_any()? {
        let mut statuses = run.statuses();
        let again = task_runs
            .session
            .request("tasks/get", json!({ "taskId": run.id }))
            .await;
        if let (Ok(again), true) = (again, run.end().is_some()) {
            let status = again.value["result"]["status"].as_str().map(str::to_owned);
            statuses.extend(again.received.zip(status));
        }
        for step in statuses.windows(2) {
            let [(at, before), (later, after)] = step else {
                continue;
            };
            if is_terminal(&json!({ "status": before })) && before != after {
                let observed = format!("a task changes its status from {before:?} to {after:?}");
                let violation = NotPassed::violation(observed, [*at, *later]);
                return Err(violation.for_requirement("tasks.status.terminal"));
            }
        }
        evidence.extend(statuses.iter().map(|(at, _)| *at));
    }
    Evidence::from_entries(evidence.into_iter().take(4))
}

pub(super) async fn ids_differ(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    let mut ids = HashSet::new();
    for run in task_runs {
        if !ids.insert(&run.id) {
            return Err(run
                .created
                .violation(format!("two tasks have the id {:?}", run.id)));
        }
    }
    match ids.len() {
        1 => Err(NotPassed::not_tested("only one call became a task")),
        _ => Evidence::from_entries(task_runs.iter().filter_map(|run| run.created.received)),
    }
}

pub(super) async fn ids_unguessable(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    // In 2025-11-25, a task that is bound to its requestor may have any id.
    let is_authorized = |http_client: &RawHttpClient| http_client.has_header("authorization");
    if !ctx.revision.is_stateless() && ctx.http_client().as_ref().is_ok_and(is_authorized) {
        return Err(NotPassed::not_applicable(
            "the server can bind tasks to the authorized client",
        ));
    }
    for run in task_runs {
        let digits = run.id.chars().filter(char::is_ascii_digit).count();
        if run.id.len() < MIN_ID_LENGTH || (digits == run.id.len() && digits < 3 * MIN_ID_LENGTH) {
            return Err(run
                .created
                .violation(format!("the id {:?} can be guessed", run.id)));
        }
    }
    Evidence::from_entries(task_runs.iter().filter_map(|run| run.created.received))
}

pub(super) async fn only_as_task(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let calls = &ctx.inventory().await?.calls;
    let Some(call) = calls.iter().find(|call| call.only_as_task) else {
        return Err(NotPassed::not_applicable("no safe tool requires tasks"));
    };
    let response = call_tool(&task_runs.session, call, call.params()).await?;
    response.expect_error(&[-32601])
}

pub(super) async fn never_as_task(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let calls = &ctx.inventory().await?.calls;
    let plain = calls.iter().filter(|call| !supports_tasks(call));
    let Some(call) = quickest(ctx, plain).await else {
        return Err(NotPassed::not_tested("all safe tools support tasks"));
    };
    let response = start_task(&task_runs.session, call).await?;
    response.expect_error(&[-32601])
}

pub(super) async fn undeclared_ignored(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if task_runs::require_tasks(session).is_ok() {
        return Err(NotPassed::not_applicable(
            "the server declares tasks for tool calls",
        ));
    }
    let calls = ctx.safe_calls().await?;
    // A tool with task support is the most likely to create a task.
    let mut call = quickest(ctx, calls.iter().copied().filter(|it| supports_tasks(it))).await;
    if call.is_none() {
        call = quickest(ctx, calls.iter().copied()).await;
    }
    let Some(call) = call else {
        return Err(NotPassed::not_tested("no tool is safe to call"));
    };
    let response = start_task(session, call).await?;
    match task_id(&response) {
        Some(_) => Err(response.violation("a task, but tasks are not declared")),
        None if response.value.get("result").is_some() => response.evidence(),
        None => Err(NotPassed::not_tested(format!(
            "the server returned {}",
            response.describe()
        ))),
    }
}

pub(super) async fn result(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        let (Some(response), Some(end)) = (&run.result, run.end()) else {
            continue;
        };
        let status = &end.value["result"]["status"];
        let result = response.value.get("result");
        let is_tool_result = result.is_none_or(|result| result.get("content").is_some());
        if !is_tool_result || (result.is_none() && status == "completed") {
            let observed = format!(
                "{} for a task with status {status}",
                describe(response.value.get("result"))
            );
            let violation = response.violation(observed);
            return Err(if status == "completed" {
                violation.for_requirement("tasks.result.success")
            } else {
                violation
            });
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence.into_iter().take(4))
}

pub(super) async fn result_waits(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        let (Some(response), [early, late]) = (&run.result, run.gets.as_slice()) else {
            continue;
        };
        let status = &late.value["result"]["status"];
        if status == "working" || status == "input_required" {
            let observed = format!("a response while the task has status {status}");
            return Err(NotPassed::violation(
                observed,
                response.entries().chain(late.entries()),
            ));
        }
        if !is_terminal(&early.value["result"]) {
            evidence.extend(response.entries());
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "every task finished before its result was requested",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(2))
    }
}

pub(super) async fn failed_with_tool(ctx: &CheckContext) -> Outcome {
    for run in ctx.task_runs().await?.require_any()? {
        let (Some(response), Some(end)) = (&run.result, run.end()) else {
            continue;
        };
        if response.value["result"]["isError"] == Value::Bool(true) {
            let status = &end.value["result"]["status"];
            return if status == "failed" {
                end.evidence()
            } else {
                Err(end.violation(format!("status {status}, although the tool failed")))
            };
        }
    }
    Err(NotPassed::not_tested("no tool failed as a task"))
}

pub(super) async fn failure_explained(ctx: &CheckContext) -> Outcome {
    for run in ctx.task_runs().await?.require_any()? {
        let failed = run
            .end()
            .filter(|end| end.value["result"]["status"] == "failed");
        if let Some(failed) = failed {
            let message = failed.value["result"]["statusMessage"].as_str();
            return if message.is_some_and(|message| !message.trim().is_empty()) {
                failed.evidence()
            } else {
                Err(failed.violation("a failed task without a `statusMessage`"))
            };
        }
    }
    Err(NotPassed::not_tested("no task failed"))
}

pub(super) async fn extension_not_yet_defined(ctx: &CheckContext) -> Outcome {
    ctx.task_runs().await?;
    let mut session = ctx.uninitialized_session().await?;
    session.request_builder.capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
    session
        .initialize_session()
        .await
        .map_err(NotPassed::into_not_tested)?;
    let calls = ctx.safe_calls().await?;
    let with_task_support = calls.into_iter().filter(|call| supports_tasks(call));
    let Some(call) = quickest(ctx, with_task_support).await else {
        return Err(NotPassed::not_tested(
            "no safe tool has optional task support",
        ));
    };
    let response = call_tool(&session, call, call.params()).await?;
    match task_id(&response) {
        Some(_) => Err(response.violation("a task for a call without `task`")),
        None => response.evidence(),
    }
}

async fn start_task(
    session: &Session,
    call: &SafeCall,
) -> Result<crate::session::ProbeResponse, NotPassed> {
    task_runs::start_task(session, call, &next_progress_token()).await
}

/// Returns the call with the shortest run, or the first if none ran.
async fn quickest<'a>(
    ctx: &CheckContext,
    calls: impl Iterator<Item = &'a SafeCall>,
) -> Option<&'a SafeCall> {
    let tool_runs = ctx.tool_runs().await.ok();
    calls.min_by_key(|call| tool_runs.map(|tool_runs| tool_runs.duration(call)))
}

fn no_call(task_runs: &TaskRuns) -> NotPassed {
    let count = task_runs.started.len();
    NotPassed::not_tested(format!("none of {count} calls was accepted as a task"))
}

fn describe(result: Option<&Value>) -> &'static str {
    match result {
        Some(_) => "a result that is not the tool's result",
        None => "an error",
    }
}
