//! Requests that stay open to hear of changes.

use serde_json::{Value, json};

use super::{ACKNOWLEDGED, CHANGES, UPDATED};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{Message, answer_to, messages, received};
use crate::tape::Way;
use crate::trials::{Listening, SUBSCRIPTION, Trial, Trials};
use crate::visit::Visit;

pub(super) async fn acknowledged_first(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for listening in listening(visit.trials().await?)? {
        let stream = listening.stream(visit);
        let Some(first) = stream.first() else {
            let astray = acknowledgements(visit).len();
            return Err(match astray {
                0 => Unmet::broken("no acknowledgement", listening.sent(visit)),
                _ => Unmet::not_tested("the acknowledgement bears another id"),
            });
        };
        if first.value["method"] != ACKNOWLEDGED {
            let what = match first.value.get("error") {
                Some(error) => format!("the error {} instead of an acknowledgement", error["code"]),
                None => format!("{} before the acknowledgement", name(first)),
            };
            return Err(Unmet::broken(
                what,
                listening.sent(visit).into_iter().chain([first.at]),
            ));
        }
        seen.push(first.at);
    }
    Seen::at(seen)
}

pub(super) async fn acknowledges_subset(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for listening in listening(visit.trials().await?)? {
        let stream = listening.stream(visit);
        let acknowledgement = stream.iter().find(|it| it.value["method"] == ACKNOWLEDGED);
        let Some(acknowledgement) = acknowledgement else {
            return Err(Unmet::not_tested("there is no acknowledgement"));
        };
        let Some(promised) = acknowledgement.value["params"]["notifications"].as_object() else {
            return Err(Unmet::not_tested(
                "the acknowledgement does not say of what",
            ));
        };
        for (kind, value) in promised {
            if !is_part(value, &listening.filter[kind]) {
                let what = format!("`{kind}` is acknowledged as {value}, which was not asked for");
                return Err(Unmet::broken(what, [acknowledgement.at]));
            }
        }
        seen.extend(listening.sent(visit));
        seen.push(acknowledgement.at);
    }
    Seen::at(seen)
}

pub(super) async fn tagged(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let listening = listening(trials)?;
    let of_streams: Vec<_> = match trials.session.http().is_ok() {
        true => listening
            .iter()
            .flat_map(|it| with_id(&it.id, it.stream(visit)))
            .collect(),
        false => {
            // On a line only the id tells to whom a change is told.
            let told = messages(&visit.tape, Way::Received).filter(|it| is_change(&it.value));
            told.map(|message| (Value::Null, message)).collect()
        }
    };
    let ids = sent_ids(visit);
    let mut seen = Vec::new();
    for (id, message) in of_streams {
        let tag = &message.value["params"]["_meta"][SUBSCRIPTION];
        let right = match &id {
            Value::Null => ids.contains(tag),
            id => tag == id,
        };
        if !right {
            let what = match tag {
                Value::Null => format!("{} without the id of the subscription", name(&message)),
                tag => format!(
                    "{} with the id {tag}, which is that of no such request",
                    name(&message)
                ),
            };
            return Err(Unmet::broken(what, [message.at]));
        }
        seen.push(message.at);
    }
    Seen::at(seen.into_iter().take(3))
}

pub(super) async fn only_asked(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let mut changes = Vec::new();
    for listening in listening(trials)? {
        for message in listening.stream(visit) {
            let method = message.value["method"].as_str().unwrap_or(ACKNOWLEDGED);
            if !lets_through(&listening.filter, method, &message.value) {
                let what = format!("`{method}` for the filter {}", listening.filter);
                return Err(Unmet::broken(
                    what,
                    listening.sent(visit).into_iter().chain([message.at]),
                ));
            }
            if method != ACKNOWLEDGED {
                changes.push(message.at);
            }
        }
    }
    match changes.is_empty() {
        true => Err(trials.none("tells of a change")),
        false => Seen::at(changes),
    }
}

