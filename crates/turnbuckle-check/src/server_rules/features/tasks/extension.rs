//! Tasks that the server creates with the extension of 2026-07-28.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
        transcript_query::{is_same_session, messages_within},
    },
    probe::{
        task_runs::{self, RELATED_TASK_KEY, TASKS_EXTENSION},
        tool_runs::call_tool,
    },
    session::ProbeResponse,
};

pub(super) async fn undeclared_extension(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    task_runs::require_tasks(session)?;
    let tool_runs = ctx.tool_runs().await?;
    let mut responses: Vec<_> = tool_runs
        .runs
        .iter()
        .flat_map(|run| run.responses.clone())
        .collect();
    // The parameter and the capability of the previous revision have no effect here.
    let task_runs = ctx.task_runs().await?;
    let mut old_session = ctx.uninitialized_session().await?;
    old_session.request_builder.capabilities["tasks"] =
        json!({ "requests": { "tools": { "call": {} } } });
    old_session
        .initialize_session()
        .await
        .map_err(NotPassed::into_not_tested)?;
    if let Some(run) = task_runs.all.first() {
        let mut params = run.call.params();
        params["task"] = json!({ "ttl": 60_000 });
        responses.push(
            call_tool(&old_session, &run.call, params)
                .await
                .map_err(NotPassed::into_not_tested)?,
        );
    }
    let is_old_client = |response: &ProbeResponse| {
        let sent = response.sent.map(|sent| ctx.transcript.entry(sent));
        let request = sent.and_then(|entry| entry.json()).unwrap_or_default();
        request["params"].get("task").is_some()
    };
    for response in &responses {
        if response.value["result"]["resultType"] == "task" {
            let violation =
                response.violation("a task for a request that does not declare the extension");
            return Err(if is_old_client(response) {
                violation.for_requirement("ext-tasks.legacy.old-client")
            } else {
                violation
            });
        }
    }
    let last = responses.last().map(ProbeResponse::entries);
    Evidence::from_entries(last.into_iter().flatten())
}

pub(super) async fn needs_extension(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    task_runs::require_tasks(session)?;
    let task_runs = ctx.task_runs().await?;
    let tool_runs = ctx.tool_runs().await.ok();
    for run in task_runs.require_any()? {
        // Reuse the response of an earlier plain call.
        let plain = tool_runs.and_then(|tool_runs| {
            let mut plain_runs = tool_runs.runs.iter();
            let plain_run = plain_runs.find(|plain| plain.call.name == run.call.name)?;
            plain_run.responses.last().cloned()
        });
        let response = match plain {
            Some(response) => response,
            None => call_tool(session, &run.call, run.call.params()).await?,
        };
        if response.error().ok() == Some(-32021) {
            let required = &response.value["error"]["data"]["requiredCapabilities"];
            return if required["extensions"].get(TASKS_EXTENSION).is_some() {
                response.evidence()
            } else {
                Err(response.violation(format!("`requiredCapabilities` is {required}")))
            };
        }
    }
    Err(NotPassed::not_applicable(
        "every call that became a task also works as a plain call",
    ))
}

pub(super) async fn found_immediately(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    for run in task_runs {
        let Some(get) = run.gets.first() else {
            continue;
        };
        if get.value.get("error").is_some() {
            let observed = format!("{} for a new task", get.describe());
            return Err(NotPassed::violation(
                observed,
                run.created.entries().chain(get.entries()),
            ));
        }
    }
    let first = task_runs.iter().find_map(|run| run.gets.first());
    Evidence::from_entries(first.into_iter().flat_map(ProbeResponse::entries))
}

pub(super) async fn outcome(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?;
    let tool_runs = ctx.tool_runs().await?;
    for run in task_runs.require_any()? {
        // A plain call of the same tool shows the expected outcome of the task.
        let plain = tool_runs
            .runs
            .iter()
            .find(|plain| plain.call.name == run.call.name);
        let plain = plain.and_then(|plain| plain.responses.last());
        let fails =
            plain.is_some_and(|response| response.value["result"]["isError"] == Value::Bool(true));
        let (true, Some(end)) = (fails, run.end()) else {
            continue;
        };
        let status = &end.value["result"]["status"];
        return if status == "failed" {
            let violation = end.violation("status \"failed\" for a task with a tool result");
            Err(violation.for_requirement("ext-tasks.status.tool-error-completed"))
        } else {
            end.evidence()
        };
    }
    Err(NotPassed::not_tested("no tool failed as a task"))
}

pub(super) async fn client_requests(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        let mut requested = HashSet::new();
        for get in &run.gets {
            let task = &get.value["result"];
            if task["status"] != "input_required" {
                continue;
            }
            let input_requests = task["inputRequests"].as_object();
            let Some(input_requests) = input_requests.filter(|requests| !requests.is_empty())
            else {
                return Err(
                    get.violation("a task with status \"input_required\" without input requests")
                );
            };
            for (key, request) in input_requests {
                requested.insert((key.clone(), request.to_string()));
                let same_key = requested.iter().filter(|(other, _)| other == key);
                if same_key.count() > 1 {
                    let observed = format!("the key {key:?} has two different input requests");
                    let violation = get.violation(observed);
                    return Err(violation.for_requirement("ext-tasks.input.key-unique"));
                }
            }
            evidence.extend(get.entries());
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no task requested input"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(2))
    }
}

pub(super) async fn no_progress(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    for run in task_runs {
        let created = run.created.received.unwrap_or_default();
        for message in messages_within(&ctx.transcript, Direction::Received, created..run.span.end)
        {
            let sent = run.created.sent;
            if !sent.is_none_or(|sent| is_same_session(&ctx.transcript, sent, message.at)) {
                continue;
            }
            let method = &message.value["method"];
            let logged = method == "notifications/message";
            let reported = message.value["params"]["progressToken"] == run.token;
            if logged || reported || is_task_related(&message.value) {
                let observed = format!("{method} for a task");
                return Err(NotPassed::violation(observed, [created, message.at]));
            }
        }
    }
    Evidence::from_entries(
        task_runs
            .iter()
            .filter_map(|run| run.created.received)
            .take(3),
    )
}

fn is_task_related(message: &Value) -> bool {
    message.get("method").is_some() && message["params"]["_meta"].get(RELATED_TASK_KEY).is_some()
}
