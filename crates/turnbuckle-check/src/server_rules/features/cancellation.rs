//! Cancelled requests.

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

/// The shortest duration of a call that can be cancelled before it finishes.
const MIN_CANCELLABLE_DURATION: Duration = Duration::from_millis(100);

/// The number of calls to cancel until the outcome is clear.
const MAX_ATTEMPTS: usize = 3;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "cancellation.no-answer",
        Area::Cancellation,
        &["cancellation.receiver.no-response"],
    )
    .requirement("The server does not respond to a request that was cancelled in flight.")
    .hint("Stop processing a request when `notifications/cancelled` references it, and send no response.")
    .active(|ctx| Box::pin(no_response(ctx))),
    Rule::server(
        "cancellation.strays-ignored",
        Area::Cancellation,
        &["cancellation.invalid-ignored"],
    )
    .requirement("The server ignores a cancellation of an unknown or finished request, and a malformed cancellation.")
    .hint("Send nothing when the request is unknown or finished, or when the notification is malformed.")
    .active(|ctx| Box::pin(strays_ignored(ctx))),
    Rule::server("cancellation.survived", Area::Cancellation, &["cancellation.race"])
        .requirement("The server responds to later requests after a cancellation that arrives with the response.")
        .hint("Ignore a cancellation that arrives too late, and keep the connection and its other requests.")
        .active(|ctx| Box::pin(survived(ctx))),
    Rule::server(
        "cancellation.own-requests",
        Area::Cancellation,
        &["cancellation.reference.direction", "cancellation.reference.in-progress", "cancellation.server-only-listen"],
    )
    .requirement("The server cancels only requests that it sent and that are in flight; in the modern era, only `subscriptions/listen`.")
    .hint("Reference in `notifications/cancelled` only a server request in flight, or the `subscriptions/listen` that ends.")
    .passive(|ctx, _| own_requests(ctx)),
];

async fn no_response(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let long = tool_runs
        .runs
        .iter()
        .filter(|run| run.duration >= MIN_CANCELLABLE_DURATION && run.response().is_ok());
    let Some(run) = long.min_by_key(|run| run.duration) else {
        return Err(tool_runs.none("takes long enough to cancel"));
    };
    let session = ctx.new_session().await?;
    require_cancellation_message(&session)?;
    let mut has_response = false;
    for _ in 0..MAX_ATTEMPTS {
        match cancel_call(ctx, &session, run).await? {
            CancelledCall::NoResponse(entries) => return Evidence::from_entries(entries),
            CancelledCall::FinishedEarly => {}
            // A server with threads may read the cancellation and finish the call at the same time, but not twice.
            CancelledCall::Response(violation) if has_response => return Err(violation),
            CancelledCall::Response(_) => has_response = true,
        }
    }
    Err(finished_early())
}

/// The outcome of a call that was cancelled.
enum CancelledCall {
    /// No response arrived.
    NoResponse(Vec<usize>),
    /// The response was on its way before the server had read the cancellation.
    FinishedEarly,
    /// A response arrived although the server had read the cancellation.
    Response(NotPassed),
}

/// Calls a tool and cancels the call.
///
/// A request after the cancellation shows when the server has read it: a response to the call that arrives before the
/// response to that request may have crossed the cancellation, which is allowed.
async fn cancel_call(
    ctx: &CheckContext,
    session: &Session,
    run: &ToolRun,
) -> Result<CancelledCall, NotPassed> {
    let from = ctx.transcript.len();
    let pending = session
        .send_request_with_headers("tools/call", run.call.params(), run.call.headers())
        .await?;
    let id = pending.id.clone();
    let has_response = || {
        let part = from..ctx.transcript.len();
        messages_within(&ctx.transcript, Direction::Received, part)
            .any(|message| is_response(&message, id.as_ref()))
    };
    // Let the call start: a server can drop a call that has not started without cancelling any work.
    session.listen(MIN_CANCELLABLE_DURATION / 4).await;
    if has_response() {
        return Ok(CancelledCall::FinishedEarly);
    }
    cancel(session, id.clone().unwrap_or_default()).await?;
    let method = session.request_builder.noop_method();
    let later = session.request(method, Value::Null).await;
    let later = later.map_err(NotPassed::into_not_tested)?;
    if has_response() {
        return Ok(CancelledCall::FinishedEarly);
    }
    let part = from..ctx.transcript.len();
    let sent = messages_within(&ctx.transcript, Direction::Sent, part);
    let mut entries: Vec<_> = sent.map(|message| message.at).collect();
    entries.extend(later.received);
    // A server that ignores the cancellation needs about as long as before.
    let limit = run.duration + run.duration / 4 + 2 * ctx.pace.quiet_period();
    Ok(match session.wait_response_within(pending, limit).await {
        Ok(response) if !response.value.is_null() => {
            let observed = format!("{} for a cancelled request", response.describe());
            entries.extend(response.received);
            CancelledCall::Response(NotPassed::violation(observed, entries))
        }
        _ => CancelledCall::NoResponse(entries),
    })
}