pub(super) async fn stops(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let filter = listening(trials)?[0].filter.clone();
    let telling = trials.made.iter().find(|trial| {
        let told = CHANGES
            .iter()
            .any(|(method, ..)| !trial.heard(visit, method).is_empty());
        told || !trial.heard(visit, UPDATED).is_empty()
    });
    let Some(telling) = telling else {
        return Err(trials.none("tells of a change"));
    };
    let session = visit.fresh().await?;
    let id = json!("check-stops");
    let listening = Listening::begin(visit, &session, id.clone(), filter).await?;
    session
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await?;
    // A request that is answered shows that the cancellation was read.
    session
        .ask("server/discover", json!({}))
        .await
        .map_err(Unmet::aside)?;
    let before = listening.stream(visit).len();
    let again = Trial::make(visit, &session, &telling.call, json!({})).await;
    session.listen(visit.options.silence).await;
    match listening.stream(visit).get(before) {
        Some(message) if message.value.get("method").is_some() => {
            let what = format!("{} after the subscription was cancelled", name(message));
            Err(Unmet::broken(what, [message.at]))
        }
        _ => {
            // Of a call that came to nothing, silence tells nothing.
            again.answer()?;
            Seen::at(listening.sent(visit).into_iter().chain(again.entries()))
        }
    }
}

pub(super) fn end_tagged(visit: &Visit) -> Outcome {
    let requests =
        messages(&visit.tape, Way::Sent).filter(|it| it.value["method"] == "subscriptions/listen");
    let mut seen = Vec::new();
    for request in requests {
        let id = &request.value["id"];
        let answers = |it: &Message| {
            it.entry.channel == request.entry.channel
                && it.value["id"] == *id
                && it.value.get("method").is_none()
        };
        let answer = answer_to(&visit.tape, request.at)
            .or_else(|| messages(&visit.tape, Way::Received).find(answers));
        let Some(answer) = answer.filter(|answer| answer.value.get("result").is_some()) else {
            continue;
        };
        let tag = &answer.value["result"]["_meta"][SUBSCRIPTION];
        if tag != id {
            let what = format!("a result that ends the subscription {id} and names {tag}");
            return Err(Unmet::broken(what, [request.at, answer.at]));
        }
        seen.push(answer.at);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("the server ended no subscription")),
        false => Seen::at(seen),
    }
}

pub(super) async fn subscribe_is_gone(visit: &Visit) -> Outcome {
    let resources = &visit.discovered().await?.resources;
    let uri = resources
        .iter()
        .find_map(|it| it["uri"].as_str())
        .unwrap_or("check://nothing");
    let subscribe =
        crate::server::is_gone(visit, "resources/subscribe", json!({ "uri": uri })).await?;
    let mut seen =
        crate::server::is_gone(visit, "resources/unsubscribe", json!({ "uri": uri })).await?;
    seen.entries.extend(subscribe.entries);
    Ok(seen)
}

/// Returns the requests that listen.
fn listening(trials: &Trials) -> Result<Vec<&Listening>, Unmet> {
    let all: Vec<_> = trials
        .news
        .everything
        .iter()
        .chain(&trials.news.nothing)
        .collect();
    match all.is_empty() {
        true => Err(Unmet::not_applicable(
            "the server declares nothing that it would tell of",
        )),
        false => Ok(all),
    }
}

fn with_id(id: &Value, stream: Vec<Message>) -> impl Iterator<Item = (Value, Message)> {
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

fn sent_ids(visit: &Visit) -> Vec<Value> {
    let requests =
        messages(&visit.tape, Way::Sent).filter(|it| it.value["method"] == "subscriptions/listen");
    requests
        .map(|request| request.value["id"].clone())
        .collect()
}

fn acknowledgements(visit: &Visit) -> Vec<Message> {
    received(&visit.tape, ACKNOWLEDGED)
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

fn name(message: &Message) -> String {
    match message.value["method"].as_str() {
        Some(method) => format!("`{method}`"),
        None => "an answer".to_owned(),
    }
}
