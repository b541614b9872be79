//! Messages of JSON-RPC: who answers whom.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::poke::Poked;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::{Tape, Way};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("base.same-id", Area::Base, &["base.response.same-id"])
        .says("An answer has the id of its request: the same value of the same type.")
        .cure("Keep the id as it came, a string or a number, and put it into the answer unchanged.")
        .ask(|visit| Box::pin(same_id(visit))),
    Rule::server(
        "base.error-same-id",
        Area::Base,
        &["base.response.same-id", "base.error.id-echo"],
    )
    .says("An error has the id of the request that it answers.")
    .cure("Put the id of the request into the error; leave it out only if it could not be read.")
    .ask(|visit| Box::pin(error_same_id(visit))),
    Rule::server("base.many-at-once", Area::Base, &["base.response.same-id"])
        .says("Requests that come at the same time are answered, each with its own id.")
        .cure("Answer every request, also when another came before the first was answered.")
        .ask(|visit| Box::pin(many_at_once(visit))),
    Rule::server("base.answered-once", Area::Base, &["base.jsonrpc.conform"])
        .says("A request is answered once.")
        .cure("Send one response for a request, and nothing more with its id.")
        .look(answered_once),
    Rule::server(
        "base.notifications-unanswered",
        Area::Base,
        &["base.notification.no-reply"],
    )
    .says("A notification is never answered, not even one that nobody knows.")
    .cure("Send nothing back for a message without an id, whatever is wrong with it.")
    .on(On::Lines)
    .ask(|visit| Box::pin(notifications_unanswered(visit))),
    Rule::server("base.ping", Area::Base, &["ping.respond"])
        .says("`ping` is answered with an empty result.")
        .cure("Answer `ping` with the result `{}` at once.")
        .ask(|visit| Box::pin(ping(visit))),
    Rule::server("base.ping-is-gone", Area::Base, &["ping.removed"])
        .says("`ping` is not there: this revision has removed it.")
        .cure("Answer `ping` with the error -32601.")
        .gently()
        .ask(|visit| Box::pin(ping_is_gone(visit))),
    Rule::server("base.batch", Area::Base, &["base.batch.receive"])
        .says("The requests of a batch are answered.")
        .cure("Accept an array of messages, and answer the requests among them.")
        .ask(|visit| Box::pin(batch(visit))),
    Rule::server(
        "base.new-ids",
        Area::Base,
        &["base.request.id-unique-session"],
    )
    .says("The server's requests have ids that it has not used before in the session.")
    .cure("Count the ids of your requests up, and never use one again.")
    .look(new_ids),
    Rule::server(
        "base.notifications-without-id",
        Area::Base,
        &["base.notification.no-id"],
    )
    .says("The server's notifications have no id.")
    .cure("Leave `id` out of notifications; one that is null is still there.")
    .look(notifications_without_id),
];

async fn same_id(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
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
        let method = session.speech.harmless();
        let request = session.speech.request(id.clone(), method, Value::Null);
        let pending = session.send(request, false).await?;
        let answer = session.answer(pending).await;
        let answer = answer.map_err(|unmet| unmet.at(&format!("the id {id}")))?;
        if answer.value.is_null() {
            let what = format!("no answer with the id {id}");
            let heard = answer.entries().chain(answer.before.iter().copied());
            return Err(Unmet::broken(what, heard));
        }
        // What an error says for an id is the business of another rule.
        answer.result().map_err(Unmet::aside)?;
        entries.extend(answer.entries());
    }
    Seen::at(entries)
}

async fn error_same_id(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let id = json!("turnbuckle-unknown");
    let method = "turnbuckle/no-such-method";
    let request = session.speech.request(id.clone(), method, Value::Null);
    let poked = Poked::with(
        visit,
        session,
        &request.to_string(),
        std::slice::from_ref(&id),
    )
    .await?;
    let error = poked
        .replies
        .iter()
        .find(|(_, reply)| reply.get("error").is_some());
    let Some((number, error)) = error else {
        return Err(Unmet::not_tested(
            "an unknown method is not answered with an error",
        ));
    };
    match error.get("id") {
        Some(theirs) if *theirs == id => Seen::at([poked.sent, *number]),
        Some(theirs) => {
            let what = format!("the id {theirs} for the request {id}");
            Err(Unmet::broken(what, [poked.sent, *number]))
        }
        None => {
            let what = format!("an error without id for the request {id}");
            Err(Unmet::broken(what, [poked.sent, *number]))
        }
    }
}

async fn many_at_once(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let mut pending = Vec::new();
    for _ in 0..8 {
        pending.push(
            session
                .begin(session.speech.harmless(), Value::Null)
                .await?,
        );
    }
    let mut entries = Vec::new();
    for pending in pending {
        let answer = session.answer(pending).await?;
        answer.result().map_err(Unmet::aside)?;
        entries.extend(answer.entries());
    }
    Seen::at(entries)
}

