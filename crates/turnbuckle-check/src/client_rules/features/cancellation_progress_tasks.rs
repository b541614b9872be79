//! Cancellation, progress and tasks.

use serde_json::Value;

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns, check_each},
    },
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.cancellation.own-request", Area::Cancellation, &[
        "cancellation.request-id",
        "cancellation.reference.direction",
        "cancellation.reference.client-issued",
    ])
    .requirement("`notifications/cancelled` references a request that the client sent.")
    .hint("Set `requestId` to the id of the request, unchanged.")
    .scenarios(&[], own_request),
    Rule::client("client.progress.token-type", Area::Progress, &["progress.token.type"])
        .requirement("A progress token is a string or an integer.")
        .hint("Use the request id or a counter as the token.")
        .scenarios(&[], token_type),
    Rule::client("client.progress.token-unique", Area::Progress, &["progress.token.unique"])
        .requirement("Progress tokens are unique among requests in flight.")
        .hint("Use the request id or a counter as the token.")
        .scenarios(&[], token_unique),
    Rule::client("client.tasks.required", Area::Tasks, &["tasks.tool.required-client"])
        .requirement("A tool with `taskSupport` `required` is called as a task.")
        .hint("Add `task` to the call if the tool's `execution.taskSupport` is `required`.")
        .scenarios(&[], task_required),
    Rule::client("client.tasks.not-allowed", Area::Tasks, &[
        "tasks.tool.forbidden-client",
        "tasks.tool.no-server-capability",
    ])
    .requirement("A tool without task support is not called as a task.")
    .hint("Add `task` only if the server declares tasks and the tool's `execution.taskSupport` is `optional` or `required`.")
    .scenarios(&[Scenario::ToolsOnly], task_not_allowed),
];

fn own_request(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for run in runs.all() {
        let cancels =
            |message: &&ClientMessage| message.method() == Some("notifications/cancelled");
        for cancel in run.messages().iter().filter(cancels) {
            let id = &cancel.params()["requestId"];
            let own = run
                .requests()
                .find(|message| message.number < cancel.number && message.id() == Some(id));
            match own {
                Some(request) => evidence.extend([request.number, cancel.number]),
                None => {
                    let observed = format!("the client sent no request with the id {id}");
                    let violation = NotPassed::violation(observed, [cancel.number]);
                    return Err(if id.is_null() {
                        violation
                    } else if runs.revision.is_stateless() {
                        violation.for_requirement("cancellation.reference.client-issued")
                    } else {
                        violation.for_requirement("cancellation.reference.direction")
                    });
                }
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "the client sends no cancellation",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(4))
    }
}

fn with_token(runs: &ScenarioRuns) -> impl Iterator<Item = &ClientMessage> {
    runs.requests().filter(|message| token(message).is_some())
}

fn token(message: &ClientMessage) -> Option<&Value> {
    message.params().get("_meta")?.get("progressToken")
}

fn token_type(runs: &ScenarioRuns) -> Outcome {
    if with_token(runs).next().is_none() {
        return Err(NotPassed::not_applicable("the client requests no progress"));
    }
    check_each(with_token(runs), "", |message| {
        let token = token(message)?;
        let is_valid = token.is_string() || token.is_i64() || token.is_u64();
        (!is_valid).then(|| format!("the token is {token}"))
    })
}

fn token_unique(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for run in runs.all() {
        let requests: Vec<_> = run
            .requests()
            .filter(|message| token(message).is_some())
            .collect();
        for (at, message) in requests.iter().enumerate() {
            let duplicate = requests[..at].iter().find(|other| {
                token(other) == token(message)
                    && other.id() != message.id()
                    && message.is_same_server(other)
                    && is_active(run, other, message.number)
            });
            if let Some(duplicate) = duplicate {
                let observed = format!(
                    "two requests have the token {}",
                    message.params()["_meta"]["progressToken"]
                );
                return Err(NotPassed::violation(
                    observed,
                    [duplicate.number, message.number],
                ));
            }
            evidence.push(message.number);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("the client requests no progress"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Returns whether a request is in flight at an entry.
fn is_active(run: &ScenarioRun, request: &ClientMessage, then: usize) -> bool {
    let cancelled = run.messages().iter().any(|message| {
        message.method() == Some("notifications/cancelled")
            && message.number < then
            && message.params().get("requestId") == request.id()
    });
    match run.response_to(request) {
        Some((responded_at, _)) => responded_at > then && !cancelled,
        // On HTTP it may have been cancelled by closing its stream.
        None => request.head.is_none() && !cancelled,
    }
}

fn calls<'a>(runs: &'a ScenarioRuns, tool: &'a str) -> impl Iterator<Item = &'a ClientMessage> {
    runs.requests().filter(move |message| {
        message.method() == Some("tools/call") && message.params()["name"] == tool
    })
}

fn task_required(runs: &ScenarioRuns) -> Outcome {
    check_each(
        calls(runs, "later"),
        "the client did not call the tool `later`",
        |message| {
            let plain = message.params().get("task").is_none();
            plain.then(|| "the tool was not called as a task".to_owned())
        },
    )
}

fn task_not_allowed(runs: &ScenarioRuns) -> Outcome {
    let others = runs.requests().filter(|message| {
        message.method() == Some("tools/call") && message.params()["name"] != "later"
    });
    check_each(others, "the client called no such tool", |message| {
        let task = message.params().get("task").is_some();
        task.then(|| "the tool was called as a task".to_owned())
    })
}
