//! Requests that nobody wants answered any more.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
        transcript_query::{
            TranscriptMessage, is_same_session, messages, messages_within, received,
        },
    },
    probe::tool_runs::ToolRun,
    rule::{Area, Rule},
    session::Session,
};

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
    .requirement("A request that was cancelled while it was worked on is not answered.")
    .fix("Stop working on a request when `notifications/cancelled` names it, and send no answer.")
    .active(|ctx| Box::pin(no_response(ctx))),
    Rule::server(
        "cancellation.strays-ignored",
        Area::Cancellation,
        &["cancellation.invalid-ignored"],
    )
    .requirement("A cancellation that names no open request, or none at all, is ignored.")
    .fix("Say nothing when the request is unknown or done, or when the notification cannot be read.")
    .active(|ctx| Box::pin(strays_ignored(ctx))),
    Rule::server("cancellation.survived", Area::Cancellation, &["cancellation.race"])
        .requirement("A cancellation that crosses with the answer disturbs nothing: later requests are answered.")
        .fix("Let a cancellation that comes too late pass, and keep the connection and its other requests alive.")
        .active(|ctx| Box::pin(survived(ctx))),
    Rule::server(
        "cancellation.own-requests",
        Area::Cancellation,
        &["cancellation.reference.direction", "cancellation.reference.in-progress", "cancellation.server-only-listen"],
    )
    .requirement("A server cancels what it has asked itself and still waits for; where it asks nothing, it cancels listening only.")
    .fix("Name in `notifications/cancelled` only a request of one's own that is open, or the `subscriptions/listen` that ends.")
    .passive(|ctx, _| own_requests(ctx)),
];

async fn no_response(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let long = tool_runs
        .runs
        .iter()
        .filter(|run| run.duration >= LONG && run.response().is_ok());
    let Some(run) = long.min_by_key(|run| run.duration) else {
        return Err(tool_runs.none("takes long enough to be cancelled"));
    };
    let session = ctx.new_session().await?;
    is_notified(&session)?;
    let from = ctx.transcript.len();
    let pending = session
        .send_request_with_headers("tools/call", run.call.params(), run.call.headers())
        .await?;
    // Let the work begin: what was not begun could be dropped without any care.
    session.listen(LONG / 4).await;
    let mut received = messages_within(
        &ctx.transcript,
        Direction::Received,
        from..ctx.transcript.len(),
    );
    if received.any(|message| is_response(&message, pending.id.as_ref())) {
        return Err(done_already());
    }
    cancel(&session, pending.id.clone().unwrap_or_default()).await?;
    // Whoever does not stop is done when it was done before, or a little later.
    let response_timeout = run.duration + run.duration / 4 + 2 * ctx.options.quiet_period;
    match session
        .wait_response_within(pending, response_timeout)
        .await
    {
        Ok(response) if !response.value.is_null() => {
            // Both may have crossed, if it takes less time than it did.
            let again = ToolRun::run(ctx, &session, &run.call, json!({})).await;
            if again.duration < LONG {
                return Err(done_already());
            }
            let observed = format!("{} for a request that was cancelled", response.describe());
            Err(response.violation(observed))
        }
        Ok(response) => response.evidence(),
        Err(_) => {
            let sent =
                messages_within(&ctx.transcript, Direction::Sent, from..ctx.transcript.len());
            Evidence::from_entries(sent.map(|message| message.at))
        }
    }
}

fn is_response(message: &TranscriptMessage, id: Option<&Value>) -> bool {
    message.value.get("method").is_none() && message.value.get("id") == id
}

fn done_already() -> NotPassed {
    NotPassed::not_tested("the call took long once, and was then done before it could be cancelled")
}

