//! JSON-RPC requests, responses and notifications.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::malformed_input::ProbeOutcome;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("base.same-id", Area::Base, &["base.response.same-id"])
        .requirement("A response has the id of its request, with the same value and type.")
        .hint("Return the id unchanged, as a string or a number.")
        .active(|ctx| Box::pin(same_id(ctx))),
    Rule::server(
        "base.error-same-id",
        Area::Base,
        &["base.response.same-id", "base.error.id-echo"],
    )
    .requirement("An error response has the id of its request.")
    .hint("Set the id of the request in the error; omit it only if it could not be read.")
    .active(|ctx| Box::pin(error_same_id(ctx))),
    Rule::server("base.many-at-once", Area::Base, &["base.response.same-id"])
        .requirement("The server responds to concurrent requests, each with its id.")
        .hint("Respond to every request, also when another request arrives before the first response.")
        .active(|ctx| Box::pin(concurrent_requests(ctx))),
    Rule::server("base.answered-once", Area::Base, &["base.jsonrpc.conform"])
        .requirement("The server sends one response per request.")
        .hint("Send one response for a request, and no further message with its id.")
        .passive(one_response),
    Rule::server(
        "base.notifications-unanswered",
        Area::Base,
        &["base.notification.no-reply"],
    )
    .requirement("The server does not respond to notifications, known or unknown.")
    .hint("Send no response to a message without an id, even if the message is invalid.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(notifications_without_response(ctx))),
    Rule::server("base.ping", Area::Base, &["ping.respond"])
        .requirement("The server returns an empty result for `ping`.")
        .hint("Return `{}` for `ping` immediately.")
        .active(|ctx| Box::pin(ping(ctx))),
    Rule::server("base.ping-is-gone", Area::Base, &["ping.removed"])
        .requirement("The server returns error -32601 for `ping`, which this revision removed.")
        .hint("Return error -32601 for `ping`.")
        .warn_only()
        .active(|ctx| Box::pin(ping_removed(ctx))),
    Rule::server("base.batch", Area::Base, &["base.batch.receive"])
        .requirement("The server responds to the requests of a batch.")
        .hint("Accept an array of messages, and respond to each request in it.")
        .active(|ctx| Box::pin(batch(ctx))),
    Rule::server(
        "base.new-ids",
        Area::Base,
        &["base.request.id-unique-session"],
    )
    .requirement("The server does not reuse the ids of its requests within a session.")
    .hint("Use a counter for request ids, and never reuse an id.")
    .passive(new_ids),
    Rule::server(
        "base.notifications-without-id",
        Area::Base,
        &["base.notification.no-id"],
    )
    .requirement("The server's notifications do not have an id.")
    .hint("Omit `id` from notifications; a null `id` is still an id.")
    .passive(notifications_without_id),
];

async fn same_id(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut entries = Vec::new();
    let ids = [
        json!(7),
        json!("turnbuckle"),
        json!("1"),
        json!("ключ \u{1f5dd}"),
        json!(0),
        json!(-7),
        json!(9_007_199_254_740_991_i64),
    ];
    for id in ids {
        let method = session.request_builder.noop_method();
        let request = session
            .request_builder
            .request(id.clone(), method, Value::Null);
        let pending = session.send_message(request, false).await?;
        let response = session.wait_response(pending).await;
        let response = response.map_err(|failure| failure.in_context(&format!("the id {id}")))?;
        if response.value.is_null() {
            let observed = format!("no response with the id {id}");
            let received = response.entries().chain(response.before.iter().copied());
            return Err(NotPassed::violation(observed, received));
        }
        if response.value.get("id").is_some_and(|other| *other != id) {
            let observed = format!(
                "the id {} in the response to the request {id}",
                response.value["id"]
            );
            return Err(response.violation(observed));
        }
        // Another rule checks the ids of errors.
        response.result().map_err(NotPassed::into_not_tested)?;
        entries.extend(response.entries());
    }
    Evidence::from_entries(entries)
}

async fn error_same_id(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let id = json!("turnbuckle-unknown");
    let method = "turnbuckle/no-such-method";
    let request = session
        .request_builder
        .request(id.clone(), method, Value::Null);
    let outcome = ProbeOutcome::send(
        ctx,
        session,
        &request.to_string(),
        std::slice::from_ref(&id),
    )
    .await?;
    let error = outcome
        .replies
        .iter()
        .find(|(_, reply)| reply.get("error").is_some());
    let Some((number, error)) = error else {
        return Err(NotPassed::not_tested(
            "the server returned no error for an unknown method",
        ));
    };
    match error.get("id") {
        Some(received_id) if *received_id == id => Evidence::from_entries([outcome.sent, *number]),
        Some(received_id) => {
            let observed = format!("the id {received_id} in the error for the request {id}");
            Err(NotPassed::violation(observed, [outcome.sent, *number]))
        }
        None => {
            let observed = format!("an error without an id for the request {id}");
            Err(NotPassed::violation(observed, [outcome.sent, *number]))
        }
    }
}

async fn concurrent_requests(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut pending = Vec::new();
    for _ in 0..8 {
        pending.push(
            session
                .send_request(session.request_builder.noop_method(), Value::Null)
                .await?,
        );
    }
    let mut entries = Vec::new();
    for pending in pending {
        let response = session.wait_response(pending).await?;
        response.result().map_err(NotPassed::into_not_tested)?;
        entries.extend(response.entries());
    }
    Evidence::from_entries(entries)
}

