//! POST on the endpoint: selects how a message is handled.

mod batch;
mod call_set;
mod session;
mod session_response;
mod sessionless;
mod stateless;

use std::{pin::pin, sync::Arc};

use ::http::{
    HeaderMap, Response, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use bytes::Bytes;
use turnbuckle_protocol::{
    codec::headers::{Accept, MediaType, parse_accept, parse_content_type},
    jsonrpc::{self, Incoming, Message, Request},
};

use crate::{
    http::{
        SessionMode,
        body::ResponseBody,
        endpoint::{Endpoint, RequestHead},
        mcp_headers::MCP_SESSION_ID,
        read_body, responses,
        session::lookup,
    },
    lifecycle::{self, allows_session, is_stateless_request},
    request::RunningRequest,
};

/// Responds to a POST on the endpoint.
pub(super) async fn post<B: http_body::Body>(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    body: B,
) -> Response<ResponseBody> {
    if let Err(response) = check_headers(&head.headers) {
        return response;
    }
    let permit = match endpoint.acquire_permit() {
        Ok(permit) => permit,
        Err(response) => return response,
    };
    let options = &endpoint.options;
    let bytes = match read_body::read_body(endpoint, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    let in_session = options.session_mode == SessionMode::On
        && head.headers.contains_key(MCP_SESSION_ID)
        && allows_session(head.version());
    // Boxed so that connections without a session keep a small future.
    if in_session {
        return Box::pin(session::post(endpoint, head, &bytes, permit)).await;
    }
    let running_request = match classify(endpoint, head, &bytes) {
        PostRoute::Stateless(running_request) => running_request,
        PostRoute::Initialize => {
            return Box::pin(session::initialize(endpoint, head, &bytes)).await;
        }
        PostRoute::Sessionless => {
            return Box::pin(sessionless::post(endpoint, head, &bytes, permit)).await;
        }
        PostRoute::Respond(response) => return response,
    };
    drop(bytes);
    stateless::respond(running_request, permit, options).await
}

/// The handling of a message that does not name a session.
enum PostRoute {
    Stateless(RunningRequest),
    Initialize,
    Sessionless,
    Respond(Response<ResponseBody>),
}

fn classify(endpoint: &Endpoint, head: &RequestHead, bytes: &Bytes) -> PostRoute {
    let message = match jsonrpc::parse(bytes) {
        Ok(Incoming::One(Message::Request(request))) => {
            return classify_request(endpoint, head, &request);
        }
        Ok(message) => message,
        Err(malformed) => {
            // The id of a response was assigned by the server; the client would mistake it for one of its own.
            let id = malformed.id.as_ref().filter(|_| !malformed.is_response());
            return PostRoute::Respond(responses::rpc_error(
                StatusCode::BAD_REQUEST,
                id,
                &malformed.error,
            ));
        }
    };
    if !allows_session(head.version()) {
        return PostRoute::Respond(match message {
            Incoming::One(Message::Notification(_)) => responses::status_only(StatusCode::ACCEPTED),
            Incoming::One(_) => responses::invalid_request(
                StatusCode::BAD_REQUEST,
                "this revision has no requests to clients, so it accepts no responses",
            ),
            Incoming::Batch(_) => {
                responses::invalid_request(StatusCode::BAD_REQUEST, BATCH_UNSUPPORTED)
            }
        });
    }
    match endpoint.options.session_mode {
        SessionMode::Off => PostRoute::Sessionless,
        SessionMode::On => PostRoute::Respond(lookup::missing_session_id(None)),
    }
}

fn classify_request(endpoint: &Endpoint, head: &RequestHead, request: &Request<'_>) -> PostRoute {
    let meta = match lifecycle::parse_meta(request) {
        Ok(meta) => meta,
        Err(error) => {
            return PostRoute::Respond(responses::rpc_error(
                StatusCode::BAD_REQUEST,
                Some(&request.id),
                &error,
            ));
        }
    };
    if is_stateless_request(&request.method, &meta, || head.version()) {
        return match stateless::start_request(&endpoint.server, head, request, meta) {
            Ok(running_request) => PostRoute::Stateless(running_request),
            Err(response) => PostRoute::Respond(response),
        };
    }
    if request.method == "initialize" {
        return PostRoute::Initialize;
    }
    match endpoint.options.session_mode {
        SessionMode::Off => PostRoute::Sessionless,
        SessionMode::On => PostRoute::Respond(lookup::missing_session_id(Some(&request.id))),
    }
}

/// The error text for a batch in a revision without batches.
pub(super) const BATCH_UNSUPPORTED: &str =
    "this revision has no batches; send one message per request";

/// Checks that the body is JSON and that the client accepts both kinds of responses.
fn check_headers(headers: &HeaderMap) -> Result<(), Response<ResponseBody>> {
    check_content_type(headers)?;
    if accepted_types(headers).accepts_json_and_sse() {
        return Ok(());
    }
    Err(responses::invalid_request(
        StatusCode::NOT_ACCEPTABLE,
        "send `Accept: application/json, text/event-stream`",
    ))
}

/// Checks that the body is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Response<ResponseBody>> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(responses::invalid_request(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send the body without `Content-Encoding`",
        ));
    }
    let is_json = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            value == "application/json" || parse_content_type(value) == MediaType::Json
        });
    if is_json {
        return Ok(());
    }
    Err(responses::invalid_request(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "send `Content-Type: application/json`",
    ))
}

/// The value of `Accept` that nearly every client sends.
const COMMON_ACCEPT: &str = "application/json, text/event-stream";

/// Returns the media types that the client accepts.
pub(super) fn accepted_types(headers: &HeaderMap) -> Accept {
    let mut values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    match (values.next(), values.next()) {
        (Some(COMMON_ACCEPT), None) => Accept {
            json: true,
            event_stream: true,
        },
        (Some(first), None) => parse_accept(first),
        (Some(first), Some(second)) => {
            let joined = [first, second].into_iter().chain(values);
            parse_accept(&joined.collect::<Vec<_>>().join(","))
        }
        (None, _) => parse_accept(""),
    }
}
