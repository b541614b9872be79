//! Messages that belong to a session.

use std::{future::poll_fn, sync::Arc, task::Poll};

use ::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{self, Incoming, Malformed, Message, Notification, Request},
    meta::RequestMeta,
};
use turnbuckle_store::{SessionChange, StoreError};

use super::{
    Sessions, batch,
    body::Body,
    delivery,
    endpoint::{Endpoint, Head, Permit},
    known::{self, Known},
    mirror::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
    presence::Present,
    quota, refusal, stateless,
    work::Work,
};
use crate::{
    exchange::{Answer, Exchange, Step},
    lifecycle::{
        self,
        session::{self, Begun},
        stands_alone,
    },
    middleware::SessionKey,
    tasks,
};

/// Answers `initialize`, and begins a session.
pub(super) async fn initialize(
    endpoint: &Arc<Endpoint>,
    head: &Head,
    bytes: &Bytes,
) -> Response<Body> {
    let Ok(Incoming::One(Message::Request(request))) = jsonrpc::parse(bytes) else {
        return refusal::plain(StatusCode::BAD_REQUEST, "`initialize` must be a request");
    };
    begin_session(endpoint, head, &request).await
}

async fn begin_session(
    endpoint: &Arc<Endpoint>,
    head: &Head,
    request: &Request<'_>,
) -> Response<Body> {
    if let Err(error) = head.version.check_one() {
        return refusal::error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
    }
    let mut arrival = head.arrival();
    arrival.is_forgotten = endpoint.options.sessions == Sessions::Off;
    let (record, mut exchange) = match session::initialize(&endpoint.server, request, arrival) {
        Ok(begun) => begun,
        Err(error) => return refusal::error(StatusCode::OK, Some(&request.id), &error),
    };
    let Step::Answer(answer) = exchange.step().await else {
        let error = RpcError::internal("the handshake has one answer");
        return refusal::error(StatusCode::OK, Some(&request.id), &error);
    };
    let version = record.revision.as_str();
    let mut response = refusal::answer(answer);
    let header = HeaderValue::from_static(version);
    response.headers_mut().insert(MCP_PROTOCOL_VERSION, header);
    if endpoint.options.sessions == Sessions::Off {
        return response;
    }
    endpoint.sweep_if_due().await;
    let record = record.owned_by(quota::owner(head));
    match endpoint.create_session(record).await {
        Ok(session) => {
            let key = SessionKey::of(&session);
            endpoint.server.session_began(key, version, "tcp");
            if let Ok(id) = HeaderValue::try_from(session.to_string()) {
                response.headers_mut().insert(MCP_SESSION_ID, id);
            }
            response
        }
        Err(error @ StoreError::TooLarge { .. }) => {
            let error = RpcError::invalid_params(error.to_string());
            refusal::error(StatusCode::OK, Some(&request.id), &error)
        }
        Err(error) => {
            if let Some(suppressed) = endpoint.logs.no_session.pass() {
                tracing::warn!(%error, suppressed, "no new session");
            }
            refuse_session(&request.id, &error)
        }
    }
}

/// Refuses a session for which there is no room, because none could be ended in its place.
fn refuse_session(id: &RequestId, error: &StoreError) -> Response<Body> {
    match error {
        StoreError::TooMany { .. } => {
            let message = format!(
                "{error}, and no idle session can make room; end one with DELETE, or try again in a few seconds"
            );
            refusal::too_many(Some(id), message)
        }
        error => refusal::busy(Some(id), error.to_string()),
    }
}

/// Answers a POST that names a session.
///
/// What comes seldom is boxed: nearly all are calls, and a small future is a cheap one.
pub(super) async fn post(
    endpoint: &Arc<Endpoint>,
    head: &Head,
    bytes: &Bytes,
    permit: Permit,
) -> Response<Body> {
    let incoming = jsonrpc::parse(bytes);
    let mut meta = RequestMeta::default();
    if let Ok(Incoming::One(Message::Request(request))) = &incoming {
        meta = match lifecycle::meta(request) {
            Ok(meta) => meta,
            Err(error) => return refusal::error(StatusCode::OK, Some(&request.id), &error),
        };
        if stands_alone(&request.method, &meta, || head.version()) {
            return match stateless::begin(&endpoint.server, head, request, meta) {
                Ok(exchange) => {
                    Box::pin(stateless::answer(exchange, permit, &endpoint.options)).await
                }
                Err(refusal) => refusal,
            };
        }
        if request.method == "initialize" {
            // Whoever begins anew leaves the old session behind.
            return Box::pin(begin_session(endpoint, head, request)).await;
        }
    }
    let known = match known::find(endpoint, head, id(&incoming)).await {
        Ok(known) => known,
        Err(refusal) => return refusal,
    };
    let present = known.enter(endpoint, &head.link);
    match incoming {
        Ok(Incoming::One(Message::Request(ref request))) => {
            call(present, &known, head, request, &meta, permit).await
        }
        Ok(Incoming::One(Message::Notification(ref notification))) => {
            notify(&present, notification).await
        }
        Ok(Incoming::One(Message::Response(response))) => {
            present.presence.live.resolve(response);
            refusal::empty(StatusCode::ACCEPTED)
        }
        Ok(Incoming::One(Message::Complaint(error))) => {
            tracing::debug!(%error, "the client could not read something");
            refusal::empty(StatusCode::ACCEPTED)
        }
        Ok(Incoming::Batch(entries)) => {
            Box::pin(batch::post(present, &known, head, entries, permit)).await
        }
        Err(malformed) => refuse_malformed(&present, &known, malformed),
    }
}

