//! Requests that nobody wants answered any more.

use std::time::Duration;

use serde_json::{Value, json};

use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{Message, is_heard_with, messages, messages_within, received};
use crate::rule::{Area, Rule};
use crate::session::Session;
use crate::tape::Way;
use crate::trials::Trial;
use crate::visit::Visit;

/// The name of the notification.
const CANCELLED: &str = "notifications/cancelled";

/// A call that takes so long can be cancelled before it is done.
const LONG: Duration = Duration::from_millis(100);

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "cancellation.no-answer",
        Area::Cancellation,
        &["cancellation.receiver.no-response"],
    )
    .says("A request that was cancelled while it was worked on is not answered.")
    .cure("Stop working on a request when `notifications/cancelled` names it, and send no answer.")
    .ask(|visit| Box::pin(no_answer(visit))),
    Rule::server(
        "cancellation.strays-ignored",
        Area::Cancellation,
        &["cancellation.invalid-ignored"],
    )
    .says("A cancellation that names no open request, or none at all, is ignored.")
    .cure("Say nothing when the request is unknown or done, or when the notification cannot be read.")
    .ask(|visit| Box::pin(strays_ignored(visit))),
    Rule::server("cancellation.survived", Area::Cancellation, &["cancellation.race"])
        .says("A cancellation that crosses with the answer disturbs nothing: later requests are answered.")
        .cure("Let a cancellation that comes too late pass, and keep the connection and its other requests alive.")
        .ask(|visit| Box::pin(survived(visit))),
    Rule::server(
        "cancellation.own-requests",
        Area::Cancellation,
        &["cancellation.reference.direction", "cancellation.reference.in-progress", "cancellation.server-only-listen"],
    )
    .says("A server cancels what it has asked itself and still waits for; where it asks nothing, it cancels listening only.")
    .cure("Name in `notifications/cancelled` only a request of one's own that is open, or the `subscriptions/listen` that ends.")
    .look(|visit, _| own_requests(visit)),
];

async fn no_answer(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let long = trials
        .made
        .iter()
        .filter(|trial| trial.took >= LONG && trial.answer().is_ok());
    let Some(trial) = long.min_by_key(|trial| trial.took) else {
        return Err(trials.none("takes long enough to be cancelled"));
    };
    let session = visit.fresh().await?;
    is_told(&session)?;
    let from = visit.tape.len();
    let pending = session
        .begin_with("tools/call", trial.call.params(), trial.call.headers())
        .await?;
    // Let the work begin: what was not begun could be dropped without any care.
    session.listen(LONG / 4).await;
    let mut said = messages_within(&visit.tape, Way::Received, from..visit.tape.len());
    if said.any(|message| is_answer(&message, pending.id.as_ref())) {
        return Err(done_already());
    }
    cancel(&session, pending.id.clone().unwrap_or_default()).await?;
    // Whoever does not stop is done when it was done before, or a little later.
    let patience = trial.took + trial.took / 4 + 2 * visit.options.silence;
    match session.answer_within(pending, patience).await {
        Ok(answer) if !answer.value.is_null() => {
            // Both may have crossed, if it takes less time than it did.
            let again = Trial::make(visit, &session, &trial.call, json!({})).await;
            if again.took < LONG {
                return Err(done_already());
            }
            let what = format!("{} for a request that was cancelled", answer.describe());
            Err(answer.broken(what))
        }
        Ok(answer) => answer.seen(),
        Err(_) => {
            let sent = messages_within(&visit.tape, Way::Sent, from..visit.tape.len());
            Seen::at(sent.map(|message| message.at))
        }
    }
}

fn is_answer(message: &Message, id: Option<&Value>) -> bool {
    message.value.get("method").is_none() && message.value.get("id") == id
}

fn done_already() -> Unmet {
    Unmet::not_tested("the call took long once, and was then done before it could be cancelled")
}