fn one_response(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut open = HashMap::<(usize, String), (usize, Vec<usize>)>::new();
    for (number, entry) in transcript.all() {
        let Some(message) = entry.json() else {
            continue;
        };
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let (requests, responses) = open.entry((entry.channel, id.to_string())).or_default();
        match (entry.direction, message.get("method")) {
            (Direction::Sent, Some(_)) => *requests += 1,
            (Direction::Received, None) => responses.push(number),
            _ => {}
        }
    }
    let mut all: Vec<_> = open
        .into_values()
        .filter(|(requests, _)| *requests > 0)
        .collect();
    all.sort();
    if let Some((requests, responses)) = all
        .iter()
        .find(|(requests, responses)| responses.len() > *requests)
    {
        let observed = format!("{} responses to {requests} request", responses.len());
        return Err(NotPassed::violation(observed, responses.iter().copied()));
    }
    Evidence::from_entries(
        all.iter()
            .flat_map(|(_, responses)| responses)
            .copied()
            .take(3),
    )
}

async fn notifications_without_response(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let unknown = [
        json!({ "jsonrpc": "2.0", "method": "notifications/turnbuckle/unknown" }),
        json!({ "jsonrpc": "2.0", "method": "turnbuckle/unknown", "params": { "any": [1] } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "never sent" } }),
    ];
    let mut sent = Vec::new();
    let mut received = Vec::new();
    for notification in unknown {
        sent.extend(session.send_message(notification, true).await?.sent);
    }
    let after = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await
        .map_err(NotPassed::into_not_tested)?;
    received.extend(&after.before);
    received.extend(session.listen(ctx.pace.quiet_period()).await);
    let response = received.into_iter().find(|&number| {
        let message = ctx.transcript.entry(number).json().unwrap_or_default();
        let has = |name| message.get(name).is_some();
        !has("method") && (has("error") || has("result")) && is_unrequested(ctx, &message)
    });
    match response {
        Some(response) => Err(NotPassed::violation(
            "a response to a notification",
            sent.into_iter().chain([response]),
        )),
        None => Evidence::from_entries(sent.into_iter().chain(after.entries())),
    }
}

/// Returns whether a response lacks an id, or has the id of no request.
fn is_unrequested(ctx: &CheckContext, message: &Value) -> bool {
    let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
        return true;
    };
    let mut all = ctx.transcript.all().into_iter();
    let has_id = |message: Value| message.get("id") == Some(id);
    !all.any(|(_, entry)| entry.direction == Direction::Sent && entry.json().is_some_and(has_id))
}

async fn ping(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session.request("ping", Value::Null).await?;
    response.result()?;
    response.evidence()
}

async fn ping_removed(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session.request("ping", Value::Null).await?;
    response.error()?;
    response.evidence()
}

async fn batch(ctx: &CheckContext) -> Outcome {
    let (outcome, ids) = send_batch(ctx).await?;
    let has_result = |id: &Value| {
        let mut replies = outcome.replies.iter();
        replies.any(|(_, reply)| match reply {
            Value::Array(all) => all.iter().any(|reply| is_result_for(reply, id)),
            reply => is_result_for(reply, id),
        })
    };
    match ids.iter().find(|id| !has_result(id)) {
        None => Evidence::from_entries(outcome.entries()),
        Some(id) => {
            let observed = format!("no result for the request {id} of the batch");
            Err(NotPassed::violation(observed, outcome.entries()))
        }
    }
}

async fn send_batch(ctx: &CheckContext) -> Result<(ProbeOutcome, [Value; 2]), NotPassed> {
    let session = ctx.session().await?;
    let ids = [json!("batch-1"), json!("batch-2")];
    let request = |id: &Value| {
        let method = session.request_builder.noop_method();
        session
            .request_builder
            .request(id.clone(), method, Value::Null)
    };
    let unknown = session
        .request_builder
        .notification("notifications/turnbuckle/unknown", Value::Null);
    let batch = json!([request(&ids[0]), unknown, request(&ids[1])]);
    let outcome = ProbeOutcome::send(ctx, session, &batch.to_string(), &ids).await?;
    Ok((outcome, ids))
}

fn is_result_for(reply: &Value, id: &Value) -> bool {
    reply.get("id") == Some(id) && reply.get("result").is_some()
}

/// Checks that the ids of server requests are unique per channel. On HTTP, a session has several channels, so duplicates across them are not found.
fn new_ids(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut used = HashMap::new();
    for (number, channel, message) in received(transcript) {
        let (Some(_), Some(id)) = (request_method(&message), message.get("id")) else {
            continue;
        };
        if let Some(before) = used.insert((channel, id.to_string()), number) {
            let observed = format!("the id {id} for two requests");
            return Err(NotPassed::violation(observed, [before, number]));
        }
    }
    if used.is_empty() {
        Err(NotPassed::not_applicable("the server sent no requests"))
    } else {
        Evidence::from_entries(used.into_values().take(3))
    }
}

fn notifications_without_id(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, _, message) in received(transcript) {
        let Some(method) = message["method"].as_str() else {
            continue;
        };
        let is_notification = method.starts_with("notifications/");
        match message.get("id") {
            Some(id) if is_notification => {
                let observed = format!("`{method}` with the id {id}");
                return Err(NotPassed::violation(observed, [number]));
            }
            None => evidence.push(number),
            Some(_) => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "the server sent no notifications",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Returns the messages of the server, with their entries and their channels.
fn received(transcript: &Transcript) -> Vec<(usize, usize, Value)> {
    let messages = transcript.all().into_iter().filter_map(|(number, entry)| {
        let message = entry
            .json()
            .filter(|_| entry.direction == Direction::Received)?;
        Some((number, entry.channel, message))
    });
    messages.collect()
}

/// Returns the method of a request.
fn request_method(message: &Value) -> Option<&str> {
    message.get("id")?;
    let method = message["method"].as_str()?;
    // Another rule checks notifications with an id.
    (!method.starts_with("notifications/")).then_some(method)
}
