//! Several messages in one array, which one revision has.

use std::{future::poll_fn, task::Poll};

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, Malformed, Message, Request},
    meta::RequestMeta,
};

use super::{
    body::Body,
    delivery,
    endpoint::{Head, Permit},
    known::Known,
    post::NO_BATCH,
    presence::Present,
    refusal, session,
    stateless::event_stream,
    work::{Next, Work},
};
use crate::{
    exchange::Answer,
    lifecycle::{self, Rules},
};

/// Answers an array of messages of a session.
pub(super) async fn post(
    present: Present,
    known: &Known,
    head: &Head,
    entries: Vec<Result<Message<'_>, Malformed>>,
    permit: Permit,
) -> Response<Body> {
    if let Err(refusal) = check(known.rules(), &entries) {
        return refusal;
    }
    let mut work = Work::batch();
    for entry in entries {
        match entry {
            Ok(Message::Request(request)) => {
                begin(&mut work, &present, known, head, &request).await;
            }
            Ok(Message::Notification(notification)) => {
                session::notify(&present, &notification).await;
            }
            Ok(Message::Response(response)) => present.presence.live.resolve(response),
            Ok(Message::Complaint(error)) => {
                tracing::debug!(%error, "the client could not read something");
            }
            Err(malformed) if malformed.is_answer() => {
                if let Some(id) = &malformed.id {
                    present.presence.live.spoil(id, malformed.error);
                }
            }
            Err(malformed) => work.push_answer(refused(known.rules(), &malformed)),
        }
    }
    if work.is_empty() {
        return refusal::empty(StatusCode::ACCEPTED);
    }
    if is_ready(&mut work).await {
        present.presence.live.has_answered();
        return match work.into_answer() {
            Some(answer) => refusal::answer(answer),
            None => event_stream(Body::empty()),
        };
    }
    delivery::deliver(work, known.rules(), present, permit).await
}

/// Refuses an array as a whole, where there may be none or something in it must not be.
pub(super) fn check(
    rules: &Rules,
    entries: &[Result<Message<'_>, Malformed>],
) -> Result<(), Response<Body>> {
    let checked = if rules.batches {
        lifecycle::session::check_batch(entries)
    } else {
        Err(RpcError::invalid_request(NO_BATCH))
    };
    checked.map_err(|error| refusal::without_id(rules, &error))
}

async fn begin(
    work: &mut Work,
    present: &Present,
    known: &Known,
    head: &Head,
    request: &Request<'_>,
) {
    let id = Some(&request.id);
    let meta: RequestMeta<'_> = match lifecycle::meta(request) {
        Ok(meta) => meta,
        Err(error) => return work.push_answer(Answer::error(id, &error, 200)),
    };
    let (exchange, change) = match session::begin(present, known, head, request, &meta) {
        Ok(begun) => begun,
        Err(answer) => return work.push_answer(answer),
    };
    if let Some(change) = change
        && let Err(error) = session::remember(present, change).await
    {
        return work.push_answer(Answer::error(id, &error, 200));
    }
    match present.presence.begin(&exchange.call) {
        Ok(running) => work.push(exchange, running),
        Err(error) => work.push_answer(Answer::error(id, &error, 400)),
    }
}

/// Runs the calls as far as they go at once; says whether that was to their end.
async fn is_ready(work: &mut Work) -> bool {
    loop {
        match poll_fn(|cx| Poll::Ready(work.poll_next(cx))).await {
            Poll::Ready(Next::Done) => return true,
            Poll::Ready(Next::Answered | Next::HangUp) => {}
            Poll::Ready(Next::Message(message)) => {
                work.put_back(message);
                return false;
            }
            Poll::Pending => return false,
        }
    }
}

/// What an entry that is no message is answered.
pub(super) fn refused(rules: &Rules, malformed: &Malformed) -> Answer {
    let error = &malformed.error;
    if malformed.id.is_none() && rules.null_ids {
        let mut body = Vec::new();
        jsonrpc::write_error_with_null_id(&mut body, error);
        return Answer {
            body: body.into(),
            status: 400,
            lacking: None,
        };
    }
    Answer::error(malformed.id.as_ref(), error, 400)
}