/// The id that an answer to this message would have.
fn id<'a>(incoming: &'a Result<Incoming<'_>, Malformed>) -> Option<&'a RequestId> {
    match incoming {
        Ok(Incoming::One(Message::Request(request))) => Some(&request.id),
        _ => None,
    }
}

/// Answers a request: on the spot if it is ready, else by a task that does not depend on the connection.
async fn call(
    present: Present,
    known: &Known,
    head: &Head,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
    permit: Permit,
) -> Response<Body> {
    let (mut exchange, change) = match begin(&present, known, head, request, meta) {
        Ok(begun) => begun,
        Err(answer) => return refusal::answer(answer),
    };
    if let Some(remembered) = change.map(|change| Box::pin(remember(&present, change)))
        && let Err(error) = remembered.await
    {
        return refusal::error(StatusCode::OK, Some(&request.id), &error);
    }
    let live = &present.presence.live;
    // Most calls are ready now, so only those that are not are noted, below. A second call with the same id that comes
    // while another thread is just here may so run up to its first pause; then one of the two is refused, and the
    // other goes on.
    let said = match poll_fn(|cx| Poll::Ready(exchange.poll_step(cx))).await {
        Poll::Ready(Step::Answer(answer)) => {
            live.has_answered();
            head.link.leave(present);
            return refusal::answer(answer);
        }
        Poll::Ready(Step::Message(message)) => Some(message),
        Poll::Ready(Step::Cancelled(_)) | Poll::Pending => None,
    };
    let running = match present.presence.begin(&exchange.call) {
        Ok(running) => running,
        Err(error) => return refusal::error(StatusCode::BAD_REQUEST, Some(&request.id), &error),
    };
    let work = Work::one(exchange, running, said);
    Box::pin(delivery::deliver(work, known.rules(), present, permit)).await
}

/// Begins to answer a request. What the session has to remember of it comes along, to be remembered first.
pub(super) fn begin(
    present: &Present,
    known: &Known,
    head: &Head,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
) -> Result<(Exchange, Option<SessionChange>), Answer> {
    let live = &present.presence.live;
    if let Err(error) = live.check(&request.id) {
        return Err(Answer::error(Some(&request.id), &error, 400));
    }
    let server = &present.endpoint.server;
    let mut arrival = head.arrival();
    arrival.session = Some(known.id);
    match session::begin(server, &known.record, live.clone(), request, meta, arrival) {
        Begun::Exchange(exchange) if !exchange.is_settled() && is_busy(present) => {
            let error = RpcError::internal(
                "too many calls of this session are running; try again when some are done",
            );
            Err(Answer::error(Some(&request.id), &error, 429))
        }
        Begun::Exchange(exchange) => Ok((exchange, None)),
        Begun::Change(change, exchange) => Ok((exchange, Some(change))),
    }
}

/// Says whether as many calls of a session are running as may be: they outlive their connections, so nothing else
/// keeps one client from taking the place of all others.
fn is_busy(present: &Present) -> bool {
    present.presence.running() >= present.endpoint.options.max_calls_per_session
}

pub(super) async fn remember(present: &Present, change: SessionChange) -> Result<(), RpcError> {
    let sessions = &present.endpoint.server.store_ref().sessions;
    let session = &present.session;
    let remembered = match change {
        SessionChange::Subscribe(uri) => Box::pin(present.endpoint.subscribe(session, uri)).await,
        change => sessions.update(session, change).await.map(drop),
    };
    match remembered {
        // A session that ended a moment ago needs no memory.
        Ok(()) => Ok(()),
        Err(error @ (StoreError::TooMany { .. } | StoreError::TooLarge { .. })) => {
            Err(RpcError::invalid_params(error.to_string()))
        }
        Err(error) => {
            present.endpoint.logs.store_failed(&error);
            Err(RpcError::internal("the session cannot be changed"))
        }
    }
}

/// Takes a notification.
pub(super) async fn notify(present: &Present, notification: &Notification<'_>) -> Response<Body> {
    if let Some(change) = session::notify(notification, Some(&present.presence.live))
        && let Err(error) = remember(present, change).await
    {
        return refusal::busy(None, error.message);
    }
    refusal::empty(StatusCode::ACCEPTED)
}

fn refuse_malformed(present: &Present, known: &Known, malformed: Malformed) -> Response<Body> {
    let live = &present.presence.live;
    if live.awaits(&malformed) {
        let response = refusal::error(StatusCode::BAD_REQUEST, None, &malformed.error);
        if let Some(id) = &malformed.id {
            live.spoil(id, malformed.error);
        }
        return response;
    }
    match &malformed.id {
        None => refusal::without_id(known.rules(), &malformed.error),
        id => refusal::error(StatusCode::BAD_REQUEST, id.as_ref(), &malformed.error),
    }
}

/// Ends a session, what runs in it, and its streams.
pub(super) async fn delete(endpoint: &Arc<Endpoint>, head: Head) -> Response<Body> {
    let known = match known::find(endpoint, &head, None).await {
        Ok(known) => known,
        Err(refusal) => return refusal,
    };
    let store = endpoint.server.store_ref();
    match store.sessions.remove(&known.id).await {
        Ok(true) => endpoint.server.session_ended(SessionKey::of(&known.id)),
        Ok(false) => return known::unknown(None),
        Err(error) => return known::unavailable(endpoint, None, &error),
    }
    endpoint.presences.close(&known.id);
    tasks::session_ended(&endpoint.server, known.id);
    if let Err(error) = store.events.forget(&known.id).await {
        tracing::warn!(%error, "the events of an ended session stay until they are old");
    }
    refusal::empty(StatusCode::NO_CONTENT)
}
