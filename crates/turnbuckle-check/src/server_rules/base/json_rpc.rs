//! Messages of JSON-RPC: who answers whom.

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
        .requirement("An answer has the id of its request: the same value of the same type.")
        .fix("Keep the id as it came, a string or a number, and put it into the answer unchanged.")
        .active(|ctx| Box::pin(same_id(ctx))),
    Rule::server(
        "base.error-same-id",
        Area::Base,
        &["base.response.same-id", "base.error.id-echo"],
    )
    .requirement("An error has the id of the request that it answers.")
    .fix("Put the id of the request into the error; leave it out only if it could not be read.")
    .active(|ctx| Box::pin(error_same_id(ctx))),
    Rule::server("base.many-at-once", Area::Base, &["base.response.same-id"])
        .requirement("Requests that come at the same time are answered, each with its own id.")
        .fix("Answer every request, also when another came before the first was answered.")
        .active(|ctx| Box::pin(many_at_once(ctx))),
    Rule::server("base.answered-once", Area::Base, &["base.jsonrpc.conform"])
        .requirement("A request is answered once.")
        .fix("Send one response for a request, and nothing more with its id.")
        .passive(answered_once),
    Rule::server(
        "base.notifications-unanswered",
        Area::Base,
        &["base.notification.no-reply"],
    )
    .requirement("A notification is never answered, not even one that nobody knows.")
    .fix("Send nothing back for a message without an id, whatever is wrong with it.")
    .transports(Transports::Ndjson)
    .active(|ctx| Box::pin(notifications_unanswered(ctx))),
    Rule::server("base.ping", Area::Base, &["ping.respond"])
        .requirement("`ping` is answered with an empty result.")
        .fix("Answer `ping` with the result `{}` at once.")
        .active(|ctx| Box::pin(ping(ctx))),
    Rule::server("base.ping-is-gone", Area::Base, &["ping.removed"])
        .requirement("`ping` is not there: this revision has removed it.")
        .fix("Answer `ping` with the error -32601.")
        .warn_only()
        .active(|ctx| Box::pin(ping_is_gone(ctx))),
    Rule::server("base.batch", Area::Base, &["base.batch.receive"])
        .requirement("The requests of a batch are answered.")
        .fix("Accept an array of messages, and answer the requests among them.")
        .active(|ctx| Box::pin(batch(ctx))),
    Rule::server(
        "base.new-ids",
        Area::Base,
        &["base.request.id-unique-session"],
    )
    .requirement("The server's requests have ids that it has not used before in the session.")
    .fix("Count the ids of your requests up, and never use one again.")
    .passive(new_ids),
    Rule::server(
        "base.notifications-without-id",
        Area::Base,
        &["base.notification.no-id"],
    )
    .requirement("The server's notifications have no id.")
    .fix("Leave `id` out of notifications; one that is null is still there.")
    .passive(notifications_without_id),
];

async fn same_id(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut entries = Vec::new();
    let ids = [
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
        let response = response.map_err(|failure| failure.at(&format!("the id {id}")))?;
        if response.value.is_null() {
            let observed = format!("no answer with the id {id}");
            let heard = response.entries().chain(response.before.iter().copied());
            return Err(NotPassed::violation(observed, heard));
        }
        // What an error says for an id is the business of another rule.
        response.result().map_err(NotPassed::as_not_tested)?;
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
            "an unknown method is not answered with an error",
        ));
    };
    match error.get("id") {
        Some(theirs) if *theirs == id => Evidence::from_entries([outcome.sent, *number]),
        Some(theirs) => {
            let observed = format!("the id {theirs} for the request {id}");
            Err(NotPassed::violation(observed, [outcome.sent, *number]))
        }
        None => {
            let observed = format!("an error without id for the request {id}");
            Err(NotPassed::violation(observed, [outcome.sent, *number]))
        }
    }
}

async fn many_at_once(ctx: &CheckContext) -> Outcome {
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
        response.result().map_err(NotPassed::as_not_tested)?;
        entries.extend(response.entries());
    }
    Evidence::from_entries(entries)
}

