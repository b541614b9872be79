//! POST: messages from the client. The response has only a status; results are sent on the stream.
//!
//! A body that is not a message is rejected in the HTTP response only, as clients of this transport expect.

use std::{pin::pin, sync::Arc, time::Duration};

use ::http::{Response, StatusCode};
use tokio::time::timeout;
use turnbuckle_protocol::jsonrpc::{self, Incoming, MalformedMessage, Message};
use turnbuckle_store::SessionId;

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{Endpoint, RequestHead, TOO_MANY_CALLS},
        http_sse::HttpSseRegistry,
        post::{check_content_type, read_body},
        responses,
        session::limits,
    },
    lifecycle::{BATCH_UNSUPPORTED, TransportInfo},
    ndjson::NdjsonConnection,
};

/// Timeout of a request that waits for the client to read its stream.
const STREAM_ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Handles a message, or a batch if the revision of the session has batches.
pub(crate) async fn post<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    registry: &HttpSseRegistry,
    head: &RequestHead,
    session_id: Option<SessionId>,
    body: B,
) -> Response<ResponseBody> {
    if let Err(response) = check_content_type(&head.headers) {
        return response;
    }
    let Some(session) = session_id.and_then(|id| registry.find(id, head)) else {
        return session_not_found();
    };
    let mut permit = match endpoint.acquire_permit(|| limits::quota_owner(head)) {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    let bytes = match read_body(&mut permit, head, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    let connection = &session.connection;
    let incoming = match jsonrpc::parse(&bytes) {
        Ok(Incoming::Batch(_)) if !connection.supports_batches() => {
            return responses::invalid_request(StatusCode::BAD_REQUEST, BATCH_UNSUPPORTED);
        }
        Ok(incoming) => incoming,
        Err(malformed) => return malformed_response(connection, malformed),
    };
    if expects_response(&incoming) && !registry.allow_call(&endpoint.caller_shares, &session) {
        return responses::too_many_requests(None, TOO_MANY_CALLS);
    }
    if expects_response(&incoming)
        && timeout(
            STREAM_ROOM_TIMEOUT,
            connection.write_queue().wait_for_room(),
        )
        .await
        .is_err()
    {
        return responses::service_unavailable(
            None,
            "the client does not read its stream; read it before sending more requests",
        );
    }
    handle_message(connection, incoming, head)
}

/// Passes a message to the protocol layer. Nothing is awaited, so a stream that had room before still has it.
fn handle_message(
    connection: &Arc<NdjsonConnection>,
    incoming: Incoming<'_>,
    head: &RequestHead,
) -> Response<ResponseBody> {
    connection.handle(incoming, &|| TransportInfo {
        // The stream continues after a subscription ends.
        announces_subscription_end: true,
        // Requests share the state of the stream, not of the connections that they are posted on.
        connection: Some(connection.connection().clone()),
        session: Some(connection.connection().id()),
        ..head.transport_info()
    });
    if connection.write_queue().is_ended() {
        // The stream ended concurrently, possibly before it registered the new request.
        connection.end();
        return session_not_found();
    }
    connection.write_queue().wake();
    responses::status_only(StatusCode::ACCEPTED)
}

/// Responses and notifications are accepted even if the client does not read: they may end what fills the stream.
fn expects_response(incoming: &Incoming<'_>) -> bool {
    match incoming {
        Incoming::One(message) => matches!(message, Message::Request(_)),
        Incoming::Batch(_) => true,
    }
}

fn malformed_response(
    connection: &NdjsonConnection,
    malformed: MalformedMessage,
) -> Response<ResponseBody> {
    let response = match &malformed.id {
        Some(id) if !malformed.is_response() => {
            responses::rpc_error(StatusCode::BAD_REQUEST, Some(id), &malformed.error)
        }
        _ => responses::json(
            StatusCode::BAD_REQUEST,
            ResponseBody::full(connection.error_without_id(&malformed.error)),
        ),
    };
    if let (true, Some(id)) = (malformed.is_response(), &malformed.id) {
        connection.runtime().fail(id, malformed.error);
    }
    response
}

/// Rejects a session id that is unknown, expired, or belongs to another caller. The response is the same for all three.
fn session_not_found() -> Response<ResponseBody> {
    responses::invalid_request(
        StatusCode::NOT_FOUND,
        "session not found; open a new stream and post to the URL in its first event",
    )
}
