//! Subscriptions since 2026-07-28: `subscriptions/listen`.

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
    for subscription in subscriptions(ctx.tool_runs().await?)? {
        let stream = subscription.stream(ctx);
        let Some(first) = stream.first() else {
            return Err(match acknowledgements(ctx).len() {
                0 => NotPassed::violation("no acknowledgement", subscription.sent(ctx)),
                _ => NotPassed::not_tested("the acknowledgement has another id"),
            });
        };
        if first.value["method"] != ACKNOWLEDGED {
            let (requirement, observed) = match first.value.get("error") {
                Some(error) => {
                    let observed = format!("error {} instead of an acknowledgement", error["code"]);
                    ("subscriptions.ack.first", observed)
                }
                None => {
                    let observed = format!("{} before the acknowledgement", name(first));
                    ("subscriptions.ack.nothing-before", observed)
                }
            };
            let entries = subscription.sent(ctx).into_iter().chain([first.at]);
            return Err(NotPassed::violation(observed, entries).for_requirement(requirement));
        }
        evidence.push(first.at);
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn acknowledges_subset(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for subscription in subscriptions(ctx.tool_runs().await?)? {
        let stream = subscription.stream(ctx);
        let acknowledgement = stream.iter().find(|it| it.value["method"] == ACKNOWLEDGED);
        let Some(acknowledgement) = acknowledgement else {
            return Err(NotPassed::not_tested("the server sent no acknowledgement"));
        };
        let Some(acknowledged) = acknowledgement.value["params"]["notifications"].as_object()
        else {
            return Err(NotPassed::not_tested(
                "the acknowledgement lacks `notifications`",
            ));
        };
        for (kind, value) in acknowledged {
            if !is_part(value, &subscription.filter[kind]) {
                let observed =
                    format!("`{kind}` is acknowledged as {value}, which was not requested");
                return Err(NotPassed::violation(observed, [acknowledgement.at]));
            }
        }
        evidence.extend(subscription.sent(ctx));
        evidence.push(acknowledgement.at);
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn tagged(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let subscriptions = subscriptions(tool_runs)?;
    let notifications: Vec<_> = if tool_runs.session.http().is_ok() {
        subscriptions
            .iter()
            .flat_map(|it| with_id(&it.id, it.stream(ctx)))
            .collect()
    } else {
        // On ndjson, only the id assigns a change to a subscription.
        let changes =
            messages(&ctx.transcript, Direction::Received).filter(|it| is_change(&it.value));
        changes.map(|message| (Value::Null, message)).collect()
    };
    let ids = sent_ids(ctx);
    let mut evidence = Vec::new();
    for (id, message) in notifications {
        let tag = &message.value["params"]["_meta"][SUBSCRIPTION_ID_KEY];
        let is_valid = match &id {
            Value::Null => ids.contains(tag),
            id => tag == id,
        };
        if !is_valid {
            let name = name(&message);
            let (requirement, observed) = match tag {
                Value::Null => (
                    "subscriptions.id.tag",
                    format!("{name} without the id of the subscription"),
                ),
                tag => (
                    "subscriptions.id.value",
                    format!("{name} with the id {tag}, which is not the id of a subscription"),
                ),
            };
            let violation = NotPassed::violation(observed, [message.at]);
            return Err(violation.for_requirement(requirement));
        }
        evidence.push(message.at);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

pub(super) async fn only_requested(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let mut changes = Vec::new();
    for subscription in subscriptions(tool_runs)? {
        for message in subscription.stream(ctx) {
            let method = message.value["method"].as_str().unwrap_or(ACKNOWLEDGED);
            if !allows(&subscription.filter, method, &message.value) {
                let observed = format!("`{method}` for the filter {}", subscription.filter);
                let entries = subscription.sent(ctx).into_iter().chain([message.at]);
                let violation = NotPassed::violation(observed, entries);
                return Err(match method {
                    "notifications/progress" => {
                        violation.for_requirement("subscriptions.no-request-scoped")
                    }
                    "notifications/message" => {
                        violation.for_requirement("logging.request.own-stream")
                    }
                    UPDATED => violation.for_requirement("resources.subscribe.modern"),
                    _ => violation,
                });
            }
            if method != ACKNOWLEDGED {
                changes.push(message.at);
            }
        }
    }
    if changes.is_empty() {
        Err(tool_runs.none("causes a change notification"))
    } else {
        Evidence::from_entries(changes)
    }
}

pub(super) async fn stops(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let filter = subscriptions(tool_runs)?[0].filter.clone();
    let run = tool_runs.runs.iter().find(|run| {
        let changed = CHANGES
            .iter()
            .any(|(method, ..)| !run.notifications(ctx, method).is_empty());
        changed || !run.notifications(ctx, UPDATED).is_empty()
    });
    let Some(run) = run else {
        return Err(tool_runs.none("causes a change notification"));
    };
    let session = ctx.new_session().await?;
    let id = json!("check-stops");
    let subscription = ListenRequest::open(ctx, &session, id.clone(), filter).await?;
    session
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await?;
    // The response to a later request shows that the server read the cancellation.
    session
        .request("server/discover", json!({}))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let before = subscription.stream(ctx).len();
    let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
    session.listen(ctx.pace.quiet_period()).await;
    match subscription.stream(ctx).get(before) {
        Some(message) if message.value.get("method").is_some() => {
            let observed = format!("{} after the subscription was cancelled", name(message));
            Err(NotPassed::violation(observed, [message.at]))
        }
        _ => {
            // The absence of notifications proves nothing if the call failed.
            again.response()?;
            Evidence::from_entries(subscription.sent(ctx).into_iter().chain(again.entries()))
        }
    }
}

pub(super) fn end_tagged(ctx: &CheckContext) -> Outcome {
    let requests = messages(&ctx.transcript, Direction::Sent)
        .filter(|it| it.value["method"] == "subscriptions/listen");
    let mut evidence = Vec::new();
    for request in requests {
        let id = &request.value["id"];
        let is_response = |it: &TranscriptMessage| {
            it.entry.channel == request.entry.channel
                && it.value["id"] == *id
                && it.value.get("method").is_none()
        };
        let response = response_to(&ctx.transcript, request.at)
            .or_else(|| messages(&ctx.transcript, Direction::Received).find(is_response));
        let Some(response) = response.filter(|response| response.value.get("result").is_some())
        else {
            continue;
        };
        let tag = &response.value["result"]["_meta"][SUBSCRIPTION_ID_KEY];
        if tag != id {
            let observed = format!("a result that ends the subscription {id} with the id {tag}");
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

pub(super) async fn subscribe_removed(ctx: &CheckContext) -> Outcome {
    let resources = &ctx.inventory().await?.resources;
    let uri = resources
        .iter()
        .find_map(|it| it["uri"].as_str())
        .unwrap_or("check://no-such-resource");
    let subscribe =
        crate::server_rules::check_removed(ctx, "resources/subscribe", json!({ "uri": uri }))
            .await?;
    let mut evidence =
        crate::server_rules::check_removed(ctx, "resources/unsubscribe", json!({ "uri": uri }))
            .await?;
    evidence.entries.extend(subscribe.entries);
    Ok(evidence)
}

/// Returns the open subscriptions.
fn subscriptions(tool_runs: &ToolRuns) -> Result<Vec<&ListenRequest>, NotPassed> {
    let all: Vec<_> = tool_runs
        .changes
        .everything
        .iter()
        .chain(&tool_runs.changes.nothing)
        .collect();
    if all.is_empty() {
        Err(NotPassed::not_applicable(
            "the server declares no change notifications",
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

/// Returns whether a message is a notification for subscribers.
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

/// Returns whether the acknowledged part is at most the requested one.
fn is_part(acknowledged: &Value, requested: &Value) -> bool {
    match acknowledged {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => {
            let requested = requested.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().all(|item| requested.contains(item))
        }
        other => other == requested,
    }
}

/// Returns whether a filter allows a message.
fn allows(filter: &Value, method: &str, message: &Value) -> bool {
    if method == UPDATED {
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        let uris = filter["resourceSubscriptions"].as_array();
        let mut uris = uris.into_iter().flatten().filter_map(Value::as_str);
        return uris.any(|parent| uri.starts_with(parent));
    }
    let kind = CHANGES.iter().find(|(change, ..)| *change == method);
    match kind {
        Some((_, kind, _)) => filter[kind] == true,
        // The acknowledgement and the end are always allowed.
        None => method == ACKNOWLEDGED || method == "notifications/cancelled",
    }
}

fn name(message: &TranscriptMessage) -> String {
    match message.value["method"].as_str() {
        Some(method) => format!("`{method}`"),
        None => "a response".to_owned(),
    }
}
