//! Clients of revisions with a handshake, where no sessions are kept: every request is judged by its version header.
//!
//! There is no stream to resume and nobody to ask, so a call ends with its connection.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, Incoming, Malformed, Message, Request},
};
use turnbuckle_store::SessionRecord;

use super::{
    batch,
    body::Body,
    endpoint::{Endpoint, Head, Permit},
    presence::Presence,
    refusal, stateless,
    work::{Next, Work},
};
use crate::{
    exchange::{Answer, Exchange},
    lifecycle::{
        self,
        live::Live,
        session::{self, Begun},
    },
};

/// Answers a POST that belongs to no session, where none is needed.
pub(super) async fn post(
    endpoint: &Arc<Endpoint>,
    head: &Head,
    bytes: &Bytes,
    permit: Permit,
) -> Response<Body> {
    let principal = head.principal().as_deref().cloned();
    let record = head
        .version
        .check_one()
        .and_then(|()| session::unremembered(head.version(), principal));
    let record = match record {
        Ok(record) => record,
        Err(error) => return refusal::error(StatusCode::BAD_REQUEST, None, &error),
    };
    match jsonrpc::parse(bytes) {
        Ok(Incoming::One(Message::Request(request))) => {
            match begin(endpoint, &record, Arc::default(), head, &request) {
                Ok(exchange) => stateless::answer(exchange, permit, &endpoint.options).await,
                Err(error) => refusal::error(StatusCode::OK, Some(&request.id), &error),
            }
        }
        // Nothing runs that they could refer to.
        Ok(Incoming::One(_)) => refusal::empty(StatusCode::ACCEPTED),
        Ok(Incoming::Batch(entries)) => answer_batch(endpoint, &record, head, entries).await,
        Err(malformed) => refusal::error(
            StatusCode::BAD_REQUEST,
            malformed.id.as_ref(),
            &malformed.error,
        ),
    }
}

fn begin(
    endpoint: &Endpoint,
    record: &SessionRecord,
    live: Arc<Live>,
    head: &Head,
    request: &Request<'_>,
) -> Result<Exchange, RpcError> {
    let meta = lifecycle::meta(request)?;
    let arrival = head.arrival();
    match session::begin(&endpoint.server, record, live, request, &meta, arrival) {
        // What nobody remembers is still answered: the client cannot know.
        Begun::Exchange(exchange) | Begun::Change(_, exchange) => Ok(exchange),
    }
}

/// Answers an array of messages as an array. What comes before the answers has no place in it.
async fn answer_batch(
    endpoint: &Endpoint,
    record: &SessionRecord,
    head: &Head,
    entries: Vec<Result<Message<'_>, Malformed>>,
) -> Response<Body> {
    let rules = session::rules(record);
    if let Err(refusal) = batch::check(rules, &entries) {
        return refusal;
    }
    let presence: Arc<Presence> = Arc::default();
    let mut work = Work::batch();
    for entry in entries {
        let request = match entry {
            Ok(Message::Request(request)) => request,
            Ok(_) => continue,
            // Nothing was asked that it could belong to.
            Err(malformed) if malformed.is_answer() => continue,
            Err(malformed) => {
                work.push_answer(batch::refused(rules, &malformed));
                continue;
            }
        };
        let begun =
            begin(endpoint, record, presence.live.clone(), head, &request).and_then(|exchange| {
                presence
                    .begin(&exchange.call)
                    .map(|running| (exchange, running))
            });
        match begun {
            Ok((exchange, running)) => work.push(exchange, running),
            Err(error) => work.push_answer(Answer::error(Some(&request.id), &error, 200)),
        }
    }
    while !matches!(work.next().await, Next::Done) {}
    match work.into_answer() {
        Some(answer) => refusal::answer(answer),
        None => refusal::empty(StatusCode::ACCEPTED),
    }
}
