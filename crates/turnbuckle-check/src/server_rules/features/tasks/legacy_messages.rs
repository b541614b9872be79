//! Tasks that the client requests in 2025-11-25: related messages, lists and cancellation.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
        transcript_query::{is_same_session, messages_within, received},
    },
    probe::{
        task_runs::{self, RELATED_TASK_KEY, TaskRun, TaskRuns, is_terminal, task_id},
        tool_runs::next_progress_token,
    },
};

/// The maximum number of pages that are read.
const MAX_PAGES: usize = 50;

pub(super) async fn result_related(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        // An error lacks `_meta`.
        let response = run
            .result
            .as_ref()
            .filter(|response| response.value.get("result").is_some());
        let Some(response) = response else { continue };
        let named = &response.value["result"]["_meta"][RELATED_TASK_KEY]["taskId"];
        if *named != json!(run.id) {
            return Err(response.violation(format!("`_meta` references the task {named}")));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence.into_iter().take(2))
}

pub(super) async fn messages_related(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        for message in messages_within(&ctx.transcript, Direction::Received, run.span.clone()) {
            let params = &message.value["params"];
            let sent = run.created.sent;
            if !sent.is_none_or(|sent| is_same_session(&ctx.transcript, sent, message.at)) {
                continue;
            }
            // A server may also request roots at the start of a session, without a task.
            let is_client_request = ["elicitation/create", "sampling/createMessage"]
                .iter()
                .any(|method| message.value["method"] == *method);
            let reported = params["progressToken"] == run.token;
            if message.value.get("method").is_none() || !(is_client_request || reported) {
                continue;
            }
            let named = &params["_meta"][RELATED_TASK_KEY]["taskId"];
            if *named != json!(run.id) {
                let observed = format!("{} references the task {named}", message.value["method"]);
                let violation = NotPassed::violation(observed, [message.at]);
                return Err(if is_client_request {
                    violation.for_requirement("tasks.input.related")
                } else {
                    violation.for_requirement("tasks.related.all")
                });
            }
            evidence.push(message.at);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no task sent requests or progress"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

pub(super) async fn methods_unrelated(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    for get in task_runs.iter().flat_map(|run| &run.gets) {
        if get.value["result"]["_meta"].get(RELATED_TASK_KEY).is_some() {
            return Err(get.violation("the result of `tasks/get` repeats the task id in `_meta`"));
        }
    }
    for message in received(&ctx.transcript, "notifications/tasks/status") {
        if message.value["params"]["_meta"]
            .get(RELATED_TASK_KEY)
            .is_some()
        {
            let observed = "a status notification repeats the task id in `_meta`";
            let violation = NotPassed::violation(observed, [message.at]);
            return Err(violation.for_requirement("tasks.notify.no-related"));
        }
    }
    Evidence::from_entries(
        task_runs
            .iter()
            .flat_map(|run| &run.gets)
            .filter_map(|get| get.received)
            .take(3),
    )
}

pub(super) async fn parameter_wins(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let run = &task_runs.require_any()?[0];
    let other = task_runs
        .all
        .last()
        .map_or("check-no-such-task", |run| run.id.as_str());
    let params = json!({ "taskId": run.id, "_meta": { RELATED_TASK_KEY: { "taskId": other } } });
    let response = task_runs
        .session
        .request("tasks/get", params)
        .await
        .map_err(NotPassed::into_not_tested)?;
    let found = &response.result().map_err(NotPassed::into_not_tested)?["taskId"];
    if *found == json!(run.id) {
        response.evidence()
    } else {
        Err(response.violation(format!("the task {found} instead of {:?}", run.id)))
    }
}

pub(super) async fn progress_ends(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        let progress = |at: &usize| {
            ctx.transcript
                .entry(*at)
                .json()
                .is_some_and(|it| is_progress(&it, run))
        };
        let reports: Vec<_> = run.span.clone().filter(progress).collect();
        let finished = run.result.as_ref().and_then(|response| response.received);
        if let (Some(finished), Some(&last)) = (finished, reports.last()) {
            // Two HTTP streams are read in any order.
            if ctx.transcript.entry(last).channel != ctx.transcript.entry(finished).channel {
                continue;
            }
            if last > finished {
                return Err(NotPassed::violation(
                    "progress for a finished task",
                    [finished, last],
                ));
            }
            evidence.extend([last, finished]);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no task reported progress"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(2))
    }
}

pub(super) async fn get_is_no_stream(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    let gets: Vec<_> = task_runs.iter().flat_map(|run| &run.gets).collect();
    for get in &gets {
        let kind = get.header("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return Err(get.violation("the response to `tasks/get` is a stream"));
        }
    }
    Evidence::from_entries(gets.iter().flat_map(|get| get.entries()).take(2))
}

pub(super) async fn list(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    ctx.capability("/tasks/list").await?;
    let mut missing: HashSet<&str> = task_runs
        .require_any()?
        .iter()
        .map(|run| run.id.as_str())
        .collect();
    let (mut params, mut evidence) = (json!({}), Vec::new());
    for _ in 0..MAX_PAGES {
        let response = task_runs
            .session
            .request("tasks/list", params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        let result = response.result()?;
        let listed = result["tasks"].as_array().into_iter().flatten();
        listed
            .filter_map(|task| task["taskId"].as_str())
            .for_each(|id| {
                missing.remove(id);
            });
        evidence.extend(response.entries());
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    // A task may have been removed since; then `tasks/get` does not return it either.
    for id in missing {
        let get = task_runs
            .session
            .request("tasks/get", json!({ "taskId": id }))
            .await
            .map_err(NotPassed::into_not_tested)?;
        if get.value.get("result").is_some() {
            let observed = format!("the task {id:?} exists, but is not listed");
            let entries = evidence.into_iter().chain(get.entries());
            return Err(
                NotPassed::violation(observed, entries).for_requirement("tasks.list.complete")
            );
        }
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn list_cursor(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    ctx.capability("/tasks/list").await?;
    let params = json!({ "cursor": "check-no-such-cursor" });
    let response = task_runs
        .session
        .request("tasks/list", params)
        .await
        .map_err(NotPassed::into_not_tested)?;
    response.expect_error(&[-32602])
}

fn is_progress(message: &Value, run: &TaskRun) -> bool {
    message["method"] == "notifications/progress" && message["params"]["progressToken"] == run.token
}

/// A task id that no server issued.
const UNKNOWN_TASK: &str = "check-no-such-task";

pub(super) async fn unknown_id(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let mut methods = vec!["tasks/get"];
    if task_runs.session.request_builder.has_handshake() {
        methods.push("tasks/result");
        if ctx.capability("/tasks/cancel").await.is_ok() {
            methods.push("tasks/cancel");
        }
    }
    check_rejected(task_runs, &methods).await
}

pub(super) async fn unknown_id_elsewhere(ctx: &CheckContext) -> Outcome {
    check_rejected(ctx.task_runs().await?, &["tasks/update", "tasks/cancel"]).await
}

pub(super) async fn cancel_finished(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    ctx.capability("/tasks/cancel").await?;
    let Some(run) = task_runs
        .require_any()?
        .iter()
        .find(|run| run.end().is_some())
    else {
        return Err(NotPassed::not_tested("no task finished"));
    };
    let response = task_runs
        .session
        .request("tasks/cancel", json!({ "taskId": run.id }))
        .await
        .map_err(NotPassed::into_not_tested)?;
    response.expect_error(&[-32602])
}

pub(super) async fn cancel(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    ctx.capability("/tasks/cancel").await?;
    let was_running = |run: &&TaskRun| {
        run.gets
            .first()
            .is_some_and(|get| !is_terminal(&get.value["result"]))
    };
    let Some(run) = task_runs.require_any()?.iter().find(was_running) else {
        return Err(NotPassed::not_tested(
            "every task finished before it could be cancelled",
        ));
    };
    let created =
        task_runs::start_task(&task_runs.session, &run.call, &next_progress_token()).await?;
    let Some(id) = task_id(&created) else {
        return Err(NotPassed::not_tested(
            "the second run of the call did not become a task",
        ));
    };
    let response = task_runs
        .session
        .request("tasks/cancel", json!({ "taskId": id }))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let Some(result) = response.value.get("result") else {
        return Err(NotPassed::not_tested(format!(
            "the server returned {}",
            response.describe()
        )));
    };
    if result["status"].is_string() && result["status"] != "cancelled" {
        let observed = format!(
            "status {} in the response to the cancellation",
            result["status"]
        );
        return Err(response.violation(observed));
    }
    // Give work that was not stopped time to finish.
    sleep(ctx.pace.quiet_period() * 3).await;
    let later = task_runs
        .session
        .request("tasks/get", json!({ "taskId": id }))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let status = &later.value["result"]["status"];
    if status.is_string() && status != "cancelled" {
        let observed = format!("status {status} after the cancellation");
        let entries = response.entries().chain(later.entries());
        return Err(NotPassed::violation(observed, entries).for_requirement("tasks.cancel.final"));
    }
    Evidence::from_entries(response.entries().chain(later.entries()))
}

async fn check_rejected(task_runs: &TaskRuns, methods: &[&str]) -> Outcome {
    let mut evidence = Vec::new();
    for method in methods {
        let mut params = json!({ "taskId": UNKNOWN_TASK });
        if *method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        let response = task_runs
            .session
            .request(method, params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        evidence.extend(response.expect_error(&[-32602])?.entries);
    }
    Evidence::from_entries(evidence)
}