fn is_response(message: &TranscriptMessage, id: Option<&Value>) -> bool {
    message.value.get("method").is_none() && message.value.get("id") == id
}

fn finished_early() -> NotPassed {
    NotPassed::not_tested(
        "the response to the call was on its way before the server had read the cancellation",
    )
}

async fn strays_ignored(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    require_cancellation_message(&session)?;
    let finished = session
        .request(session.request_builder.noop_method(), json!({}))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let finished = finished
        .sent
        .and_then(|sent| ctx.transcript.entry(sent).json())
        .unwrap_or_default();
    let strays = [
        json!({ "requestId": "check-never-sent" }),
        json!({ "requestId": finished["id"] }),
        json!({ "reason": "unknown" }),
    ];
    let from = ctx.transcript.len();
    for stray in strays {
        let message = session.request_builder.notification(CANCELLED, stray);
        let pending = session.send_message(message, true).await?;
        if session.http().is_ok() {
            // Another rule checks the status.
            let _ = session.wait_response(pending).await;
        }
    }
    let alive = session
        .request(session.request_builder.noop_method(), json!({}))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let in_session = |at: usize| {
        let sent = alive.sent;
        sent.is_none_or(|sent| is_same_session(&ctx.transcript, sent, at))
    };
    let replies = messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.at >= from && Some(message.at) != alive.received)
        .filter(|message| in_session(message.at) && !is_rejection(message))
        .find(|message| {
            message.value.get("error").is_some() || message.value.get("result").is_some()
        });
    match replies {
        Some(reply) => {
            let observed = format!("a response to a notification: {}", reply.value);
            Err(NotPassed::violation(observed, [reply.at]))
        }
        None => alive.evidence(),
    }
}

/// Returns whether the message is the body of an HTTP response that rejects the POST, which a server may send.
fn is_rejection(message: &TranscriptMessage) -> bool {
    let is_http_body = message.entry.head.is_some();
    is_http_body && message.value.get("id").is_none_or(Value::is_null)
}

async fn survived(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let pending = session
        .send_request(session.request_builder.noop_method(), json!({}))
        .await?;
    let id = pending.id.clone().unwrap_or_default();
    match require_cancellation_message(&session) {
        Ok(()) => {
            cancel(&session, id).await?;
            // The response and the cancellation cross, so a response is optional.
            let _ = session
                .wait_response_within(pending, ctx.pace.quiet_period())
                .await;
        }
        Err(_) => drop(pending),
    }
    let last_entry = ctx.transcript.len().saturating_sub(1);
    let after = session
        .request(session.request_builder.noop_method(), json!({}))
        .await;
    let after = after.map_err(|failure| match failure {
        // A closed connection is a violation too.
        NotPassed::NotTested(why) if !ctx.transcript.is_full() => {
            NotPassed::violation(why, [last_entry])
        }
        failure => failure,
    })?;
    // Other rules check the response itself.
    after.evidence()
}

fn own_requests(ctx: &CheckContext) -> Outcome {
    let cancelled = received(&ctx.transcript, CANCELLED);
    if cancelled.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server cancelled no requests",
        ));
    }
    for message in &cancelled {
        let id = &message.value["params"]["requestId"];
        if (id.is_string() || id.is_number()) && !may_cancel(ctx, message, id) {
            let observed =
                format!("a cancellation of {id}, which is not a server request in flight");
            let violation = NotPassed::violation(observed, [message.at]);
            // Applies since 2026-07-28; earlier, the first requirement of the rule is violated.
            return Err(violation.for_requirement("cancellation.server-only-listen"));
        }
    }
    Evidence::from_entries(cancelled.iter().map(|message| message.at).take(3))
}

/// Returns whether the server may cancel the request with this id.
fn may_cancel(ctx: &CheckContext, cancellation: &TranscriptMessage, id: &Value) -> bool {
    let has_id =
        |message: &TranscriptMessage| message.at < cancellation.at && message.value["id"] == *id;
    if !crate::session::request_builder::RequestBuilder::new(ctx.revision).has_handshake() {
        return messages(&ctx.transcript, Direction::Sent)
            .any(|message| has_id(&message) && message.value["method"] == "subscriptions/listen");
    }
    let mut received = messages(&ctx.transcript, Direction::Received);
    received.any(|message| has_id(&message) && message.value.get("method").is_some())
}

/// Requires that a cancellation is a message: in the modern era, an HTTP client closes the stream instead.
fn require_cancellation_message(session: &Session) -> Result<(), NotPassed> {
    if session.http().is_ok() && !session.request_builder.has_handshake() {
        Err(NotPassed::not_applicable(
            "a client cancels by closing the stream",
        ))
    } else {
        Ok(())
    }
}

async fn cancel(session: &Session, id: Value) -> Result<(), NotPassed> {
    let params = json!({ "requestId": id, "reason": "This is a check." });
    session.notify(CANCELLED, params).await.map(drop)
}