async fn strays_ignored(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    is_notified(&session)?;
    let done = session
        .request(harmless(&session), json!({}))
        .await
        .map_err(NotPassed::as_not_tested)?;
    let done = done
        .sent
        .and_then(|sent| ctx.transcript.entry(sent).json())
        .unwrap_or_default();
    let strays = [
        json!({ "requestId": "check-never-asked" }),
        json!({ "requestId": done["id"] }),
        json!({ "reason": "nobody knows" }),
    ];
    let from = ctx.transcript.len();
    for stray in strays {
        let message = session.request_builder.notification(CANCELLED, stray);
        let pending = session.send_message(message, true).await?;
        if session.http().is_ok() {
            // What the status has to be is for another rule to say.
            let _ = session.wait_response(pending).await;
        }
    }
    let alive = session
        .request(harmless(&session), json!({}))
        .await
        .map_err(NotPassed::as_not_tested)?;
    let here = |at: usize| {
        let sent = alive.sent;
        sent.is_none_or(|sent| is_same_session(&ctx.transcript, sent, at))
    };
    let replies = messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.at >= from && Some(message.at) != alive.received)
        .filter(|message| here(message.at) && !is_rejection(message))
        .find(|message| {
            message.value.get("error").is_some() || message.value.get("result").is_some()
        });
    match replies {
        Some(reply) => {
            let observed = format!("an answer to a notification: {}", reply.value);
            Err(NotPassed::violation(observed, [reply.at]))
        }
        None => alive.evidence(),
    }
}

/// Says whether it is the body of a response that refuses what was posted, which HTTP lets a server do.
fn is_rejection(message: &TranscriptMessage) -> bool {
    let of_http = message.entry.head.is_some();
    of_http && message.value.get("id").is_none_or(Value::is_null)
}

async fn survived(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let pending = session.send_request(harmless(&session), json!({})).await?;
    let id = pending.id.clone().unwrap_or_default();
    match is_notified(&session) {
        Ok(()) => {
            cancel(&session, id).await?;
            // It may be answered or not: both cross.
            let _ = session
                .wait_response_within(pending, ctx.options.quiet_period)
                .await;
        }
        Err(_) => drop(pending),
    }
    let told = ctx.transcript.len().saturating_sub(1);
    let after = session.request(harmless(&session), json!({})).await;
    let after = after.map_err(|failure| match failure {
        // Whoever is gone already cannot even be asked.
        NotPassed::NotTested(why) if !ctx.transcript.is_full() => NotPassed::violation(why, [told]),
        failure => failure,
    })?;
    // What is wrong with the answer itself is the business of others.
    after.evidence()
}

fn own_requests(ctx: &CheckContext) -> Outcome {
    let cancelled = received(&ctx.transcript, CANCELLED);
    if cancelled.is_empty() {
        return Err(NotPassed::not_applicable("the server cancelled nothing"));
    }
    for message in &cancelled {
        let id = &message.value["params"]["requestId"];
        if (id.is_string() || id.is_number()) && !may_cancel(ctx, message, id) {
            let observed =
                format!("a cancellation of {id}, which is no open request of the server's");
            return Err(NotPassed::violation(observed, [message.at]));
        }
    }
    Evidence::from_entries(cancelled.iter().map(|message| message.at).take(3))
}

/// Says whether the server may cancel the request of this id.
fn may_cancel(ctx: &CheckContext, cancellation: &TranscriptMessage, id: &Value) -> bool {
    let named =
        |message: &TranscriptMessage| message.at < cancellation.at && message.value["id"] == *id;
    if !crate::session::request_builder::RequestBuilder::new(ctx.revision).has_handshake() {
        return messages(&ctx.transcript, Direction::Sent)
            .any(|message| named(&message) && message.value["method"] == "subscriptions/listen");
    }
    let mut asked = messages(&ctx.transcript, Direction::Received);
    asked.any(|message| named(&message) && message.value.get("method").is_some())
}

/// Makes sure that cancelling is a message: without a handshake, HTTP closes the stream instead.
fn is_notified(session: &Session) -> Result<(), NotPassed> {
    if session.http().is_ok() && !session.request_builder.has_handshake() {
        Err(NotPassed::not_applicable(
            "whoever closes the stream cancels",
        ))
    } else {
        Ok(())
    }
}

async fn cancel(session: &Session, id: Value) -> Result<(), NotPassed> {
    let params = json!({ "requestId": id, "reason": "This is a check." });
    session.notify(CANCELLED, params).await.map(drop)
}

/// Returns a request that anybody answers.
fn harmless(session: &Session) -> &'static str {
    if session.request_builder.has_handshake() {
        "ping"
    } else {
        "server/discover"
    }
}
