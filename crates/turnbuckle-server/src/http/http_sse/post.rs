//! POST: what the client says. The answer comes on the stream; the response only says whether it will.
//!
//! A body that is no message is refused in the response alone, as clients of this transport expect it: the sender
//! learns of it there, and the stream holds only what belongs to messages that were taken.

use std::{pin::pin, sync::Arc, time::Duration};

use ::http::{Response, StatusCode};
use tokio::time::timeout;
use turnbuckle_protocol::jsonrpc::{self, Incoming, Malformed, Message};
use turnbuckle_store::SessionId;

use super::streams::Streams;
use crate::{
    http::{
        body::Body,
        endpoint::{Endpoint, Head},
        incoming,
        post::{NO_BATCH, check_content},
        refusal,
    },
    lifecycle::Arrival,
    lines::Connection,
};

/// How long a request waits for a client to read what it already has been told.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes a message, or an array of them where the session has arrays.
pub(super) async fn post<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    streams: &Streams,
    head: &Head,
    session: Option<SessionId>,
    body: B,
) -> Response<Body> {
    if let Err(refusal) = check_content(&head.headers) {
        return refusal;
    }
    let Some(stream) = session.and_then(|session| streams.find(session, head)) else {
        return unknown();
    };
    let _permit = match endpoint.admit() {
        Ok(permit) => permit,
        Err(refusal) => return refusal,
    };
    let bytes = match incoming::read(endpoint, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let connection = &stream.connection;
    let incoming = match jsonrpc::parse(&bytes) {
        Ok(Incoming::Batch(_)) if !connection.takes_batches() => {
            return refusal::plain(StatusCode::BAD_REQUEST, NO_BATCH);
        }
        Ok(incoming) => incoming,
        Err(malformed) => return refuse(connection, malformed),
    };
    if wants_answer(&incoming) && timeout(PATIENCE, connection.sink().room()).await.is_err() {
        return refusal::busy(
            None,
            "read the stream first: too much waits there to be read",
        );
    }
    take(connection, incoming, head)
}

/// Gives a message to the core. Nothing is awaited, so a stream that had room before has it still.
fn take(connection: &Arc<Connection>, incoming: Incoming<'_>, head: &Head) -> Response<Body> {
    connection.handle(incoming, &|| Arrival {
        // The stream goes on after the end of a subscription.
        says_goodbye: true,
        // What requests share is the stream, not the connections that they are posted on.
        connected: Some(connection.connected().clone()),
        session: Some(connection.connected().id()),
        ..head.arrival()
    });
    if connection.sink().is_ended() {
        // The stream ended meanwhile, perhaps before it could know of what was just begun.
        connection.end();
        return unknown();
    }
    connection.sink().wake();
    refusal::empty(StatusCode::ACCEPTED)
}

/// Answers and notifications are taken from clients that do not read, too: they may end what fills the stream.
fn wants_answer(incoming: &Incoming<'_>) -> bool {
    match incoming {
        Incoming::One(message) => matches!(message, Message::Request(_)),
        Incoming::Batch(_) => true,
    }
}

fn refuse(connection: &Connection, malformed: Malformed) -> Response<Body> {
    let response = match &malformed.id {
        Some(id) if !malformed.is_answer() => {
            refusal::error(StatusCode::BAD_REQUEST, Some(id), &malformed.error)
        }
        _ => refusal::json(
            StatusCode::BAD_REQUEST,
            Body::full(connection.error_without_id(&malformed.error)),
        ),
    };
    if let (true, Some(id)) = (malformed.is_answer(), &malformed.id) {
        connection.live().spoil(id, malformed.error);
    }
    response
}

/// Refuses a session that is over, or is someone else's, or never was: nobody learns which.
fn unknown() -> Response<Body> {
    refusal::plain(
        StatusCode::NOT_FOUND,
        "there is no such session; open a new stream, and post where its first event says",
    )
}