fn answered_once(_: &Visit, tape: &Tape) -> Outcome {
    let mut open = HashMap::<(usize, String), (usize, Vec<usize>)>::new();
    for (number, entry) in tape.all() {
        let Some(message) = entry.json() else {
            continue;
        };
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            continue;
        };
        let (asked, answers) = open.entry((entry.channel, id.to_string())).or_default();
        match (entry.way, message.get("method")) {
            (Way::Sent, Some(_)) => *asked += 1,
            (Way::Received, None) => answers.push(number),
            _ => {}
        }
    }
    let mut all: Vec<_> = open.into_values().filter(|(asked, _)| *asked > 0).collect();
    all.sort();
    if let Some((asked, answers)) = all.iter().find(|(asked, answers)| answers.len() > *asked) {
        let what = format!("{} answers to {asked} request", answers.len());
        return Err(Unmet::broken(what, answers.iter().copied()));
    }
    Seen::at(all.iter().flat_map(|(_, answers)| answers).copied().take(3))
}

async fn notifications_unanswered(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let unknown = [
        json!({ "jsonrpc": "2.0", "method": "notifications/turnbuckle/unknown" }),
        json!({ "jsonrpc": "2.0", "method": "turnbuckle/unknown", "params": { "any": [1] } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "never asked" } }),
    ];
    let mut sent = Vec::new();
    let mut heard = Vec::new();
    for notification in unknown {
        sent.extend(session.send(notification, true).await?.sent);
    }
    let after = session
        .ask(session.speech.harmless(), Value::Null)
        .await
        .map_err(Unmet::aside)?;
    heard.extend(&after.before);
    heard.extend(session.listen(visit.options.silence).await);
    let answer = heard.into_iter().find(|&number| {
        let message = visit.tape.entry(number).json().unwrap_or_default();
        let has = |name| message.get(name).is_some();
        !has("method") && (has("error") || has("result")) && answers_nothing(visit, &message)
    });
    match answer {
        Some(answer) => Err(Unmet::broken(
            "an answer to a notification",
            sent.into_iter().chain([answer]),
        )),
        None => Seen::at(sent.into_iter().chain(after.entries())),
    }
}

/// Says whether an answer has no id, or one by which nobody asked.
fn answers_nothing(visit: &Visit, message: &Value) -> bool {
    let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
        return true;
    };
    let mut all = visit.tape.all().into_iter();
    let asked = |message: Value| message.get("id") == Some(id);
    !all.any(|(_, entry)| entry.way == Way::Sent && entry.json().is_some_and(asked))
}

async fn ping(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let answer = session.ask("ping", Value::Null).await?;
    answer.result()?;
    answer.seen()
}

async fn ping_is_gone(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let answer = session.ask("ping", Value::Null).await?;
    answer.error()?;
    answer.seen()
}

async fn batch(visit: &Visit) -> Outcome {
    let (poked, ids) = send_batch(visit).await?;
    let answered = |id: &Value| {
        let mut replies = poked.replies.iter();
        replies.any(|(_, reply)| match reply {
            Value::Array(all) => all.iter().any(|reply| is_result_for(reply, id)),
            reply => is_result_for(reply, id),
        })
    };
    match ids.iter().find(|id| !answered(id)) {
        None => Seen::at(poked.entries()),
        Some(id) => {
            let what = format!("no result for the request {id} of the batch");
            Err(Unmet::broken(what, poked.entries()))
        }
    }
}

async fn send_batch(visit: &Visit) -> Result<(Poked, [Value; 2]), Unmet> {
    let session = visit.session().await?;
    let ids = [json!("batch-1"), json!("batch-2")];
    let request = |id: &Value| {
        let method = session.speech.harmless();
        session.speech.request(id.clone(), method, Value::Null)
    };
    let unknown = session
        .speech
        .notification("notifications/turnbuckle/unknown", Value::Null);
    let batch = json!([request(&ids[0]), unknown, request(&ids[1])]);
    let poked = Poked::with(visit, session, &batch.to_string(), &ids).await?;
    Ok((poked, ids))
}

fn is_result_for(reply: &Value, id: &Value) -> bool {
    reply.get("id") == Some(id) && reply.get("result").is_some()
}

/// Ids are known by the line on which they came. On HTTP a session has many streams, so nothing is said there.
fn new_ids(_: &Visit, tape: &Tape) -> Outcome {
    let mut used = HashMap::new();
    for (number, channel, message) in received(tape) {
        let (Some(_), Some(id)) = (request(&message), message.get("id")) else {
            continue;
        };
        if let Some(before) = used.insert((channel, id.to_string()), number) {
            let what = format!("the id {id} for two requests");
            return Err(Unmet::broken(what, [before, number]));
        }
    }
    match used.is_empty() {
        true => Err(Unmet::not_applicable("the server asked for nothing")),
        false => Seen::at(used.into_values().take(3)),
    }
}

fn notifications_without_id(_: &Visit, tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for (number, _, message) in received(tape) {
        let Some(method) = message["method"].as_str() else {
            continue;
        };
        let notifies = method.starts_with("notifications/");
        match message.get("id") {
            Some(id) if notifies => {
                let what = format!("`{method}` with the id {id}");
                return Err(Unmet::broken(what, [number]));
            }
            None => seen.push(number),
            Some(_) => {}
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("the server notifies of nothing")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

/// Returns the messages that the server has sent, with their entries and their channels.
fn received(tape: &Tape) -> Vec<(usize, usize, Value)> {
    let theirs = tape.all().into_iter().filter_map(|(number, entry)| {
        let message = entry.json().filter(|_| entry.way == Way::Received)?;
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
