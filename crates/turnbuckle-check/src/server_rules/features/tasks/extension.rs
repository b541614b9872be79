//! Tasks that a server makes of calls by itself.

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
    // Neither the parameter nor the capability of the revision before says anything here.
    let task_runs = ctx.task_runs().await?;
    let mut old = ctx.uninitialized_session().await?;
    old.request_builder.capabilities["tasks"] = json!({ "requests": { "tools": { "call": {} } } });
    old.initialize_session()
        .await
        .map_err(NotPassed::as_not_tested)?;
    if let Some(run) = task_runs.all.first() {
        let mut params = run.call.params();
        params["task"] = json!({ "ttl": 60_000 });
        responses.push(
            call_tool(&old, &run.call, params)
                .await
                .map_err(NotPassed::as_not_tested)?,
        );
    }
    for response in &responses {
        if response.value["result"]["resultType"] == "task" {
            return Err(
                response.violation("a task for a request that does not declare the extension")
            );
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
        // What was called before need not be called again.
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
        "every call that became a task can be done without",
    ))
}

pub(super) async fn found_at_once(ctx: &CheckContext) -> Outcome {
    let task_runs = ctx.task_runs().await?.require_any()?;
    for run in task_runs {
        let Some(get) = run.gets.first() else {
            continue;
        };
        if get.value.get("error").is_some() {
            let observed = format!("{} for a task that was just made", get.describe());
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
        // What a plain call of the same tool brings tells what the task ought to.
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
            Err(end
                .violation("the task of a tool that fails in a result has the status \"failed\""))
        } else {
            end.evidence()
        };
    }
    Err(NotPassed::not_tested("no tool failed as a task"))
}

pub(super) async fn client_requests(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in ctx.task_runs().await?.require_any()? {
        let mut responded = HashSet::new();
        for get in &run.gets {
            let task = &get.value["result"];
            if task["status"] != "input_required" {
                continue;
            }
            let asked = task["inputRequests"].as_object();
            let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
                return Err(get.violation("a task waits for input and does not say for what"));
            };
            for (key, request) in asked {
                responded.insert((key.clone(), request.to_string()));
                let same_key = responded.iter().filter(|(other, _)| other == key);
                if same_key.count() > 1 {
                    return Err(get.violation(format!("the key {key:?} stands for two questions")));
                }
            }
            evidence.extend(get.entries());
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no task asked anything"))
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
            if logged || reported || related(&message.value) {
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

fn related(message: &Value) -> bool {
    message.get("method").is_some() && message["params"]["_meta"].get(RELATED_TASK_KEY).is_some()
}
