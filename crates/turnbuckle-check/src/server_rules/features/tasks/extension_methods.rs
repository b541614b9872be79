//! Methods of the tasks extension.

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{
        task_runs::{self, TaskRuns, task_id},
        tool_runs::next_progress_token,
    },
    session::ProbeResponse,
};

pub(super) async fn result_types(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let mut responses: Vec<_> = task_runs
        .require_any()?
        .iter()
        .flat_map(|run| run.gets.clone())
        .collect();
    responses.extend(acknowledgements(ctx, task_runs).await?);
    for response in &responses {
        let kind = &response.value["result"]["resultType"];
        if kind.is_string() && kind != "complete" {
            let violation = response.violation(format!("the `resultType` is {kind}"));
            return Err(match method(ctx, response).as_deref() {
                Some("tasks/update") => violation.for_requirement("ext-tasks.result-type.update"),
                Some("tasks/cancel") => violation.for_requirement("ext-tasks.result-type.cancel"),
                _ => violation,
            });
        }
    }
    Evidence::from_entries(responses.iter().flat_map(ProbeResponse::entries).take(4))
}

pub(super) async fn acknowledged(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let responses = acknowledgements(ctx, task_runs).await?;
    for response in &responses {
        let Some(result) = response.value["result"].as_object() else {
            continue;
        };
        let mut fields = result
            .keys()
            .filter(|key| *key != "resultType" && *key != "_meta");
        if let Some(field) = fields.next() {
            let observed = format!("`{field}` in a result that should be empty");
            let violation = response.violation(observed);
            return Err(match method(ctx, response).as_deref() {
                Some("tasks/cancel") => violation.for_requirement("ext-tasks.cancel.ack"),
                _ => violation,
            });
        }
    }
    Evidence::from_entries(responses.iter().flat_map(ProbeResponse::entries).take(4))
}

pub(super) async fn surplus_responses(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let Some(run) = task_runs.require_any()?.first() else {
        return Err(NotPassed::not_tested("no call became a task"));
    };
    let responses = json!({ "check_not_requested": { "action": "decline" } });
    let params = json!({ "taskId": run.id, "inputResponses": responses });
    let response = task_runs
        .session
        .request("tasks/update", params)
        .await
        .map_err(NotPassed::into_not_tested)?;
    response.result()?;
    response.evidence()
}

pub(super) async fn methods_undeclared(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    task_runs::require_tasks(session)?;
    let id = any_task_id(ctx.task_runs().await?);
    let mut evidence = Vec::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut params = json!({ "taskId": id });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        let response = session
            .request(method, params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        evidence.extend(response.expect_error(&[-32021])?.entries);
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn listen_undeclared(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    task_runs::require_tasks(session)?;
    let id = any_task_id(ctx.task_runs().await?);
    let params = json!({ "notifications": { "taskIds": [id] } });
    let pending = session.send_request("subscriptions/listen", params).await?;
    let sent = pending.sent;
    match session
        .wait_response_within(pending, ctx.pace.quiet_period() * 4)
        .await
    {
        Ok(response) => response.expect_error(&[-32021]),
        Err(NotPassed::Violation { entries, .. }) => {
            let observed = "the server does not reject the subscription to a task";
            Err(NotPassed::violation(
                observed,
                sent.into_iter().chain(entries),
            ))
        }
        Err(other) => Err(other),
    }
}

pub(super) async fn methods_removed(ctx: &CheckContext) -> Outcome {
    let session = &ctx.task_runs().await?.session;
    let mut evidence = Vec::new();
    for (method, params) in [
        ("tasks/result", json!({ "taskId": "check" })),
        ("tasks/list", json!({})),
    ] {
        let response = session
            .request(method, params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        match response.value.get("result") {
            Some(_) => return Err(response.violation(format!("a result of `{method}`"))),
            // The rule about unknown methods checks the error code.
            None => evidence.extend(response.entries()),
        }
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn capability_removed(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let opening = session.opening.as_ref();
    let opening = opening
        .ok_or_else(|| NotPassed::not_tested("the server did not respond to `server/discover`"))?;
    match opening.value["result"]["capabilities"].get("tasks") {
        Some(_) => Err(opening.violation("the capability `tasks`")),
        None => opening.evidence(),
    }
}

/// Cancels a task, and returns all acknowledgements so far.
async fn acknowledgements(
    ctx: &CheckContext,
    task_runs: &TaskRuns,
) -> Result<Vec<ProbeResponse>, NotPassed> {
    let mut responses: Vec<_> = task_runs
        .require_any()?
        .iter()
        .flat_map(|run| run.updates.clone())
        .collect();
    let created = task_runs::start_task(
        &task_runs.session,
        &task_runs.all[0].call,
        &next_progress_token(),
    )
    .await?;
    if let Some(id) = task_id(&created) {
        let params = json!({ "taskId": id });
        responses.push(
            task_runs
                .session
                .request("tasks/cancel", params)
                .await
                .map_err(NotPassed::into_not_tested)?,
        );
        sleep(ctx.pace.quiet_period()).await;
    }
    responses.retain(|response| response.value.get("result").is_some());
    if responses.is_empty() {
        Err(NotPassed::not_tested("the server acknowledged no request"))
    } else {
        Ok(responses)
    }
}

/// Returns the method of the request that a response belongs to.
fn method(ctx: &CheckContext, response: &ProbeResponse) -> Option<String> {
    let request = ctx.transcript.entry(response.sent?).json()?;
    request["method"].as_str().map(str::to_owned)
}

fn any_task_id(task_runs: &TaskRuns) -> Value {
    task_runs
        .all
        .first()
        .map_or("check-no-such-task".into(), |run| run.id.clone().into())
}