fn answered_once(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut open = HashMap::<(usize, String), (usize, Vec<usize>)>::new();
    for (number, entry) in transcript.all() {
        let Some(message) = entry.json() else {
            continue;
        };
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let (asked, responses) = open.entry((entry.channel, id.to_string())).or_default();
        match (entry.direction, message.get("method")) {
            (Direction::Sent, Some(_)) => *asked += 1,
            (Direction::Received, None) => responses.push(number),
            _ => {}
        }
    }
    let mut all: Vec<_> = open.into_values().filter(|(asked, _)| *asked > 0).collect();
    all.sort();
    if let Some((asked, responses)) = all
        .iter()
        .find(|(asked, responses)| responses.len() > *asked)
    {
        let observed = format!("{} answers to {asked} request", responses.len());
        return Err(NotPassed::violation(observed, responses.iter().copied()));
    }
    Evidence::from_entries(
        all.iter()
            .flat_map(|(_, responses)| responses)
            .copied()
            .take(3),
    )
}

async fn notifications_unanswered(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let unknown = [
        json!({ "jsonrpc": "2.0", "method": "notifications/turnbuckle/unknown" }),
        json!({ "jsonrpc": "2.0", "method": "turnbuckle/unknown", "params": { "any": [1] } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "never asked" } }),
    ];
    let mut sent = Vec::new();
    let mut heard = Vec::new();
    for notification in unknown {
        sent.extend(session.send_message(notification, true).await?.sent);
    }
    let after = session
        .request(session.request_builder.noop_method(), Value::Null)
        .await
        .map_err(NotPassed::as_not_tested)?;
    heard.extend(&after.before);
    heard.extend(session.listen(ctx.options.quiet_period).await);
    let response = heard.into_iter().find(|&number| {
        let message = ctx.transcript.entry(number).json().unwrap_or_default();
        let has = |name| message.get(name).is_some();
        !has("method") && (has("error") || has("result")) && answers_nothing(ctx, &message)
    });
    match response {
        Some(response) => Err(NotPassed::violation(
            "an answer to a notification",
            sent.into_iter().chain([response]),
        )),
        None => Evidence::from_entries(sent.into_iter().chain(after.entries())),
    }
}

/// Says whether an answer has no id, or one by which nobody asked.
fn answers_nothing(ctx: &CheckContext, message: &Value) -> bool {
    let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
        return true;
    };
    let mut all = ctx.transcript.all().into_iter();
    let asked = |message: Value| message.get("id") == Some(id);
    !all.any(|(_, entry)| entry.direction == Direction::Sent && entry.json().is_some_and(asked))
}

async fn ping(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session.request("ping", Value::Null).await?;
    response.result()?;
    response.evidence()
}

async fn ping_is_gone(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session.request("ping", Value::Null).await?;
    response.error()?;
    response.evidence()
}

async fn batch(ctx: &CheckContext) -> Outcome {
    let (outcome, ids) = send_batch(ctx).await?;
    let responded = |id: &Value| {
        let mut replies = outcome.replies.iter();
        replies.any(|(_, reply)| match reply {
            Value::Array(all) => all.iter().any(|reply| is_result_for(reply, id)),
            reply => is_result_for(reply, id),
        })
    };
    match ids.iter().find(|id| !responded(id)) {
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

/// Ids are known by the line on which they came. On HTTP a session has many streams, so nothing is said there.
fn new_ids(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut used = HashMap::new();
    for (number, channel, message) in received(transcript) {
        let (Some(_), Some(id)) = (request(&message), message.get("id")) else {
            continue;
        };
        if let Some(before) = used.insert((channel, id.to_string()), number) {
            let observed = format!("the id {id} for two requests");
            return Err(NotPassed::violation(observed, [before, number]));
        }
    }
    if used.is_empty() {
        Err(NotPassed::not_applicable("the server asked for nothing"))
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
        let notifies = method.starts_with("notifications/");
        match message.get("id") {
            Some(id) if notifies => {
                let observed = format!("`{method}` with the id {id}");
                return Err(NotPassed::violation(observed, [number]));
            }
            None => evidence.push(number),
            Some(_) => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("the server notifies of nothing"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Returns the messages that the server has sent, with their entries and their channels.
fn received(transcript: &Transcript) -> Vec<(usize, usize, Value)> {
    let theirs = transcript.all().into_iter().filter_map(|(number, entry)| {
        let message = entry
            .json()
            .filter(|_| entry.direction == Direction::Received)?;
        Some((number, entry.channel, message))
    });
    theirs.collect()
}

/// Returns the method of a message that asks for something.
fn request(message: &Value) -> Option<&str> {
    message.get("id")?;
    let method = message["method"].as_str()?;
    // A notification with an id is wrong in another way.
    (!method.starts_with("notifications/")).then_some(method)
}
