//! What goes along with calls: cancellation, progress, tasks.

use serde_json::Value;

use crate::client::Scene;
use crate::client::take::{Said, Take, Takes, every};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.cancellation.own-request", Area::Cancellation, &[
        "cancellation.request-id",
        "cancellation.reference.direction",
        "cancellation.reference.client-issued",
    ])
    .says("Only requests of one's own are cancelled, by their ids.")
    .cure("Put the id of the request, as you sent it, into `requestId`.")
    .watch(&[], own_request),
    Rule::client("client.progress.token-type", Area::Progress, &["progress.token.type"])
        .says("A progress token is a string or an integer.")
        .cure("Use the id of the request, or a counter, as the token.")
        .watch(&[], token_type),
    Rule::client("client.progress.token-unique", Area::Progress, &["progress.token.unique"])
        .says("No two requests that run at the same time have the same progress token.")
        .cure("Use the id of the request, or a counter, as the token.")
        .watch(&[], token_unique),
    Rule::client("client.tasks.required", Area::Tasks, &["tasks.tool.required-client"])
        .says("A tool that runs only as a task is called as one.")
        .cure("Add `task` to the call when the tool's `execution.taskSupport` is `required`.")
        .watch(&[], task_required),
    Rule::client("client.tasks.not-allowed", Area::Tasks, &[
        "tasks.tool.forbidden-client",
        "tasks.tool.no-server-capability",
    ])
    .says("A tool that does not run as a task is not called as one.")
    .cure("Add `task` to a call only when the server declares tasks and the tool's `execution.taskSupport` is `optional` or `required`.")
    .watch(&[Scene::Bare], task_not_allowed),
];

fn own_request(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for take in takes.all() {
        let cancels = |said: &&Said| said.method() == Some("notifications/cancelled");
        for cancel in take.said().iter().filter(cancels) {
            let id = &cancel.params()["requestId"];
            let own = take
                .requests()
                .find(|said| said.number < cancel.number && said.id() == Some(id));
            match own {
                Some(request) => seen.extend([request.number, cancel.number]),
                None => {
                    let what = format!("the client made no request with the id {id}");
                    return Err(Unmet::broken(what, [cancel.number]));
                }
            }
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable(
            "the client cancels nothing by notification",
        )),
        false => Seen::at(seen.into_iter().take(4)),
    }
}

fn with_token(takes: &Takes) -> impl Iterator<Item = &Said> {
    takes.requests().filter(|said| token(said).is_some())
}

fn token(said: &Said) -> Option<&Value> {
    said.params().get("_meta")?.get("progressToken")
}

fn token_type(takes: &Takes) -> Outcome {
    if with_token(takes).next().is_none() {
        return Err(Unmet::not_applicable(
            "the client wants to hear of no progress",
        ));
    }
    every(with_token(takes), "", |said| {
        let token = token(said)?;
        let right = token.is_string() || token.is_i64() || token.is_u64();
        (!right).then(|| format!("the token is {token}"))
    })
}

fn token_unique(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for take in takes.all() {
        let requests: Vec<_> = take
            .requests()
            .filter(|said| token(said).is_some())
            .collect();
        for (at, said) in requests.iter().enumerate() {
            let twin = requests[..at].iter().find(|other| {
                token(other) == token(said)
                    && other.id() != said.id()
                    && said.is_beside(other)
                    && is_active(take, other, said.number)
            });
            if let Some(twin) = twin {
                let what = format!(
                    "two requests have the token {}",
                    said.params()["_meta"]["progressToken"]
                );
                return Err(Unmet::broken(what, [twin.number, said.number]));
            }
            seen.push(said.number);
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable(
            "the client wants to hear of no progress",
        )),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

/// Says whether a request is being answered when something else is said.
fn is_active(take: &Take, request: &Said, then: usize) -> bool {
    let cancelled = take.said().iter().any(|said| {
        said.method() == Some("notifications/cancelled")
            && said.number < then
            && said.params().get("requestId") == request.id()
    });
    match take.answer(request) {
        Some((answered, _)) => answered > then && !cancelled,
        // On HTTP it may have been given up by closing its stream.
        None => request.head.is_none() && !cancelled,
    }
}

fn calls<'a>(takes: &'a Takes, tool: &'a str) -> impl Iterator<Item = &'a Said> {
    takes
        .requests()
        .filter(move |said| said.method() == Some("tools/call") && said.params()["name"] == tool)
}

fn task_required(takes: &Takes) -> Outcome {
    every(
        calls(takes, "later"),
        "the client did not call the tool `later`",
        |said| {
            let plain = said.params().get("task").is_none();
            plain.then(|| "the tool was not called as a task".to_owned())
        },
    )
}

fn task_not_allowed(takes: &Takes) -> Outcome {
    let others = takes
        .requests()
        .filter(|said| said.method() == Some("tools/call") && said.params()["name"] != "later");
    every(others, "the client called no such tool", |said| {
        let task = said.params().get("task").is_some();
        task.then(|| "the tool was called as a task".to_owned())
    })
}
