//! POST on the endpoint: reads, parses and classifies a message, then selects the code that handles it.

mod batch;
mod call_set;
mod session;
mod session_response;
mod sessionless;
mod stateless;

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use ::http::{
    HeaderMap, Response, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use bytes::Bytes;
use turnbuckle_protocol::{
    RequestId,
    codec::headers::{Accept, MediaType, parse_accept, parse_content_type},
    jsonrpc::{self, Incoming, MalformedMessage, Message, Request},
};

use crate::{
    http::{
        SessionMode,
        body::ResponseBody,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        mcp_headers::MCP_SESSION_ID,
        read_body, responses,
        session::lookup,
    },
    lifecycle::{self, MessageClass, SessionPresence},
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
    let bytes = match read_body::read_body(endpoint, pin!(body)).await {
        Ok(bytes) => bytes,
        Err(response) => return response,
    };
    let (running_request, permit) = match route(endpoint, head, &bytes, permit) {
        PostRoute::Stateless(running_request, permit) => (running_request, permit),
        PostRoute::Boxed(responding) => return responding.await,
        PostRoute::Respond(response) => return response,
    };
    drop(bytes);
    stateless::respond(running_request, permit, &endpoint.options).await
}

/// The next step for the message of a POST.
enum PostRoute<'a> {
    /// A stateless request, started.
    Stateless(RunningRequest, InFlightPermit),
    /// A message of a legacy revision. Boxed so that connections without a session keep a small future.
    Boxed(Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>),
    Respond(Response<ResponseBody>),
}

/// Parses and classifies a message, and selects the code that handles it.
fn route<'a>(
    endpoint: &'a Arc<Endpoint>,
    head: &'a RequestHead,
    bytes: &'a Bytes,
    permit: InFlightPermit,
) -> PostRoute<'a> {
    let incoming = jsonrpc::parse(bytes);
    let session = || session_presence(endpoint, head);
    match lifecycle::classify(&incoming, head.version(), session) {
        MessageClass::Stateless(request, meta) => {
            match stateless::start_request(&endpoint.server, head, request, meta) {
                Ok(running_request) => PostRoute::Stateless(running_request, permit),
                Err(response) => PostRoute::Respond(response),
            }
        }
        MessageClass::Initialize(request) => {
            let request = Request {
                id: request.id.clone(),
                method: request.method.clone(),
                params: request.params.clone(),
            };
            PostRoute::Boxed(Box::pin(session::initialize(endpoint, head, request)))
        }
        MessageClass::Session(meta) => PostRoute::Boxed(Box::pin(session::post(
            endpoint, head, incoming, meta, permit,
        ))),
        MessageClass::Sessionless(meta) => PostRoute::Boxed(Box::pin(sessionless::post(
            endpoint, head, incoming, meta, permit,
        ))),
        MessageClass::SessionRequired => {
            PostRoute::Respond(lookup::missing_session_id(response_id(&incoming)))
        }
        MessageClass::Ignored => PostRoute::Respond(responses::status_only(StatusCode::ACCEPTED)),
        MessageClass::Invalid(rejection) => {
            PostRoute::Respond(responses::rejection(response_id(&incoming), &rejection))
        }
    }
}

fn session_presence(endpoint: &Endpoint, head: &RequestHead) -> SessionPresence {
    match endpoint.options.session_mode {
        SessionMode::Off => SessionPresence::Disabled,
        SessionMode::On if head.headers.contains_key(MCP_SESSION_ID) => SessionPresence::Present,
        SessionMode::On => SessionPresence::Absent,
    }
}

/// Returns the id for the response to a message.
fn response_id<'a>(incoming: &'a Result<Incoming<'_>, MalformedMessage>) -> Option<&'a RequestId> {
    match incoming {
        Ok(Incoming::One(Message::Request(request))) => Some(&request.id),
        Ok(_) => None,
        Err(malformed) => malformed_id(malformed),
    }
}

/// Returns the id for the response to a malformed message.
///
/// The id of a response was assigned by the server; the client would mistake it for one of its own.
fn malformed_id(malformed: &MalformedMessage) -> Option<&RequestId> {
    malformed.id.as_ref().filter(|_| !malformed.is_response())
}

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
