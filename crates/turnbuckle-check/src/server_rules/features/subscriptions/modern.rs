//! Requests that stay open to hear of changes.

use serde_json::{Value, json};

use super::{ACKNOWLEDGED, CHANGES, UPDATED};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
        transcript_query::{TranscriptMessage, messages, received, response_to},
    },
    probe::tool_runs::{ListenRequest, SUBSCRIPTION_ID_KEY, ToolRun, ToolRuns},
};

pub(super) async fn acknowledged_first(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for listening in listening(ctx.tool_runs().await?)? {
        let stream = listening.stream(ctx);
        let Some(first) = stream.first() else {
            let astray = acknowledgements(ctx).len();
            return Err(match astray {
                0 => NotPassed::violation("no acknowledgement", listening.sent(ctx)),
                _ => NotPassed::not_tested("the acknowledgement bears another id"),
            });
        };
        if first.value["method"] != ACKNOWLEDGED {
            let observed = match first.value.get("error") {
                Some(error) => format!("the error {} instead of an acknowledgement", error["code"]),
                None => format!("{} before the acknowledgement", name(first)),
            };
            return Err(NotPassed::violation(
                observed,
                listening.sent(ctx).into_iter().chain([first.at]),
            ));
        }
        evidence.push(first.at);
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn acknowledges_subset(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for listening in listening(ctx.tool_runs().await?)? {
        let stream = listening.stream(ctx);
        let acknowledgement = stream.iter().find(|it| it.value["method"] == ACKNOWLEDGED);
        let Some(acknowledgement) = acknowledgement else {
            return Err(NotPassed::not_tested("there is no acknowledgement"));
        };
        let Some(promised) = acknowledgement.value["params"]["notifications"].as_object() else {
            return Err(NotPassed::not_tested(
                "the acknowledgement does not say of what",
            ));
        };
        for (kind, value) in promised {
            if !is_part(value, &listening.filter[kind]) {
                let observed =
                    format!("`{kind}` is acknowledged as {value}, which was not asked for");
                return Err(NotPassed::violation(observed, [acknowledgement.at]));
            }
        }
        evidence.extend(listening.sent(ctx));
        evidence.push(acknowledgement.at);
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn tagged(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let listening = listening(tool_runs)?;
    let of_streams: Vec<_> = if tool_runs.session.http().is_ok() {
        listening
            .iter()
            .flat_map(|it| with_id(&it.id, it.stream(ctx)))
            .collect()
    } else {
        // On a line only the id tells to whom a change is told.
        let told = messages(&ctx.transcript, Direction::Received).filter(|it| is_change(&it.value));
        told.map(|message| (Value::Null, message)).collect()
    };
    let ids = sent_ids(ctx);
    let mut evidence = Vec::new();
    for (id, message) in of_streams {
        let tag = &message.value["params"]["_meta"][SUBSCRIPTION_ID_KEY];
        let right = match &id {
            Value::Null => ids.contains(tag),
            id => tag == id,
        };
        if !right {
            let observed = match tag {
                Value::Null => format!("{} without the id of the subscription", name(&message)),
                tag => format!(
                    "{} with the id {tag}, which is that of no such request",
                    name(&message)
                ),
            };
            return Err(NotPassed::violation(observed, [message.at]));
        }
        evidence.push(message.at);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

pub(super) async fn only_asked(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let mut changes = Vec::new();
    for listening in listening(tool_runs)? {
        for message in listening.stream(ctx) {
            let method = message.value["method"].as_str().unwrap_or(ACKNOWLEDGED);
            if !lets_through(&listening.filter, method, &message.value) {
                let observed = format!("`{method}` for the filter {}", listening.filter);
                return Err(NotPassed::violation(
                    observed,
                    listening.sent(ctx).into_iter().chain([message.at]),
                ));
            }
            if method != ACKNOWLEDGED {
                changes.push(message.at);
            }
        }
    }
    if changes.is_empty() {
        Err(tool_runs.none("tells of a change"))
    } else {
        Evidence::from_entries(changes)
    }
}

pub(super) async fn stops(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let filter = listening(tool_runs)?[0].filter.clone();
    let relevant_headers = tool_runs.runs.iter().find(|run| {
        let told = CHANGES
            .iter()
            .any(|(method, ..)| !run.notifications(ctx, method).is_empty());
        told || !run.notifications(ctx, UPDATED).is_empty()
    });
    let Some(relevant_headers) = relevant_headers else {
        return Err(tool_runs.none("tells of a change"));
    };
    let session = ctx.new_session().await?;
    let id = json!("check-stops");
    let listening = ListenRequest::open(ctx, &session, id.clone(), filter).await?;
    session
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await?;
    // A request that is answered shows that the cancellation was read.
    session
        .request("server/discover", json!({}))
        .await
        .map_err(NotPassed::as_not_tested)?;
    let before = listening.stream(ctx).len();
    let again = ToolRun::run(ctx, &session, &relevant_headers.call, json!({})).await;
    session.listen(ctx.options.quiet_period).await;
    match listening.stream(ctx).get(before) {
        Some(message) if message.value.get("method").is_some() => {
            let observed = format!("{} after the subscription was cancelled", name(message));
            Err(NotPassed::violation(observed, [message.at]))
        }
        _ => {
            // Of a call that came to nothing, silence tells nothing.
            again.response()?;
            Evidence::from_entries(listening.sent(ctx).into_iter().chain(again.entries()))
        }
    }
}

pub(super) fn end_tagged(ctx: &CheckContext) -> Outcome {
    let requests = messages(&ctx.transcript, Direction::Sent)
        .filter(|it| it.value["method"] == "subscriptions/listen");
    let mut evidence = Vec::new();
    for request in requests {
        let id = &request.value["id"];
        let responses = |it: &TranscriptMessage| {
            it.entry.channel == request.entry.channel
                && it.value["id"] == *id
                && it.value.get("method").is_none()
        };
        let response = response_to(&ctx.transcript, request.at)
            .or_else(|| messages(&ctx.transcript, Direction::Received).find(responses));
        let Some(response) = response.filter(|response| response.value.get("result").is_some())
        else {
            continue;
        };
        let tag = &response.value["result"]["_meta"][SUBSCRIPTION_ID_KEY];
        if tag != id {
            let observed = format!("a result that ends the subscription {id} and names {tag}");
            return Err(NotPassed::violation(observed, [request.at, response.at]));
        }
        evidence.push(response.at);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "the server ended no subscription",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

pub(super) async fn subscribe_is_gone(ctx: &CheckContext) -> Outcome {
    let resources = &ctx.inventory().await?.resources;
    let uri = resources
        .iter()
        .find_map(|it| it["uri"].as_str())
        .unwrap_or("check://nothing");
    let subscribe =
        crate::server_rules::is_gone(ctx, "resources/subscribe", json!({ "uri": uri })).await?;
    let mut evidence =
        crate::server_rules::is_gone(ctx, "resources/unsubscribe", json!({ "uri": uri })).await?;
    evidence.entries.extend(subscribe.entries);
    Ok(evidence)
}

/// Returns the requests that listen.
fn listening(tool_runs: &ToolRuns) -> Result<Vec<&ListenRequest>, NotPassed> {
    let all: Vec<_> = tool_runs
        .changes
        .everything
        .iter()
        .chain(&tool_runs.changes.nothing)
        .collect();
    if all.is_empty() {
        Err(NotPassed::not_applicable(
            "the server declares nothing that it would tell of",
        ))
    } else {
        Ok(all)
    }
}

fn with_id(
    id: &Value,
    stream: Vec<TranscriptMessage>,
) -> impl Iterator<Item = (Value, TranscriptMessage)> {
    let notifications = stream
        .into_iter()
        .filter(|it| it.value.get("method").is_some());
    notifications.map(move |message| (id.clone(), message))
}

/// Says whether a message is one that only a listener gets.
fn is_change(message: &Value) -> bool {
    let method = message["method"].as_str().unwrap_or_default();
    if message.get("id").is_some() {
        return false;
    }
    method == ACKNOWLEDGED
        || method == UPDATED
        || CHANGES.iter().any(|(change, ..)| *change == method)
}

fn sent_ids(ctx: &CheckContext) -> Vec<Value> {
    let requests = messages(&ctx.transcript, Direction::Sent)
        .filter(|it| it.value["method"] == "subscriptions/listen");
    requests
        .map(|request| request.value["id"].clone())
        .collect()
}

fn acknowledgements(ctx: &CheckContext) -> Vec<TranscriptMessage> {
    received(&ctx.transcript, ACKNOWLEDGED)
}

/// Says whether what is promised is no more than what was asked for.
fn is_part(promised: &Value, asked: &Value) -> bool {
    match promised {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => {
            let asked = asked.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().all(|item| asked.contains(item))
        }
        other => other == asked,
    }
}

/// Says whether a filter lets a message through.
fn lets_through(filter: &Value, method: &str, message: &Value) -> bool {
    if method == UPDATED {
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        let asked = filter["resourceSubscriptions"].as_array();
        let mut asked = asked.into_iter().flatten().filter_map(Value::as_str);
        return asked.any(|asked| uri.starts_with(asked));
    }
    let kind = CHANGES.iter().find(|(change, ..)| *change == method);
    match kind {
        Some((_, kind, _)) => filter[kind] == true,
        // That it is over, or that it ended, may always be said.
        None => method == ACKNOWLEDGED || method == "notifications/cancelled",
    }
}

fn name(message: &TranscriptMessage) -> String {
    match message.value["method"].as_str() {
        Some(method) => format!("`{method}`"),
        None => "an answer".to_owned(),
    }
}
