//! POST: one message in, one answer out.

use std::{pin::pin, sync::Arc};

use ::http::{
    HeaderMap, Response, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use bytes::Bytes;
use turnbuckle_protocol::{
    codec::headers::{Acceptable, MediaType, acceptable, content_type},
    jsonrpc::{self, Incoming, Message, Request},
};

use super::{
    Sessions,
    body::Body,
    endpoint::{Endpoint, Head},
    incoming, known,
    mirror::MCP_SESSION_ID,
    refusal, session, stateless, unremembered,
};
use crate::{
    exchange::Exchange,
    lifecycle::{self, may_have_session, stands_alone},
};

/// Answers a POST on the endpoint.
pub(super) async fn post<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    head: &Head,
    body: B,
) -> Response<Body> {
    if let Err(refusal) = check(&head.headers) {
        return refusal;
    }
    let permit = match endpoint.admit() {
        Ok(permit) => permit,
        Err(refusal) => return refusal,
    };
    let options = &endpoint.options;
    let bytes = match incoming::read(endpoint, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let in_session = options.sessions == Sessions::On
        && head.headers.contains_key(MCP_SESSION_ID)
        && may_have_session(head.version());
    // Boxed, so that a connection that never has a session does not pay for it with its size.
    if in_session {
        return Box::pin(session::post(endpoint, head, &bytes, permit)).await;
    }
    let exchange = match judge(endpoint, head, &bytes) {
        Verdict::Answer(exchange) => exchange,
        Verdict::Handshake => return Box::pin(session::initialize(endpoint, head, &bytes)).await,
        Verdict::WithoutSession => {
            return Box::pin(unremembered::post(endpoint, head, &bytes, permit)).await;
        }
        Verdict::Done(response) => return response,
    };
    drop(bytes);
    stateless::answer(exchange, permit, options).await
}

/// What is to be done with a message outside of any session.
enum Verdict {
    Answer(Exchange),
    Handshake,
    WithoutSession,
    Done(Response<Body>),
}

fn judge(endpoint: &Endpoint, head: &Head, bytes: &Bytes) -> Verdict {
    let message = match jsonrpc::parse(bytes) {
        Ok(Incoming::One(Message::Request(request))) => {
            return judge_request(endpoint, head, &request);
        }
        Ok(message) => message,
        Err(malformed) => {
            // The id of an answer is ours: the client would take it for one of its own.
            let id = malformed.id.as_ref().filter(|_| !malformed.is_answer());
            return Verdict::Done(refusal::error(
                StatusCode::BAD_REQUEST,
                id,
                &malformed.error,
            ));
        }
    };
    if !may_have_session(head.version()) {
        return Verdict::Done(match message {
            Incoming::One(Message::Notification(_)) => refusal::empty(StatusCode::ACCEPTED),
            Incoming::One(_) => refusal::plain(
                StatusCode::BAD_REQUEST,
                "this revision has no requests to clients, so there is nothing to answer",
            ),
            Incoming::Batch(_) => refusal::plain(StatusCode::BAD_REQUEST, NO_BATCH),
        });
    }
    match endpoint.options.sessions {
        Sessions::Off => Verdict::WithoutSession,
        Sessions::On => Verdict::Done(known::needed(None)),
    }
}

fn judge_request(endpoint: &Endpoint, head: &Head, request: &Request<'_>) -> Verdict {
    let meta = match lifecycle::meta(request) {
        Ok(meta) => meta,
        Err(error) => {
            return Verdict::Done(refusal::error(
                StatusCode::BAD_REQUEST,
                Some(&request.id),
                &error,
            ));
        }
    };
    if stands_alone(&request.method, &meta, || head.version()) {
        return match stateless::begin(&endpoint.server, head, request, meta) {
            Ok(exchange) => Verdict::Answer(exchange),
            Err(refusal) => Verdict::Done(refusal),
        };
    }
    if request.method == "initialize" {
        return Verdict::Handshake;
    }
    match endpoint.options.sessions {
        Sessions::Off => Verdict::WithoutSession,
        Sessions::On => Verdict::Done(known::needed(Some(&request.id))),
    }
}

/// What to say about an array where there may be none.
pub(super) const NO_BATCH: &str = "send one message at a time: this revision has no batches";

/// Checks that the body is JSON and that the client is ready for either kind of answer.
fn check(headers: &HeaderMap) -> Result<(), Response<Body>> {
    check_content(headers)?;
    if accepts(headers).both() {
        return Ok(());
    }
    Err(refusal::plain(
        StatusCode::NOT_ACCEPTABLE,
        "send `Accept: application/json, text/event-stream`",
    ))
}

/// Checks that the body is JSON.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), Response<Body>> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(refusal::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the body without `Content-Encoding`",
        ));
    }
    let json = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value == "application/json" || content_type(value) == MediaType::Json);
    if json {
        return Ok(());
    }
    Err(refusal::plain(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "send `Content-Type: application/json`",
    ))
}

/// What nearly every client sends.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";

/// What the client is ready to read.
pub(super) fn accepts(headers: &HeaderMap) -> Acceptable {
    let mut values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    match (values.next(), values.next()) {
        (Some(USUAL_ACCEPT), None) => Acceptable {
            json: true,
            event_stream: true,
        },
        (Some(first), None) => acceptable(first),
        (Some(first), Some(second)) => {
            let joined = [first, second].into_iter().chain(values);
            acceptable(&joined.collect::<Vec<_>>().join(","))
        }
        (None, _) => acceptable(""),
    }
}