async fn strays_ignored(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    is_told(&session)?;
    let done = session
        .ask(harmless(&session), json!({}))
        .await
        .map_err(Unmet::aside)?;
    let done = done
        .sent
        .and_then(|sent| visit.tape.entry(sent).json())
        .unwrap_or_default();
    let strays = [
        json!({ "requestId": "check-never-asked" }),
        json!({ "requestId": done["id"] }),
        json!({ "reason": "nobody knows" }),
    ];
    let from = visit.tape.len();
    for stray in strays {
        let message = session.speech.notification(CANCELLED, stray);
        let pending = session.send(message, true).await?;
        if session.http().is_ok() {
            // What the status has to be is for another rule to say.
            let _ = session.answer(pending).await;
        }
    }
    let alive = session
        .ask(harmless(&session), json!({}))
        .await
        .map_err(Unmet::aside)?;
    let here = |at: usize| {
        let sent = alive.sent;
        sent.is_none_or(|sent| is_heard_with(&visit.tape, sent, at))
    };
    let replies = messages(&visit.tape, Way::Received)
        .filter(|message| message.at >= from && Some(message.at) != alive.received)
        .filter(|message| here(message.at) && !is_refusal(message))
        .find(|message| {
            message.value.get("error").is_some() || message.value.get("result").is_some()
        });
    match replies {
        Some(reply) => {
            let what = format!("an answer to a notification: {}", reply.value);
            Err(Unmet::broken(what, [reply.at]))
        }
        None => alive.seen(),
    }
}

/// Says whether it is the body of a response that refuses what was posted, which HTTP lets a server do.
fn is_refusal(message: &Message) -> bool {
    let of_http = message.entry.head.is_some();
    of_http && message.value.get("id").is_none_or(Value::is_null)
}

async fn survived(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let pending = session.begin(harmless(&session), json!({})).await?;
    let id = pending.id.clone().unwrap_or_default();
    match is_told(&session) {
        Ok(()) => {
            cancel(&session, id).await?;
            // It may be answered or not: both cross.
            let _ = session.answer_within(pending, visit.options.silence).await;
        }
        Err(_) => drop(pending),
    }
    let told = visit.tape.len().saturating_sub(1);
    let after = session.ask(harmless(&session), json!({})).await;
    let after = after.map_err(|unmet| match unmet {
        // Whoever is gone already cannot even be asked.
        Unmet::NotTested(why) if !visit.tape.is_full() => Unmet::broken(why, [told]),
        unmet => unmet,
    })?;
    // What is wrong with the answer itself is the business of others.
    after.seen()
}

fn own_requests(visit: &Visit) -> Outcome {
    let cancelled = received(&visit.tape, CANCELLED);
    if cancelled.is_empty() {
        return Err(Unmet::not_applicable("the server cancelled nothing"));
    }
    for message in &cancelled {
        let id = &message.value["params"]["requestId"];
        if (id.is_string() || id.is_number()) && !may_cancel(visit, message, id) {
            let what = format!("a cancellation of {id}, which is no open request of the server's");
            return Err(Unmet::broken(what, [message.at]));
        }
    }
    Seen::at(cancelled.iter().map(|message| message.at).take(3))
}

/// Says whether the server may cancel the request of this id.
fn may_cancel(visit: &Visit, cancellation: &Message, id: &Value) -> bool {
    let named = |message: &Message| message.at < cancellation.at && message.value["id"] == *id;
    if !crate::speech::Speech::new(visit.revision).has_handshake() {
        return messages(&visit.tape, Way::Sent)
            .any(|message| named(&message) && message.value["method"] == "subscriptions/listen");
    }
    let mut asked = messages(&visit.tape, Way::Received);
    asked.any(|message| named(&message) && message.value.get("method").is_some())
}

/// Makes sure that cancelling is a message: without a handshake, HTTP closes the stream instead.
fn is_told(session: &Session) -> Result<(), Unmet> {
    match session.http().is_ok() && !session.speech.has_handshake() {
        true => Err(Unmet::not_applicable("whoever closes the stream cancels")),
        false => Ok(()),
    }
}

async fn cancel(session: &Session, id: Value) -> Result<(), Unmet> {
    let params = json!({ "requestId": id, "reason": "This is a check." });
    session.notify(CANCELLED, params).await.map(drop)
}

/// Returns a request that anybody answers.
fn harmless(session: &Session) -> &'static str {
    match session.speech.has_handshake() {
        true => "ping",
        false => "server/discover",
    }
}
