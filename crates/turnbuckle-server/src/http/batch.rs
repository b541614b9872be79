//! Several messages in one array, which one revision has.

use std::{future::poll_fn, sync::Arc, task::Poll};

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{
    jsonrpc::{Malformed, Message, Request},
    meta::RequestMeta,
};

use super::{
    body::Body,
    delivery,
    endpoint::{Endpoint, Head, Permit},
    post::NO_BATCH,
    presence::Present,
    refusal,
    session::{self, Known},
    stateless::event_stream,
    work::{Next, Work},
};
use crate::{exchange::Answer, lifecycle};

/// Answers an array of messages of a session.
pub(super) async fn post(
    endpoint: &Arc<Endpoint>,
    known: &Known,
    head: &Head,
    entries: Vec<Result<Message<'_>, Malformed>>,
    permit: Permit,
) -> Response<Body> {
    if !known.rules().batches {
        return refusal::plain(StatusCode::BAD_REQUEST, NO_BATCH);
    }
    if let Err(message) = check(&entries) {
        return refusal::plain(StatusCode::BAD_REQUEST, message);
    }
    let present = known.enter(endpoint);
    let mut work = Work::batch();
    for entry in entries {
        match entry {
            Ok(Message::Request(request)) => {
                begin(&mut work, &present, known, head, &request).await;
            }
            Ok(Message::Notification(notification)) => {
                session::notify(endpoint, known, &notification).await;
            }
            Ok(Message::Response(response)) => present.presence.live.resolve(response),
            Ok(Message::Complaint(error)) => {
                tracing::debug!(%error, "the client could not read something");
            }
            Err(malformed) => work.push_answer(refused(known, &malformed)),
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

/// Refuses what must not be in an array.
fn check(entries: &[Result<Message<'_>, Malformed>]) -> Result<(), &'static str> {
    for entry in entries {
        let Ok(Message::Request(request)) = entry else {
            continue;
        };
        if request.method == "initialize" {
            return Err("`initialize` must not be part of a batch");
        }
        if lifecycle::meta(request).is_ok_and(|meta| meta.protocol_version.is_some()) {
            return Err("a request that names its protocol version must not be part of a batch");
        }
    }
    Ok(())
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
    let exchange = match session::begin(present, known, head, request, meta).await {
        Ok(exchange) => exchange,
        Err(answer) => return work.push_answer(answer),
    };
    match present.presence.live.begin(&exchange.call) {
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

fn refused(known: &Known, malformed: &Malformed) -> Answer {
    let error = &malformed.error;
    if malformed.id.is_none() && known.rules().null_ids {
        let mut body = Vec::new();
        turnbuckle_protocol::jsonrpc::write_error_with_null_id(&mut body, error);
        return Answer {
            body: body.into(),
            status: 400,
        };
    }
    Answer::error(malformed.id.as_ref(), error, 400)
}
