//! How tasks begin and end.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

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

/// The shortest id that may be random enough.
const SHORTEST: usize = 12;

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
                .violation(format!("a new task has the status {status}")));
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
                let observed = format!("a task goes from {before:?} to {after:?}");
                return Err(NotPassed::violation(observed, [*at, *later]));
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
                .violation(format!("the id {:?} is there twice", run.id)));
        }
    }
    match ids.len() {
        1 => Err(NotPassed::not_tested("only one call became a task")),
        _ => Evidence::from_entries(task_runs.iter().filter_map(|run| run.created.received)),
    }
}

pub(super) async fn ids_unguessable(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    // In the revision with a handshake, a task that is bound to who asked for it may have any id.
    let is_known = |http_client: &RawHttpClient| http_client.has_header("authorization");
    if ctx.revision < Revision::MODERN && ctx.http_client().as_ref().is_ok_and(is_known) {
        return Err(NotPassed::not_applicable(
            "tasks can be bound to whom the server knows",
        ));
    }
    for run in task_runs {
        let digits = run.id.chars().filter(char::is_ascii_digit).count();
        if run.id.len() < SHORTEST || (digits == run.id.len() && digits < 3 * SHORTEST) {
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
        return Err(NotPassed::not_applicable(
            "no tool that may be called asks for tasks",
        ));
    };
    let response = call_tool(&task_runs.session, call, call.params()).await?;
    response.expect_error(&[-32601])
}

pub(super) async fn never_as_task(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let calls = &ctx.inventory().await?.calls;
    let plain = calls.iter().filter(|call| !supports_tasks(call));
    let Some(call) = quickest(ctx, plain).await else {
        return Err(NotPassed::not_tested(
            "all tools that may be called can become tasks",
        ));
    };
    let response = begin(&task_runs.session, call).await?;
    response.expect_error(&[-32601])
}

pub(super) async fn undeclared_ignored(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if task_runs::require_tasks(session).is_ok() {
        return Err(NotPassed::not_applicable(
            "the server declares tasks for calls of tools",
        ));
    }
    let calls = ctx.safe_calls().await?;
    // One that says that it takes tasks would be the first to make one.
    let mut call = quickest(ctx, calls.iter().copied().filter(|it| supports_tasks(it))).await;
    if call.is_none() {
        call = quickest(ctx, calls.iter().copied()).await;
    }
    let Some(call) = call else {
        return Err(NotPassed::not_tested("no tool may be called"));
    };
    let response = begin(session, call).await?;
    match task_id(&response) {
        Some(_) => Err(response.violation("a task of a server that declares none")),
        None if response.value.get("result").is_some() => response.evidence(),
        None => Err(NotPassed::not_tested(format!(
            "{} was seen",
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
        let brought = response.value.get("result");
        let whole = brought.is_none_or(|result| result.get("content").is_some());
        if !whole || (brought.is_none() && status == "completed") {
            let observed = format!(
                "{} for a task with the status {status}",
                describe(response.value.get("result"))
            );
            return Err(response.violation(observed));
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
            let observed = format!("an answer while the task has the status {status}");
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
            "every task was over before anybody could wait for it",
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
                Err(end.violation(format!("the status is {status}, and the tool has failed")))
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
                Err(failed.violation("a task has failed, and does not say why"))
            };
        }
    }
    Err(NotPassed::not_tested("no task has failed"))
}

pub(super) async fn extension_is_for_later(ctx: &CheckContext) -> Outcome {
    ctx.task_runs().await?;
    let mut session = ctx.uninitialized_session().await?;
    session.request_builder.capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
    session
        .initialize_session()
        .await
        .map_err(NotPassed::as_not_tested)?;
    let calls = ctx.safe_calls().await?;
    let able = calls.into_iter().filter(|call| supports_tasks(call));
    let Some(call) = quickest(ctx, able).await else {
        return Err(NotPassed::not_tested("no tool can become a task or not"));
    };
    let response = call_tool(&session, call, call.params()).await?;
    match task_id(&response) {
        Some(_) => Err(response.violation("a task that the call has not asked for")),
        None => response.evidence(),
    }
}

async fn begin(
    session: &Session,
    call: &SafeCall,
) -> Result<crate::session::ProbeResponse, NotPassed> {
    task_runs::start_task(session, call, &next_progress_token()).await
}

/// Returns the call that took the least when it was tried; the first if none was.
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
        Some(_) => "a result that is not that of the tool",
        None => "an error",
    }
}
